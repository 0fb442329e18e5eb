"""Locals of a team's threads that outlive a region: scalar expansion over the ranks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Assign,
    Body,
    Const,
    Declare,
    DeclareArray,
    Expr,
    For,
    Load,
    Read,
    Stmt,
    Store,
    Sym,
    Update,
)
from pyfuser.ir.visit import declared, expressions, map_body, statements, sym_of
from pyfuser.lower import convert


def expanded(body: Body, ranks: set[Sym], own: set[Sym], size: int) -> Body:
    """The body with the threads' own locals that several loops over `ranks` use in arrays."""
    loops = [s for s in statements(body) if isinstance(s, For) and s.sym in ranks]
    uses: Counter[Sym] = Counter()
    for loop in loops:
        uses.update(_mentioned(loop.body))
    arrays: dict[Sym, _Array] = {}
    for loop in loops:
        for stmt in statements(loop.body):
            if isinstance(stmt, (Declare, DeclareArray)) and uses[stmt.sym] > 1:
                length = len(stmt.values) if isinstance(stmt, DeclareArray) else 1
                arrays[stmt.sym] = _Array(fresh(stmt.sym.name, stmt.sym.dtype), length)
    if not arrays:
        return body

    def rewrite(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, For) or stmt.sym not in ranks:
            return stmt
        return replace(stmt, body=_in_arrays(stmt.body, arrays, stmt.sym))

    assert set(arrays) <= own & set(declared(body))
    head = tuple(array.declaration(size) for array in arrays.values())
    return (*head, *map_body(body, None, rewrite))


def _mentioned(body: Body) -> set[Sym]:
    found = set()
    for stmt in statements(body):
        for node in (stmt, *expressions(stmt)):
            sym = node.sym if isinstance(node, Read) else sym_of(node)
            if sym is not None:
                found.add(sym)
    return found


class _Array:
    """The array for a local (or a local array of `length`) of every thread."""

    def __init__(self, sym: Sym, length: int) -> None:
        self.sym = sym
        self.length = length

    def declaration(self, size: int) -> DeclareArray:
        dtype = self.sym.dtype
        value = 0j if dtype.is_complex else 0.0 if dtype.is_float else 0
        zero = Const(False if dtype is DType.BOOL else value, dtype)
        return DeclareArray(self.sym, (zero,) * (size * self.length))

    def at(self, rank: Sym, index: Expr | None = None) -> tuple[Expr]:
        place: Expr = Read(rank)
        if self.length > 1:
            place = convert.binary("*", place, Const(self.length, DType.INT32))
        return (place if index is None else convert.binary("+", place, index),)


def _in_arrays(body: Body, arrays: dict[Sym, _Array], rank: Sym) -> Body:
    """A region with the locals of `arrays` replaced by the elements of this rank."""

    def expr(e: Expr) -> Expr:
        if isinstance(e, Read) and e.sym in arrays:
            array = arrays[e.sym]
            return Load(array.sym, array.at(rank))
        if isinstance(e, Load) and e.view in arrays:
            array = arrays[e.view]
            return Load(array.sym, array.at(rank, e.indices[0]), e.location)
        return e

    def stmt(s: Stmt) -> Stmt | Body:
        sym = sym_of(s)
        array = arrays.get(sym) if sym is not None else None
        if array is None:
            return s
        if isinstance(s, DeclareArray):
            indices = (Const(n, DType.INT32) for n in range(array.length))
            places = [array.at(rank, index) for index in indices]
            return tuple(Store(array.sym, p, v) for p, v in zip(places, s.values, strict=True))
        if isinstance(s, Declare):
            (zero, *_) = array.declaration(1).values
            return Store(array.sym, array.at(rank), zero if s.value is None else s.value)
        if isinstance(s, Assign):
            return Store(array.sym, array.at(rank), s.value)
        if isinstance(s, Store):
            return Store(array.sym, array.at(rank, s.indices[0]), s.value, s.location)
        assert isinstance(s, Update)
        place = array.at(rank, s.indices[0] if s.indices else None)
        value = convert.binary(s.op, Load(array.sym, place), s.value, s.location)
        return Store(array.sym, place, convert.cast(value, array.sym.dtype), s.location)

    return map_body(body, expr, stmt)
