"""100,000 launches of 10 elements on rows, PyKokkos's example of fusion; see `overhead.py`.

A program that knows nothing of PyFuser. It prints microseconds of processor time for a launch, of
a first loop and of the better one of two more, for Views and NumPy arrays, one and two arguments.
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pykokkos as pk

LAUNCHES, N = 100_000, 10


@pk.workunit
def scale(i, x):
    x[i] = 2.0 * x[i] + 1.0


@pk.workunit
def add(i, y, x):
    y[i] = 2.0 * x[i] + y[i]


def one(x: Any) -> float:
    """The seconds of a loop with one argument."""
    start = time.thread_time()
    for batch in range(LAUNCHES):
        pk.parallel_for(pk.RangePolicy(0, N), scale, x=x[batch])
    pk.fence()
    return time.thread_time() - start


def two(x: Any, y: Any) -> float:
    """The seconds of a loop with two."""
    start = time.thread_time()
    for batch in range(LAUNCHES):
        pk.parallel_for(pk.RangePolicy(0, N), add, y=y[batch], x=x[batch])
    pk.fence()
    return time.thread_time() - start


def main() -> None:
    found = {}
    views = [pk.View([LAUNCHES, N], pk.double) for _ in range(2)]
    arrays = [np.zeros((LAUNCHES, N)) for _ in range(2)]
    for kind, (x, y) in (("View", views), ("array", arrays)):
        for name, times in (
            (f"row of a{'n'[: kind == 'array']} {kind}", [one(x) for _ in range(3)]),
            (f"two rows of {kind}s", [two(x, y) for _ in range(3)]),
        ):
            found[f"{name}, first loop"] = times[0] / LAUNCHES * 1e6
            found[f"{name}, again"] = min(times[1:]) / LAUNCHES * 1e6
    print(json.dumps(found))


if __name__ == "__main__":
    main()
