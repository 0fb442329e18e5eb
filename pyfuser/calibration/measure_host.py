"""Measures the constants of the cost model on this machine, with kernels of the real engine.

Bandwidth as STREAM does it (J. McCalpin, 1995), the size of a cache as lmbench does (L. McVoy and
C. Staelin, 1996), and like them with the best of several rounds, since whatever else runs only ever
makes a launch slower. Times that are compared with each other are taken in turns.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pyfuser.analysis.structural import structural_scalars
from pyfuser.engine import native
from pyfuser.engine.cache import write_own
from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Binary, Expr, Load, Param, Read, Store, Workunit
from pyfuser.lower.lower import lower
from pyfuser.lower.types import BoundType, ScalarType, ViewType
from pyfuser.pipeline import KERNEL_PASSES, for_c, run_passes
from pyfuser.plan.cost_model import bytes_moved
from pyfuser.runtime.launch import launch_of, run_launch
from pyfuser.support.errors import CacheError
from pyfuser.support.private_files import read_own
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import Argument, Call, Space
from pyfuser.trace.gate import Ran
from pyfuser.trace.memory import Array, region_of
from pyfuser.trace.shape import TraceShape, shape_of
from pyfuser.transform.fuse import fuse
from pyfuser.transform.group import GroupShape
from pyfuser.tuning.cache_sizes import caches, memory_bytes
from pyfuser.tuning.host import (
    DEFAULT,
    LIMITS,
    Known,
    calibration_file,
    known,
    parsed,
    text_of,
)
from pyfuser.tuning.thresholds import NOW

ROUNDS = 16
PATIENCE = 3.0  # seconds for one quantity
TINY = 8  # elements: a launch of this is nothing but a launch
LAUNCHES = 300  # of that in a round

ARRAYS = (2, 4, 8, 12, 16, 20, 24, 32)  # that one loop walks through; it writes one of them
LARGEST = 1 << 30  # bytes of memory that are used at most, ...
PART = 8  # ... and at most one part in so many of what the machine has
OUTSIDE = 4  # the arrays of a copy are so many times as large as all caches
PAGE = 512  # elements: arrays of Views begin with a page

BLOCKS = tuple(1 << k for k in range(17, 25))  # bytes that a thread updates again and again
CHUNK = 4096  # elements of a block that one iteration updates
PASSES = 6
CHUNKS = 128  # that it updates at least

VISIBLE = 0.05  # crowding that costs less than this part, at the most arrays, may be noise
STEP = 1.4  # what lies outside a cache takes so many times as long


def calibrate() -> Known:
    """See `pyfuser.calibrate`."""
    path = calibration_file()
    write(path, text_of({**parsed(read_own(path) or b""), **measured()}))
    known.cache_clear()
    return known()


def measured() -> dict[str, float]:
    """The constants that could be measured; where rounds disagree, the machine was too busy."""
    levels = caches()
    outside = OUTSIDE * max((level.total for level in levels.values()), default=1 << 25)
    values: dict[str, float] = {}
    copy = _Timed(sum_of(1), TINY, [np.zeros(TINY), np.zeros(TINY)], LAUNCHES)
    launch = _best([copy], [1])
    if launch is not None:
        values["launch"] = launch[0]
    size = min(outside, LARGEST, memory_bytes() // PART)
    values |= _traffic(size)
    near = edge(BLOCKS, _block_times(), levels[2].share if 2 in levels else None)
    if near is not None:
        values["cache"] = near
    return {
        name: min(max(value, type(value)(LIMITS[name][0])), type(value)(LIMITS[name][1]))
        for name, value in values.items()
    }


def write(path: Path, text: str) -> None:
    """Keep the calibration. Raises CacheError if that cannot be."""
    try:
        write_own(path, text)
    except OSError as error:
        raise CacheError(
            f"the calibration cannot be kept: {path.parent} cannot be written "
            f"({error.strerror}); set PYFUSER_CACHE_DIR to a directory that can"
        ) from error


# --------------------------------------------------------------------------- what is measured


class _Timed:
    """One call, compiled; `seconds()` is what a launch of it takes now, the mean of `times`."""

    def __init__(
        self,
        workunit: Workunit,
        size: int,
        arguments: Sequence[Array | int],
        times: int = 1,
        execution: str = "OpenMP",
    ) -> None:
        bound: list[Argument] = [
            region_of(a, DType.FLOAT64) if isinstance(a, np.ndarray) else a for a in arguments
        ]
        space = Space((0,), (size,), execution)
        code = calibrate.__code__
        line = code.co_firstlineno
        self._call = Call("for", space, workunit, tuple(bound), None, None, code, line)
        self._times = times
        self.shape: TraceShape = shape_of((self._call,), structural_scalars)
        kernel = run_passes(KERNEL_PASSES, fuse(GroupShape(self.shape.calls)))
        launchable = native.prepare([for_c(kernel)])[0]
        self._launch = launch_of([(0,)], [kernel], launchable, kernel.space)

    def seconds(self) -> float:
        start = time.perf_counter()
        for _ in range(self._times):
            run_launch(self._launch, (self._call,), Ran())
        return (time.perf_counter() - start) / self._times


def _best(loops: Sequence[_Timed], units: Sequence[float], threads: int = 1) -> list[float] | None:
    """For each loop the seconds of its fastest launch, by its units, all of them in turns.

    None if the machine was too busy to tell: the best of one half of the rounds is not nearly as
    good as that of the other, or the `threads` did not get the processors to themselves.
    """
    start, used = time.perf_counter(), time.process_time()
    deadline = start + PATIENCE
    rounds: list[list[float]] = []
    while len(rounds) < 2 or (len(rounds) < ROUNDS and time.perf_counter() < deadline):
        rounds.append([loop.seconds() for loop in loops])
    if time.process_time() - used < NOW.running.alone * threads * (time.perf_counter() - start):
        return None
    halves = [[min(times) for times in zip(*rounds[k::2], strict=True)] for k in range(2)]
    best = [min(pair) for pair in zip(*halves, strict=True)]
    if any(max(pair) > NOW.running.agree * min(pair) for pair in zip(*halves, strict=True)):
        return None
    return [seconds / unit for seconds, unit in zip(best, units, strict=True)]


def _traffic(size: int) -> dict[str, float]:
    """What arrays of so many bytes together tell: bandwidth, streams and crowding."""
    memory = np.empty(size // 8)
    half = len(memory) // 2
    for pair in (
        (memory[:half], memory[half : 2 * half]),
        (memory[half : 2 * half], memory[:half]),
    ):
        _Timed(sum_of(1), half, pair).seconds()  # each thread is the first to touch what it copies
    lengths = [size // 8 // count // PAGE * PAGE for count in ARRAYS]
    loops = [
        _Timed(sum_of(count - 1), n, [memory[k * n : (k + 1) * n] for k in range(count)])
        for count, n in zip(ARRAYS, lengths, strict=True)
    ]
    moved = [bytes_moved(loop.shape, (0,)) for loop in loops]
    found: dict[str, float] = {}
    times = _best(loops[:1], moved[:1], SETTINGS.threads)
    if times is not None:
        found["bandwidth"] = 1.0 / times[0]
    times = _best(loops, moved, SETTINGS.threads)
    if times is not None:
        found["streams"], found["crowding"] = crowded(ARRAYS, times)
    return found


def _block_times() -> list[float] | None:
    """For each size in BLOCKS: seconds for a byte, if a thread updates such a block repeatedly."""
    memory = np.ones(BLOCKS[-1] // 8)
    types: dict[str, BoundType] = {
        "x": ViewType(DType.FLOAT64, 1),
        "chunks": ScalarType(DType.INT32),
    }
    workunit = lower(_update_again, "for", 1, types).workunit
    loops, moved = [], []
    for size in BLOCKS:
        chunks = size // (8 * CHUNK)
        each = max(PASSES * chunks, CHUNKS)
        loops.append(_Timed(workunit, each, [memory, chunks], execution="Serial"))
        moved.append(each * CHUNK * 8)
    return _best(loops, moved)


def sum_of(inputs: int) -> Workunit:
    """A workunit: the last of its views becomes the sum of the others."""
    index = fresh("i", DType.INT32)
    *views, last = (fresh(f"x{k}", DType.FLOAT64) for k in range(inputs + 1))
    where = (Read(index),)
    total: Expr = Load(views[0], where)
    for view in views[1:]:
        total = Binary("+", total, Load(view, where))
    params = tuple(Param(view, 1) for view in (*views, last))
    return Workunit("sum", (index,), params, (Store(last, where, total),))


# This is in the language of workunits. Iterations meet in the elements, but one thread runs them.
def _update_again(i, x, chunks):  # type: ignore[no-untyped-def]
    first: int = i % chunks * 4096
    for j in range(4096):
        x[first + j] = 1.0 - x[first + j]


# --------------------------------------------------------------------------- what it means


def crowded(counts: Sequence[int], times: Sequence[float]) -> tuple[int, float]:
    """At how many arrays a loop slows down, and by which fraction of its time each more costs.

    times: seconds a byte for each of `counts` (ascending). Fits a constant with a slope from one
    of the counts on, by least squares. A slope that is not visible is not believed: then the
    slowdown starts after the greatest count, with the slope that is assumed by default.
    """
    y = np.array(times)
    best = (np.inf, counts[-1], 0.0)
    for start in counts[1:-1]:
        beyond = np.maximum(0.0, np.array(counts, float) - start)
        design = np.stack([np.ones(len(counts)), beyond], axis=1)
        (level, slope), *_ = np.linalg.lstsq(design, y, rcond=None)
        error = float(np.sum((design @ (level, slope) - y) ** 2))
        if level > 0.0:
            best = min(best, (error, start, float(slope / level)))
    _, start, slope = best
    if slope * (counts[-1] - start) < VISIBLE:
        return counts[-1], DEFAULT.crowding
    return start, slope


def edge(sizes: Sequence[int], times: Sequence[float] | None, told: int | None) -> int | None:
    """The size of the cache that a core has close, in bytes; None if nothing is known of it.

    times: seconds a byte for data of `sizes` (ascending), if they could be measured. told: its size
    as the system tells it, which is more exact; but a virtual machine may tell more than it gets.
    """
    if times is None or times[-1] < STEP * min(times):
        return told
    outside = next(k for k, time in enumerate(times) if time >= STEP * min(times[: k + 1]))
    found = sizes[max(outside - 1, 0)]
    return found if told is None or 2 * found < told else told
