"""Boxes become loops over the threads of a GPU: how each pattern is launched.

* A map has a thread for each iteration. The threads of a warp are neighbours along the axis that is
  contiguous in memory. A thread that stands for more than one iteration (a grid has limits) takes
  them a whole grid apart.
* Of a reduction (with the maps that were fused into it) each thread adds up the iterations that are
  a whole grid apart; the threads of a block join their sums in halves; and the block that finishes
  last joins those of all blocks, in the same way. The grid depends on the number of iterations
  alone (see `nest.launch`), and no step depends on which thread is faster or how wide a warp is: a
  result has the same bits on every GPU.
* A scan is two launches with the same grid. The first runs the body with `last_pass` false, each
  thread on neighbouring iterations and from zero. What came out of each thread, and the prefix sums
  of what came out of each block, stay in the workspace; the second launch, with `last_pass` true,
  starts every thread from there. Each iteration runs once in each pass, as on other engines.
* One thread runs what is serial, and whose accumulators cannot be computed in parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyfuser.analysis.sums import contiguous_axis
from pyfuser.ir.dtypes import DType
from pyfuser.ir.effects import only_combines, operations
from pyfuser.ir.nodes import Body, Const, Declare, Read, Stmt, Sym, Workunit
from pyfuser.nest.build import noted, values
from pyfuser.nest.launch import Launch
from pyfuser.nest.nodes import Function, Give, Kind, Loop, Nest, Over, number
from pyfuser.nest.passes.lower_boxes import loops
from pyfuser.nest.spec import KernelSpec
from pyfuser.nest.threads import Join, Pass, Walk

ENTRY = "pf_kernel"
TOTALS = "pf_totals"
"""The first pass of a scan."""

INLINE_JOINS = 4
"""With more accumulators the code that joins a block's values is not repeated for each."""

_JOINS = (("+", "-"), ("|",), ("^",), ("min",), ("max",))


def join_of(workunit: Workunit, sym: Sym) -> str:
    """What makes one of two partial values of an accumulator, both from zero; "" if nothing can."""
    return next((ops[0] for ops in _JOINS if only_combines(workunit.body, (sym,), ops)), "")


def to_grid(nest: Nest) -> Nest:
    """The nest as a GPU launches it."""
    spec, workunit, counters = nest.spec, nest.workunit, nest.counters
    begin, end = (
        tuple(nest.fresh(f"{nest.name(i)}_{which}", DType.INT64) for i in workunit.indices)
        for which in ("begin", "end")
    )
    low, high = values(begin), values(end)

    def line(axis: int, kind: Kind, body: Body, shared: bool = True) -> Loop:
        return Loop(counters[axis], low[axis], high[axis], number(1), body, shared, kind)

    def walk(axes: Sequence[int], kind: Kind, body: Body) -> Walk:
        first, last = (tuple(ends[axis] for axis in axes) for ends in (low, high))
        return Walk(tuple(counters[axis] for axis in axes), first, last, body, kind)

    body = (*noted(nest), *workunit.body)
    sums = tuple(a.sym for a in workunit.accumulators)
    joins = tuple(join_of(workunit, sym) for sym in sums)
    zeros = [Declare(sym, None) for sym in sums]
    order, threads, rule, made = axes_of(spec), spec.tuning.gpu_threads, "map", dict[str, Body]()
    if spec.serial or not (_adds(workunit) if spec.pattern == "scan" else all(joins)):
        rule, threads = "one", 1
        flags = [a.last_pass for a in workunit.accumulators if a.last_pass is not None]
        one = loops(replace(nest, serial=True), Over(low, high, workunit.body))
        results = (Give(place, Read(sym)) for place, sym in enumerate(sums))
        made[ENTRY] = (*zeros, *(_told(flag, True) for flag in flags), one, *results)
    elif spec.pattern == "scan":
        rule, items = "scan", spec.tuning.gpu_items
        flag = workunit.accumulators[0].last_pass or nest.fresh("is_last", DType.BOOL)
        one = line(0, Kind.SEQ, body, shared=False)
        for name in (TOTALS, ENTRY):
            made[name] = (Pass(name == ENTRY, items, (_told(flag, name == ENTRY), *zeros, one)),)
    elif joins:
        rule = "reduce"
        over = walk(order, Kind.GRID_X, body) if order[1:] else line(0, Kind.GRID_X, body)
        made[ENTRY] = (*zeros, over, Join(sums, joins))
    else:
        *outer, last = order
        stmt: Stmt = line(last, Kind.GRID_X, body)
        for axis in outer[-1:]:
            stmt = line(axis, Kind.GRID_Y, (stmt,))
        made[ENTRY] = (walk(outer[:-1], Kind.GRID_Z, (stmt,)) if outer[1:] else stmt,)
    functions = tuple(Function(name, begin, end, body=body) for name, body in made.items())
    inline = len(joins) <= INLINE_JOINS
    launch = Launch(rule, tuple(order), len(joins), threads, spec.tuning, inline=inline)
    return replace(nest, functions=functions, launch=launch)


def _told(flag: Sym, last: bool) -> Declare:
    """What tells a scan's body which pass it is in."""
    return Declare(flag, Const(last, DType.BOOL))


def _adds(workunit: Workunit) -> bool:
    """Whether the body does nothing to the accumulators but add to them (or subtract)."""
    changes = operations(workunit.body)
    return all(changes.get(a.sym, set()) <= {"+", "-"} for a in workunit.accumulators)


def axes_of(spec: KernelSpec) -> list[int]:
    """The axes of the space, slowest first: the fastest is that of neighbouring threads.

    As given, unless most accesses are contiguous along another axis (LayoutLeft views): a warp
    then reads whole lines of memory. Sums know their axis, which does not depend on what they
    share a loop with. Unlike on the host, it need not be the last one: what a GPU adds up, and
    when, is another order anyway.
    """
    axes = list(range(spec.rank))
    if spec.rank == 1 or spec.serial:
        return axes
    workunit = spec.workunit
    known = [a.along for a in workunit.accumulators if a.along is not None]
    if known:
        best = known[0]
    else:
        views = zip(workunit.params, spec.views, strict=True)
        units = {param.sym: view.unit_axis for param, view in views if view is not None}
        best = contiguous_axis(workunit, {s: axis for s, axis in units.items() if axis is not None})
    return [axis for axis in axes if axis != best] + [best]
