"""A launch: the kernels that run together, their arguments, and what they give back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from pyfuser.engine.bounds import place_division
from pyfuser.engine.launchable import RollingParams
from pyfuser.engine.marshal import Number
from pyfuser.ir.divisions import divisions
from pyfuser.nest.abi import DIVIDED
from pyfuser.support.errors import DivisionError, PyFuserError
from pyfuser.support.records import dataclass
from pyfuser.trace.call import Argument, Call, called_as
from pyfuser.trace.future import Future
from pyfuser.trace.gate import Ran
from pyfuser.trace.images import USE, changed_on_host
from pyfuser.trace.memory import Box, Buffer, Region
from pyfuser.trace.shape import RegionShape, ScalarShape, TraceShape
from pyfuser.transform.kernel import Kernel
from pyfuser.transform.overwrites import boxes_of

if TYPE_CHECKING:
    from pyfuser.engine.engine import Launchable
    from pyfuser.plan.plan import Plan, Sources
    from pyfuser.transform.group import GroupShape

REMEMBERED = 8  # runs that weigh in a launch's time

LaunchKey: TypeAlias = "tuple[tuple[GroupShape, ...], RollingParams]"

Source: TypeAlias = tuple[int, int]
"""A call, and which of its arguments."""


class Ready(NamedTuple):
    """A launch's compiled code, and the kernels that were printed."""

    launchable: Launchable
    kernels: tuple[Kernel, ...]


class Overwrite(NamedTuple):
    """An argument (its place) whose box is overwritten, so that it need not be zeroed before.

    earlier: how many arguments are of loops that run before, and may read it first.
    """

    place: int
    earlier: int
    box: Box


class Graphs(Protocol):
    """See `engine.gpu.graphs.Graphs`."""

    def launch(self, bounds: Sequence[Any], ran: Ran) -> None:
        """Give bound launches to their device."""


class Timing:
    """What a launch took: the latest run and the mean of the latest ones, in seconds.

    The first run pays for memory and threads that are new to the process: the mean leaves it out
    once there is another.
    """

    __slots__ = ("latest", "mean", "runs")

    def __init__(self) -> None:
        self.runs = 0
        self.mean = 0.0
        self.latest = 0.0

    def add(self, seconds: float) -> None:
        self.latest = seconds
        self.runs = runs = self.runs + 1
        self.mean += (seconds - self.mean) / (min(runs - 1, REMEMBERED) or 1)


@dataclass(frozen=True)
class Launch:
    """One launch: what it does for which calls (places in the trace), all loops taken together.

    sources: for each argument its call, and the argument of the call. results: for each value that
    comes back the call that asked for it. space: the iteration space, or what `make_run` wants to
    know of a sweep. bounds: places and values, ascending, of arguments that no call has, such as
    the ends of guards. kernels: what was printed, a loop each. ends: the memory that nobody needs
    when it has run (see `runtime.lifetimes`), each as an argument that is in it.
    """

    calls: tuple[int, ...]
    sources: tuple[Source, ...]
    overwrites: tuple[Overwrite, ...]
    results: tuple[int, ...]
    launchable: Launchable
    space: tuple[Any, ...]
    kernels: tuple[Kernel, ...]
    bounds: tuple[tuple[int, int], ...] = ()
    ends: tuple[Source, ...] = ()
    timing: Timing = field(default_factory=Timing, compare=False)


def launch_of(
    groups: Sequence[Sequence[int]],
    kernels: Sequence[Kernel],
    launchable: Launchable,
    space: tuple[Any, ...],
    rolling: RollingParams = (),
) -> Launch:
    """The launch in which kernels[k] does what the calls groups[k] ask for."""
    without = {param for params in rolling for param in params}
    sources: list[tuple[int, int]] = []
    overwrites: list[Overwrite] = []
    results: list[int] = []
    for loop, (group, kernel) in enumerate(zip(groups, kernels, strict=True)):
        first = len(sources)
        sources += [(group[slot.call], slot.argument) for slot in kernel.slots]
        results += [group[place] for place in kernel.results]
        overwrites += [
            Overwrite(first + place, first, box)
            for place, box in boxes_of(kernel)
            if (loop, place) not in without
        ]
    calls = tuple(n for group in groups for n in group)
    return Launch(
        calls, tuple(sources), tuple(overwrites), tuple(results), launchable, space, tuple(kernels)
    )


