"""Nests as passes get them, and the parts that passes make new ones from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count

from pyfuser.ir.canonical import all_syms
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Body, Cast, Declare, Expr, Read, Stmt, Sym
from pyfuser.nest.nodes import Function, Kind, Loop, Nest, Note, Over, number
from pyfuser.nest.spec import KernelSpec

LOOP = "pf_loop"
"""The function that is called from outside."""


def nest_of(spec: KernelSpec, names: Mapping[Sym, str] | None = None) -> Nest:
    """The nest of a kernel before any pass: one function, which does everything over its box."""
    uids = count(1 + max((sym.uid for sym in all_syms(spec.workunit)), default=0))
    names = {} if names is None else names
    nest = Nest(spec, (), lambda name, dtype: Sym(name, next(uids), dtype), names)
    counters = (
        sym if sym.dtype is DType.INT64 else nest.fresh(f"{nest.name(sym)}_wide", DType.INT64)
        for sym in spec.workunit.indices
    )
    return with_loop(replace(nest, counters=tuple(counters)))


def with_loop(nest: Nest) -> Nest:
    """With the function of all loops."""
    return replace(nest, functions=(over_box(nest, LOOP, nest.workunit.body),))


def over_box(nest: Nest, name: str, body: Body) -> Function:
    """A function that runs a body for each iteration of its box."""
    low, high = box(nest)
    return Function(name, low, high, body=(Over(values(low), values(high), body),))


def box(nest: Nest) -> tuple[tuple[Sym, ...], tuple[Sym, ...]]:
    """The bounds of a function's box."""
    names = [""] if nest.rank == 1 else [f"{nest.name(sym)}_" for sym in nest.workunit.indices]
    ends = [
        tuple(nest.fresh(name + end, DType.INT64) for name in names) for end in ("begin", "end")
    ]
    return ends[0], ends[1]


def values(syms: Sequence[Sym]) -> tuple[Expr, ...]:
    """The values of Syms."""
    return tuple(map(Read, syms))


def local(name: str) -> Read:
    """A 64-bit local with a name of its own, of which the user's names keep clear."""
    return Read(Sym(name, -1, DType.INT64))


def at_axis(box: tuple[Expr, ...], axis: int, value: Expr) -> tuple[Expr, ...]:
    """One end of a box, with another value at an axis."""
    return (*box[:axis], value, *box[axis + 1 :])


def narrow(nest: Nest, axes: Iterable[int]) -> Body:
    """The declarations of the indices that are narrower than their counters."""
    pairs = [(nest.workunit.indices[axis], nest.counters[axis]) for axis in axes]
    return tuple(Declare(i, Cast(Read(c), i.dtype)) for i, c in pairs if i != c)


def noted(nest: Nest) -> Body:
    """What an iteration starts with: it is noted, and narrower indices are declared."""
    note = (Note(nest.counters),) if nest.spec.checked else ()
    return (*note, *narrow(nest, range(nest.rank)))


def iteration(nest: Nest, axis: int, counter: Expr) -> Body:
    """The same where it is found which one it is along an axis."""
    return (Declare(nest.counters[axis], counter), *noted(nest))


def iterations(nest: Nest, counter: Read, start: Expr, stop: Expr, body: Body, kind: Kind) -> Loop:
    """A loop over iterations, which are independent unless they run in order."""
    kind = Kind.SEQ if nest.serial else kind
    return Loop(counter.sym, start, stop, number(1), body, not nest.serial, kind)


def whole(nest: Nest) -> Over | None:
    """What is done in all iterations of the function that is called from outside.

    None if it has been split into others.
    """
    return run_over(nest.functions[-1])


def run_over(function: Function) -> Over | None:
    """What is done in all iterations of a function's box, if that is all it does."""
    body: Sequence[Stmt] = function.body
    return body[0] if len(body) == 1 and isinstance(body[0], Over) else None
