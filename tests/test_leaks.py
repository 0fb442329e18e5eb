"""A program that runs for days stays as small as it was after its first minute.

`python -m tests.test_leaks --calls 1000000` is the long run; it prints what it measures.
"""

from __future__ import annotations

import argparse
import functools
import gc
import linecache
import os
import shutil
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import pyfuser
from pyfuser.engine import native
from pyfuser.engine.cache import KernelCache
from pyfuser.frontends.embedded import dispatch
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.runtime import eager
from pyfuser.runtime.session import SESSION
from pyfuser.support.caches import CACHES
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.memory import Buffer
from tests.vendors import tune

CALLS = 20_000
SIZES = 3_000
CALLS_A_STEP = 6
WARM_STEPS = 200  # more than flushes are kept, so that every ring buffer is full

pytestmark = pytest.mark.skipif(
    shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler"
)


@pk.workunit
def fill(i, v, a):
    v[i] = a + i


@pk.workunit
def axpy(i, a, x, y):
    y[i] += a * x[i]


@pk.workunit
def dot(i, acc, x, y):
    acc += x[i] * y[i]


@pk.workunit
def shifted(i, x, y):
    y[i] = x[i + 1]


def step(n: int, shared: np.ndarray) -> float:
    """Six calls: temporaries, a Future as an argument, a NumPy array, an illegal fusion."""
    with pyfuser.fusing():
        x, y = pk.View([n]), pk.View([n])
        pk.parallel_for(n, fill, v=x, a=1.5)
        pk.parallel_for(n, axpy, a=2.0, x=x, y=y)
        total = pk.parallel_reduce(n, dot, x=x, y=y)
        pk.parallel_for(n, axpy, a=total, x=x, y=shared)
        pk.parallel_for(n - 1, shifted, x=shared, y=y)
        del x  # nobody can read it: a temporary
        pk.parallel_for(n, fill, v=shared, a=0.0)
        return float(total) + y[0]


def eager_step(n: int, shared: np.ndarray) -> float:
    """The same number of calls, launched one by one."""
    with pyfuser.unfused():
        x = pk.View([n])
        pk.parallel_for(n, fill, v=x, a=1.5)
        for _ in range(CALLS_A_STEP - 3):
            pk.parallel_for(n, axpy, a=2.0, x=x, y=shared)
        pk.parallel_for(n, fill, v=shared, a=0.0)
        return float(pk.parallel_reduce(n, dot, x=x, y=x))


# --------------------------------------------------------------------------- what can grow


@dataclass(frozen=True)
class Size:
    """What a process occupies."""

    blocks: int  # of Python's allocator, in use
    objects: int  # that the garbage collector knows
    resident: int  # bytes
    handles: int
    threads: int
    files: int  # in the cache directory
    cached: int  # entries of all caches

    def __sub__(self, other: Size) -> Size:
        names = [field.name for field in fields(self)]
        return Size(*(getattr(self, name) - getattr(other, name) for name in names))


def _count_files(directory: str) -> int:
    return len(os.listdir(directory)) if os.path.isdir(directory) else 0


def size() -> Size:
    """The process as it is now, after a garbage collection."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1]) if sys.platform == "linux" else 0
    return Size(
        blocks=sys.getallocatedblocks(),
        objects=len(gc.get_objects()),
        resident=pages * os.sysconf("SC_PAGE_SIZE"),
        handles=_count_files("/proc/self/fd"),
        threads=threading.active_count(),
        files=_count_files(str(native.kernel_cache().directory)),
        cached=sum(caches().values()),
    )


#: What sizes do not fill, and what goes with the code.
OF_CODE = ("kernels of the host", "sources of functions", "signatures of workunits")


def caches() -> dict[str, int]:
    """The entries of every cache of the package, by name."""
    found = {kept.name: len(kept) for kept in CACHES}
    found["kernels that run alone"] = sum(len(ready.known) for ready in eager.READY.values())
    found["bindings"] = sum(len(w.__pyfuser__.bindings) for w in (fill, axpy, dot, shifted))
    return found


def memos() -> list[tuple[str, Callable[..., object], int | None]]:
    """Every function of the package that remembers results, with how many."""
    found = {}
    for module in [m for name, m in sys.modules.items() if name.startswith("pyfuser.")]:
        assert isinstance(module, ModuleType)
        for function in vars(module).values():
            if isinstance(function, functools._lru_cache_wrapper):
                name = f"{function.__module__}.{function.__name__}"
                found[name] = (name, function, function.cache_parameters()["maxsize"])
    return list(found.values())


# --------------------------------------------------------------------------- steady state


def growth(run: Callable[[int, np.ndarray], float], calls: int) -> Size:
    """How much a process grows by repeating a step, once it is warm."""
    shared = np.arange(64.0)  # as a step leaves it
    expected = run(64, shared)
    for _ in range(WARM_STEPS):
        run(64, shared)
    for _ in range(3):  # it lists all objects: megabytes, of which malloc keeps some in the end
        before = size()
    for _ in range(calls // CALLS_A_STEP):
        assert run(64, shared) == expected
    return size() - before


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache directory that no other process writes to."""
    cache = KernelCache(tmp_path)
    monkeypatch.setattr(native, "kernel_cache", lambda: cache)


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("run", [step, eager_step])
def test_a_steady_state_does_not_grow(run: Callable[[int, np.ndarray], float]) -> None:
    grown = growth(run, CALLS)
    assert (grown.handles, grown.threads, grown.files, grown.cached) == (0, 0, 0, 0)
    # One object kept for each step would be CALLS / CALLS_A_STEP.
    assert grown.objects < 100
    assert grown.blocks < 300
    assert grown.resident < 4 << 20


