"""Nests as passes get them, and the parts that passes make new ones from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from pyfuser.ir.canonical import all_syms
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Binary, Body, Cast, Const, Declare, Expr, Read, Stmt, Sym, Workunit
from pyfuser.ir.visit import declared
from pyfuser.nest.nodes import Function, LoopOrder, Nest, Over, Row, number

LOOP = "pf_loop"
"""The function that is called from outside."""

Fresh = Callable[[str, DType], Sym]


def nest_of(
    workunit: Workunit,
    order: LoopOrder,
    along: Expr,
    pattern: str = "for",
    serial: bool = False,
    checked: bool = False,
    overlapping: frozenset[Sym] = frozenset(),
    names: Mapping[Sym, str] | None = None,
    counters: tuple[Sym, ...] = (),
) -> Nest:
    """The nest of a kernel before any pass: one function, which does everything over its box."""
    nest = Nest(workunit, (), order, along, pattern, serial, checked, overlapping, names or {})
    fresh = fresh_syms(nest)
    counters = counters or tuple(
        sym if sym.dtype is DType.INT64 else fresh(f"{nest.name(sym)}_wide", DType.INT64)
        for sym in workunit.indices
    )
    nest = replace(nest, counters=counters)
    return replace(nest, functions=(over_box(nest, LOOP, workunit.body, fresh_syms(nest)),))


def fresh_syms(nest: Nest) -> Fresh:
    """Makes Syms that the nest does not have."""
    own = (*all_syms(nest.workunit), *nest.counters)
    uids = count(1 + max(sym.uid for sym in (*own, *_syms(nest.functions))))
    return lambda name, dtype: Sym(name, next(uids), dtype)


def _syms(functions: Sequence[Function]) -> Iterator[Sym]:
    for f in functions:
        yield from (*f.low, *f.high, *f.params, *declared(f.body))


def over_box(nest: Nest, name: str, body: Body, fresh: Fresh) -> Function:
    """A function that runs a body for each iteration of its box."""
    low, high = box(nest, fresh)
    return Function(name, low, high, body=(Over(values(low), values(high), body),))


def box(nest: Nest, fresh: Fresh) -> tuple[tuple[Sym, ...], tuple[Sym, ...]]:
    """The bounds of a function's box."""
    names = [""] if nest.rank == 1 else [f"{nest.name(sym)}_" for sym in nest.workunit.indices]
    ends = [tuple(fresh(name + end, DType.INT64) for name in names) for end in ("begin", "end")]
    return ends[0], ends[1]


def values(syms: Sequence[Sym]) -> tuple[Expr, ...]:
    """The values of Syms."""
    return tuple(map(Read, syms))


def at_axis(box: tuple[Expr, ...], axis: int, value: Expr) -> tuple[Expr, ...]:
    """One end of a box, with another value at an axis."""
    return (*box[:axis], value, *box[axis + 1 :])


def narrow(nest: Nest, axes: Iterable[int]) -> Body:
    """The declarations of the indices that are narrower than their counters."""
    pairs = [(nest.workunit.indices[axis], nest.counters[axis]) for axis in axes]
    return tuple(Declare(i, Cast(Read(c), i.dtype)) for i, c in pairs if i != c)


def row(sym: Sym, array: Sym, place: Expr, length: int) -> Row:
    """So many elements of an array that belong to a place."""
    return Row(sym, array, times(place, length), length)


def times(place: Expr, count: int) -> Expr:
    """A place with so many elements to each."""
    if isinstance(place, Const) and isinstance(place.value, int):
        return number(place.value * count)
    return Binary("*", number(count), place)


def whole(nest: Nest) -> Over | None:
    """What is done in all iterations of the function that is called from outside.

    None if it has been split into others.
    """
    return run_over(nest.functions[-1])


def run_over(function: Function) -> Over | None:
    """What is done in all iterations of a function's box, if that is all it does."""
    body: Sequence[Stmt] = function.body
    return body[0] if len(body) == 1 and isinstance(body[0], Over) else None
