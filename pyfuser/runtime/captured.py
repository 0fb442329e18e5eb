"""What a function did with calls, to be done again with other arguments.

A `Template` has the calls of a function, and where their arguments come from: an argument of the
function, or a part of one, memory that it made, a number it was given, a result of another call, or
something else, which stays as it is. `Template.calls` fills in what there is now.

The law: if a function is called with arguments of equal kinds (`frontends.embedded.capture`), and
what it reads from outside is as it was, then it makes these calls, and no others.

The extension runs a template without making calls (`hot/capture.c`). Its law: the calls' key
(`trace.key`) follows from that of the regions among the arguments and of those that stay as they
are. All other regions of calls lie at fixed places within these, or in memory that nobody else
reaches. So equal keys of these have equal keys of calls, and what a flush that is found by its key
does is what runs here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from math import prod
from typing import Any, NamedTuple, TypeAlias

from pyfuser.ir.dtypes import DType
from pyfuser.runtime import replay
from pyfuser.runtime.launch import Launch, arguments_of, give_results, raise_failed, results_of
from pyfuser.runtime.prepared import boxes_of, filled
from pyfuser.runtime.program import Flush, Program
from pyfuser.runtime.session import TRACER
from pyfuser.support.extension import HOT
from pyfuser.support.records import dataclass
from pyfuser.trace import reason
from pyfuser.trace.call import Call
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Allocation, Buffer, Handle, Region, contiguous
from pyfuser.trace.reason import asked

VIEW, FLOAT, VALUE, OBJECT = range(4)
"""What an argument has to be, as the extension has it: see `hot/capture.c`."""


class Part(NamedTuple):
    """A region that begins `offset` bytes after that of an argument, or of memory that is made."""

    place: int
    made: bool
    offset: int
    strides: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: DType

    def region(self, base: Region) -> Region:
        """It, where what it is a part of is now."""
        return Region(base.buffer, base.offset + self.offset, *self[3:])


class Number(NamedTuple):
    """A number that is an argument of the function."""

    place: int


class Computed(NamedTuple):
    """What a call computes."""

    call: int


Source: TypeAlias = Any  # a Part, a Number, Computed, or an argument as it is


@dataclass(frozen=True, slots=True)
class Template:
    """recorded: the calls, as they were the first time, and where their arguments come from.

    made: the bytes of each memory that the function makes. outside: what else calls touch.
    """

    recorded: tuple[tuple[Call, tuple[Source, ...]], ...]
    made: tuple[int, ...]
    outside: tuple[Region, ...]

    def without_data(self) -> Template:
        """The same, keeping no memory alive but what comes from outside."""
        recorded = []
        for call, sources in self.recorded:
            result = None if call.result is None else Future(call.result.dtype, TRACER.compute)
            bare = Call(
                call.pattern, call.space, call.workunit, (), result, call.label, call.code, call.at
            )
            recorded.append((bare, sources))
        return Template(tuple(recorded), self.made, self.outside)

    def calls(self, arguments: Sequence[Any], made: Sequence[Region]) -> list[Call]:
        """The calls for other arguments: regions, numbers, and anything for what is neither."""
        calls: list[Call] = []

        def filled_in(source: Source) -> Any:
            kind = type(source)
            if kind is Part:
                return source.region((made if source.made else arguments)[source.place])
            if kind is Number:
                return arguments[source.place]
            return calls[source.call].result if kind is Computed else source

        for call, sources in self.recorded:
            result = None if call.result is None else Future(call.result.dtype, TRACER.compute)
            calls.append(
                Call(
                    call.pattern, call.space, call.workunit, tuple(map(filled_in, sources)),
                    result, call.label, call.code, call.at,
                )
            )  # fmt: skip
        return calls


def temporary(size: int) -> Region:
    """Memory that no View reaches, as bytes."""
    return whole(Allocation(size, Handle()))


def whole(buffer: Buffer) -> Region:
    """All of a buffer, as bytes."""
    return Region(buffer, 0, contiguous((buffer.nbytes,), 1), (buffer.nbytes,), DType.UINT8)


class Kinds(NamedTuple):
    """What arguments have to be, as (VIEW, its code, a number for each object), (FLOAT, 0, None),
    (VALUE, 0, it) or (OBJECT, 0, it), and the names of the last ones.
    """

    kinds: tuple[tuple[int, int, Any], ...]
    names: tuple[str, ...]


def compiled(
    template: Template,
    kinds: Kinds,
    names: tuple[Any, ...],
    arguments: Sequence[Any],
    fresh: Sequence[int],
    wanted: Sequence[int],
    make: Callable[[Sequence[bool]], Any],
    build: Any,
) -> Any:
    """A `HOT.Captured` for arguments that lie in memory as these do; None if there is none yet.

    names: (dict or cell, name, value) of what has to be as it is. fresh: which memory is made anew
    each time. wanted: the calls whose results are. make: gives what is made anew: regions and
    Views; is told which of it a kernel overwrites before it is read. build: see `hot/capture.c`.
    """
    reached = {n: Handle() for n in fresh}  # as by the Views that the function returns
    bases = [whole(Allocation(s, reached.get(n) or Handle())) for n, s in enumerate(template.made)]
    calls = template.calls(arguments, bases)
    found = replay.known(calls)
    regions = [a for a in (*arguments, *template.outside) if type(a) is Region]
    if found is None or any(region.buffer.root is None for region in regions):
        return None
    program = found.program
    with suppress(ValueError, struct.error, OverflowError):  # not one for the extension
        touched = _touched(program, calls)
        kept = [n for n, base in enumerate(bases) if id(base.buffer) in touched and n not in fresh]
        first = len(arguments) + len(template.outside)
        places = {n: first + place for place, n in enumerate((*kept, *fresh))}
        outside = {id(region): len(arguments) + n for n, region in enumerate(template.outside)}
        results: dict[int, int] = {}  # by call: its place among the results of all launches
        steps = []
        for launch in program.launches:
            sources = [_source(template, s, places, outside, results) for s in launch.sources]
            steps.append(_step(launch, calls, sources))
            for call in launch.results:
                results[call] = len(results)
        whole_first = [touched.get(id(bases[n].buffer), False) for n in fresh]
        for n in kept:
            bases[n].buffer.allocate()
        return HOT.Captured(
            kinds.kinds,
            kinds.names,
            names,
            tuple(
                a if kind[0] == VIEW else None for a, kind in zip(arguments, kinds[0], strict=True)
            ),
            template.outside,
            (*(bases[n] for n in kept), *(None for _ in fresh)),
            len(fresh),
            tuple(bases[n] for n in kept if not touched[id(bases[n].buffer)]),
            tuple(steps),
            tuple((results[call], _result(calls[call]).dtype) for call in wanted),
            partial(make, whole_first),
            build,
            partial(_fail, template, program, bases),
            Flush(program, calls, asked(reason.CAPTURED)),
        )
    return None


def _result(call: Call) -> Future:
    assert call.result is not None
    return call.result


def _touched(program: Program, calls: Sequence[Call]) -> dict[int, bool]:
    """By id() of buffers, in what a program touches: whether it overwrites all of one first.

    As `hot/launch.c` makes memory: launch by launch, first what is overwritten.
    """
    found: dict[int, bool] = {}
    for launch in program.launches:
        arguments = arguments_of(launch, calls)
        boxes = boxes_of(launch, arguments)
        for place, box in boxes.items():
            region = arguments[place]
            size = prod(region.shape) * region.dtype.size
            fills = size == region.buffer.nbytes and box == ((0,) * len(region.shape), region.shape)
            found.setdefault(id(region.buffer), fills)
        for argument in arguments:
            if type(argument) is Region:
                found.setdefault(id(argument.buffer), False)
    return found


def _source(
    template: Template,
    source: tuple[int, int],
    places: dict[int, int],
    outside: dict[int, int],
    results: dict[int, int],
) -> tuple[int, int] | None:
    """Bytes and place, as the extension has them; None for what does not change."""
    call, argument = source
    found = template.recorded[call][1][argument]
    kind = type(found)
    if kind is Part:
        return found.offset, places[found.place] if found.made else found.place
    if kind is Number:
        return 0, found.place
    if kind is Computed:
        if found.call not in results:
            raise ValueError("a result that is no launch's")
        return 0, ~results[found.call]
    return (0, outside[id(found)]) if kind is Region else None


def _step(launch: Launch, calls: Sequence[Call], sources: list[tuple[int, int] | None]) -> Any:
    """A launch as the extension has it."""
    for place, _ in launch.bounds:
        sources.insert(place, None)
    step = filled(launch, calls, sources)
    if step is None:
        raise ValueError("a launch that the extension cannot make")
    return step


def _fail(
    template: Template,
    program: Program,
    made: Sequence[Region],
    arguments: Sequence[Any],
    ran: Any,
) -> None:
    """Raise what the last launch that ran failed with; those after it do not run."""
    regions = [getattr(argument, "_region", argument) for argument in arguments]
    calls = template.calls(regions, made)
    for position, call in enumerate(calls):
        call.position = position
    for launch, (status, result) in zip(program.launches, ran, strict=False):
        if status:
            raise_failed(launch, calls, ran)
        give_results(results_of(launch, calls), launch.launchable.values(result))