class Draft:
    """A launch that is not compiled yet: the groups of a plan at `places`, one or a sweep.

    sources: those of the plan.
    """

    def __init__(
        self,
        trace: TraceShape,
        plan: Plan,
        places: tuple[int, ...],
        shapes: Sequence[GroupShape],
        kernels: Sequence[Kernel],
        sources: Sources,
    ) -> None:
        self.groups = tuple(plan.groups[place].calls for place in places)
        self.kernels = tuple(kernels[place] for place in places)
        self.sweep = next((sweep for sweep in plan.sweeps if sweep.groups == places), None)
        views = self.sweep.rolling if self.sweep else ()
        self.rolling = tuple(self._params(trace, view.cluster) for view in views)
        self.key: LaunchKey = tuple(shapes[place] for place in places), self.rolling
        self._calls = trace.calls
        self._sources = sources

    def _params(self, trace: TraceShape, cluster: int) -> tuple[tuple[int, int], ...]:
        """The parameters, as (kernel, place), that stand for the views of a cluster."""
        found = []
        for loop, (group, kernel) in enumerate(zip(self.groups, self.kernels, strict=True)):
            for place, slot in enumerate(kernel.slots):
                argument = trace.calls[group[slot.call]].arguments[slot.argument]
                if isinstance(argument, RegionShape) and argument.cluster == cluster:
                    found.append((loop, place))
        return tuple(found)

    def launch(self, ready: Ready) -> Launch:
        """The launch of its code."""
        space: tuple[Any, ...] = self.kernels[0].space
        if self.sweep:
            stages = zip(self.sweep.stages, self.kernels, strict=True)
            space = (
                -self.sweep.wave if self.sweep.ring else self.sweep.wave,
                *(view[1:] for view in self.sweep.rolling),
                *((stage.lag, stage.ahead, *kernel.space[:2]) for stage, kernel in stages),
            )
        launch = launch_of(self.groups, ready.kernels, ready.launchable, space, self.rolling)
        return self._of_program(launch) if self._sources.notes else launch

    def _of_program(self, launch: Launch) -> Launch:
        """The launch, with arguments from where the program has them; others are known numbers."""
        sources: list[tuple[int, int]] = []
        bounds: list[tuple[int, int]] = []
        for position, (call, place) in enumerate(launch.sources):
            source = self._sources.of(call, place)
            if source is not None:
                sources.append(source)
                continue
            number = self._calls[call].arguments[place]
            assert isinstance(number, ScalarShape) and number.value is not None
            bounds.append((position, number.value))
        return replace(launch, sources=tuple(sources), bounds=tuple(bounds))


# law
def forgettable(plan: Plan, done: Sequence[int]) -> list[int]:
    """The calls of a plan that need not run any more, when those in `done` have."""
    ran = frozenset(done)
    needed = {note.call for note in plan.notes if not ran.issuperset(note.until)}
    return [n for n in done if n not in needed]


def run_launch(launch: Launch, calls: Sequence[Call], ran: Ran) -> None:
    """Run one launch on its calls' arguments, and give the calls their results."""
    fresh: list[Buffer] = []
    before = len(ran)
    try:
        arguments = arguments_of(launch, calls)
        for place, argument in enumerate(arguments):
            if type(argument) is Future:
                arguments[place] = launch.launchable.number(argument)
        for overwrite in launch.overwrites:
            _allocate(overwrite, arguments, launch.launchable, fresh)
        values = launch.launchable.run(launch.space, arguments, ran)
        if USE.devices and not launch.launchable.on_device:
            changed_on_host(*(a.buffer for a in arguments if type(a) is Region))
    except (PyFuserError, MemoryError, OverflowError) as error:
        raise _completed(error, launch, calls, ran) from None
    finally:
        if len(ran) == before:
            _undo(fresh, ran)
    if launch.results:
        give_results(results_of(launch, calls), values)


def raise_failed(launch: Launch, calls: Sequence[Call], ran: Ran) -> None:
    """Raise what `run_launch` would have raised for a launch that failed, the last one in `ran`."""
    launchable: Any = launch.launchable
    try:
        launchable.fail(ran[-1][0])
    except (PyFuserError, MemoryError) as error:
        raise _completed(error, launch, calls, ran) from None


def _completed(error: Exception, launch: Launch, calls: Sequence[Call], ran: Ran) -> Exception:
    """The error of a launch, with its calls; after a division by 0 with what became of results."""
    if not divided(ran):
        return _located(error, launch, calls)
    assert isinstance(error, DivisionError)
    _fail(error, launch, calls, ran[-1][1])
    return error


