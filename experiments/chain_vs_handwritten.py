"""PyFuser against a hand-written fused C++ loop, and what PyFuser costs around its kernels.

The work is a chain of 8 elementwise workunits with 7 temporaries that die. The hand-written loop
reads x and y once and writes the result once: 24 bytes an element. Both are made by the same
compiler with as many threads, and neither may change values (no contraction, no fast-math).

Measured:

- the chain, fused and hand-written in turns (A B A B ...): medians, and the median of the ratios,
- the time to the first result in a new process, with an empty and with a full kernel cache,
- `import pyfuser`, in new processes,
- launching and recording a tiny workunit.

    python experiments/chain_vs_handwritten.py [--size N] [--repeat R] [--json FILE]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import pyfuser  # makes `import pykokkos` work where PyKokkos is not installed
from pyfuser.compare import machine
from pyfuser.support.settings import SETTINGS

# isort: split
import pykokkos as pk

FLAGS = ("-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fopenmp")
HAND_WRITTEN = """
extern "C" void chain(long n, const double* __restrict x, const double* __restrict y,
                      double* __restrict out) {
    #pragma omp parallel for simd schedule(static)
    for (long i = 0; i < n; ++i) {
        const double total = x[i] + y[i];
        const double mean = 0.5 * total;
        const double gap = mean - x[i];
        const double raised = gap * gap + 1.25;
        out[i] = 0.75 * (raised * y[i] - mean) + total;
    }
}
"""
TINY, TINY_CALLS = 10, 2000


@pk.workunit
def add(i, result, x, y):
    result[i] = x[i] + y[i]


@pk.workunit
def scale(i, result, x, factor):
    result[i] = factor * x[i]


@pk.workunit
def subtract(i, result, x, y):
    result[i] = x[i] - y[i]


@pk.workunit
def multiply(i, result, x, y):
    result[i] = x[i] * y[i]


@pk.workunit
def add_constant(i, result, x, constant):
    result[i] = x[i] + constant


@pk.workunit
def scale_and_add(i, result, x, y, factor):
    result[i] = factor * x[i] + y[i]


def chain(n: int, x: pk.View, y: pk.View, out: pk.View) -> None:
    """The hand-written loop in small steps."""
    total, mean, gap, squared, raised, weighed, left = (pk.View([n], pk.double) for _ in range(7))
    pk.parallel_for(n, add, result=total, x=x, y=y)
    pk.parallel_for(n, scale, result=mean, x=total, factor=0.5)
    pk.parallel_for(n, subtract, result=gap, x=mean, y=x)
    pk.parallel_for(n, multiply, result=squared, x=gap, y=gap)
    pk.parallel_for(n, add_constant, result=raised, x=squared, constant=1.25)
    pk.parallel_for(n, multiply, result=weighed, x=raised, y=y)
    pk.parallel_for(n, subtract, result=left, x=weighed, y=mean)
    pk.parallel_for(n, scale_and_add, result=out, x=left, y=total, factor=0.75)


def views(n: int) -> tuple[pk.View, pk.View, pk.View]:
    """Random x and y, and an empty result."""
    x, y, out = (pk.View([n], pk.double) for _ in range(3))
    rng = np.random.default_rng(7)
    x.data[:], y.data[:] = rng.uniform(-1, 1, n), rng.uniform(-1, 1, n)
    return x, y, out


def fused_seconds(n: int, x: pk.View, y: pk.View, out: pk.View) -> float:
    """One run of the chain, fused, with its result in memory."""
    start = perf_counter()
    with pyfuser.fusing():
        chain(n, x, y, out)
    return perf_counter() - start


def compile_hand_written(folder: Path) -> Any:
    """The hand-written loop as a C function."""
    source, library = folder / "chain.cpp", folder / "chain.so"
    source.write_text(HAND_WRITTEN, encoding="utf-8")
    command = [*SETTINGS.compiler.split(), *FLAGS, "-shared", "-fPIC", source, "-o", library]
    subprocess.run(command, check=True)
    function = ctypes.CDLL(str(library)).chain
    function.argtypes = [ctypes.c_long] + 3 * [ctypes.c_void_p]
    function.restype = None
    return function


def steady(n: int, repeat: int) -> dict[str, Any]:
    """Seconds of both, in turns, once everything is compiled and all memory has been touched."""
    x, y, out = views(n)
    arrays = np.array(x.data), np.array(y.data), np.zeros(n)
    pointers = [array.ctypes.data for array in arrays]
    with tempfile.TemporaryDirectory() as folder:
        hand_written = compile_hand_written(Path(folder))
        fused, hand = [], []
        for number in range(repeat + 2):
            seconds = fused_seconds(n, x, y, out)
            start = perf_counter()
            hand_written(n, *pointers)
            if number >= 2:
                hand.append(perf_counter() - start)
                fused.append(seconds)
    return {
        "fused_seconds": fused,
        "hand_written_seconds": hand,
        "ratio": median(a / b for a, b in zip(fused, hand, strict=True)),
        "bit_identical": np.array(out.data).tobytes() == arrays[2].tobytes(),
    }


def first_result(n: int) -> float:
    """Seconds to the first result of this process, after all imports; data are there."""
    return fused_seconds(n, *views(n))


def tiny() -> dict[str, float]:
    """Seconds for launching an unfused workunit on 10 elements and for recording one."""
    view = pk.View([TINY], pk.double)
    launch, record = [], []
    for _ in range(7):
        with pyfuser.unfused():
            start = perf_counter()
            for _ in range(TINY_CALLS):
                pk.parallel_for(TINY, scale, result=view, x=view, factor=1.0)
            launch.append((perf_counter() - start) / TINY_CALLS)
        with pyfuser.fusing():
            start = perf_counter()
            for _ in range(100):
                pk.parallel_for(TINY, scale, result=view, x=view, factor=1.0)
            record.append((perf_counter() - start) / 100)
    return {"launch_seconds": median(launch), "record_seconds": median(record)}


def in_new_process(n: int, cache: str) -> float:
    """`first_result` of a new process that keeps its kernels in `cache`."""
    command = [sys.executable, __file__, "--size", str(n), "--first"]
    environment = {**os.environ, "PYFUSER_CACHE_DIR": cache}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def import_seconds() -> float:
    """Seconds of `import pyfuser` in a new process that has imported NumPy."""
    code = (
        "import numpy; from time import perf_counter; start = perf_counter(); import pyfuser; "
        "print(perf_counter() - start)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def measure(n: int, repeat: int) -> dict[str, Any]:
    """Everything, with the machine it was measured on; times are in seconds."""
    cold, warm = [], []
    for _ in range(9):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(in_new_process(n, cache))
            warm.append(in_new_process(n, cache))
    return {
        "machine": machine.describe(),
        "size": n,
        "chain": steady(n, repeat),
        "first_result_cold_seconds": cold,
        "first_result_warm_seconds": warm,
        "import_seconds": [import_seconds() for _ in range(5)],
        "tiny": tiny(),
    }


def table(measured: dict[str, Any]) -> Table:
    """What was measured, in the units people think in."""
    chain_times, tiny_times = measured["chain"], measured["tiny"]
    n = measured["size"]
    made = Table(title="8 elementwise workunits, 7 dead temporaries (medians)")
    made.add_column("what")
    made.add_column("measured", justify="right")
    for name, key in (("PyFuser, fused", "fused"), ("hand-written C++", "hand_written")):
        seconds = median(chain_times[f"{key}_seconds"])
        bandwidth = 24e-9 * n / seconds
        made.add_row(f"{name}, {n:,} doubles", f"{1e3 * seconds:.1f} ms ({bandwidth:.1f} GB/s)")
    made.add_row("fused / hand-written", f"{chain_times['ratio']:.2f}")
    made.add_row("same bits", "yes" if chain_times["bit_identical"] else "NO")
    made.add_section()
    for name, key in (
        ("first result, no kernel compiled yet", "first_result_cold_seconds"),
        ("first result, kernels in the cache", "first_result_warm_seconds"),
        ("import pyfuser", "import_seconds"),
    ):
        made.add_row(name, f"{1e3 * median(measured[key]):.0f} ms")
    made.add_row("launch of a tiny workunit", f"{1e6 * tiny_times['launch_seconds']:.1f} us")
    made.add_row("recording of a call", f"{1e6 * tiny_times['record_seconds']:.1f} us")
    return made


def main() -> int:
    """Measure and show; the exit code is 1 if the two results differ by a bit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=int, default=16_000_000)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--first", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.first:
        print(first_result(options.size))
        return 0
    measured = measure(options.size, options.repeat)
    Console().print(table(measured))
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    return 0 if measured["chain"]["bit_identical"] else 1


if __name__ == "__main__":
    sys.exit(main())
