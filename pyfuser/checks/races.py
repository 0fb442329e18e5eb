"""PYFUSER_CHECK=races: iterations of one kernel that touch one cell, one of them writing.

Iterations run at the same time, in any order, so the result of such a kernel depends on chance.
Where the analysis of accesses shows that there is no such pair, that is all; else the reference
interpreter runs the call on copies of its data and notes every access. Atomic updates do not race
with each other, whatever their operators. A Serial space runs one iteration after the other:
nothing races there.
"""

from __future__ import annotations

import warnings

import numpy as np

from pyfuser.analysis.accesses import Access, Mode
from pyfuser.analysis.dependences import dependences
from pyfuser.analysis.races import certain_races
from pyfuser.analysis.structural import structural_scalars
from pyfuser.checks.accesslog import ATOMIC, READ, WRITE, AccessLog, Site, Touch, split_sites
from pyfuser.checks.image import Image
from pyfuser.ir.effects import written_views
from pyfuser.ir.reference.interpret import UndefinedBehaviour, interpret
from pyfuser.support.caches import cached
from pyfuser.support.errors import PyFuserWarning, RaceError, quoted
from pyfuser.trace.call import Call, Space
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Region
from pyfuser.trace.shape import CallShape, RegionShape, TraceShape, shape_of
from pyfuser.tuning.thresholds import NOW

_SERIAL = "Serial"
_VERBS = {READ: "read", ATOMIC: "atomic update", WRITE: "write"}
_MODES = {Mode.READ: READ, Mode.REDUCE: ATOMIC, Mode.WRITE: WRITE}


def check_races(call: Call) -> None:
    """Raise RaceError if iterations of a call race; warn if that could not be found out."""
    if call.space.execution == _SERIAL or call.space.size < 2:
        return
    trace = shape_of((call,), structural_scalars)
    if _independent(trace):
        return
    if call.space.size <= NOW.running.race_iterations:
        _check_by_running(call, _shared(trace.calls[0]))
        return
    proof = next(certain_races(trace.calls[0]), None)
    if proof is not None:
        raise _proved(call, *proof)
    most = NOW.running.race_iterations
    _warn(call, f"more than {most} iterations, and an access is too irregular to analyse")


@cached(1024)
def _independent(trace: TraceShape) -> bool:
    """Whether the analysis shows that no iteration touches what another one writes.

    That is the law of fusion for the call and itself.
    """
    (call,) = trace.calls
    twice = TraceShape((call, call), trace.clusters)
    return all(d.same_iteration for d in dependences(twice).dependences)


def _shared(call: CallShape) -> frozenset[int]:
    """The arguments in memory that the call writes, through them or through others."""
    stores = written_views(call.workunit)
    regions = {n: a for n, a in enumerate(call.arguments) if isinstance(a, RegionShape)}
    written = {
        region.cluster for n, region in regions.items() if call.workunit.params[n].sym in stores
    }
    return frozenset(n for n, region in regions.items() if region.cluster in written)


def _check_by_running(call: Call, shared: frozenset[int]) -> None:
    """Run a call on copies of its data by the reference interpreter, and look at its accesses."""
    copied = Image([call]).copy(call)
    workunit, sites = split_sites(call.workunit, shared)
    arguments = [
        a.array() if isinstance(a, Region) else a.result() if isinstance(a, Future) else a
        for a in copied.arguments
    ]
    views = sum(param.rank > 0 for param in call.workunit.params)
    log = AccessLog(views)
    try:
        interpret(
            workunit,
            call.pattern,
            call.space.begin,
            call.space.end,
            [*arguments, *(arguments[site.param] for site in sites)],
            races=log,
        )
    except UndefinedBehaviour as error:
        _warn(call, str(error))
        return
    found = log.race()
    if found is not None:
        raise _found(call, sites, *found)


def _found(call: Call, sites: list[Site], first: Touch, second: Touch) -> RaceError:
    """The error for two accesses that were made."""
    points = _point(call.space, first.iteration), _point(call.space, second.iteration)
    names = [sym.name for sym in call.workunit.indices]
    lines = []
    for touch, point in zip((first, second), points, strict=True):
        iteration = ", ".join(f"{n} = {p}" for n, p in zip(names, point, strict=True))
        lines.append(_line(call, _VERBS[touch.kind], sites[touch.site], f" by {iteration}"))
    locations = sites[first.site].location, sites[second.site].location
    return RaceError(_message(call, lines), locations, points)


def _proved(call: Call, first: Access, second: Access) -> RaceError:
    """The error for two accesses that the analysis knows to race."""
    lines = [
        _line(call, _VERBS[_MODES[access.mode]], Site(access.param, access.location), "")
        for access in (first, second)
    ]
    return RaceError(_message(call, lines), (first.location, second.location))


def _message(call: Call, lines: list[str]) -> str:
    return (
        f"{call.workunit.location}: two iterations of {call.workunit.name!r} touch one element, at "
        "least one of them writing; they may run at the same time, so the result depends on chance "
        f"(atomics or a second view would help):{''.join(lines)}"
    )


def _line(call: Call, verb: str, site: Site, iteration: str) -> str:
    name = call.workunit.params[site.param].sym.name
    place = f"{site.location}: " if site.location else ""
    return f"\n  {place}{verb} of {name!r}{iteration}{quoted(site.location)}"


def _point(space: Space, iteration: int) -> tuple[int, ...]:
    """The indices of an iteration by its number."""
    offsets = np.unravel_index(iteration, space.shape)
    return tuple(b + int(o) for b, o in zip(space.begin, offsets, strict=True))


def _warn(call: Call, reason: str) -> None:
    warnings.warn(
        f"{call.name!r} at {call.location} was not checked for races: {reason}",
        PyFuserWarning,
        stacklevel=2,
    )
