"""Results of reductions: on the device until somebody reads them."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

from pyfuser.engine.gpu.device import RESULT, Device
from pyfuser.engine.marshal import CODES
from pyfuser.ir.dtypes import DType
from pyfuser.trace.future import Deferred


class Results:
    """The memory of one launch's results, which is used again when nobody can ask for them."""

    __slots__ = ("_bytes", "_count", "address", "device", "stream")

    def __init__(self, device: Device, stream: int, count: int) -> None:
        self.device = device
        self.stream = stream
        self._count = count
        self._bytes: bytes | None = None
        self.address = 0  # if there is no memory
        self.address = device.take_slot(stream, count)

    def __del__(self, at_exit: Callable[[], bool] = sys.is_finalizing) -> None:
        if self.address and not at_exit():  # where the device's library may be gone
            self.device.give_slot(self.stream, self._count, self.address)

    def fetch(self) -> bytes:
        """All results, once the launch is done."""
        if self._bytes is None:
            self._bytes = self.device.read(self.address, RESULT * self._count, self.stream)
        return self._bytes

    def numbers(self, dtypes: Sequence[DType]) -> tuple[Number, ...]:
        """The results one by one."""
        return tuple(Number(self, place, dtype) for place, dtype in enumerate(dtypes))


class Number(Deferred):
    """One result: the memory that it is in, and its type."""

    __slots__ = ("_place", "dtype", "results")

    def __init__(self, results: Results, place: int, dtype: DType) -> None:
        self.results = results
        self.dtype = dtype
        self._place = place

    @property
    def address(self) -> int:
        """Where it is on the device."""
        return self.results.address + RESULT * self._place

    def read(self) -> Any:
        """Wait for it and fetch it."""
        parts = struct.unpack_from(
            "=" + CODES[self.dtype], self.results.fetch(), RESULT * self._place
        )
        return complex(*parts) if self.dtype.is_complex else parts[0]


def located(number: Number, dtype: DType, stream: int) -> tuple[float, int]:
    """A result as an argument of a launch: its address, where the launch can read it from there.

    A launch on another stream, or one that wants another type, takes the value.
    """
    if number.dtype is dtype and number.results.stream == stream:
        return 0.0, number.address
    return float(number.read()), 0
