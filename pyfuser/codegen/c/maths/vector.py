"""The functions of the language for vectors, over the C library's vector maths (glibc's libmvec).

A declaration marked `simd` tells g++ that versions of a function for 2, 4, 8 or 16 lanes exist
under the names of the vector function ABI, so a loop that calls it vectorises without -ffast-math.
libmvec's versions for different widths are different algorithms: their results differ in the last
digit from each other and from the scalar functions. So we define all the versions, scalar too, and
each of them evaluates the one kernel of the widest vectors (64 bytes with AVX-512, else 32). A
value then depends on the arguments alone: not on its lane, on whether it falls into the remainder
of a loop, or on what g++ did to the loop, and fusion cannot change it.

How far each function is from the exact value, and how long it takes, is in docs/maths.md. Zeros,
infinities, NaNs and denormal numbers come out as from the scalar functions, signs included. exp,
and log of doubles, are not libmvec's but `maths.inline`.

A call that does not vectorise takes 1 to 3 times as long as the scalar function. Before glibc 2.35
there are exp, log, sin, cos and pow only; what is missing stays scalar everywhere.
"""

from __future__ import annotations

from pyfuser.codegen.c.maths import inline as maths_inline
from pyfuser.ir.dtypes import DType
from pyfuser.ir.maths import FUNCTIONS
from pyfuser.tuning.target import Target

_HEADER = """\
// The C library's vector maths. Its kernel for the widest vectors computes every call, also those
// of fewer lanes and of one: bits do not depend on how, or whether, a loop was vectorised.
template <typename T, typename W> static inline T pf_first(W lanes) {
    T first;
    __builtin_memcpy(&first, &lanes, sizeof(T));
    return first;
}
"""

# {t}: the type, {s}: its suffix, {a}, {b}, {c}: its lanes in 16, 32 and 64 bytes,
# {aa}: the list of a vector's lanes, twice
_TYPES = """\
typedef {t} pf_{s}x{a} __attribute__((vector_size(16)));
typedef {t} pf_{s}x{b} __attribute__((vector_size(32)));
{widest}static inline pf_{s}_widest pf_repeat(pf_{s}x{a} x) {{
    return pf_repeat(pf_{s}x{b}{{{aa}}});
}}
static inline pf_{s}_widest pf_repeat({t} x) {{ return x - pf_{s}_widest{{}}; }}
"""

_WIDEST = {
    64: """\
typedef {t} pf_{s}x{c} __attribute__((vector_size(64)));
typedef pf_{s}x{c} pf_{s}_widest;
static inline pf_{s}x{c} pf_repeat(pf_{s}x{c} x) {{ return x; }}
static inline pf_{s}x{c} pf_repeat(pf_{s}x{b} x) {{
    return pf_{s}x{c}{{{bb}}};
}}
""",
    32: """\
typedef pf_{s}x{b} pf_{s}_widest;
static inline pf_{s}x{b} pf_repeat(pf_{s}x{b} x) {{ return x; }}
""",
}

_SELECT = """\
// condition ? a : b without a branch, into which g++ would move a call, or which it would keep in a
// loop where nothing of it changes: the loop would not vectorise.
static inline {t} pf_select(bool condition, {t} a, {t} b) {{
    int{bits}_t first, second;
    __builtin_memcpy(&first, &a, sizeof a);
    __builtin_memcpy(&second, &b, sizeof b);
    const int{bits}_t mask = -(int{bits}_t)condition;
    first = (first & mask) | (second & ~mask);
    __builtin_memcpy(&a, &first, sizeof a);
    return a;
}}
"""

_LANES = """\
#define PF_LANES_{n}(T, function, prefix) \\
    __attribute__((visibility("hidden"))) \\
    T pf_##function##_lanes({parameters}) __asm__(prefix "pf_" #function); \\
    T pf_##function##_lanes({parameters}) {{ \\
        return pf_first<T>(pf_##function##_kernel({repeated})); \\
    }}
"""

_FUNCTION = """\
extern "C" __attribute__((const, simd("notinbranch"))) {t} pf_{name}_{s}({scalars});
extern "C" __attribute__((const)) pf_{s}_widest pf_{name}_{s}_kernel({widest})
    __asm__("_ZGV{kernel}{v}_{symbol}");
PF_LANES_{n}({t}, {name}_{s}, "")
PF_LANES_{n}(pf_{s}x{a}, {name}_{s}, "_ZGVbN{a}{v}_")
PF_LANES_{n}(pf_{s}x{b}, {name}_{s}, "_ZGVdN{b}{v}_")
"""
_OF_64_BYTES = 'PF_LANES_{n}(pf_{s}x{c}, {name}_{s}, "_ZGVeN{c}{v}_")\n'

