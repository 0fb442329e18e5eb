"""The functions of the language for one thread of a GPU.

Real functions are those of the GPU's own library, which agree with the C library's to the last
digits or nearly so, as each documents. What it has not is composed: the complex functions, by their
textbook formulas, without C's special cases for infinities.
"""

from __future__ import annotations

from pyfuser.codegen.c.maths.scalar import formula_of, function_name
from pyfuser.codegen.c.maths.scalar import headers as scalar_headers
from pyfuser.codegen.gpu.dialect import DEVICE, Dialect
from pyfuser.ir.dtypes import DType
from pyfuser.ir.maths import FUNCTIONS, definition

_TESTS = {"isfinite": "x - x == 0", "isinf": "x == x && x - x != 0"}
_PARTS = {DType.COMPLEX64: DType.FLOAT32, DType.COMPLEX128: DType.FLOAT64}
_COMPLEX = {
    "abs": ("{hypot}(x.re, x.im)", ("hypot",)),
    "exp": (
        "x.im == 0 ? {kind}{{{exp}(x.re), x.im}}\n"
        "        : {kind}{{{exp}(x.re) * {cos}(x.im), {exp}(x.re) * {sin}(x.im)}}",
        ("exp", "cos", "sin"),
    ),
    "log": (
        "{kind}{{{log}({hypot}(x.re, x.im)), {atan2}(x.im, x.re)}}",
        ("log", "hypot", "atan2"),
    ),
    "pow": ("{exp}(y * {log}(x))", ()),
}
_SQUARE_ROOT = """\
static {device} inline {kind} {name}({kind} x) {{
    const {real} size = {hypot}(x.re, x.im);
    if (size == 0) return {{0, x.im}};
    const {real} larger = {sqrt}((size + {fabs}(x.re)) / 2), smaller = {fabs}(x.im) / (2 * larger);
    if (x.re >= 0) return {{larger, {copysign}(smaller, x.im)}};
    return {{smaller, {copysign}(larger, x.im)}};
}}"""


def prelude(functions: frozenset[tuple[str, DType]], dialect: Dialect) -> str:
    """Definitions of functions, each for arguments of its dtype."""
    functions = _closure(functions)
    ordered = sorted(functions, key=lambda f: (f[1].is_complex, f[0] == "pow", f[0], f[1].value))
    lines: list[str] = []
    for name, operand in ordered:
        define = _complex if operand.is_complex else _real
        lines += define(name, operand, dialect)
    return "\n".join(lines) + "\n" if lines else ""


def headers(functions: frozenset[tuple[str, DType]]) -> frozenset[str]:
    """The headers that their definitions need."""
    return scalar_headers(_closure(functions))


def _closure(functions: frozenset[tuple[str, DType]]) -> frozenset[tuple[str, DType]]:
    """The functions, and the ones that complex functions are made of."""
    found = set(functions)
    for name, operand in functions:
        if name == "pow" and operand.is_complex:
            found |= {("exp", operand), ("log", operand)}
    for name, operand in tuple(found):
        if operand.is_complex:
            parts = ("hypot", "sqrt", "fabs", "copysign") if name == "sqrt" else _COMPLEX[name][1]
            found |= {(part, _PARTS[operand]) for part in parts}
    return frozenset(found)


def _real(name: str, operand: DType, dialect: Dialect) -> list[str]:
    kind, f = operand.cpp, "f" if operand is DType.FLOAT32 else ""
    arity = definition(name).arity
    result = "bool" if name.startswith("is") else kind
    parameters = ", ".join(f"{kind} {n}" for n in "xyz"[:arity])
    head = f"static {DEVICE} inline {result} {function_name(name, operand)}({parameters})"
    if name == "abs" and operand.is_integer:
        unsigned = f"uint{8 * operand.size}_t"
        return [f"{head} {{ return x < 0 ? ({kind})(0 - ({unsigned})x) : x; }}"]
    c_name = "fabs" if name == "abs" else name
    library = f"pf_libm_{c_name}{{f}}"
    formula = _TESTS.get(name) or formula_of(name) or f"{library}({', '.join('xyz'[:arity])})"
    lines = []
    for function, text in ((c_name, library), ("sqrt", "__builtin_sqrt{f}")):
        if text in formula:
            call, declaration = dialect.library(function, operand)
            formula = formula.replace(text, call)
            lines += [declaration] if declaration else []
    return [*lines, f"{head} {{ return {formula.format(type=kind, f=f)}; }}"]


def _complex(name: str, operand: DType, dialect: Dialect) -> list[str]:
    kind, part = operand.cpp, _PARTS[operand]
    own = operand if name == "pow" else part
    used = ("exp", "log", "hypot", "sqrt", "fabs", "copysign", "cos", "sin", "atan2")
    names = {n: function_name(n, own if n in ("exp", "log") else part) for n in used}
    if name == "sqrt":
        text = function_name(name, operand)
        facts = {"device": DEVICE, "kind": kind, "name": text, "real": part.cpp}
        return [_SQUARE_ROOT.format(**facts, **names)]
    formula = _COMPLEX[name][0].format(kind=kind, **names)
    parameters = ", ".join(f"{kind} {n}" for n in "xy"[: FUNCTIONS[name].arity])
    result = part.cpp if name == "abs" else kind
    head = f"static {DEVICE} inline {result} {function_name(name, operand)}({parameters})"
    return [f"{head} {{\n    return {formula};\n}}"]
