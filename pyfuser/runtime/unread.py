"""Which arrays calls overwrite before they read them, or nobody can read any more.

The law of `analysis.work_arrays` for the memory of a flush. What a call before wrote of an array is
overwritten if the array is all of its memory both times, and the later calls write all elements of
it, or, in the same view of that memory, all those that were written. If several calls do that
together, one launch runs them: an interrupt between two would leave the old values of some elements
to calls that no longer wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from pyfuser.runtime.launch import Source
from pyfuser.runtime.program import Program
from pyfuser.trace.call import Call
from pyfuser.trace.memory import Buffer, Region, contiguous
from pyfuser.trace.shape import RegionShape, TraceShape

if TYPE_CHECKING:
    from pyfuser.analysis.work_arrays import Overwritten, Work


def touched_by(call: Call) -> Iterator[Buffer]:
    """The memory of a call's arguments."""
    return (a.buffer for a in call.arguments if type(a) is Region)


def region_of(calls: Sequence[Call], source: Source) -> Region:
    region = calls[source[0]].arguments[source[1]]
    assert type(region) is Region
    return region


def is_whole(region: Region) -> bool:
    """Whether it has all elements of its buffer, each once."""
    size = region.dtype.size
    if region.offset or prod(region.shape) * size != region.buffer.nbytes:
        return False
    return region.strides == contiguous(region.shape, size) or region.strides == tuple(
        reversed(contiguous(region.shape[::-1], size))
    )


def unreachable(calls: Sequence[Call], arrays: Mapping[Source, Buffer]) -> tuple[Source, ...]:
    """The arrays that nobody can read any more: neither the program, nor what it has recorded."""
    touched = {id(b) for call in calls for b in touched_by(call)}
    return tuple([s for s, b in arrays.items() if not b.reachable and id(b) not in touched])


def left_unread(
    calls: Sequence[Call],
    work: Work,
    programs: Sequence[Program],
    arrays: Mapping[Source, Buffer],
    before: tuple[TraceShape, Work],
) -> tuple[Source, ...]:
    """The arrays of an earlier trace that calls overwrite, or that nobody can read any more.

    work, programs: of the calls; the latter are all that may run them. before: of the trace.
    """
    found = {}
    for source, part in work.overwritten.items():
        region = region_of(calls, source)
        if is_whole(region) and is_at_once(programs, part):
            found[id(region.buffer)] = region, part
    given, old = before
    gone = unreachable(calls, arrays)
    return tuple(
        source
        for source, b in arrays.items()
        if source in gone
        or (id(b) in found and covers(*found[id(b)], _shape(given, source), old.parts[source]))
    )


# law: True
def covers(region: Region, part: Overwritten, shape: RegionShape, other: Overwritten) -> bool:
    """Whether what is overwritten of memory has all that a call before wrote of the same memory."""
    if part.whole:
        return True
    same = region.shape == shape.shape and region.strides == shape.strides
    return same and region.dtype is shape.dtype and part.covers(other)


# law: True
def is_at_once(programs: Sequence[Program], part: Overwritten) -> bool:
    """Whether nothing comes in between the calls that overwrite an array, such as an interrupt."""
    return all(any(part.calls <= {*la.calls} for la in p.launches) for p in programs)


def _shape(given: TraceShape, source: Source) -> RegionShape:
    shape = given.calls[source[0]].arguments[source[1]]
    assert type(shape) is RegionShape
    return shape
