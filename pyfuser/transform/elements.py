"""Local arrays whose elements are all named by number become locals.

    a[3 * p + q] = x              a_1 = x                 with p = 0 and q = 1 in this call
    y = a[1]                      y = a_1

Batches of small matrices are worked on so: rotations, eliminations, pivots. An array keeps
neighbouring iterations from being the lanes of vectors, as each has an array of its own; locals do
not. Scalars in the subscripts of such an array, or of a temporary with short rows, get their values
first: each value has a kernel of its own then, of which there are as many as there are elements.

The law: a scalar has this value in all calls that the kernel serves, and no iteration changes it;
and nothing names the array but loads and stores of elements that it has.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from pyfuser.analysis.intervals import interval
from pyfuser.ir.accesses import accesses
from pyfuser.ir.canonical import fresh
from pyfuser.ir.nodes import (
    Assign,
    Body,
    Const,
    Declare,
    DeclareArray,
    Expr,
    Load,
    Read,
    Stmt,
    Store,
    Sym,
)
from pyfuser.ir.visit import all_expressions, assigned, map_body, reads, statements, sym_of
from pyfuser.trace.shape import RegionShape, known_scalars
from pyfuser.transform.kernel import Kernel

MOST = 16
"""Elements of an array that become locals: as many fit the registers of a vector machine."""


def _arrays(body: Body) -> dict[Sym, int]:
    """The lengths of local arrays that are short."""
    found = (s for s in statements(body) if isinstance(s, DeclareArray))
    return {s.sym: len(s.values) for s in found if len(s.values) <= MOST}


def _rows(kernel: Kernel) -> set[Sym]:
    """Temporaries with short rows, one for each iteration, which scalar replacement takes."""
    rank = len(kernel.workunit.indices)
    return {
        param.sym
        for param, shape in zip(kernel.workunit.params, kernel.shapes, strict=True)
        if isinstance(shape, RegionShape)
        and param.sym in kernel.dead
        and len(shape.shape) > rank
        and prod(shape.shape[rank:]) <= MOST
    }


# law
def choose_elements(kernel: Kernel) -> Kernel:
    """The kernel with the values of scalars in the subscripts of such arrays and rows in their
    place.
    """
    workunit = kernel.workunit
    known = known_scalars(workunit, kernel.shapes)
    short = {*_arrays(workunit.body), *_rows(kernel)} if known else set()
    chosen: set[Sym] = set()
    for access in accesses(workunit.body) if short else ():
        if access.view in short:
            chosen |= reads(*access.indices) & known.keys()
    chosen -= assigned(workunit.body)
    if not chosen:
        return kernel

    def number(e: Expr) -> Expr:
        return Const(known[e.sym], e.dtype) if isinstance(e, Read) and e.sym in chosen else e

    return replace(kernel, workunit=replace(workunit, body=map_body(workunit.body, number)))


# law
def split_arrays(kernel: Kernel) -> Kernel:
    """The kernel with a local for each element of an array, where all are named by number."""
    body = kernel.workunit.body
    arrays = _arrays(body)
    for node in (*statements(body), *all_expressions(body)) if arrays else ():
        sym = sym_of(node)
        if sym in arrays and not isinstance(node, DeclareArray) and _place(node, arrays) is None:
            del arrays[sym]
    if not arrays:
        return kernel
    elements = {
        sym: [fresh(f"{sym.name}_{n}", sym.dtype) for n in range(length)]
        for sym, length in arrays.items()
    }

    def load(e: Expr) -> Expr:
        place = _place(e, arrays)
        return e if place is None else Read(elements[sym_of(e)][place])  # type: ignore[index]

    def store(stmt: Stmt) -> Stmt | Body:
        if isinstance(stmt, DeclareArray) and stmt.sym in arrays:
            return tuple(map(Declare, elements[stmt.sym], stmt.values))
        place = _place(stmt, arrays)
        if place is None:
            return stmt
        assert isinstance(stmt, Store)
        return Assign(elements[stmt.view][place], stmt.value)

    return replace(kernel, workunit=replace(kernel.workunit, body=map_body(body, load, store)))


# law: not None
def _place(node: Expr | Stmt, arrays: dict[Sym, int]) -> int | None:
    """Which element of which of these arrays a load or a store names; None: of none, or any."""
    if not isinstance(node, (Load, Store)) or node.view not in arrays:
        return None
    values = interval(node.indices[0], {})
    if values is None or values[0] != values[1]:
        return None
    return values[0] if 0 <= values[0] < arrays[node.view] else None
