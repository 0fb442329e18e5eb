"""What launches cost on a GPU: one from Python, a steady step of ten kernels; and a copy's speed.

Host times are of many calls in a row until the device is done; device times are by events. The best
of several rounds counts.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyfuser  # makes `import pykokkos` work where PyKokkos is not installed
from pyfuser.calibration import measure_gpu
from pyfuser.engine.gpu.device import current
from pyfuser.support.counters import COUNTERS

# isort: split
import pykokkos as pk

ROUNDS = 7
TINY = 256
KERNELS = 10
CHAIN = 3  # arrays of `chain`
POWERS = (20, 24, 28, 30, 32)  # of two: the bytes of arrays


@pk.workunit
def axpy(i, a, x, y):
    y[i] += a * x[i]


@pk.workunit
def turn(i, a, last, x, y):
    y[i] = a * x[last - i]


@pk.workunit
def total(i, acc, x):
    acc += x[i]


@pk.workunit
def chain(i, x, y, z):
    z[i] = (x[i] - y[i]) * x[i] + y[i] * y[i]


@pk.workunit
def neighbours(i, x, y):
    y[i] = x[i - 1] + x[i + 1] - x[i]


def host_seconds(step: Callable[[], object], times: int) -> float:
    """Seconds of one of many calls in a row, until the device has done them."""
    step()
    pyfuser.sync()
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(times):
            step()
        pyfuser.sync()
        best = min(best, (time.perf_counter() - start) / times)
    return best


def device_seconds(step: Callable[[], object], times: int) -> float:
    """The same by events of the device."""
    return min(events_between(step, times) for _ in range(ROUNDS))


def events_between(step: Callable[[], object], times: int) -> float:
    """Seconds of one of many calls in a row, by events of the device."""
    cuda = current().cuda
    before, after = cuda.Event(), cuda.Event()
    before.record()
    for _ in range(times):
        step()
    after.record()
    after.synchronize()
    return float(1e-3 * cuda.get_elapsed_time(before, after) / times)


def launches(times: int) -> dict[str, Any]:
    """Tiny kernels: one at a time, and KERNELS that cannot share a loop, in a steady step."""
    x, y = pk.View([TINY], pk.double), pk.View([TINY], pk.double)
    array_x, array_y = (current().library.cupy.zeros(TINY) for _ in range(2))

    def one() -> None:
        pk.parallel_for(TINY, axpy, a=0.5, x=x, y=y)

    def one_of_arrays() -> None:
        pk.parallel_for(TINY, axpy, a=0.5, x=array_x, y=array_y)

    def steady(a: float = 0.5) -> None:
        with pyfuser.fusing():
            for _ in range(KERNELS // 2):
                pk.parallel_for(TINY, turn, a=a, last=TINY - 1, x=x, y=y)
                pk.parallel_for(TINY, turn, a=a, last=TINY - 1, x=y, y=x)

    count = iter(range(1, 1 << 60))

    def changing() -> None:
        steady(1.0 / next(count))

    def read() -> float:
        return float(pk.parallel_reduce(TINY, total, x=x))

    found: dict[str, Any] = {}
    with pyfuser.unfused():
        found["launch of Views, host"] = host_seconds(one, times)
        found["launch of Views, device"] = device_seconds(one, times)
        found["launch of CuPy arrays, host"] = host_seconds(one_of_arrays, times)
        found["reduction, read"] = host_seconds(read, times)
    for _ in range(8):
        steady()
    found["kernels of the step"] = pyfuser.explain().launches
    graphs = COUNTERS.graph_launches
    found["step, replayed, host"] = host_seconds(steady, times // 4)
    found["step, replayed, device"] = device_seconds(steady, times // 4)
    found["replays"] = COUNTERS.graph_launches - graphs
    for _ in range(8):
        changing()
    graphs = COUNTERS.graph_launches
    found["step whose scalars change, replayed, host"] = host_seconds(changing, times // 4)
    found["step whose scalars change, replayed, device"] = device_seconds(changing, times // 4)
    found["replays of it"] = COUNTERS.graph_launches - graphs
    device = current()
    device.captures = False
    found["step, plain launches, host"] = host_seconds(steady, times // 4)
    found["step, plain launches, device"] = device_seconds(steady, times // 4)
    found["step whose scalars change, plain, host"] = host_seconds(changing, times // 4)
    device.captures = True
    return found


def copy(space: str, largest: int) -> dict[str, Any]:
    """Bytes a second of a copy, read and written, for some sizes of both arrays together.

    largest: the greatest of these, a power of two.
    """
    device = current()
    free, _ = device.runtime.memGetInfo()
    found = {}
    for power in (p for p in POWERS if p <= largest):
        size = 1 << power
        if size <= free // 2:
            loop = measure_gpu.Loop(space, 1, size // 16)
            seconds = measure_gpu.event_seconds(device, loop)
            found[str(size)] = loop.bytes / max(seconds, 1e-12)
    return found


def reads(largest: int) -> dict[str, Any]:
    """Seconds of a read of one element after a launch, and of all of a View, by its bytes.

    What `trace.images.LATENCY` guesses: the bytes whose copy takes as long as that of few.
    """
    found = {}
    for power in (16, 18, 20, 22, 24):
        if power > largest:
            break
        n = (1 << power) // 8
        x, y = (pk.View([n], pk.double) for _ in range(2))

        def first(n: int = n, x: Any = x, y: Any = y) -> float:
            pk.parallel_for(n, axpy, a=0.5, x=x, y=y)
            return float(y[0])

        def last(n: int = n, x: Any = x, y: Any = y) -> str:
            pk.parallel_for(n, axpy, a=0.5, x=x, y=y)
            return str(y)  # all of it

        found[f"an element of {1 << power} bytes"] = host_seconds(first, 20)
        found[f"all of {1 << power} bytes"] = host_seconds(last, 20)
    return found


def main(space: str, target: str, times: str = "2000", largest: str = "32") -> int:
    """Write the timings, in seconds and bytes a second, as JSON."""
    pk.set_default_space(pk.ExecutionSpace(space))
    values = {
        "launches": launches(int(times)),
        "copy": copy(space, int(largest)),
        "reads": reads(int(largest)),
    }
    Path(target).write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(values))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
