"""NumPy programs by NumPy and, with the import changed, by `pyfuser.numpy`: times over NumPy's.

    python -m experiments.numpy_programs [--repeat N] [names]

Each program of kernels/numpy runs in turns, NumPy, ours, NumPy, ours; results are compared. `first`
is the first run of a process, `warm` the median of the ones after the twelfth, over NumPy's median.
"""

from __future__ import annotations

import argparse
import statistics
import time
import types
from pathlib import Path
from typing import Any

import numpy

import pyfuser
import pyfuser.numpy as lazy

PROGRAMS = Path(__file__).parents[1] / "kernels" / "numpy"
WARM_UP = 12


def load(name: str, module: Any) -> types.ModuleType:
    """A program that has `module` for NumPy."""
    text = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")
    program = types.ModuleType(name)
    program.__dict__["np"] = module
    code = compile(text.replace("import numpy as np\n", "\n"), str(PROGRAMS / f"{name}.py"), "exec")
    exec(code, program.__dict__)
    return program


def values(result: Any) -> list[Any]:
    """Read everything that a program returns."""
    found = result if type(result) is tuple else (result,)
    return [numpy.asarray(value) for value in found]


def timed(program: types.ModuleType, given: tuple[Any, ...]) -> tuple[float, list[Any]]:
    start = time.perf_counter()
    found = program.run(*given)
    for value in found if type(found) is tuple else (found,):
        if getattr(value, "ndim", 0):
            value[(0,) * value.ndim]  # a read
    taken = time.perf_counter() - start
    return taken, values(found)


def compare(name: str, repeat: int) -> tuple[float, float, float, float]:
    """NumPy's seconds, and how many times faster we are: first, warm; the greatest difference."""
    ours, theirs = load(name, lazy), load(name, numpy)
    mine, numpys = ours.make(), theirs.make()
    for value in mine:
        if getattr(value, "ndim", 0):
            value[(0,) * value.ndim]
    times: tuple[list[float], list[float]] = [], []
    difference = 0.0
    for _ in range(repeat + WARM_UP):
        for side, program, given in ((0, theirs, numpys), (1, ours, mine)):
            taken, found = timed(program, given)
            times[side].append(taken)
            if side == 0:
                expected = found
        for one, other in zip(expected, found, strict=True):
            scale = max(float(numpy.abs(one).max()), 1e-300)
            difference = max(difference, float(numpy.abs(one - other).max()) / scale)
        del found, expected
    numpy_time = statistics.median(times[0][WARM_UP:])
    warm = statistics.median(times[1][WARM_UP:])
    return numpy_time, numpy_time / times[1][0], numpy_time / warm, difference


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    names = given.names or sorted(path.stem for path in PROGRAMS.glob("*.py"))
    print(f"numpy {numpy.__version__}, pyfuser {pyfuser.__version__}")
    print(f"{'program':16s} {'numpy ms':>9s} {'first':>7s} {'warm':>7s} {'difference':>11s}")
    ratios = []
    for name in names:
        seconds, first, warm, difference = compare(name, given.repeat)
        ratios.append(warm)
        print(f"{name:16s} {seconds * 1e3:9.1f} {first:7.2f} {warm:7.2f} {difference:11.1e}")
    print(f"geometric mean, warm: {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
