"""Divisions of integers by 0 in C++: what would end the process ends the launch with an error.

A kernel cannot stop in the middle of its loops, so a quotient by 0 is 0, and the entry point
returns DIVIDED in the end. The test is of divisions by the processor's instruction, which trap and
take many times as long; those of 32 bits by way of doubles (see `cpu.prelude.QUOTIENT`), which do
neither, stay without, as it would keep them from vectors.
"""

from __future__ import annotations

from pyfuser.codegen.c.expressions import HELPERS
from pyfuser.codegen.cpu.context import DIVIDED

PRELUDE = """\
static int pf_zero;  // whether an integer was divided by 0

// Neither traps: not where b is 0, nor for the least number and -1.
template <typename T> static inline T pf_divided(T a, T b) {
    if (__builtin_expect(b == 0, 0)) {
        __atomic_store_n(&pf_zero, 1, __ATOMIC_RELAXED);
        return 0;
    }
    if ((T)-1 < 0 && b == (T)-1) return 0 - a;
    return a / b;
}
template <typename T> static inline T pf_rest(T a, T b) {
    if (__builtin_expect(b == 0, 0)) {
        __atomic_store_n(&pf_zero, 1, __ATOMIC_RELAXED);
        return 0;
    }
    if ((T)-1 < 0 && b == (T)-1) return 0;
    return a % b;
}
"""

_ENTRY = 'extern "C" int pf_kernel('


def reported(code: str) -> str:
    """The code of a kernel, whose entry point returns DIVIDED if an integer was divided by 0."""
    if not any(f"{helper}<" in code for helper in HELPERS.values()):
        return code
    before, _, rest = code.partition(_ENTRY)
    parameters, _, body = rest.partition(")")
    names = ", ".join(parameter.split()[-1] for parameter in parameters.split(", "))
    return (
        f"{before}static int pf_dividing({parameters}){body}\n"
        f"{_ENTRY}{parameters}) {{\n"
        f"    const int status = pf_dividing({names});\n"
        f"    return __atomic_exchange_n(&pf_zero, 0, __ATOMIC_RELAXED) ? {DIVIDED} : status;\n"
        "}\n"
    )
