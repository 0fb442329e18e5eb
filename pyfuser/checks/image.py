"""Copies of the memory that calls touch, and the same calls on the copies."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from pyfuser.trace.call import Argument, Call
from pyfuser.trace.future import Future
from pyfuser.trace.images import shared_buffer
from pyfuser.trace.memory import Allocation, Buffer, Handle, Region

ALIGNMENT = 64


class Image:
    """Copies of all memory some calls touch; arguments that overlap do so in the copies too.

    Memory is copied when the Image is made, but for that of Views: when the first call that uses
    it is copied.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        self._futures: dict[int, Future] = {}
        self._buffers: dict[int, Buffer] = {}
        self._handles: list[Handle] = []
        ranges = []
        for call in calls:
            for argument in call.arguments:
                if isinstance(argument, Region) and argument.buffer.image is not None:
                    argument.buffer.allocate()  # a GPU may have the newest values
                if isinstance(argument, Region) and argument.buffer.external:
                    low, high = argument.bounds()
                    address = argument.buffer.address
                    ranges.append((address + low, address + high))
        self._external = [_Range(low, high) for low, high in _merged(ranges)]

    def copy(self, call: Call) -> Call:
        """The call on the copies; its result is a Future of its own."""
        result = None
        if call.result is not None:
            result = self._futures[id(call.result)] = Future(call.result.dtype, _nothing)
        copied = Call(
            call.pattern,
            call.space,
            call.workunit,
            tuple(map(self._argument, call.arguments)),
            result,
            call.label,
            call.code,
            call.line,
        )
        copied.position = call.position
        return copied

    def _argument(self, argument: Argument) -> Argument:
        if isinstance(argument, Future):
            return self._futures.get(id(argument), argument)
        if not isinstance(argument, Region):
            return argument
        buffer = argument.buffer
        if buffer.external:
            address = buffer.address + argument.offset
            low = buffer.address + argument.bounds()[0]
            where = next(r for r in self._external if r.low <= low <= r.high)
            return argument._replace(buffer=where.buffer, offset=address - where.low + where.start)
        copied = self._buffers.get(id(buffer))
        if copied is None:
            handle = Handle()
            self._handles.append(handle)
            copied = self._buffers[id(buffer)] = Allocation(buffer.nbytes, handle)
            copied.allocate()
            if buffer.root is not None and copied.root is not None:
                copied.root[:] = buffer.root
        return argument._replace(buffer=copied)


class _Range:
    """A copy of the bytes from `low` to `high`, which is as well aligned as they are.

    It begins at byte `start` of the buffer.
    """

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high
        memory = (ctypes.c_uint8 * (high - low)).from_address(low)
        room = np.empty(high - low + ALIGNMENT, np.uint8)
        self.start = start = (low - room.ctypes.data) % ALIGNMENT
        room[start : start + high - low] = np.ctypeslib.as_array(memory)
        self.buffer = shared_buffer(room, Buffer.wrap)


def _nothing(_: Future) -> None:
    """What forces a copied Future: nothing, its value is there."""


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged
