"""A launch: the kernels that run together, their arguments, and what they give back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyfuser.engine.marshal import Number
from pyfuser.engine.native import Launchable, RollingParams
from pyfuser.errors import PyFuserError
from pyfuser.plan.plan import Plan
from pyfuser.trace.call import Argument, Call
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Region
from pyfuser.trace.shape import RegionShape, TraceShape
from pyfuser.transform.group import GroupShape
from pyfuser.transform.kernel import Kernel

LaunchKey = tuple[tuple[GroupShape, ...], RollingParams]


@dataclass(frozen=True)
class Launch:
    """One launch: kernels[k] does what the calls groups[k] (places in the trace) ask for.

    space: the iteration space, or what `make_run` wants to know of a sweep. overwrites: for each
    kernel those places of its arguments that need no zeroed memory.
    """

    groups: tuple[tuple[int, ...], ...]
    kernels: tuple[Kernel, ...]
    launchable: Launchable
    space: tuple[Any, ...]
    overwrites: tuple[tuple[int, ...], ...]


class Draft:
    """A launch that is not compiled yet: the groups of a plan at `places`, one or a sweep."""

    def __init__(
        self,
        trace: TraceShape,
        plan: Plan,
        places: tuple[int, ...],
        shapes: Sequence[GroupShape],
        kernels: Sequence[Kernel],
    ) -> None:
        self.groups = tuple(plan.groups[place].calls for place in places)
        self.kernels = tuple(kernels[place] for place in places)
        self.sweep = next((sweep for sweep in plan.sweeps if sweep.groups == places), None)
        views = self.sweep.rolling if self.sweep else ()
        self.rolling = tuple(self._params(trace, view.cluster) for view in views)
        self.key: LaunchKey = tuple(shapes[place] for place in places), self.rolling

    def _params(self, trace: TraceShape, cluster: int) -> tuple[tuple[int, int], ...]:
        """The parameters, as (kernel, place), that stand for the views of a cluster."""
        found = []
        for loop, (group, kernel) in enumerate(zip(self.groups, self.kernels, strict=True)):
            for place, slot in enumerate(kernel.slots):
                argument = trace.calls[group[slot.call]].arguments[slot.argument]
                if isinstance(argument, RegionShape) and argument.cluster == cluster:
                    found.append((loop, place))
        return tuple(found)

    def launch(self, launchable: Launchable) -> Launch:
        """The launch of its code."""
        space: tuple[Any, ...] = self.kernels[0].space
        if self.sweep:
            stages = zip(self.sweep.stages, self.kernels, strict=True)
            space = (
                self.sweep.wave,
                *(view[1:] for view in self.sweep.rolling),
                *((stage.lag, stage.ahead, *kernel.space[:2]) for stage, kernel in stages),
            )
        without = {param for params in self.rolling for param in params}
        overwrites = tuple(
            tuple(place for place in kernel.overwrites if (loop, place) not in without)
            for loop, kernel in enumerate(self.kernels)
        )
        return Launch(self.groups, self.kernels, launchable, space, overwrites)


def run_launch(launch: Launch, calls: Sequence[Call], ran: list[Any]) -> None:
    """Run one launch on its calls' arguments, and give the calls their results."""
    arguments: list[Argument] = []
    try:
        for group, kernel, places in zip(
            launch.groups, launch.kernels, launch.overwrites, strict=True
        ):
            first = len(arguments)
            for slot in kernel.slots:
                argument = calls[group[slot.call]].arguments[slot.argument]
                arguments.append(argument.result() if isinstance(argument, Future) else argument)
            _allocate(kernel, places, arguments, first)
        values = launch.launchable.run(launch.space, arguments, ran)
    except (PyFuserError, MemoryError, OverflowError) as error:
        members = (calls[position] for group in launch.groups for position in group)
        lines = "".join(f"\n  called as {call.name!r} at {call.location}" for call in members)
        error.args = (f"{error}{lines}",)
        raise
    give_results(results_of(launch, calls), values)


def _allocate(
    kernel: Kernel, places: Sequence[int], arguments: Sequence[Argument], first: int
) -> None:
    """Allocate what a kernel overwrites without zeroing it, unless an earlier loop may read it.

    places: of the views among the kernel's own arguments, which start at `first`; those before are
    of loops that run first.
    """
    for place in places:
        region = arguments[first + place]
        assert isinstance(region, Region)
        earlier = any(a.buffer is region.buffer for a in arguments[:first] if type(a) is Region)
        if not earlier:
            region.allocate(kernel.space[:2])


def results_of(launch: Launch, calls: Sequence[Call]) -> list[Future]:
    """The Futures of a launch, in the order of its values."""
    found = []
    for group, kernel in zip(launch.groups, launch.kernels, strict=True):
        for place in kernel.results:
            future = calls[group[place]].result
            assert future is not None
            found.append(future)
    return found


def give_results(results: Sequence[Future], values: Sequence[Number]) -> None:
    for future, value in zip(results, values, strict=True):
        future.set(value)
