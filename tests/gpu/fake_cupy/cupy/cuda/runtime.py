"""See README.md."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from typing import Any

from cupy.cuda._machine import MACHINE as _MACHINE
from cupy.cuda._machine import Failure as _Failure
from cupy.cuda._machine import Queue as _Queue

is_hip = False
memcpyHostToHost, memcpyHostToDevice, memcpyDeviceToHost, memcpyDeviceToDevice = range(4)
streamDefault, streamNonBlocking = 0, 1
streamLegacy, streamPerThread = 1, 2
streamCaptureModeGlobal, streamCaptureModeThreadLocal, streamCaptureModeRelaxed = range(3)
eventBlockingSync, eventDisableTiming, eventInterprocess = 1, 2, 4
CUDARuntimeError = _Failure
_thread = threading.local()


def getDeviceCount() -> int:
    return int(os.environ.get("FAKE_CUPY_DEVICES", "2"))


def getDevice() -> int:
    return int(getattr(_thread, "device", 0))


def setDevice(device: int) -> None:
    if not 0 <= device < getDeviceCount():
        raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
    _thread.device = device
    _thread.context = True


def memGetInfo() -> tuple[int, int]:
    _thread.context = True
    return 1 << 29, 1 << 30


def runtimeGetVersion() -> int:
    return 13000


def driverGetVersion() -> int:
    return 13000


def getDeviceProperties(device: int) -> dict[str, Any]:
    return {
        "name": b"stand-in", "multiProcessorCount": 4, "l2CacheSize": 1 << 22, "major": 9,
        "minor": 0, "totalGlobalMem": 1 << 30, "regsPerMultiprocessor": 65536,
        "maxThreadsPerMultiProcessor": 2048,
    }  # fmt: skip


def deviceSynchronize() -> None:
    _MACHINE.synchronize_all()


def memcpyAsync(dst: int, src: int, size: int, kind: int, stream: int) -> None:
    _MACHINE.enqueue(stream, lambda: ctypes.memmove(dst, src, size) and None)


def memcpy(dst: int, src: int, size: int, kind: int) -> None:
    memcpyAsync(dst, src, size, kind, 0)
    _MACHINE.synchronize(0)


def memsetAsync(ptr: int, value: int, size: int, stream: int) -> None:
    _MACHINE.enqueue(stream, lambda: ctypes.memset(ptr, value, size) and None)


def streamCreateWithPriority(flags: int, priority: int) -> int:
    handle = _MACHINE.handle()
    _MACHINE.queues[handle] = _Queue(blocking=flags != streamNonBlocking, device=getDevice())
    return handle


def streamDestroy(stream: int) -> None:
    _MACHINE.synchronize(stream)
    del _MACHINE.queues[stream]


def streamSynchronize(stream: int) -> None:
    _MACHINE.synchronize(stream)


def streamQuery(stream: int) -> int:
    queue = _MACHINE.queue(stream)
    return 0 if queue.done == queue.issued else 600


def streamWaitEvent(stream: int, event: int, flags: int = 0) -> None:
    if event in _MACHINE.events:  # else it was never recorded: nothing to wait for
        _MACHINE.wait(stream, *_MACHINE.events[event])


def streamBeginCapture(stream: int, mode: int = streamCaptureModeRelaxed) -> None:
    _MACHINE.queue(stream).captured = []


def streamEndCapture(stream: int) -> int:
    queue = _MACHINE.queue(stream)
    if queue.captured is None:
        raise CUDARuntimeError("cudaErrorIllegalState: no capture")
    handle = _MACHINE.handle()
    _graphs[handle], queue.captured = queue.captured, None
    return handle


def streamIsCapturing(stream: int) -> bool:
    return _MACHINE.queue(stream).captured is not None


_graphs: dict[int, list[Any]] = {}


def graphLaunch(graphExec: int, stream: int) -> None:
    _MACHINE.graphs_launched += 1
    for operation in _graphs[graphExec]:
        _MACHINE.enqueue(stream, operation)


def graphDestroy(graph: int) -> None:
    _graphs.pop(graph, None)


def eventCreateWithFlags(flags: int) -> int:
    return _MACHINE.handle()


def eventRecord(event: int, stream: int) -> None:
    _MACHINE.enqueue(stream, lambda: _MACHINE.times.__setitem__(event, time.perf_counter()))
    _MACHINE.events[event] = stream, _MACHINE.queue(stream).issued


def eventSynchronize(event: int) -> None:
    if event in _MACHINE.events:
        _MACHINE.run(*_MACHINE.events[event])


def eventQuery(event: int) -> int:
    stream, count = _MACHINE.events[event]
    return 0 if _MACHINE.queue(stream).done >= count else 600


def eventElapsedTime(start: int, end: int) -> float:
    return 1e3 * (_MACHINE.times[end] - _MACHINE.times[start])


def eventDestroy(event: int) -> None:
    _MACHINE.times.pop(event, None)