_POW = """\
static inline {t} pf_pow_{s}({t} x, {t} y) {{
    const {t} root = pf_select((x < 0) & (x + x == x), -x, __builtin_sqrt{f}(x + 0));
    {t} power = pf_select(y == ({t})0.5, root, pf_power_{s}(x, y));
    power = pf_select(y == 3, pf_rounded(pf_rounded(x * x) * x), power);
    return pf_select(y == 2, pf_rounded(x * x), power);
}}
"""

_FORMATS: dict[DType, dict[str, str]] = {
    DType.FLOAT64: {"t": "double", "s": "f64", "bits": "64", "a": "2", "b": "4", "c": "8"},
    DType.FLOAT32: {"t": "float", "s": "f32", "bits": "32", "a": "4", "b": "8", "c": "16"},
}


def prelude(functions: frozenset[tuple[str, DType]], target: Target, doubled: bool = False) -> str:
    """C++ definitions of `pf_<name>_f64` and `pf_<name>_f32` for some of `Target.vector_maths`.

    Also of `pf_select(condition, a, b)` for their dtypes: g++ does not vectorise a loop with a call
    in one arm of a conditional expression, but these functions may be called for nothing.
    `doubled`: see `maths.inline.prelude`.
    Needs <stdint.h>, -march=native and `headers`; compilers other than g++ make scalar calls of it.
    """
    if not functions:
        return ""
    inline = functions & maths_inline.FUNCTIONS
    dtypes = {dtype for _, dtype in functions} | ({DType.FLOAT64} if inline else set())
    selects = [_SELECT.format(**_FORMATS[d]) for d in sorted(dtypes, key=lambda d: d.value)]
    return (
        "".join(selects)
        + maths_inline.prelude(inline, doubled)
        + _library_calls(functions - inline, target.vector_bytes == 64)
    )


def headers(functions: frozenset[tuple[str, DType]]) -> frozenset[str]:
    """The headers that these definitions need."""
    products = functions & maths_inline.FUNCTIONS or any(name == "pow" for name, _ in functions)
    return frozenset({"rounded"} if products else ())


def _library_calls(functions: frozenset[tuple[str, DType]], wide: bool) -> str:
    """wide: whether vectors have 64 bytes."""
    if not functions:
        return ""
    dtypes = sorted({dtype for _, dtype in functions}, key=lambda dtype: dtype.value)
    arities = sorted({FUNCTIONS[name].arity for name, _ in functions})
    parts = [_HEADER]
    parts += [_types(dtype, wide) for dtype in dtypes]
    for n in arities:
        arguments = ["x", "y"][:n]
        parameters = ", ".join(f"T {x}" for x in arguments)
        repeated = ", ".join(f"pf_repeat({x})" for x in arguments)
        parts.append(_LANES.format(n=n, parameters=parameters, repeated=repeated))
    parts += [
        _function(*item, wide)
        for item in sorted(functions, key=lambda item: (item[0], item[1].value))
    ]
    return "\n".join(parts)


def _types(dtype: DType, wide: bool) -> str:
    lanes = _FORMATS[dtype]
    twice = {
        both: ", ".join([f"x[{k}]" for k in range(int(lanes[one]))] * 2)
        for one, both in (("a", "aa"), ("b", "bb"))
    }
    widest = _WIDEST[64 if wide else 32].format(**lanes, **twice)
    return _TYPES.format(**lanes, **twice, widest=widest)


def _function(name: str, dtype: DType, wide: bool) -> str:
    """The scalar declaration that loops call, and its versions for every number of lanes."""
    formats, function = _FORMATS[dtype], FUNCTIONS[name]
    kind, s, n = formats["t"], formats["s"], function.arity
    f = "f" if dtype is DType.FLOAT32 else ""
    text = (_FUNCTION + _OF_64_BYTES * wide).format(
        **formats,
        n=n,
        v="v" * n,
        kernel=f"eN{formats['c']}" if wide else f"dN{formats['b']}",
        name="power" if name == "pow" else name,
        symbol=function.c_name + f,
        scalars=", ".join([kind] * n),
        widest=", ".join([f"pf_{s}_widest"] * n),
    )
    return text + (_POW.format(**formats, f=f) if name == "pow" else "")
