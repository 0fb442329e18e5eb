"""exp and log as a few plain operations, which vectorise wherever a loop does.

libmvec is called through memory for each vector, and gives up on vectors that hold an argument
outside of its table: it then takes the scalar function for every such lane. Masked scores
(`exp(-1e30)`) and empty bins (`log(0)`) are just that, and cost four times as much as others.
Inlined, both functions take the same time for all arguments, keep nothing in memory, overlap with
what is around them, and leave a loop where their argument does not change in it. For that nothing
in them branches (`pf_select`): g++ kept the branches in the loop, which then made no vectors.

Every operation is one of IEEE 754 (fma included), so bits depend on the argument alone, whatever
the vectors. Products that meet an addition are fma or kept apart (`pf_rounded`). After
P. T. P. Tang, "Table-driven implementation of the exponential function" (1989), the table replaced
by a longer polynomial, and "... of the logarithm function" (1990); the polynomials are minimax
(Remez' algorithm, in 50 digits), to 0.16 and 0.01 of half a unit in the last place.

exp of floats is computed in double precision and rounded once. So it errs by up to 0.501 units in
the last place, where libmvec's errs by 2.55, and all but one value in 1,500 are those of glibc's
`expf`, which PyKokkos calls (it errs by 0.502). It takes twice as long as libmvec's.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyfuser.ir.dtypes import DType

_BITS = """\
static inline int64_t pf_word_of(double x) {
    int64_t bits;
    __builtin_memcpy(&bits, &x, sizeof x);
    return bits;
}
static inline double pf_from_word(int64_t bits) {
    double x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}
