"""NPBench's programs by NumPy and, with the import changed, by `pyfuser.numpy`.

    python -m experiments.npbench CHECKOUT [--preset S] [--repeat N] [--timeout SECONDS] [names]

CHECKOUT: a clone of github.com/spcl/npbench. Each program runs in a process of its own, first our
warm-up, then in turns NumPy, ours, NumPy, ours; what it returns and what it changes is compared.
`first` is our first run of a process, `warm` the median of those after the warm-up, over NumPy's
median; `difference` is the greatest one, over the greatest value. `--fallbacks` lists what NumPy
itself computed for us.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import json
import statistics
import subprocess
import sys
import time
import types
from collections import Counter
from pathlib import Path
from typing import Any

MEMORY_BOUND = frozenset({
    "adi", "arc_distance", "azimint_hist", "azimint_naive", "cavity_flow", "channel_flow",
    "compute", "correlation", "covariance", "deriche", "fdtd_2d", "floyd_warshall", "gemver",
    "go_fast", "hdiff", "heat_3d", "jacobi_1d", "jacobi_2d", "mandelbrot1", "mandelbrot2",
    "softmax", "stockham_fft", "vadv",
})  # fmt: skip
SHORTEST = 0.2
"""Seconds of NumPy's runs together, at least: short programs run more often."""


LONGEST = 15.0
"""Seconds of our warm-up, at most."""


class Benchmark:
    """One of NPBench's programs at one of its sizes."""

    def __init__(self, checkout: Path, name: str, preset: str) -> None:
        text = (checkout / "bench_info" / f"{name}.json").read_text(encoding="utf-8")
        self.info: dict[str, Any] = json.loads(text)["benchmark"]
        self.folder = checkout / "npbench" / "benchmarks" / self.info["relative_path"]
        self.sizes: dict[str, Any] = self.info["parameters"][preset]

    def data(self) -> dict[str, Any]:
        """The arguments of the program, by NumPy."""
        found = dict(self.sizes)
        start = self.info.get("init")
        if not start:
            return found
        path = self.folder / f"{self.info['module_name']}.py"
        spec = importlib.util.spec_from_file_location("initialization", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        made = getattr(module, start["func_name"])(*[found[a] for a in start["input_args"]])
        names = start["output_args"]
        found.update(zip(names, made if len(names) > 1 else (made,), strict=True))
        return found

    def program(self, numpy: str) -> Any:
        """The program's function, with a module for NumPy."""
        path = self.folder / f"{self.info['module_name']}_numpy.py"
        text = path.read_text(encoding="utf-8")
        changed = text.replace("import numpy as np", f"import {numpy} as np")
        assert changed.count(f"import {numpy} as np") == 1, path
        module = types.ModuleType(f"{self.info['module_name']}_{numpy}")
        exec(compile(changed, str(path), "exec"), module.__dict__)
        return getattr(module, self.info["func_name"])

    def run(self, function: Any, data: dict[str, Any], module: Any) -> tuple[float, list[Any]]:
        """Seconds of a run on copies of its arguments, and all that it returned and changed."""
        given = {
            name: module.array(data[name]) if _is_array(data[name]) else copy.copy(data[name])
            for name in self.info["input_args"]
        }
        start = time.perf_counter()
        found = function(*given.values())
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        changed = [given[name] for name in self.info["output_args"]]
        for value in (*found, *changed):
            if getattr(value, "size", 0) and value.ndim:
                value[(0,) * value.ndim]  # a read
        taken = time.perf_counter() - start
        return taken, [value for value in (*found, *changed) if value is not None]


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype") and value.ndim > 0


def difference(ours: list[Any], numpys: list[Any]) -> float:
    """Over the greatest value; 0.0: bit for bit. Raises where types or shapes differ."""
    import numpy

    greatest = 0.0
    assert len(ours) == len(numpys), (len(ours), len(numpys))
    for mine, theirs in zip(ours, numpys, strict=True):
        one, other = numpy.asarray(mine), numpy.asarray(theirs)
        assert one.dtype == other.dtype and one.shape == other.shape, (one.dtype, one.shape)
        if not other.size or numpy.array_equal(one, other, equal_nan=other.dtype.kind in "fc"):
            continue
        assert numpy.array_equal(numpy.isnan(one), numpy.isnan(other)), "NaNs"
        finite = numpy.isfinite(other)
        assert numpy.array_equal(one[~finite], other[~finite], equal_nan=True), "infinities"
        one, other = one[finite].astype(complex), other[finite].astype(complex)
        scale = max(float(numpy.abs(other).max()), 1e-300)
        greatest = max(greatest, float(numpy.abs(one - other).max()) / scale)
    return greatest


def measure(checkout: Path, name: str, preset: str, repeat: int, warm_up: int) -> dict[str, Any]:
    """What a process finds out about one program."""
    import pyfuser.numpy as lazy  # before NumPy, as such programs import it

    # isort: split
    import numpy

    benchmark = Benchmark(checkout, name, preset)
    data = benchmark.data()
    theirs, ours = benchmark.program("numpy"), benchmark.program("pyfuser.numpy")
    times: tuple[list[float], list[float]] = [], []
    greatest = 0.0
    lazy_fallbacks: Counter[str] = Counter()
    first = 0.0
    start = time.perf_counter()
    for n in range(warm_up):
        seconds, found = benchmark.run(ours, data, lazy)
        first = seconds if n == 0 else first
        del found
        if time.perf_counter() - start > LONGEST:
            break
    while True:
        seconds, expected = benchmark.run(theirs, data, numpy)
        times[0].append(seconds)
        before = Counter(lazy.fallbacks())
        seconds, found = benchmark.run(ours, data, lazy)
        times[1].append(seconds)
        if len(times[1]) == 1:
            for (function, _, line), count in (Counter(lazy.fallbacks()) - before).items():
                lazy_fallbacks[f"{function} in line {line}"] += count
        greatest = max(greatest, difference(found, expected))
        runs = len(times[0])
        if runs >= repeat and (sum(times[0]) >= SHORTEST or runs >= 50):
            break
        del expected, found
    numpy_time = statistics.median(times[0])
    return {
        "seconds": numpy_time,
        "first": numpy_time / first,
        "warm": numpy_time / statistics.median(times[1]),
        "difference": greatest,
        "fallbacks": dict(lazy_fallbacks.most_common(12)),
    }


def in_a_process(name: str, given: argparse.Namespace) -> dict[str, Any] | str:
    """`measure`, or what went wrong."""
    command = [
        sys.executable, "-m", "experiments.npbench", str(given.checkout), name, "--here",
        "--preset", given.preset, "--repeat", str(given.repeat), "--warm-up", str(given.warm_up),
    ]  # fmt: skip
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=given.timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return f"takes more than {given.timeout:.0f} s"
    if run.returncode:
        lines = run.stderr.strip().splitlines()
        return f"crash ({run.returncode}): {lines[-1] if lines else ''}"
    found: dict[str, Any] = json.loads(run.stdout.strip().splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--preset", default="S", choices=["S", "M", "L", "paper"])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=24)
    parser.add_argument("--timeout", type=float, default=300.0)
    parser.add_argument("--fallbacks", action="store_true")
    parser.add_argument("--memory-bound", action="store_true", help="those of MEMORY_BOUND")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*")
    given = parser.parse_intermixed_args()
    names = given.names or sorted(p.stem for p in (given.checkout / "bench_info").glob("*.json"))
    if given.here:
        found = measure(given.checkout, names[0], given.preset, given.repeat, given.warm_up)
        print(json.dumps(found))
        return
    if given.memory_bound:
        names = [name for name in names if name in MEMORY_BOUND]
    print(f"{'program':26s} {'numpy ms':>9s} {'first':>7s} {'warm':>7s} {'difference':>11s}")
    ratios: dict[str, float] = {}
    for name in names:
        row = in_a_process(name, given)
        if isinstance(row, str):
            print(f"{name:26s} {row}", flush=True)
            continue
        ratios[name] = row["warm"]
        print(
            f"{name:26s} {row['seconds'] * 1e3:9.2f} {row['first']:7.2f} {row['warm']:7.2f} "
            f"{row['difference']:11.1e}", flush=True
        )  # fmt: skip
        for function, count in row["fallbacks"].items() if given.fallbacks else ():
            print(f"{'':10s} {count:7d} {function}", flush=True)
    bound = [ratio for name, ratio in ratios.items() if name in MEMORY_BOUND]
    for text, values in (("all", list(ratios.values())), ("memory-bound", bound)):
        if values:
            mean = statistics.geometric_mean(values)
            print(f"geometric mean of {len(values)}, {text}, warm: {mean:.2f}")


if __name__ == "__main__":
    main()
