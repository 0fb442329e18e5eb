"""Nests as passes get them, and the parts that passes make new ones from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count

from pyfuser.ir.canonical import all_syms
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Body, Cast, Declare, Expr, Read, Stmt, Sym
from pyfuser.ir.visit import map_body
from pyfuser.nest.nodes import Function, Give, Kind, Loop, Nest, Note, Over, Scan, SweepNest, number
from pyfuser.nest.spec import KernelSpec, SweepSpec
from pyfuser.nest.sums import is_sum

LOOP = "pf_loop"
"""The function that is called from outside."""

PASS = "pf_pass"
"""A scan's pass over a tile."""


def nest_of(spec: KernelSpec, names: Mapping[Sym, str] | None = None) -> Nest:
    """The nest of a kernel before any pass: one function, which does everything over its box."""
    uids = count(1 + max((sym.uid for sym in all_syms(spec.workunit)), default=0))
    names = {} if names is None else names
    sums = all(is_sum(spec.workunit, a.sym) for a in spec.workunit.accumulators)
    serial = spec.serial or spec.pattern == "scan" or not sums
    nest = Nest(spec, serial, (), lambda name, dtype: Sym(name, next(uids), dtype), names)
    counters = (
        sym if sym.dtype is DType.INT64 else nest.fresh(f"{nest.name(sym)}_wide", DType.INT64)
        for sym in spec.workunit.indices
    )
    return with_loop(replace(nest, counters=tuple(counters)))


def sweep_of(spec: SweepSpec, nests: Iterable[Nest] | None = None) -> SweepNest:
    """The nest of a sweep; nests: of those of its loops that differ, if they are there."""
    distinct = list(dict.fromkeys(spec.stages))
    nests = map(nest_of, distinct) if nests is None else nests
    return SweepNest(spec, tuple(nests), tuple(map(distinct.index, spec.stages)))


def with_loop(nest: Nest) -> Nest:
    """With the function of all loops, and with that of a scan's passes."""
    accumulators, body = nest.workunit.accumulators, nest.workunit.body
    if nest.spec.pattern == "scan":
        (one,) = accumulators
        flag = one.last_pass or nest.fresh("is_last", DType.BOOL)
        one_pass = over_box(nest, PASS, body)
        one_pass = replace(one_pass, params=(one.sym, flag), result=Read(one.sym))
        low, high = box(nest)
        scan = Function(LOOP, low, high, body=(Scan(PASS, Read(low[0]), Read(high[0])),))
        return replace(nest, functions=(one_pass, scan))
    loop = over_box(nest, LOOP, body)
    zeros = (Declare(a.sym, None) for a in accumulators)
    results = (Give(place, Read(a.sym)) for place, a in enumerate(accumulators))
    return replace(nest, functions=(replace(loop, body=(*zeros, *loop.body, *results)),))


def over_box(nest: Nest, name: str, body: Body) -> Function:
    """A function that runs a body for each iteration of its box."""
    low, high = box(nest)
    return Function(name, low, high, body=(Over(values(low), values(high), body),))


def box(nest: Nest) -> tuple[tuple[Sym, ...], tuple[Sym, ...]]:
    """The bounds of a function's box; those of an only axis come as numbers, but of sums."""
    plain = nest.rank == 1 and not (nest.workunit.accumulators and nest.spec.pattern != "scan")
    names = [""] if plain else [f"{nest.name(sym)}_" for sym in nest.workunit.indices]
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
    kind = Kind.SEQ if nest.serial or nest.overlapping else kind
    return Loop(counter.sym, start, stop, number(1), body, not nest.serial, kind)


def with_loops(nest: Nest, kind: Kind, change: Callable[[Loop], Stmt]) -> Nest:
    """The nest with others in place of all loops of a kind."""

    def changed(stmt: Stmt) -> Stmt:
        return change(stmt) if isinstance(stmt, Loop) and stmt.kind is kind else stmt

    functions = [replace(f, body=map_body(f.body, None, changed)) for f in nest.functions]
    return replace(nest, functions=tuple(functions))


def whole(nest: Nest) -> Over | None:
    """What is done in all iterations of the function that is called from outside.

    None if it has been split into others.
    """
    return run_over(nest.functions[-1])


def run_over(function: Function) -> Over | None:
    """What is done in all iterations of a function's box, if that is all it does."""
    body: Sequence[Stmt] = function.body
    return body[0] if len(body) == 1 and isinstance(body[0], Over) else None
