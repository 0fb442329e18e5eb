"""What annotations mean: types by their last name, as PyKokkos reads them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from pyfuser.ir.dtypes import DType

# As bare names (`float` is Python's, so a double) ...
_BARE = {
    "int": DType.INT32,
    "float": DType.FLOAT64,
    "bool": DType.BOOL,
    "double": DType.FLOAT64,
    "real": DType.FLOAT64,
}
# ... and as attributes (`pk.float` is C++'s).
_QUALIFIED = {**_BARE, "float": DType.FLOAT32}
_SIZED = {dtype.value: dtype for dtype in DType}
_VIEW = re.compile(r"(Scratch)?View([1-8])D")

AUTO = "auto"  # `pk.cpp_auto`: the type of the initial value


@dataclass(frozen=True, slots=True)
class Annotation:
    """A parsed annotation.

    kind: "scalar", "view", "scratch", "accumulator", "list", "auto" or "team". `dtype` is None
    where the annotation leaves it open (`pk.View1D`); `rank` counts for views.
    """

    kind: str
    dtype: DType | None = None
    rank: int = 0


def last_name(node: ast.AST) -> str | None:
    """`c` of `a.b.c`, or the name itself; None for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def scalar_type(node: ast.AST) -> DType | None:
    """The type a scalar annotation names, e.g. `int`, `pk.double`; None if it names none."""
    name = last_name(node)
    if name is None:
        return None
    table = _QUALIFIED if isinstance(node, ast.Attribute) else _BARE
    return table.get(name) or _SIZED.get(name)


def parse(node: ast.expr) -> Annotation | None:
    """The meaning of an annotation; None if it has none in the language."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return parse(ast.parse(node.value, mode="eval").body)
        except SyntaxError:
            return None
    if isinstance(node, ast.Subscript):
        name = last_name(node.value)
        element = scalar_type(node.slice)
        if name is None or element is None:
            return None
        if name == "Acc":
            return Annotation("accumulator", element)
        if name in ("List", "list"):
            return Annotation("list", element)
        view = _VIEW.fullmatch(name)
        if view is None:
            return None
        return Annotation("scratch" if view[1] else "view", element, int(view[2]))
    dtype = scalar_type(node)
    if dtype is not None:
        return Annotation("scalar", dtype)
    name = last_name(node) or ""
    if name == "cpp_auto":
        return Annotation(AUTO)
    if name == "TeamMember":
        return Annotation("team")
    view = _VIEW.fullmatch(name)
    return Annotation("view", None, int(view[2])) if view and not view[1] else None
