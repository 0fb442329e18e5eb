"""Measures the constants of the cost model on a GPU, with kernels of the real engine.

As on the host (see `calibration.measure_host`), with the best of several rounds. Bandwidth is timed
by events of the device; a launch costs what the host needs to make one, or the device to run an
empty one, whichever is longer.
"""

from __future__ import annotations

import time
from typing import Any

from pyfuser.analysis.structural import structural_scalars
from pyfuser.calibration.measure_host import sum_of, write
from pyfuser.engine.engine import prepare_one
from pyfuser.engine.gpu.device import Device, current
from pyfuser.ir.dtypes import DType
from pyfuser.pipeline import KERNEL_PASSES, for_c, run_passes
from pyfuser.plan.cost_model import bytes_moved
from pyfuser.runtime.launch import launch_of, run_launch
from pyfuser.support.private_files import read_own
from pyfuser.trace.call import Call, Space
from pyfuser.trace.gate import Ran
from pyfuser.trace.memory import Allocation, Handle, Region, contiguous
from pyfuser.trace.shape import shape_of
from pyfuser.transform.fuse import fuse
from pyfuser.transform.group import GroupShape
from pyfuser.tuning import gpu as tuning_gpu
from pyfuser.tuning.host import LIMITS, Known, parsed, text_of

ROUNDS = 10
LAUNCHES = 400
TINY = 8
LARGEST = 1 << 30  # bytes of the arrays of a copy, together, at most, ...
PART = 8  # ... and at most one part in so many of the memory that is free
ARRAYS = (2, 8, 16, 32)  # that one loop walks through; it writes one of them
VISIBLE = 0.1  # a loop through more arrays that is slower by less is not


def calibrate(space: str) -> Known:
    """Measure the current GPU and keep the result; see `pyfuser.calibrate`."""
    device = current()
    path = tuning_gpu.calibration_file()
    about = {"identity": tuning_gpu.identity(), "processor": tuning_gpu.name()}
    kept = parsed(read_own(path) or b"", tuning_gpu.identity())
    write(path, text_of({**kept, **measured(device, space)}, about))
    tuning_gpu.known.cache_clear()
    return tuning_gpu.known()


def measured(device: Device, space: str) -> dict[str, Any]:
    """The constants of a GPU that can be measured."""
    free, _ = device.runtime.memGetInfo()
    size = min(LARGEST, free // PART)
    values: dict[str, Any] = {"launch": launch_seconds(device, space)}
    values |= traffic(device, space, size)
    properties = device.runtime.getDeviceProperties(device.number)
    values["cache"] = int(properties.get("l2CacheSize") or tuning_gpu.DEFAULT.cache)
    return {
        name: min(max(value, type(value)(LIMITS[name][0])), type(value)(LIMITS[name][1]))
        for name, value in values.items()
    }


class Loop:
    """A kernel whose last view becomes the sum of the others, on memory of its own."""

    def __init__(self, space: str, inputs: int, size: int) -> None:
        strides = contiguous((size,), 8)
        self._handles = [Handle() for _ in range(inputs + 1)]
        views = [
            Region(Allocation(8 * size, handle), 0, strides, (size,), DType.FLOAT64)
            for handle in self._handles
        ]
        code = calibrate.__code__
        where = Space((0,), (size,), space)
        self.call = Call("for", where, sum_of(inputs), tuple(views), None, None, code, 1)
        shape = shape_of((self.call,), structural_scalars)
        kernel = run_passes(KERNEL_PASSES, fuse(GroupShape(shape.calls)))
        self.launch = launch_of([(0,)], [kernel], prepare_one(for_c(kernel)), kernel.space)
        self.bytes = bytes_moved(shape, (0,))

    def run(self) -> None:
        """Launch it."""
        run_launch(self.launch, (self.call,), Ran())


def launch_seconds(device: Device, space: str) -> float:
    """Seconds that one of many tiny launches takes."""
    loop = Loop(space, 1, TINY)
    loop.run()
    device.synchronize()
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(LAUNCHES):
            loop.run()
        device.synchronize()
        best = min(best, (time.perf_counter() - start) / LAUNCHES)
    return best


def event_seconds(device: Device, loop: Loop, times: int = 1) -> float:
    """Seconds on the device of `times` launches, the best of several rounds."""
    cuda = device.cuda
    loop.run()
    best = float("inf")
    for _ in range(ROUNDS):
        before, after = cuda.Event(), cuda.Event()
        before.record()
        for _ in range(times):
            loop.run()
        after.record()
        after.synchronize()
        best = min(best, 1e-3 * cuda.get_elapsed_time(before, after) / times)
    return best


def traffic(device: Device, space: str, size: int) -> dict[str, Any]:
    """Bandwidth of a copy between arrays of `size` bytes together, and how many arrays keep it."""
    speeds = []
    for count in ARRAYS:
        loop = Loop(space, count - 1, max(size // (8 * count), 1))
        speeds.append(loop.bytes / max(event_seconds(device, loop), 1e-9))
    slower = [
        count
        for count, speed in zip(ARRAYS, speeds, strict=True)
        if speed < (1.0 - VISIBLE) * speeds[0]
    ]
    found: dict[str, Any] = {"bandwidth": speeds[0]}
    if slower:
        last = ARRAYS[-1]
        before = max(count for count in ARRAYS if count < slower[0])
        found["streams"] = before
        found["crowding"] = max(speeds[0] / speeds[-1] - 1.0, 0.0) / (last - before)
    else:
        found["streams"], found["crowding"] = 2 * ARRAYS[-1], 0.0
    return found
