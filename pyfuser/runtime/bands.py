"""Traces that run unfused, but band by band: `plan.bands` has the law, `hot/bands.c` runs them.

A trace whose plan the budget does not pay for has a program all the same, if most of its calls may
run in bands: of their kernels that run them alone, which need no plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pyfuser.analysis.dependences import DependenceGraph
from pyfuser.engine.launchable import Launchable, team
from pyfuser.ir.weights import arithmetic
from pyfuser.plan.bands import Bands, bands_of
from pyfuser.plan.cost_model import machine_for
from pyfuser.plan.plan import Group, Plan
from pyfuser.runtime import eager
from pyfuser.runtime.budget import taken
from pyfuser.runtime.launch import Launch, Overwrite
from pyfuser.runtime.lifetimes import sizes_of
from pyfuser.runtime.program import Program
from pyfuser.support.errors import FAILURES
from pyfuser.support.extension import HOT
from pyfuser.support.passes import left_out
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import Call
from pyfuser.trace.images import USE
from pyfuser.trace.shape import FutureShape, ScalarShape, TraceShape, known_scalars
from pyfuser.transform.overwrites import box_of
from pyfuser.tuning.thresholds import NOW

NEIGHBOURS = 64
"""Lanes of a band, at least, and in multiples, where they are neighbours in memory: cache lines and
vectors are whole then."""


class Cut(NamedTuple):
    """Launches [first, last) over lanes [begin, end), of which `size` make a band.

    axes: of each launch the axis of its space. threads: whether the work is worth more than one.
    """

    first: int
    last: int
    axes: tuple[int, ...]
    begin: int
    end: int
    size: int
    threads: bool


def program_of(trace: TraceShape, calls: Sequence[Call]) -> Program | None:
    """The program that runs a trace in bands; None if that is not worth it, or calls cannot run."""
    if not _is_usual() or any(type(a) is FutureShape for c in trace.distinct for a in c.arguments):
        return None
    cuts = tuple([cut for bands in bands_of(trace) if (cut := _cut(trace, bands))])
    if 2 * sum(cut.last - cut.first for cut in cuts) <= len(calls):
        return None
    try:
        launches = tuple([_launch(n, call) for n, call in enumerate(calls)])
    except FAILURES:
        return None  # it is told where they run one by one
    if not all(isinstance(launch.launchable, Launchable) for launch in launches):
        return None
    return Program(
        trace, trace, DependenceGraph(len(calls), ()),
        Plan(tuple([Group((n,)) for n in range(len(calls))]), ()),
        tuple([kernel for launch in launches for kernel in launch.kernels]),
        launches, seconds=taken(trace.calls), cuts=cuts,
    )  # fmt: skip


def beat_plans(trace: TraceShape) -> bool:
    """Whether bands are better than a plan, where they are possible.

    Of workunits that are called with other numbers most times, a plan finds few calls that share a
    loop, after a long time; and what all calls touch does not stay in cache from one to the next.
    """
    if not _is_usual():
        return False
    units = {id(call.workunit) for call in trace.distinct}
    numbers = {
        (
            id(call.workunit),
            call.space,
            *[a.value for a in call.arguments if type(a) is ScalarShape],
        )
        for call in trace.distinct
    }
    now = NOW.running
    if len(numbers) < max(now.band_kinds * len(units), now.band_share * len(trace.calls)):
        return False
    return sum(sizes_of(trace).values()) >= machine_for(trace).cache * now.band_caches


def _is_usual() -> bool:
    """Whether traces may run so: nobody looks at each launch, or wants a plan."""
    return (
        HOT is not None
        and SETTINGS.arbitrate
        and SETTINGS.engine == "native"
        and not (SETTINGS.verify or SETTINGS.debug or SETTINGS.sync or USE.devices)
        and not left_out("bands")
    )


def _cut(trace: TraceShape, bands: Bands) -> Cut | None:
    """How many lanes a band has; None if what even the fewest need does not stay in cache."""
    least = NEIGHBOURS if bands.near else 1
    size = machine_for(trace).cache // (2 * max(bands.bytes, 1)) // least * least
    if size < least:
        return None
    work = sum(
        arithmetic(call.workunit, known_scalars(call.workunit, call.arguments)) * call.space.size
        for call in trace.calls[bands.first : bands.last]
    )
    threads = work >= 2 * NOW.running.band_work
    if threads:
        share = -(-(bands.end - bands.begin) // max(team.count, 1))
        size = min(size, -(-share // least) * least)
    return Cut(*bands[:5], size, threads)


def _launch(place: int, call: Call) -> Launch:
    """A call as the launch that it would be alone."""
    kernel, launchable = eager.code_for(call)
    arguments: Sequence[Any] = call.arguments
    overwrites = [
        Overwrite(n, 0, box_of(axes, call.space, arguments[kernel.slots[n].argument].shape))
        for n, axes in zip(kernel.overwrites, kernel.along, strict=True)
    ]
    return Launch(
        (place,),
        tuple([(place, slot.argument) for slot in kernel.slots]),
        tuple(overwrites),
        () if call.result is None else (place,),
        launchable,
        call.space,
        (kernel,),
    )
