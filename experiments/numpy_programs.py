"""NumPy programs by NumPy and, with the import changed, by `pyfuser.numpy`: times over NumPy's.

    python -m experiments.numpy_programs [--repeat N] [--space Cuda] [--json FILE] [names]

Each program of kernels/numpy runs in turns, NumPy, ours, NumPy, ours; results are compared. `first`
is the first run of a process, `warm` the median of the ones after the twelfth, over NumPy's median.

On a GPU (`--space`) they run at the size that `GPU` of a program names, beside CuPy if that is
installed, with arrays on the device before and after; NumPy, on the host, runs three times at most.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy

import pyfuser
import pyfuser.numpy as lazy

PROGRAMS = Path(__file__).parents[1] / "kernels" / "numpy"
WARM_UP = {False: 12, True: 4}  # runs; on a GPU
MOST_OF_NUMPY = 3  # runs beside a GPU


@dataclass
class Contestant:
    """Who runs a program. wait: until results are there. times: seconds, of all runs."""

    program: types.ModuleType
    given: tuple[Any, ...]
    wait: Callable[[tuple[Any, ...]], object]
    times: list[float] = field(default_factory=list)
    found: tuple[Any, ...] = ()

    def run(self) -> None:
        """Run the program once, until its results are there."""
        self.found = ()  # the last run's memory
        start = time.perf_counter()
        found = self.program.run(*self.given)
        self.found = found if type(found) is tuple else (found,)
        self.wait(self.found)
        self.times.append(time.perf_counter() - start)


def _read(found: tuple[Any, ...]) -> None:
    """On the host: read a bit of each result."""
    for value in found:
        if getattr(value, "ndim", 0):
            value[(0,) * value.ndim]


def _sync(found: tuple[Any, ...]) -> None:
    """On a GPU: wait for it."""
    pyfuser.sync()


def load(name: str, module: Any) -> types.ModuleType:
    """A program that has `module` for NumPy."""
    text = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")
    program = types.ModuleType(name)
    program.__dict__["np"] = module
    code = compile(text.replace("import numpy as np\n", "\n"), str(PROGRAMS / f"{name}.py"), "exec")
    exec(code, program.__dict__)
    return program


def contestants(name: str, space: str | None, small: bool) -> dict[str, Contestant]:
    """NumPy, ours, and CuPy on a GPU; small: at the size for the host."""
    program = load(name, numpy)
    size = {} if space is None or small else program.GPU
    given = program.make(**size)
    mine = tuple(lazy.array(v) if isinstance(v, numpy.ndarray) else v for v in given)
    made = {"numpy": Contestant(program, given, _read)}
    made["ours"] = Contestant(load(name, lazy), mine, _read if space is None else _sync)
    if space is not None and find_spec("cupy") is not None:
        import cupy

        theirs = tuple(cupy.asarray(v) if isinstance(v, numpy.ndarray) else v for v in given)
        made["cupy"] = Contestant(
            load(name, cupy), theirs, lambda _: cupy.cuda.Stream.null.synchronize()
        )
    return made


def compare(
    name: str, repeat: int, space: str | None, small: bool = False
) -> tuple[dict[str, list[float]], float]:
    """The times of all runs by contestant, and the greatest difference of ours from NumPy's."""
    made = contestants(name, space, small)
    for number in range(repeat + WARM_UP[space is not None]):
        for each, contestant in made.items():
            if space is None or each != "numpy" or number < MOST_OF_NUMPY:
                contestant.run()
    difference = 0.0
    for one, other in zip(made["numpy"].found, made["ours"].found, strict=True):
        own = numpy.asarray(other)
        scale = max(float(numpy.abs(one).max()), 1e-300)
        difference = max(difference, float(numpy.abs(one - own).max()) / scale)
    return {each: contestant.times for each, contestant in made.items()}, difference


def settled(times: Sequence[float], warm_up: int) -> float:
    """The median of the runs after the first ones."""
    return statistics.median(times[warm_up:] or times)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--space", help="Cuda or HIP")
    parser.add_argument("--small", action="store_true", help="with --space: at the host's size")
    parser.add_argument("--json", type=Path, help="write all times, in seconds, here")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    names = given.names or sorted(path.stem for path in PROGRAMS.glob("*.py"))
    on_gpu = given.space is not None
    if on_gpu:
        lazy.set_space(given.space)
    print(f"numpy {numpy.__version__}, pyfuser {pyfuser.__version__}")
    more = f" {'over CuPy':>10s}" if on_gpu else ""
    print(f"{'program':16s} {'numpy ms':>9s} {'first':>7s} {'warm':>7s} {'difference':>11s}{more}")
    ratios, kept = [], {}
    for name in names:
        times, difference = compare(name, given.repeat, given.space, given.small)
        of_numpy = settled(times["numpy"], 0 if on_gpu else WARM_UP[False])
        ours = settled(times["ours"], WARM_UP[on_gpu])
        ratios.append(of_numpy / ours)
        kept[name] = {"difference": difference, "times": times}
        if given.json is not None:
            given.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        first = of_numpy / times["ours"][0]
        theirs = settled(times["cupy"], WARM_UP[True]) / ours if "cupy" in times else 0.0
        more = f" {theirs:10.2f}" if on_gpu else ""
        row = f"{name:16s} {of_numpy * 1e3:9.1f} {first:7.2f} {ratios[-1]:7.2f} {difference:11.1e}"
        print(row + more, flush=True)
    print(f"geometric mean, warm: {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
