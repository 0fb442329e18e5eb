"""Runs of pending calls (`trace.runs`), exchanged for calls that do the same: before all else.

What is planned, kept, launched and told is the calls that are made here, as if the program had
made them; `plan.rewrites.roll` has the law. A run may go on behind the end of a trace: then there
are two calls for it, or some more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from pyfuser.analysis.structural import structural_scalars
from pyfuser.ir.nodes import Workunit
from pyfuser.support.caches import cached
from pyfuser.support.counters import COUNTERS
from pyfuser.support.passes import left_out
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import GPU_SPACES, Argument, Call, Space
from pyfuser.trace.images import USE
from pyfuser.trace.memory import Region
from pyfuser.trace.runs import Run, runs_of
from pyfuser.trace.shape import shape_of
from pyfuser.trace.tracer import Tracer
from pyfuser.tuning.thresholds import NOW


def roll(calls: list[Call], tracer: Tracer) -> bool:
    """Exchange pending calls of runs for others; whether there are such. calls: all that are."""
    rounds = NOW.running.rolled_rounds
    if len(calls) < rounds or USE.devices or SETTINGS.engine != "native" or left_out("roll"):
        return False
    made, count = rolled(calls, rounds)
    if not count or not tracer.exchange(calls, made):
        return False
    COUNTERS.rolled += count
    return True


def rolled(calls: list[Call], least: int) -> tuple[list[Call], int]:
    """The calls, with others in the place of runs, and how many calls of the program these are."""
    made: list[Call] = []
    done = count = 0
    for run in runs_of(calls, least):
        instead = _instead(calls, run)
        if instead is not None:
            made += [*calls[done : run.first], *instead]
            done, count = run.last, count + run.last - run.first
    return [*made, *calls[done:]], count


def _instead(calls: Sequence[Call], run: Run) -> list[Call] | None:
    """The calls that stand for a run, if there are such."""
    from pyfuser.plan.rewrites.roll import are_serial, serial, wide

    first = calls[run.first : run.first + run.period]
    if any(call.space.execution in GPU_SPACES or not call.space.size for call in first):
        return None
    grids = _grids(first, run)
    made = []
    for call, steps in zip(first, run.steps, strict=True):
        found = [_moved(a, step, grids) for a, step in zip(call.arguments, steps, strict=True)]
        workunit = wide(call.workunit, steps, tuple([ahead for _, ahead in found]))
        if workunit is None:
            return None
        arguments = tuple([argument for argument, _ in found])
        made.append(_like(call, run.rounds, workunit, _wider(call.space, run.rounds), arguments))
    serially = are_serial(shape_of(made, structural_scalars).calls)
    if not serially:
        return made if serially is False else None
    return [
        _like(call, run.rounds, serial(other.workunit), call.space, (*other.arguments, run.rounds))
        for call, other in zip(first, made, strict=True)
    ]


@cached(1024)
def _wider(space: Space, rounds: int) -> Space:
    """The space with the round as its first axis: the same object each time, as keys name it."""
    return Space((0, *space.begin), (rounds, *space.end), space.execution)


_Grid: TypeAlias = tuple[object, ...]


def _grid(region: Region, step: int) -> _Grid:
    """What views have in common that are rows of one table, a step apart."""
    return (id(region.buffer), *region[2:], step, region.offset % step)


# law
def _grids(calls: Sequence[Call], run: Run) -> dict[_Grid, Region]:
    """The tables whose rows the views of a run are: so all that share one are of one region."""
    begin: dict[_Grid, list[Region]] = {}
    for call, steps in zip(calls, run.steps, strict=True):
        for argument, step in zip(call.arguments, steps, strict=True):
            if isinstance(argument, Region) and step:
                begin.setdefault(_grid(argument, step), []).append(argument)
    found = {}
    for grid, regions in begin.items():
        step = next(s for s in (grid[-2],) if isinstance(s, int))
        offsets = [region.offset for region in regions]
        first, last = min(offsets), max(offsets)
        buffer, _, strides, shape, dtype = regions[0]
        start = first if step > 0 else last
        rows = run.rounds + (last - first) // abs(step)
        found[grid] = Region(buffer, start, (step, *strides), (rows, *shape), dtype)
    return found


# law
def _moved(argument: Argument, step: int, grids: Mapping[_Grid, Region]) -> tuple[Argument, int]:
    """An argument of a wide call, and how many rows of a table are before its first one."""
    if not isinstance(argument, Region) or not step:
        return argument, 0
    table = grids[_grid(argument, step)]
    return table, (argument.offset - table.offset) // step


def _like(
    call: Call, rounds: int, workunit: Workunit, space: Space, arguments: tuple[Argument, ...]
) -> Call:
    """A call at the place of another, of whose name it tells how many rounds it stands for."""
    label = f"{call.name} ({rounds} rounds)"
    made = Call("for", space, workunit, arguments, None, label, call.code, call.at)
    made.position = call.position
    return made