"""

_DIGITS = """\
// What exponents are computed in. A loop with 4-byte numbers takes two vectors of doubles at a
// time, whose operations alternate: steps of the polynomials wait for those before, and overlap.
typedef {digits} pf_digits;
static inline double pf_number(uint32_t k) {{ return (double)(int32_t)k; }}
static inline double pf_number(uint64_t k) {{  // few processors convert 8-byte numbers in vectors
    return pf_from_word((int64_t)k + 0x4338000000000000) - 0x1.8p52;
}}
"""

_EXP_TERMS = (
    "0x1.af632b908f96ap-26",
    "0x1.289186067fbb6p-22",
    "0x1.71ddf6b37f67dp-19",
    "0x1.a019b90c8b822p-16",
    "0x1.a01a01b00c5b8p-13",
    "0x1.6c16c1788c095p-10",
    "0x1.111111110f803p-7",
    "0x1.5555555553d62p-5",
    "0x1.5555555555558p-3",
    "0.5",
)
"""(e^r - 1 - r) / r^2 for |r| <= log(2) / 2."""

_SHORT_EXP_TERMS = (
    "0x1.9f08b5d1a9c05p-13",
    "0x1.6d8cf95282d25p-10",
    "0x1.1112708b4f8b5p-7",
    "0x1.55548dd2e5f42p-5",
    "0x1.5555544362805p-3",
    "0x1.0000003a1d4e4p-1",
)
"""The same to 2^-34 of e^r, which is a thousandth of half a unit in the last place of a float."""

_LOG_TERMS = (
    "0x1.2f0978f1eef57p-3",
    "0x1.39a157e6ca6f4p-3",
    "0x1.74664289d90ffp-3",
    "0x1.c71c51f8ae865p-3",
    "0x1.24924942045c9p-2",
    "0x1.999999997fc75p-2",
    "0x1.5555555555593p-1",
)
"""(log((1 + s) / (1 - s)) / s - 2) / z with z = s^2, for s up to (sqrt(2) - 1) / (sqrt(2) + 1)."""

_EXP = """\
// e^x = 2^k e^r. The factor comes in two halves, as 2^k alone can be out of range where e^x is not.
static inline double pf_exp_f64(double x) {{
    const double shift = 0x1.8p52;  // beside it a double has no fraction
    const double shifted = __builtin_fma(x, 0x1.71547652b82fep+0, shift);
    const double whole = shifted - shift;
    double r = __builtin_fma(whole, -0x1.62e42fefa39efp-1, x);
    r = __builtin_fma(whole, -0x1.abc9e3b39803fp-56, r);
    double q = {first};
{terms}
    // Arguments out of range are replaced here, beside the long way to the power and not before it.
    const bool low = x < -746.0, high = x > 710.0;
    const double beyond = pf_select(low, 0.0, __builtin_inf());
    const double power = 1.0 + __builtin_fma(pf_rounded(r * r), q, r);
    const double factor = pf_select(low | high, 0.0, power);  // what underflows takes 100 cycles
    const pf_digits k = (pf_digits)(pf_word_of(shifted) - pf_word_of(shift)) + 2048, half = k >> 1;
    const double first = pf_from_word((int64_t)(half - 1) << 52);
    const double second = pf_from_word((int64_t)(k - half - 1) << 52);
    return pf_select(low | high, beyond, factor * first * second);
}}
"""

_SHORT_EXP = """\
// As of doubles: beyond these bounds the product is finite, and becomes 0 or infinity as a float.
static inline float pf_exp_f32(float x) {{
    const double least = pf_select(x < -104.0f, -104.0, x), y = pf_select(x > 89.0f, 89.0, least);
    const double shift = 0x1.8p52, shifted = __builtin_fma(y, 0x1.71547652b82fep+0, shift);
    const double r = __builtin_fma(shifted - shift, -0x1.62e42fefa39efp-1, y);
    double q = {first};
{terms}
    const double power = 1.0 + __builtin_fma(pf_rounded(r * r), q, r);
    return (float)(power * pf_from_word((pf_word_of(shifted) + 1023) << 52));
}}
"""

_LOG = """\
// log x = k log 2 + log(1 + f), with 1 + f from sqrt(1/2) to sqrt(2).
static inline double pf_log_f64(double x) {{
    const bool tiny = x < 0x1p-1022;
    const double y = pf_select(tiny, x * 0x1p54, x);
    const int64_t root = 0x3fe6a09e667f3bcd;
    const uint64_t above = (uint64_t)(pf_word_of(y) - root) + (1024ull << 52);
    const pf_digits k = (pf_digits)(above >> 32) >> 20;  // and 1024
    const double whole = pf_number(k) - 1024.0;
    const double scale = pf_select(tiny, whole - 54.0, whole);
    const double f = pf_from_word((int64_t)(above & 0xfffffffffffff) + root) - 1.0;
    const double s = f / (2.0 + f), z = pf_rounded(s * s), half = pf_rounded(0.5 * f * f);
    double q = {first};
{terms}
    const double rest = pf_rounded(s * __builtin_fma(q, z, half));
    const double low = __builtin_fma(scale, 0x1.abc9e3b39803fp-56, rest);
    const double value = __builtin_fma(scale, 0x1.62e42fefa39efp-1, f - (half - low));
    const double positive = pf_select(x < __builtin_inf(), value, x + x);
    const double other = pf_select(x == 0.0, -__builtin_inf(), -__builtin_nan(""));
    return pf_select(x <= 0.0, other, positive);
}}
"""


def _horner(text: str, terms: Sequence[str], variable: str) -> str:
    lines = [f"    q = __builtin_fma(q, {variable}, {term});" for term in terms[1:]]
    return text.format(first=terms[0], terms="\n".join(lines))


_DEFINITIONS = {
    ("exp", DType.FLOAT32): _horner(_SHORT_EXP, _SHORT_EXP_TERMS, "r"),
    ("exp", DType.FLOAT64): _horner(_EXP, _EXP_TERMS, "r"),
    ("log", DType.FLOAT64): _horner(_LOG, _LOG_TERMS, "z"),
}

FUNCTIONS = frozenset(_DEFINITIONS)
"""The functions that are computed here, each for arguments of a dtype."""


def prelude(functions: frozenset[tuple[str, DType]], doubled: bool) -> str:
    """C++ definitions of `pf_<name>_f64` and `pf_<name>_f32` for some of FUNCTIONS.

    `doubled`: in loops of doubles alone they take two vectors at a time, which changes no bit. It
    is for long loops: fewer trips than two vectors have lanes take up to twice as long.
    Needs <stdint.h>, rounded.h, a processor with fma, and `pf_select` of doubles.
    """
    wanted = [text for function, text in _DEFINITIONS.items() if function in functions]
    digits = _DIGITS.format(digits="uint32_t" if doubled else "uint64_t")
    return "".join([_BITS, digits, *wanted]) if wanted else ""
