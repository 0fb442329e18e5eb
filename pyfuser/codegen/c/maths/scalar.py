"""The functions of the language for one lane, over the C library.

What IEEE 754 defines exactly (sqrt, floor, ...) is a compiler builtin, which becomes an
instruction. The others are declared under names the compiler does not know, so that it cannot fold
a call of constants to another last digit than the library gives at run time.
"""

from __future__ import annotations

from pyfuser.ir.dtypes import DType
from pyfuser.ir.maths import FUNCTIONS, POWERS, definition

_COMPLEX_FORMULAS = {"exp": "cexp", "log": "clog", "sqrt": "csqrt", "pow": "cpow", "abs": "cabs"}
SUFFIXES = {
    DType.FLOAT32: "f32",
    DType.FLOAT64: "f64",
    DType.COMPLEX64: "c64",
    DType.COMPLEX128: "c128",
    DType.INT32: "i32",
    DType.INT64: "i64",
    DType.UINT32: "u32",
    DType.UINT64: "u64",
}


def formula_of(name: str) -> str:
    """C++ over `x` and `y` that computes a function of reals; "" if there is only its name.

    What `pow` is where its exponent is a constant it is, too, where that is known at run time.
    """
    if name != "pow":
        return definition(name).formula
    powers = [f"y == ({{type}}){exponent} ? {power.formula}" for exponent, power in POWERS.items()]
    return " : ".join([*powers, "pf_libm_pow{f}(x, y)"])


def function_name(name: str, operand: DType) -> str:
    """The name in emitted code of a function for arguments of one dtype: `pf_exp_f64`."""
    return f"pf_{name}_{SUFFIXES[operand]}"


def prelude(functions: frozenset[tuple[str, DType]]) -> str:
    """C++ definitions of functions, each for arguments of its dtype.

    It needs `headers`.
    """
    lines: list[str] = []
    for name, operand in sorted(functions, key=lambda item: (item[0], item[1].value)):
        if name == "abs" and not operand.is_complex:
            lines.append(_absolute(operand))
        elif operand.is_complex:
            lines.append(_complex(name, operand))
        else:
            lines += _real(name, operand)
    return "\n".join(lines) + "\n" if lines else ""


def headers(functions: frozenset[tuple[str, DType]]) -> frozenset[str]:
    """The headers that their definitions need."""
    return frozenset(
        {"rounded"} if any("pf_rounded" in formula_of(name) for name, _ in functions) else ()
    )


def _absolute(operand: DType) -> str:
    body = "x < 0 ? -x : x" if operand.is_integer else f"__builtin_fabs{_f(operand)}(x)"
    kind = operand.cpp
    return f"static inline {kind} {function_name('abs', operand)}({kind} x) {{ return {body}; }}"


def _f(operand: DType) -> str:
    return "f" if operand is DType.FLOAT32 else ""


def _real(name: str, operand: DType) -> list[str]:
    kind, f = operand.cpp, _f(operand)
    function = definition(name)
    arity = function.arity
    result = "bool" if name.startswith("is") else kind
    types = ", ".join([kind] * arity)
    names = ["x", "y", "z"][:arity]
    lines = []
    if function.builtin:
        body = f"__builtin_{name}{f}({', '.join(names)})"
    else:
        body = formula_of(name) or f"pf_libm_{name}{f}({', '.join(names)})"
        body = body.format(type=kind, f=f)
    if "pf_libm_" in body:
        c_name = function.c_name + f
        lines.append(
            f'extern "C" __attribute__((const)) {kind} pf_libm_{name}{f}({types}) '
            f'__asm__("{c_name}");'
        )
    parameters = ", ".join(f"{kind} {n}" for n in names)
    lines.append(
        f"static inline {result} {function_name(name, operand)}({parameters}) {{ return {body}; }}"
    )
    return lines


def _complex(name: str, operand: DType) -> str:
    """Through the compiler's own complex type, which is what the C library takes."""
    kind = operand.cpp
    f, real = ("f", "float") if operand is DType.COMPLEX64 else ("", "double")
    names = ["x", "y"][: FUNCTIONS[name].arity]
    lines = [
        f"    __complex__ {real} c{n};\n    __real__ c{n} = {n}.re;\n    __imag__ c{n} = {n}.im;\n"
        for n in names
    ]
    call = f"__builtin_{_COMPLEX_FORMULAS[name]}{f}({', '.join('c' + n for n in names)})"
    if name == "abs":
        result, value = real, call
    else:
        result, value = kind, "{__real__ z, __imag__ z}"
        lines.append(f"    const __complex__ {real} z = {call};\n")
    parameters = ", ".join(f"{kind} {n}" for n in names)
    return (
        f"static inline {result} {function_name(name, operand)}({parameters}) {{\n"
        f"{''.join(lines)}    return {value};\n}}"
    )
