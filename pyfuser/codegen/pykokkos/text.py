"""The pieces of PyKokkos source: names, annotations, literals, precedence and grouping."""

from __future__ import annotations

import keyword
import re
from typing import NamedTuple

from pyfuser.codegen.c.names import KEYWORDS
from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType, common_type
from pyfuser.ir.nodes import Expr

_LOCAL = {DType.INT32: "int", DType.BOOL: "bool", DType.FLOAT64: "pk.double"}
_QUALIFIED = {DType.FLOAT64: "pk.double", DType.FLOAT32: "pk.float", DType.BOOL: "bool"}
CASTS = {
    DType.INT32: "int",
    DType.BOOL: "bool",
    DType.FLOAT32: "float",
    DType.FLOAT64: "pk.double",
}
ATOMICS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod", "&": "and", "|": "or", "^": "xor",
    "<<": "lshift", ">>": "rshift", "min": "min", "max": "max", "exchange": "exchange",
    "compare_exchange": "compare_exchange",
}  # fmt: skip
_OURS = ("pk", "math", "List", "int", "float", "bool", "range", "abs")
RESERVED = {*keyword.kwlist, *KEYWORDS, *_OURS}  # PyKokkos keeps names in its C++

# Python's precedences; an operand of a left-associative operator stands one higher on the right.
OR, AND, NOT, COMPARE, UNARY, ATOM = 1, 2, 3, 4, 11, 13
BINARY = {"|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10}


class Text(NamedTuple):
    """Source of an expression, and how tightly its outermost operator binds."""

    source: str
    precedence: int = ATOM

    def within(self, precedence: int) -> str:
        """The source as an operand of an operator of this precedence."""
        return self.source if self.precedence >= precedence else f"({self.source})"


def identifier(name: str) -> str:
    text = re.sub(r"\W", "_", name) or "v"
    return f"_{text}" if text[0].isdigit() else text


def local_annotation(dtype: DType) -> str:
    """The annotation of a local or scalar."""
    return _LOCAL.get(dtype) or element_annotation(dtype)


def element_annotation(dtype: DType) -> str:
    """The annotation of a view's or accumulator's element."""
    return _QUALIFIED.get(dtype) or f"pk.{dtype.value}"


def literal_dtype(e: nodes.Const) -> DType:
    """The dtype that lowering gives a constant's literal."""
    if isinstance(e.value, (bool, str)):
        return e.dtype
    if isinstance(e.value, int):
        return DType.INT32 if e.value.bit_length() <= 31 else DType.INT64
    return DType.COMPLEX128 if isinstance(e.value, complex) else DType.FLOAT64


def stripped(e: Expr) -> Expr:
    """The expression without the conversion that its context repeats."""
    if isinstance(e, nodes.Const) and not isinstance(e.value, (bool, str)):
        return nodes.Const(e.value, literal_dtype(e))
    if isinstance(e, nodes.Cast) and not e.explicit:
        return e.operand
    return e


def true_division_type(left: DType, right: DType) -> DType:
    return common_type(common_type(left, right), DType.FLOAT64)


def operand_of_logical(text: Text, level: int) -> str:
    """An operand of `and` or `or`, grouped in a way that PyKokkos keeps."""
    if text.precedence >= level:
        return text.source
    return f"not not ({text.source})"


def operand_of_compare(text: Text, e: Expr) -> str:
    """An operand of a comparison."""
    if isinstance(stripped(e), nodes.Logical) and text.precedence < COMPARE:
        return f"(not not ({text.source}))"
    return text.within(COMPARE + 1)
