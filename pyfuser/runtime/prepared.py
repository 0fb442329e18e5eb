"""The launches of a program as the extension has them: slots, and what of them changes.

Extents, strides and spaces are a part of a trace's key; so of the slots of a launch only addresses,
scalars and the number of threads differ from one flush of a key to the next.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyfuser.analysis.structural import structural_scalars
from pyfuser.engine.bounds import place_division
from pyfuser.engine.launchable import Launchable
from pyfuser.engine.marshal import accumulators_of
from pyfuser.engine.patches import KINDS, NOBODY, NUMBERS
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Workunit
from pyfuser.nest.abi import DIVIDED
from pyfuser.nest.spec import SweepSpec, loops_of
from pyfuser.runtime.launch import Launch, Source, Timing, arguments_of, results_of
from pyfuser.runtime.lifetimes import cluster_of, stored
from pyfuser.runtime.lifetimes import heirs as heirs_of
from pyfuser.runtime.program import Program
from pyfuser.runtime.turns import takes_turns
from pyfuser.support.caches import CACHES
from pyfuser.support.errors import DivisionError
from pyfuser.support.extension import HOT
from pyfuser.support.lazy import lazily
from pyfuser.support.passes import left_out
from pyfuser.trace.call import Call, Space
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Box, Buffer, Region
from pyfuser.trace.tracer import Tracer, nothing_to_settle
from pyfuser.transform.kernel import Axes
from pyfuser.transform.overwrites import box_of

if TYPE_CHECKING:
    from pyfuser.analysis.affine import Affine
    from pyfuser.runtime import eager
else:
    eager = lazily("pyfuser.runtime.eager")

NO_HEIRS: Mapping[int, Source] = MappingProxyType({})


def prepared(program: Program, calls: Sequence[Call]) -> Any:
    """The launches of a program for calls of one key; None if they cannot be prepared."""
    if HOT is None:
        return None
    try:
        steps = _steps(program, calls)
    except (struct.error, OverflowError):  # a number that does not fit: as an error later
        return None
    if None in steps:
        return None
    bands = tuple([_band(program, cut) for cut in program.cuts])
    either = not left_out("team-turns") and all(takes_turns(call.workunit) for call in calls)
    return HOT.Prepared(tuple(steps), bands, either)


def _band(program: Program, cut: Any) -> tuple[Any, ...]:
    """A `bands.Cut` with the slots where each launch has begin and end of its lanes."""
    ends = []
    for launch, axis in zip(program.launches[cut.first : cut.last], cut.axes, strict=True):
        slot, found = 0, {}
        for value in launch.launchable.filling:  # type: ignore[attr-defined]
            if value.kind in ("begin", "end") and value.axis == axis:
                found[value.kind] = slot
            slot += value.words
        ends.append((found["begin"], found["end"]))
    return (*cut[:2], *cut[3:], tuple(ends))


def prepared_alone(pattern: str, space: Space, workunit: Workunit, arguments: Any) -> Any:
    """What runs a call alone that has run so before, its launchable, and for which numbers it does.

    These are rows of `conditions.coefficients`. None if it has not.
    """
    call = Call(pattern, space, workunit, arguments, None, None, _steps.__code__, 0)
    found = eager.served(call)
    if found is None:
        return None
    kernel, launchable, rows = found
    if not launchable.on_device and (
        not isinstance(launchable, Launchable) or isinstance(launchable.spec, SweepSpec)
    ):
        return None
    places = [slot.argument for slot in kernel.slots]
    if len(places) == len(arguments):
        places = list(range(len(places)))
    boxes = dict(zip(kernel.overwrites, kernel.along, strict=True))
    count = 2 * len(space.begin) + len(structural_scalars(workunit))
    given = [arguments[place] for place in places]
    if launchable.on_device:
        asked = ((0, 0),) if pattern != "for" else ()
        step = _alone_on_device(launchable, space, given, places, boxes, asked)
        return step and (HOT.Prepared((step,)), launchable, _coefficients(rows, count))
    assert isinstance(launchable, Launchable)
    dtypes = [accumulator.sym.dtype for accumulator in accumulators_of(loops_of(launchable.spec))]
    results = tuple((0, NUMBERS[dtype]) for dtype in dtypes)
    try:
        sources: list[Source | None] = [(0, n) for n in places]
        step = _filled(launchable, space, given, sources, boxes, results, None, moves=True)
    except (struct.error, OverflowError):
        return None
    if step is None or len(results) != (pattern != "for"):
        return None
    return HOT.Prepared((step,)), launchable, _coefficients(rows, count)


def _alone_on_device(
    launchable: Any,
    space: Space,
    given: Sequence[Any],
    places: Sequence[int],
    along: Mapping[int, Axes],
    results: tuple[tuple[int, int], ...],
) -> Any:
    """The step of a call alone on a device, whose grid is that of one space."""
    boxes = {n: box_of(axes, space, given[n].shape) for n, axes in along.items()}
    sources = [(0, n) for n in places]
    try:
        return _on_device(launchable, space, given, sources, boxes, results)
    except (struct.error, OverflowError):
        return None


def _on_device(
    launchable: Any,
    space: Any,
    arguments: Sequence[Any],
    sources: Sequence[Source | None],
    boxes: Mapping[int, Box],
    results: tuple[tuple[int, int], ...],
) -> Any:
    """A launch on a device as a step; None if it is left to Python."""
    from pyfuser.engine.gpu.steps import step_of  # programs without a GPU do not load it

    return step_of(launchable, space, arguments, sources, boxes, results)


def _coefficients(rows: Sequence[Affine], count: int) -> tuple[Any, ...]:
    from pyfuser.analysis.conditions import coefficients

    return tuple(coefficients(rows, count))


def raise_divided(launchable: Launchable, call: Call) -> None:
    """Raise the DivisionError of a call that ran alone."""
    try:
        launchable.fail(DIVIDED)
    except DivisionError as error:
        place_division(error, (call,))
        raise


def _steps(program: Program, calls: Sequence[Call]) -> list[Any]:
    given = program.given
    sources = [_sources(launch) for launch in program.launches]
    in_memory = [stored(launch) for launch in program.launches]
    known = heirs_of(given, program.launches, [[*places.values()] for places in in_memory])
    steps = []
    for launch, each, places in zip(program.launches, sources, in_memory, strict=True):
        clusters = {place: cluster_of(given, source) for place, source in places.items()}
        gets = {place: known[c] for place, c in clusters.items() if c is not None and c in known}
        steps.append(filled(launch, calls, each, gets))
    return steps


def _sources(launch: Launch) -> list[Source | None]:
    """Where each argument comes from; None if no call has it."""
    sources: list[Source | None] = list(launch.sources)
    for place, _ in launch.bounds:
        sources.insert(place, None)
    return sources


def filled(
    launch: Launch,
    calls: Sequence[Call],
    sources: Sequence[Source | None],
    heirs: Mapping[int, Source] = NO_HEIRS,
) -> Any:
    """A launch as a step for the extension; sources: what `hot.h` says of a Patch, or None.

    heirs: by argument, whose memory it gets.
    """
    launchable = launch.launchable
    results = _results(launch, calls)
    if results is None:
        return None
    arguments = arguments_of(launch, calls)
    if launchable.on_device:
        boxes = boxes_of(launch, arguments)
        return _on_device(launchable, launch.space, arguments, sources, boxes, results)
    if not isinstance(launchable, Launchable):
        return None
    boxes = boxes_of(launch, arguments)
    return _filled(
        launchable, launch.space, arguments, sources, boxes, results, launch.timing, heirs
    )


def _filled(
    launchable: Launchable,
    space: Any,
    arguments: Sequence[Any],
    sources: Sequence[tuple[int, int] | None],
    boxes: Mapping[int, Box | Axes],
    results: tuple[tuple[int, int], ...],
    timing: Timing | None,
    heirs: Mapping[int, Source] = NO_HEIRS,
    moves: bool = False,
) -> Any:
    """A step of `HOT.Prepared`; sources: the call of each argument, and the place there.

    moves: begin and end of the space are filled in, too, and `boxes` has axes (see `Kernel.along`).
    """
    patches = []
    slot = 0
    for value in launchable.filling:
        if value.kind in ("begin", "end"):
            source = (0, value.axis) if moves else None
        else:
            source = sources[value.argument] if value.argument >= 0 else (0, 0)
        if value.kind and source is not None:
            box = boxes.get(value.argument) if value.kind == "pointer" else None
            heir = heirs.get(value.argument, NOBODY)
            patches.append((KINDS[value.kind], slot, *source, NUMBERS[value.dtype], box, *heir))
        slot += value.words
    known = [a if type(a) is Region or sources[n] is None else 0 for n, a in enumerate(arguments)]
    slots = launchable.slots(space, known)
    if len(slots) != 8 * slot:
        return None
    entry = ctypes.cast(launchable.entry, ctypes.c_void_p).value
    return entry, slots, tuple(patches), results, timing


def boxes_of(launch: Launch, arguments: Sequence[Any]) -> dict[int, Box]:
    """By argument, what is overwritten before anything of its buffer is read."""
    found = {}
    for place, earlier, box in launch.overwrites:
        before = arguments[:earlier]
        buffer = arguments[place].buffer
        if not any(a.buffer is buffer for a in before if type(a) is Region):
            found[place] = box
    return found


def _results(launch: Launch, calls: Sequence[Call]) -> tuple[tuple[int, int], ...] | None:
    """The calls and types of the values that come back; None if they would have to be converted."""
    spec: Any = launch.launchable.spec  # type: ignore[attr-defined]
    dtypes = [accumulator.sym.dtype for accumulator in accumulators_of(loops_of(spec))]
    futures = results_of(launch, calls)
    if [_kind(dtype) for dtype in dtypes] != [_kind(future.dtype) for future in futures]:
        return None
    return tuple(zip(launch.results, map(NUMBERS.__getitem__, dtypes), strict=True))


def _kind(dtype: DType) -> tuple[bool, bool]:
    return dtype.is_float, dtype.is_complex


class Workunits:
    """What the extension knows of workunits and of calls that run alone, in the list of caches."""

    name = "workunits of the extension"
    limit = 1024

    def __len__(self) -> int:
        return int(HOT.known())

    def clear(self) -> None:
        """Forget it."""
        HOT.forget()


if HOT is not None:
    HOT.bind(
        (Call, Future, Region, Buffer, Tracer, Timing),
        tuple(DType),
        structural_scalars,
        nothing_to_settle,
    )
    CACHES.append(Workunits())
