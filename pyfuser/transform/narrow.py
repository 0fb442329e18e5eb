"""Locals that hold elements of 8 or 16 bits get the type of the elements.

    value: int = x[i + 1]                      ->      value: uint8 = x[i + 1]
    m = value if value > m else m

The language computes in 32 bits or more what is loaded from narrower elements, and so do the locals
that lowering makes for `max` and `min`. g++ computes comparisons and selections in the type of what
they choose from: of bytes a vector has four times as many lanes as of 32-bit integers.

The law. A local may have a narrower type if all values that it gets are values of that type:
elements of the type or of one within it, constants, what such locals hold, selections of these, and
what bitwise operations make of them. Where it is read it is cast to the type that it had.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import replace

from pyfuser.analysis.intervals import fits
from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Assign,
    AtomicFetch,
    Binary,
    Cast,
    Const,
    Declare,
    Expr,
    For,
    Load,
    Read,
    Select,
    Stmt,
    Store,
    Sym,
    Unary,
    Update,
    Workunit,
)
from pyfuser.ir.visit import all_expressions, child_expressions, map_body, reads, statements
from pyfuser.support.caches import cached
from pyfuser.trace.call import GPU_SPACES
from pyfuser.transform.kernel import Kernel

WIDE = (DType.INT32, DType.INT64)
NARROW = (DType.UINT8, DType.INT8, DType.UINT16, DType.INT16)
BITWISE = "&|^"


def narrow(kernel: Kernel) -> Kernel:
    """The kernel with such locals.

    Subscripts are best of 64 bits, and for arithmetic g++ finds the least type by itself.
    """
    if kernel.space.execution in GPU_SPACES:
        return kernel
    return replace(kernel, workunit=_narrowed(kernel.workunit))


@cached(1024)
def _narrowed(workunit: Workunit) -> Workunit:
    values: dict[Sym, list[Expr]] = {}
    declared: set[Sym] = set()
    for stmt in statements(workunit.body):
        if isinstance(stmt, (Declare, Assign)) and stmt.sym.dtype in WIDE:
            value = Const(0, stmt.sym.dtype) if stmt.value is None else stmt.value
            values.setdefault(stmt.sym, []).append(value)
            if isinstance(stmt, Declare):
                declared.add(stmt.sym)
    kept = set(_elsewhere(workunit))
    locals_ = {sym for sym in declared - kept if any(map(_is_element, values[sym]))}
    twins: dict[Sym, Sym] = {}
    for dtype in NARROW:
        left = locals_ - twins.keys()
        before: set[Sym] = set()
        while left != before:
            before = left
            left = {sym for sym in left if all(_holds(e, dtype, left) for e in values[sym])}
        twins |= {sym: fresh(sym.name, dtype) for sym in sorted(left, key=lambda sym: sym.uid)}
    if not twins:
        return workunit

    def read(e: Expr) -> Expr:
        if isinstance(e, Read) and e.sym in twins:
            return Cast(Read(twins[e.sym]), e.dtype)
        return _plain(e) if isinstance(e, Cast) else e

    def give(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, (Declare, Assign)) or stmt.sym not in twins:
            return stmt
        twin = twins[stmt.sym]
        if stmt.value is None:
            return replace(stmt, sym=twin)
        return replace(stmt, sym=twin, value=_plain(Cast(stmt.value, twin.dtype)))

    body = map_body(workunit.body, read, give)
    return replace(workunit, body=body)


def _plain(e: Cast) -> Expr:
    """A cast without another one inside that changes no value."""
    inner = e.operand
    if isinstance(inner, Cast) and inner.operand.dtype in NARROW and inner.dtype in WIDE:
        inner = inner.operand
    if isinstance(inner, Const) and e.dtype in NARROW:
        return replace(inner, dtype=e.dtype)
    return inner if inner.dtype is e.dtype else replace(e, operand=inner)


def _elsewhere(workunit: Workunit) -> Iterator[Sym]:
    """What is computed with, counts trips or is in subscripts."""
    for stmt in statements(workunit.body):
        if isinstance(stmt, (Store, Update)):
            yield from reads(*stmt.indices)
        if isinstance(stmt, Update) and not stmt.indices:
            yield stmt.target
        if isinstance(stmt, For):
            yield stmt.sym
            yield from reads(stmt.start, stmt.stop, stmt.step)
    for e in all_expressions(workunit.body):
        if isinstance(e, (Load, AtomicFetch)):
            yield from reads(*e.indices)
        elif isinstance(e, Unary) or (isinstance(e, Binary) and e.op not in BITWISE):
            for part in child_expressions(e):
                while isinstance(part, Cast):
                    part = part.operand
                if isinstance(part, Read):
                    yield part.sym


def _is_element(e: Expr) -> bool:
    """Whether a value comes from narrow elements."""
    if isinstance(e, Select):
        return _is_element(e.then) or _is_element(e.orelse)
    if isinstance(e, Binary):
        return _is_element(e.left) or _is_element(e.right)
    return isinstance(e, Cast) and (e.operand.dtype in NARROW or _is_element(e.operand))


# law
def _holds(e: Expr, dtype: DType, among: Set[Sym]) -> bool:
    """Whether the values of an integer expression are of a type if those of some locals are."""
    if not e.dtype.is_integer or e.dtype is DType.BOOL:
        return False
    if fits(e.dtype.range(), dtype):
        return True
    if isinstance(e, Const):
        return fits((int(e.value), int(e.value)), dtype)  # type: ignore[arg-type]
    if isinstance(e, Read):
        return e.sym in among
    if not fits(dtype.range(), e.dtype):
        return False
    if isinstance(e, Cast):
        return _holds(e.operand, dtype, among)
    if isinstance(e, Select):
        return _holds(e.then, dtype, among) and _holds(e.orelse, dtype, among)
    return (
        isinstance(e, Binary)
        and e.op in BITWISE
        and _holds(e.left, dtype, among)
        and _holds(e.right, dtype, among)
    )
