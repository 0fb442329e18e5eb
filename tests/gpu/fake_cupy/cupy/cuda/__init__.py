"""See README.md."""

from __future__ import annotations

import threading
from typing import Any

from cupy.cuda import _kernels, driver, nvrtc, runtime
from cupy.cuda._machine import MACHINE as _MACHINE

__all__ = ["driver", "nvrtc", "runtime"]


class Device:
    """A device, current within `with`."""

    def __init__(self, device: int | None = None) -> None:
        self.id = runtime.getDevice() if device is None else device
        self._before: list[int] = []

    @property
    def compute_capability(self) -> str:
        return "90"

    @property
    def attributes(self) -> dict[str, int]:
        return {"MultiProcessorCount": 4, "L2CacheSize": 1 << 22}

    def use(self) -> Device:
        runtime.setDevice(self.id)
        return self

    def synchronize(self) -> None:
        runtime.deviceSynchronize()

    def __enter__(self) -> Device:
        self._before.append(runtime.getDevice())
        return self.use()

    def __exit__(self, *_: object) -> None:
        runtime.setDevice(self._before.pop())


class _BaseStream:
    def __init__(self, ptr: int, device_id: int) -> None:
        self.ptr, self.device_id = ptr, device_id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BaseStream) and self.ptr == other.ptr

    def __hash__(self) -> int:
        return self.ptr

    def __enter__(self) -> Any:
        if self.device_id not in (-1, runtime.getDevice()):
            raise RuntimeError("The device that the stream is created on does not match")
        _stack().append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _stack().pop()

    def use(self) -> Any:
        _stack()[-1] = self
        return self

    def synchronize(self) -> None:
        runtime.streamSynchronize(self.ptr)

    @property
    def done(self) -> bool:
        return runtime.streamQuery(self.ptr) == 0

    def record(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        runtime.streamWaitEvent(self.ptr, event.ptr)

    def begin_capture(self, mode: int | None = None) -> None:
        if self.ptr in (0, 1):
            raise RuntimeError("cannot capture on the default (legacy) stream")
        runtime.streamBeginCapture(self.ptr, runtime.streamCaptureModeRelaxed)

    def end_capture(self) -> Graph:
        return Graph._of(runtime.streamEndCapture(self.ptr))

    def is_capturing(self) -> bool:
        return runtime.streamIsCapturing(self.ptr)


class Stream(_BaseStream):
    """A stream; the default one is `Stream.null`."""

    null: Stream

    def __init__(
        self,
        null: bool = False,
        non_blocking: bool = False,
        ptds: bool = False,
        priority: Any = None,
    ) -> None:
        if null:
            super().__init__(0, -1)
        else:
            flag = runtime.streamNonBlocking if non_blocking else runtime.streamDefault
            super().__init__(runtime.streamCreateWithPriority(flag, 0), runtime.getDevice())

    def __del__(self) -> None:
        if self.ptr:
            runtime.streamDestroy(self.ptr)


class ExternalStream(_BaseStream):
    """Another library's stream."""

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        super().__init__(ptr, device_id)


Stream.null = Stream(null=True)
_threads = threading.local()


def _stack() -> list[Any]:
    if not hasattr(_threads, "stack"):
        _threads.stack = [[Stream.null] for _ in range(runtime.getDeviceCount())]
    return _threads.stack[runtime.getDevice()]  # type: ignore[no-any-return]


def get_current_stream(device_id: int = -1) -> Any:
    return _stack()[-1]


class Event:
    """A place in a stream."""

    def __init__(
        self, block: bool = False, disable_timing: bool = False, interprocess: bool = False
    ) -> None:
        self.ptr = runtime.eventCreateWithFlags(2 * disable_timing)

    def __del__(self) -> None:
        runtime.eventDestroy(self.ptr)

    @property
    def done(self) -> bool:
        return runtime.eventQuery(self.ptr) == 0

    def record(self, stream: Any = None) -> None:
        runtime.eventRecord(self.ptr, (stream or get_current_stream()).ptr)

    def synchronize(self) -> None:
        runtime.eventSynchronize(self.ptr)


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    return runtime.eventElapsedTime(start_event.ptr, end_event.ptr)


class Graph:
    """What was captured."""

    def __init__(self, *_: Any) -> None:
        raise NotImplementedError("must be created via stream capture")

    @classmethod
    def _of(cls, handle: int) -> Graph:
        graph = cls.__new__(cls)
        graph.graph = handle  # type: ignore[attr-defined]
        return graph

    def __del__(self) -> None:
        if runtime is None:  # the interpreter ends
            return
        runtime.graphDestroy(self.graph)  # type: ignore[attr-defined]

    def launch(self, stream: Any = None) -> None:
        runtime.graphLaunch(self.graph, (stream or get_current_stream()).ptr)  # type: ignore[attr-defined]

    def upload(self, stream: Any = None) -> None:
        """Nothing to do here."""


class Function:
    """A kernel of a module."""

    def __init__(self, module: Module, funcname: str) -> None:
        self.module = module
        self.ptr = _MACHINE.handle()
        _kernels.ENTRIES[self.ptr] = _kernels.Entry(module._library, funcname)


class Module:
    """Loaded code."""

    def load(self, cubin: bytes) -> None:
        self._library = _kernels.load(cubin)

    def get_function(self, name: str) -> Function:
        return Function(self, name)


class UnownedMemory:
    """Somebody else's memory."""

    def __init__(self, ptr: int, size: int, owner: Any, device_id: int = -1) -> None:
        self.ptr, self.size, self.owner, self.device_id = ptr, size, owner, device_id


class _Pooled:
    def __init__(self, size: int) -> None:
        self.size, self._stream = size, get_current_stream().ptr
        self.ptr = _MACHINE.allocate(size, self._stream)
        _POOL._used += size

    def __del__(self) -> None:
        if not hasattr(self, "ptr"):
            return
        _POOL._used -= self.size
        _MACHINE.release(self.ptr, self.size, self._stream)


class MemoryPointer:
    """An address and what keeps it valid."""

    def __init__(self, mem: Any, offset: int) -> None:
        self.mem = mem
        self.ptr = mem.ptr + offset

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + offset)


class MemoryPool:
    """The pool; it only counts."""

    _used = 0

    def used_bytes(self) -> int:
        return self._used


_POOL = MemoryPool()


def alloc(size: int) -> MemoryPointer:
    return MemoryPointer(_Pooled(size), 0)


def set_allocator(allocator: Any = None) -> None:
    """Without a pool there would be no difference here."""


def is_available() -> bool:
    return runtime.getDeviceCount() > 0
