"""Operations on integer constants become their values: constant folding.

    for k in range(9):                        a = i - 1
        a = i + k // 3 - 1           ->       b = j - 1
        b = j + k % 3 - 1                     ...
        if k != 4 and a >= 0: ...             if a >= 0: ...

A loop that is written out leaves such code. g++ folds it, too, but what is decided before it sees
the code asks for subscripts and conditions as they are: where a loop may be split so that its
middle needs no conditions, and whether neighbours are loaded as vectors.

The law. A value that its type cannot hold, and a division by zero, stay for whoever runs the code;
of `a and b` and of a selection what is not evaluated goes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace

from pyfuser.ir.arithmetic import divide_integer, remainder_integer
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Binary,
    Body,
    Cast,
    Compare,
    Const,
    Expr,
    If,
    Logical,
    Select,
    Stmt,
    Unary,
    Workunit,
)
from pyfuser.ir.visit import map_body
from pyfuser.support.caches import cached
from pyfuser.transform.fuse import MAX_FORMS
from pyfuser.transform.kernel import Kernel
from pyfuser.transform.selects import ARITHMETIC

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    **ARITHMETIC, "/": divide_integer, "%": remainder_integer,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip
_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def fold_constants(kernel: Kernel) -> Kernel:
    """The kernel with the values of operations on integer constants."""
    workunit = _folded(kernel.workunit)
    return kernel if workunit is kernel.workunit else replace(kernel, workunit=workunit)


@cached(MAX_FORMS)
def _folded(workunit: Workunit) -> Workunit:
    body = map_body(workunit.body, folded, _taken)
    return workunit if body is workunit.body else replace(workunit, body=body)


# law
def folded(e: Expr) -> Expr:
    """The value of an operation whose operands are constants; others as they are."""
    match e:
        case Binary(op=op, left=Const() as one, right=Const() as other) if op in _ARITHMETIC:
            left, right = _integer(one), _integer(other)
            if left is None or right is None or (op in "/%" and not right):
                return e
            return _const(_ARITHMETIC[op](left, right), e)
        case Unary(op="-", operand=Const() as operand):
            value = _integer(operand)
            return e if value is None else _const(-value, e)
        case Unary(op="!", operand=Const(value=bool(truth))):
            return Const(not truth, DType.BOOL)
        case Cast(operand=Const() as operand) if e.dtype is not DType.BOOL:
            value = _integer(operand)
            return e if value is None else _const(value, e)
        case Compare(op=op, left=Const() as one, right=Const() as other):
            left, right = _integer(one), _integer(other)
            known = left is not None and right is not None
            return Const(_COMPARED[op](left, right), DType.BOOL) if known else e  # type: ignore[arg-type]
        case Logical(op=op, left=Const(value=bool(truth))):
            return e.right if truth == (op == "&&") else e.left
        case Logical(op=op, right=Const(value=bool(truth))) if truth == (op == "&&"):
            return e.left
        case Select(condition=Const(value=bool(truth))):
            return e.then if truth else e.orelse
    return e


def _taken(stmt: Stmt) -> Stmt | Body:
    """The side of a branch that is always taken; others as they are."""
    if isinstance(stmt, If) and isinstance(stmt.condition, Const):
        return stmt.then if stmt.condition.value else stmt.orelse
    return stmt


# law: not None
def _integer(e: Const) -> int | None:
    """The value of an integer constant."""
    return e.value if type(e.value) is int and e.dtype.is_integer else None


# law
def _const(value: int, e: Expr) -> Expr:
    """A constant in place of an operation, if its type is an integer that has it."""
    if not e.dtype.is_integer or e.dtype is DType.BOOL:
        return e
    low, high = e.dtype.range()
    return Const(value, e.dtype) if low <= value <= high else e
