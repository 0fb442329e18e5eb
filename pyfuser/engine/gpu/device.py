"""One GPU: its memory, its streams, and the small memory that launches need.

CuPy's current stream counts, and so do its allocator and its current device: a program's CuPy code
and its kernels see each other's results without a word.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from pyfuser.engine.gpu.library import Library, loaded
from pyfuser.trace import images
from pyfuser.trace.memory import Array, Region
from pyfuser.tuning import gpu as tuning_gpu

CHUNK = 1 << 16
"""Bytes of results that are allocated at a time."""

MAX_STREAMS = 64
"""Streams that are kept in mind."""

RESULT = 16
"""Bytes of one result (see `Launch.result_bytes`)."""


class Device(images.Memory):
    """The memory of a GPU (see `images.Memory`), and what launches on it share.

    A stream goes by a number that no stream of another device has; `handles` has what CUDA calls
    it. A stream that was used once stays alive with us, so that it can be waited for.
    """

    def __init__(self, library: Library, number: int) -> None:
        self.library = library
        self.number = number
        self.cuda = library.cuda
        self.runtime = library.runtime
        self.handles: dict[int, int] = {}
        self._streams: dict[int, Any] = {}
        self._base = number << 56
        self._workspaces: dict[int, tuple[Any, int, int]] = {}
        self._outgrown: list[Any] = []  # workspaces that launches may still be bound to
        self._slots: dict[tuple[int, int], list[int]] = {}
        self._chunks: list[Any] = []
        self._ready = threading.local()
        self._capture: Any = None
        self.captures = True  # whether launches can be captured into graphs
        self.architecture = str(self.cuda.Device(number).compute_capability)
        properties = self.runtime.getDeviceProperties(number)
        self.name: str = properties["name"].decode()
        tuning_gpu.use(self.name, f"{self.architecture}\0{library.description}")

    # ------------------------------------------------------------------- streams

    def stream(self) -> int:
        """The number of CuPy's current stream."""
        stream = self.cuda.get_current_stream()
        handle: int = stream.ptr
        number = self._base + handle
        if number not in self.handles:
            if len(self.handles) >= MAX_STREAMS:
                self._forget_streams()
            self.handles[number] = handle
            self._streams[number] = stream
        return number

    def _forget_streams(self) -> None:
        """Once all of them are done, nobody has to wait for any."""
        self.runtime.deviceSynchronize()
        self.handles.clear()
        self._streams.clear()
        self._workspaces.clear()
        self._outgrown.clear()

    def follow(self, earlier: int) -> None:
        """Let the current stream wait for what another one, perhaps of another GPU, was given."""
        self._wait(self.handles[self.stream()], earlier)

    def await_handle(self, handle: int) -> None:
        """Let the current stream wait for another library's, by the handle CUDA gave it.

        1 and 2 are the names that the array interface has for default streams.
        """
        own = self.handles[self.stream()]
        if handle != own and not (handle == 1 and own == 0):
            event = self.cuda.Event(disable_timing=True)
            self.runtime.eventRecord(event.ptr, handle)
            self.runtime.streamWaitEvent(own, event.ptr)

    def _wait(self, handle: int, earlier: int) -> None:
        other = DEVICES[earlier >> 56]
        if earlier not in other.handles:  # it was done when it was forgotten
            return
        event = self.cuda.Event(disable_timing=True)
        self.runtime.eventRecord(event.ptr, other.handles[earlier])
        self.runtime.streamWaitEvent(handle, event.ptr)

    def synchronize(self) -> None:
        """Wait for everything that was given to any stream of ours."""
        for handle in self.handles.values():
            self.runtime.streamSynchronize(handle)

    # ------------------------------------------------------------------- memory

    def allocate(self, nbytes: int, zero: bool) -> tuple[Any, int]:
        """See `images.Memory`; cupy.cuda.memory.OutOfMemoryError is a MemoryError."""
        pointer = self.cuda.alloc(max(nbytes, 1))
        address: int = pointer.ptr
        if zero and nbytes:
            self.runtime.memsetAsync(address, 0, nbytes, self.handles[self.stream()])
        return pointer, address

    def release(self, owner: Any, home: int, latest: int) -> None:
        """See `images.Memory`: the pool hands memory out again in the order of its stream."""
        if home in self.handles:
            self._wait(self.handles[home], latest)

    def upload(self, address: int, source: Array) -> None:
        """See `images.Memory`. It waits: only then may the host change what it copied from."""
        if source.nbytes:
            handle = self.handles[self.stream()]
            start = source.__array_interface__["data"][0]
            kind = self.runtime.memcpyHostToDevice
            self.runtime.memcpyAsync(address, start, source.nbytes, kind, handle)
            self.runtime.streamSynchronize(handle)

    def download(self, target: Array, address: int) -> None:
        """See `images.Memory`."""
        self._read(target, address, self.handles[self.stream()])

    def _read(self, target: Array, address: int, handle: int) -> None:
        if target.nbytes:
            start = target.__array_interface__["data"][0]
            kind = self.runtime.memcpyDeviceToHost
            self.runtime.memcpyAsync(start, address, target.nbytes, kind, handle)
            self.runtime.streamSynchronize(handle)

    def read(self, address: int, nbytes: int, stream: int) -> bytes:
        """Bytes of the device, once a stream has come so far."""
        target = np.empty(nbytes, np.uint8)
        self._read(target, address, self.handles.get(stream, 0))
        return target.tobytes()

    # ------------------------------------------------------------------- CuPy's arrays

    def array(self, region: Region, owner: Any) -> Any:
        """See `images.Memory`."""
        memory = self.cuda.UnownedMemory(region.address, region.buffer.nbytes, owner, self.number)
        pointer = self.cuda.MemoryPointer(memory, 0)
        shape, strides = region.shape, region.strides
        return self.library.cupy.ndarray(shape, region.dtype.numpy, pointer, strides)

    def values(self, array: Any) -> Array:
        """See `images.Memory`."""
        found: Array = self.library.cupy.asnumpy(array)
        return found

    def to_array(self, value: Any) -> Any:
        """See `images.Memory`."""
        is_array = isinstance(value, np.ndarray) and value.ndim
        return self.library.cupy.asarray(value) if is_array else value

    # ------------------------------------------------------------------- what launches need

    def workspace(self, stream: int, nbytes: int) -> int:
        """The address of a stream's working memory, whose head is zero between launches.

        Those before it, all together no larger, are kept: a launch may be bound to one that the
        stream does not know of yet.
        """
        owner, address, size = self._workspaces.get(stream, (None, 0, 0))
        if size < nbytes:
            self._outgrown.append(owner)
            size = max(nbytes, 2 * size)
            owner, address = self.allocate(size, zero=True)
            self._workspaces[stream] = owner, address, size
        return address

    def take_slot(self, stream: int, results: int) -> int:
        """Memory for the results of one launch on a stream.

        The same again and again, as long as results are read or forgotten.
        """
        free = self._slots.setdefault((stream, results), [])
        if not free:
            size = RESULT * results
            owner, address = self.allocate(max(CHUNK // size, 1) * size, zero=False)
            self._chunks.append(owner)
            free += range(address + CHUNK // size * size - size, address - 1, -size)
        return free.pop()

    def give_slot(self, stream: int, results: int, address: int) -> None:
        """Nobody will read these results; what the stream was given may still do so."""
        self._slots.setdefault((stream, results), []).append(address)

    def capture_stream(self) -> Any:
        """A stream that nothing runs on; the default one cannot capture."""
        if self._capture is None:
            self._capture = self.cuda.Stream(non_blocking=True)
        return self._capture

    def enter(self) -> None:
        """Make the device's context this thread's, once: `launchKernel` takes it for granted."""
        if not getattr(self._ready, "done", False):
            self.runtime.setDevice(self.number)
            self.runtime.memGetInfo()  # the first call of the runtime makes the context current
            self._ready.done = True


DEVICES: dict[int, Device] = {}


def current() -> Device:
    """CuPy's current device."""
    found = loaded()
    number: int = found.runtime.getDevice()
    device = DEVICES.get(number)
    if device is None:
        device = DEVICES[number] = Device(found, number)
    device.enter()
    return device


def synchronize() -> None:
    """Wait for every device."""
    for device in DEVICES.values():
        device.synchronize()
