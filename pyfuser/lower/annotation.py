"""What annotations mean: types by their last name, as PyKokkos reads them."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from pyfuser.ir.dtypes import DType
from pyfuser.support import syntax
from pyfuser.support.records import dataclass

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
_RANDOM = re.compile(r"RandomPool|Random_XorShift(64|1024)_Pool")

AUTO = "auto"  # `pk.cpp_auto`: the type of the initial value


@dataclass(frozen=True, slots=True)
class Annotation:
    """A parsed annotation.

    kind: "scalar", "view", "scratch", "accumulator", "list", "auto", "team", "random" (a pool) or
    "object" (of a classtype). `dtype` is None where the annotation leaves it open (`pk.View1D`);
    `rank` counts for views. real: it says `pk.real`, the type of the call's Views that are
    annotated so.
    """

    kind: str
    dtype: DType | None = None
    rank: int = 0
    real: bool = False

    def with_real(self, real: DType) -> Annotation:
        """The annotation where `pk.real` stands for this type."""
        return replace(self, dtype=real) if self.real and self.kind != "view" else self


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


def _of_elements(name: str, element: DType, real: bool) -> Annotation | None:
    """`name[element]`."""
    if name == "Acc":
        return Annotation("accumulator", element, real=real)
    if name in ("List", "list"):
        return Annotation("list", element, real=real)
    view = _VIEW.fullmatch(name)
    if view is None:
        return None
    if view[1]:
        return Annotation("scratch", element, int(view[2]), real)
    return Annotation("view", None if real else element, int(view[2]), real)


def parse(node: ast.expr) -> Annotation | None:
    """The meaning of an annotation; None if it has none in the language."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return parse(syntax.expression(node.value))
        except SyntaxError:
            return None
    if isinstance(node, ast.Subscript):
        name = last_name(node.value)
        element = scalar_type(node.slice)
        if name is None or element is None:
            return None
        return _of_elements(name, element, last_name(node.slice) == "real")
    dtype = scalar_type(node)
    if dtype is not None:
        return Annotation("scalar", dtype, real=last_name(node) == "real")
    name = last_name(node) or ""
    if name == "cpp_auto":
        return Annotation(AUTO)
    if _RANDOM.fullmatch(name):
        return Annotation("random")
    if name == "TeamMember":
        return Annotation("team")
    view = _VIEW.fullmatch(name)
    return Annotation("view", None, int(view[2])) if view and not view[1] else None