@pytest.mark.parametrize("run", [step, eager_step])
def test_memory_goes_back_at_once(run: Callable[[int, np.ndarray], float]) -> None:
    """Not only when the garbage collector comes by: it does not know how large arrays are."""
    shared = np.arange(64.0)
    run(64, shared)
    before = buffers()
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            run(64, shared)
        assert buffers() <= before
    finally:
        gc.enable()


def buffers() -> int:
    """How many pieces of memory of Views and arrays are known."""
    return sum(type(thing) is Buffer for thing in gc.get_objects())


# --------------------------------------------------------------------------- changing shapes


def test_changing_sizes_fill_no_cache_beyond_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SESSION.programs, "limit", 20)  # so that few sizes reach the limits
    monkeypatch.setattr(SESSION.kernels, "limit", 30)
    monkeypatch.setattr(SESSION.launchables, "limit", 30)
    monkeypatch.setattr(dispatch.KNOWN_POLICIES, "limit", 40)
    tune(monkeypatch, shapes_of_workunit=10)
    eager.READY.clear()  # what other tests compiled
    shared = np.zeros(400)
    for n in range(100, 180):
        step(n, shared[:n])
        eager_step(n, shared[:n])
    before = caches()
    for n in range(200, 360):
        step(n, shared[:n])
        eager_step(n, shared[:n])
    after = caches()
    assert all(len(kept) <= kept.limit for kept in CACHES if kept.limit is not None)
    assert all(len(ready.known) <= 10 for ready in eager.READY.values())
    for name in (*OF_CODE, "bindings"):
        assert after[name] == before[name], name


def test_every_memo_has_a_limit() -> None:
    """Those without one are of questions that have few answers in a process."""
    unlimited = {name for name, _, limit in memos() if limit is None}
    assert unlimited <= ONCE_A_PROCESS


#: Compilers, processors, directories, sources of ours, libraries and the functions in them.
ONCE_A_PROCESS = {
    "pyfuser.engine.faults.watch",
    "pyfuser.engine.store.codec._maker_of",
    "pyfuser.engine.store.codec._parts_of",
    "pyfuser.engine.store.identity.environment",
    "pyfuser.tuning.gpu.known",
    "pyfuser.analysis.polyhedra._library",
    "pyfuser.tuning.target.host",
    "pyfuser.engine.compiler.find_compiler",
    "pyfuser.engine.compiler.flags",
    "pyfuser.engine.gpu.library._library",
    "pyfuser.frontends.embedded.spaces.gpu",
    "pyfuser.frontends.numpy.complex_numbers.is_fused",
    "pyfuser.frontends.numpy.lookup._rounds_products",
    "pyfuser.engine.native.kernel_cache",
    "pyfuser.ir.maths._c_function",
    "pyfuser.tuning.host.cpu_identity",
    "pyfuser.tuning.host.identity",
    "pyfuser.tuning.host.known",
    "pyfuser.run.kept._directory",
    "pyfuser.run.kept._identity",
}


# --------------------------------------------------------------------------- new workunits


def _cell(number: int) -> Callable[..., object]:
    """The same workunit as a notebook defines it when its cell is run again."""
    text = "@pk.workunit\ndef again(i, x, y):\n    y[i] = 2.0 * x[i]\n"
    name = f"<cell {number}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = {"pk": pk}
    exec(compile(text, name, "exec"), namespace)
    return namespace["again"]


def run_cells(first: int, last: int) -> None:
    """Define, use and forget a workunit, again and again."""
    for number in range(first, last):
        again = _cell(number)
        with pyfuser.fusing():
            x = pk.View([8])
            pk.parallel_for(8, again, x=x, y=pk.View([8]))
        with pyfuser.unfused():
            pk.parallel_for(8, again, x=x, y=pk.View([8]))
        del linecache.cache[f"<cell {number}>"]


def test_forgotten_workunits_leave_nothing() -> None:
    run_cells(0, WARM_STEPS)
    before = caches()
    run_cells(WARM_STEPS, 2 * WARM_STEPS)
    gc.collect()
    after = caches()
    for name in (*OF_CODE, "definitions by file"):
        assert after[name] <= before[name] + 1, name


# --------------------------------------------------------------------------- the long run


def main(arguments: list[str] | None = None) -> int:
    """Run long, and print what grows: by parts, so that a plateau shows."""
    parser = argparse.ArgumentParser(prog="tests.test_leaks", description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--sizes", type=int, default=SIZES)
    options = parser.parse_args(arguments)
    for run in (step, eager_step):
        for part in range(4):
            grown = growth(run, options.calls // 4)
            print(f"{run.__name__} part {part}: {grown}", flush=True)
    shared = np.zeros(options.sizes + 100)
    before = size()
    for part in range(4):
        for n in range(options.sizes * part // 4, options.sizes * (part + 1) // 4):
            step(100 + n, shared[: 100 + n])
            eager_step(100 + n, shared[: 100 + n])
        print(f"sizes part {part}: {size() - before}", flush=True)
    for name, entries in sorted(caches().items()):
        print(f"{entries:8} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
