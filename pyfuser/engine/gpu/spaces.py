"""Execution spaces on GPUs, as frontends ask for them: is there one, which stream, which device."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from pyfuser.engine.gpu.device import DEVICES, current
from pyfuser.engine.gpu.library import library, loaded
from pyfuser.engine.gpu.steps import set_up
from pyfuser.ir.dtypes import from_numpy
from pyfuser.support.errors import ArgumentError, DeviceError
from pyfuser.trace.images import USE, Image
from pyfuser.trace.memory import Buffer, Region, contiguous


def use(space: str) -> None:
    """Get ready to run kernels in an execution space. Raises DeviceError if that cannot be."""
    found = library(space)
    USE.devices = True
    set_up(found, Place)


class Place:
    """A stream of a GPU, to be made the current one: `with place:`.

    asked: whether a call asked for this stream, which then need not be the current one. number,
    handles: of a stream that was not asked for, what its device has (see `Device`).
    """

    __slots__ = ("_before", "asked", "device", "handles", "number", "stream")

    def __init__(self, device: int, stream: Any, asked: bool) -> None:
        self.device = device
        self.stream = stream
        self.asked = asked
        self.number = -1
        self.handles: dict[int, int] = {}
        self._before: list[int] = []

    def same(self, other: Place) -> bool:
        """Whether calls of the two may be recorded together."""
        return (
            (self.stream is other.stream or bool(self.stream == other.stream))
            and self.device == other.device
            and self.asked == other.asked
        )

    def __enter__(self) -> None:
        found = loaded()
        device = found.runtime.getDevice()
        if device == self.device and found.cuda.get_current_stream() == self.stream:
            self._before.append(-1)
            return
        self._before.append(device)
        found.runtime.setDevice(self.device)
        self.stream.__enter__()

    def __exit__(self, *error: object) -> None:
        before = self._before.pop()
        if before >= 0:
            self.stream.__exit__(*error)
            loaded().runtime.setDevice(before)


def place(stream: Any, known: Place | None) -> Place:
    """Where a call is to run: a CuPy stream, or the current one if None; `known` if it is that."""
    found = loaded()
    device: int = found.runtime.getDevice()
    if device not in DEVICES:
        current()  # plans are made for it
    asked = stream is not None
    if not asked:
        stream = found.cuda.get_current_stream()
    fresh = Place(device, stream, asked)
    if known is not None and known.same(fresh):
        return known
    if not asked:
        fresh.number, fresh.handles = current().stream(), DEVICES[device].handles
    return fresh


def check_stream(space: str, stream: Any) -> None:
    """Raise TypeError unless an object is a CuPy stream."""
    cuda = library(space).cuda
    if not isinstance(stream, (cuda.Stream, cuda.ExternalStream)):
        raise TypeError(
            f"ExecutionSpaceInstance: {type(stream).__name__} is not a CuPy stream; make one with "
            "cupy.cuda.Stream(), or cupy.cuda.ExternalStream(handle) of another library's"
        )


def region_of_array(name: str, value: Any) -> tuple[Region, bool]:
    """The region of an array with CUDA's array interface, and whether it may be written.

    Raises ArgumentError for an element type or an address that kernels do not take.
    """
    found = loaded()
    if not USE.devices:
        use(found.space)
    stream, read_only = 0, False
    if isinstance(value, found.cupy.ndarray):  # its interface takes longer
        shape, strides, kind, address = value.shape, value.strides, value.dtype, value.data.ptr
    else:
        interface = value.__cuda_array_interface__
        shape, strides = interface["shape"], interface.get("strides")
        kind, stream = np.dtype(interface["typestr"]), interface.get("stream") or 0
        address, read_only = interface["data"]
        if interface.get("mask") is not None:
            raise ArgumentError(f"argument {name!r}: arrays with a mask are not supported")
    dtype = from_numpy(kind)
    if dtype is None:
        raise ArgumentError(f"argument {name!r}: arrays of {kind!r} are not supported")
    strides = strides or contiguous(shape, dtype.size)
    if address % dtype.size or any(stride % dtype.size for stride in strides):
        raise ArgumentError(
            f"argument {name!r}: its elements do not lie at multiples of {dtype.size} bytes, as "
            f"{dtype.value} must; pass a copy of it"
        )
    if not shape:
        shape, strides = (1,), (dtype.size,)
    device = current()
    if stream:  # the producer's work on the array is in this one, if it is another
        device.await_handle(stream)
    image = Image(device, value, address, foreign=True)
    buffer = Buffer.on_device(image, prod(shape) * dtype.size)
    return Region(buffer, 0, tuple(strides), tuple(shape), dtype), not read_only


def from_dlpack(value: Any) -> Any:
    """CuPy's array of memory that another library offers by DLPack."""
    return loaded().cupy.from_dlpack(value)


def set_device(number: int) -> None:
    """Make a GPU the current one, for CuPy, too. Raises RuntimeError if there is none."""
    try:
        found = loaded()
        count = found.runtime.getDeviceCount()
    except Exception:
        count = 0
    if not 0 <= number < count:
        raise RuntimeError(f"Device {number} does not exist (range [0..{count}))")
    found.runtime.setDevice(number)


def synchronize() -> None:
    """Wait until every kernel that was launched is done."""
    for device in DEVICES.values():
        device.synchronize()


__all__ = [
    "DeviceError",
    "check_stream",
    "current",
    "loaded",
    "place",
    "set_device",
    "synchronize",
    "use",
]