def _fail(error: DivisionError, launch: Launch, calls: Sequence[Call], result: Any) -> None:
    """Complete the error of a launch that ran; results of calls made before the division are right.

    result: what holds the values.
    """
    members = [calls[n] for n in launch.calls]
    place_division(error, members)
    error.ran = True
    divide = [call.position for call in members if any(divisions(call.workunit.body))]
    if not launch.results:
        return
    numbers = launch.launchable.values(result)
    for n, future, value in zip(launch.results, results_of(launch, calls), numbers, strict=True):
        if divide and calls[n].position < min(divide):
            future.give(value)
        else:
            future.fail(error)


def _undo(fresh: list[Buffer], ran: Ran) -> None:
    """Take back memory that was not zeroed, as its kernel has not run."""
    while fresh:
        buffer = fresh.pop()
        if ran.gate:  # else a flush in a signal handler has used it: none can come before the next
            buffer.root = buffer.image = None


def divided(ran: Sequence[Any]) -> bool:
    """Whether the latest launch (see `make_run`) ran and divided an integer by 0."""
    return bool(ran) and ran[-1][0] == DIVIDED


def run_together(
    launches: Sequence[Launch], calls: Sequence[Call], graphs: Graphs, ran: Ran
) -> None:
    """Run launches of which all are on one device: they are bound first, then given to it at once.

    What one computes may be an argument of a later one, which takes it where it will be.
    """
    bounds: list[Any] = []
    given = 0
    numbers: dict[int, Any] = {}  # by id() of Futures: what launches that are bound will compute
    for launch in launches:
        launchable: Any = launch.launchable
        try:
            arguments = arguments_of(launch, calls)
            for place, argument in enumerate(arguments):
                if type(argument) is not Future:
                    continue
                number = numbers.get(id(argument))
                if number is None:
                    number = launchable.number(argument)
                elif not launchable.takes(place, number):
                    graphs.launch(bounds[given:], ran)  # it is wanted
                    given = len(bounds)
                arguments[place] = number
            for overwrite in launch.overwrites:
                _allocate(overwrite, arguments, launchable, [])
            bound = launchable.bind(launch.space, arguments)
        except (PyFuserError, MemoryError, OverflowError) as error:
            raise _located(error, launch, calls) from None
        bounds.append(bound)
        if launch.results:
            futures = results_of(launch, calls)
            numbers.update(zip(map(id, futures), bound.numbers(), strict=True))
    if given < len(bounds):
        graphs.launch(bounds[given:], ran)
    for launch, bound in zip(launches, bounds, strict=True):
        if launch.results:
            give_results(results_of(launch, calls), bound.numbers())


def arguments_of(launch: Launch, calls: Sequence[Call]) -> list[Any]:
    """The arguments of a launch."""
    arguments: list[Any] = [calls[n].arguments[place] for n, place in launch.sources]
    for place, value in launch.bounds:
        arguments.insert(place, value)
    return arguments


def _located(error: Exception, launch: Launch, calls: Sequence[Call]) -> Exception:
    """The error with the calls that a launch was made of."""
    lines = called_as([calls[n] for n in launch.calls])
    if isinstance(error, DivisionError):  # of a result that others may ask for, too
        error = DivisionError(str(error))
    error.args = (f"{error}{lines}",)
    return error


# law
def _allocate(
    overwrite: Overwrite,
    arguments: Sequence[Argument],
    launchable: Launchable,
    fresh: list[Buffer],
) -> None:
    """Allocate what is overwritten without zeroing it, unless an earlier loop may read it.

    fresh: the memory is added to it.
    """
    region = arguments[overwrite.place]
    assert isinstance(region, Region)
    if region.buffer.allocated:
        return
    before = arguments[: overwrite.earlier]
    if not any(a.buffer is region.buffer for a in before if type(a) is Region):
        fresh.append(region.buffer)
        launchable.allocate(region, overwrite.box)


def results_of(launch: Launch, calls: Sequence[Call]) -> list[Future]:
    """The Futures of a launch, in the order of its values."""
    found = []
    for n in launch.results:
        future = calls[n].result
        assert future is not None
        found.append(future)
    return found


def give_results(results: Sequence[Future], values: Sequence[Number]) -> None:
    """Set the Futures."""
    for future, value in zip(results, values, strict=True):
        future.give(value)
