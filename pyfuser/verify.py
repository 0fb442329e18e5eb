"""PYFUSER_VERIFY=1: run each trace unfused on copies as well, and compare bit for bit."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from pyfuser.errors import VerificationError
from pyfuser.trace.call import Argument, Call
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Array, Buffer, Handle, Region


@contextlib.contextmanager
def verified(calls: Sequence[Call], run_unfused: Callable[[Call], None]) -> Iterator[None]:
    """Around a fused run: run the calls one by one on copies first, and compare afterwards.

    Raises VerificationError at the first argument or result that differs. Two NaNs are equal
    whatever their payload. Temporaries that the program can no longer reach are not compared.
    """
    image = _Image(calls)
    copies = [image.copy(call) for call in calls]
    for copied in copies:
        run_unfused(copied)
    yield
    for call, copied in zip(calls, copies, strict=True):
        _compare(call, copied)


class _Image:
    """Copies of all memory the calls touch; arguments that overlap do so in the copies too."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._futures: dict[int, Future] = {}
        self._buffers: dict[int, Buffer] = {}
        self._handles: list[Handle] = []
        ranges = []
        for call in calls:
            for argument in call.arguments:
                if isinstance(argument, Region) and argument.buffer.external:
                    low, high = argument.bounds()
                    address = argument.buffer.address
                    ranges.append((address + low, address + high))
        self._external = [_Range(low, high) for low, high in _merged(ranges)]

    def copy(self, call: Call) -> Call:
        result = None
        if call.result is not None:
            result = self._futures[id(call.result)] = Future(call.result.dtype, _nothing)
        arguments = tuple(map(self._argument, call.arguments))
        copied = Call(
            call.pattern,
            call.space,
            call.workunit,
            arguments,
            result,
            call.label,
            _nothing.__code__,
            0,
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
            return argument._replace(buffer=where.buffer, offset=address - where.low)
        copied = self._buffers.get(id(buffer))
        if copied is None:
            handle = Handle()
            self._handles.append(handle)
            copied = self._buffers[id(buffer)] = Buffer(buffer.nbytes, handle)
            copied.allocate()
            if buffer.root is not None and copied.root is not None:
                copied.root[:] = buffer.root
        return argument._replace(buffer=copied)


class _Range:
    """A copy of the bytes from `low` to `high`."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high
        memory = (ctypes.c_uint8 * (high - low)).from_address(low)
        self.buffer = Buffer.wrap(np.ctypeslib.as_array(memory).copy())


def _nothing() -> None:
    """What forces a copied Future: nothing, its value is there."""


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _compare(call: Call, copied: Call) -> None:
    for param, argument, other in zip(
        call.workunit.params, call.arguments, copied.arguments, strict=True
    ):
        if isinstance(argument, Region) and argument.buffer.reachable:
            assert isinstance(other, Region)
            _compare_arrays(call, param.sym.name, argument.array(), other.array())
    if call.result is not None and copied.result is not None:
        fused, unfused = np.asarray(call.result.result()), np.asarray(copied.result.result())
        _compare_arrays(call, "its result", fused, unfused)


def _compare_arrays(call: Call, name: str, fused: Array, unfused: Array) -> None:
    with np.errstate(invalid="ignore"):
        same = (
            (fused == unfused) & (np.signbit(fused) == np.signbit(unfused))
            if (fused.dtype.kind == "f")
            else fused == unfused
        )
        same |= (fused != fused) & (unfused != unfused)
    if np.all(same):
        return
    where = tuple(int(i) for i in np.argwhere(~np.atleast_1d(same))[0])
    values = np.atleast_1d(fused)[where], np.atleast_1d(unfused)[where]
    raise VerificationError(
        f"{call.location}: {call.name!r} fused gives another {name}: element {list(where)} is "
        f"{values[0]!r}, unfused {values[1]!r}. Please report this with the program; "
        "PYFUSER_FUSION=0 runs it unfused"
    )
