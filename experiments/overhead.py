"""What a call and a step cost the host: with the extension, without it, and elsewhere.

`python experiments/overhead.py [N]`: microseconds for N elements, 1000 by default. Each of the ways
runs in a process of its own, twice, in turns (A B A B); a figure is the median of the better run.
Peers are shown as far as they are installed. At the end: launches on rows, by `pyfuser run`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPEATS = 400
WAYS = {"compiled": {}, "python": {"PYFUSER_EXTENSION": "0"}}
STEPS = 5  # of two kernels each
ROWS = Path(__file__).with_name("rows.py")


def median(function: Callable[[], Any], before: Callable[[], Any] | None = None) -> float:
    """Microseconds of a call; `before` runs between two calls, and is not counted."""
    for _ in range(40):
        function()
        if before is not None:
            before()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
        if before is not None:
            before()
    return statistics.median(times) * 1e6


def ours(n: int) -> dict[str, float]:
    """What PyFuser takes, in this process."""
    import pyfuser
    from pyfuser.frontends.embedded import pykokkos as pk

    @pk.workunit
    def scale(i, y, x, a):
        y[i] = a * x[i]

    @pk.workunit
    def axpy(i, y, x, a):
        y[i] = y[i] + a * x[i]

    @pk.workunit
    def eight(i, j, a, b, c, d, e, f, p, q):
        a[i][j] = b[i][j] + c[i][j] + d[i][j] + e[i][j] + f[i][j] + p * q

    @pk.workunit
    def total(i, acc, x):
        acc += x[i]

    v = [pk.View([n], pk.double) for _ in range(STEPS + 1)]
    w = [pk.View([8, 8], pk.double) for _ in range(6)]
    policy = pk.MDRangePolicy([0, 0], [8, 8])
    names = dict(zip("abcdef", w, strict=True))

    def step_of(*v: Any) -> None:
        for k in range(STEPS):
            pk.parallel_for(n, scale, y=v[k + 1], x=v[k], a=0.5)
            pk.parallel_for(n, axpy, y=v[k], x=v[k + 1], a=0.25)

    def step() -> None:
        step_of(*v)

    def one() -> None:
        pk.parallel_for(n, scale, y=v[1], x=v[0], a=0.5)

    def grid() -> None:
        pk.parallel_for(policy, eight, p=1.0, q=2.0, **names)

    def synced() -> None:
        step()
        pyfuser.sync()

    def summed() -> None:
        float(pk.parallel_reduce(n, total, x=v[0]))

    found = {}
    with pyfuser.fusing():
        found["record one call"] = median(one, pyfuser.sync)
        found["record MDRangePolicy, 8 arguments"] = median(grid, pyfuser.sync)
        found["step of 10, a sync each, fused"] = median(synced)
        found["one sum and a read, fused"] = median(summed)
    captured = pyfuser.capture(step_of)
    found["step of 10, captured"] = median(lambda: captured(*v))
    found["step of 10, in repeat"] = median(lambda: captured.repeat(1000, *v)) / 1000
    with pyfuser.unfused():
        found["an unfused launch"] = median(one)
        found["step of 10, unfused"] = median(step)
        found["one sum and a read, unfused"] = median(summed)
    return found


def peers(n: int) -> dict[str, float]:
    """The step of ten elsewhere."""
    import numpy as np

    v = [np.zeros(n) for _ in range(STEPS + 1)]
    t = np.empty(n)

    def step() -> None:
        for k in range(STEPS):
            np.multiply(v[k], 0.5, out=v[k + 1])
            np.multiply(v[k + 1], 0.25, out=t)
            np.add(v[k], t, out=v[k])

    found = {"step of 10, NumPy": median(step)}
    try:
        import numba
    except ImportError:
        return found

    @numba.njit
    def scale(y: Any, x: Any, a: float) -> None:
        for i in range(len(y)):
            y[i] = a * x[i]

    @numba.njit
    def axpy(y: Any, x: Any, a: float) -> None:
        for i in range(len(y)):
            y[i] += a * x[i]

    def calls() -> None:
        for k in range(STEPS):
            scale(v[k + 1], v[k], 0.5)
            axpy(v[k], v[k + 1], 0.25)

    found["step of 10, Numba, ten calls"] = median(calls)
    return found


def child(way: str, n: int) -> dict[str, float]:
    """The figures of one way, measured in a new process."""
    return output([__file__, str(n), way], way)


def rows(*options: str) -> dict[str, float]:
    """Those of launches on rows, in a program that knows nothing of us."""
    return output(["-m", "pyfuser", "run", *options, str(ROWS)])


def output(arguments: list[str], way: str = "") -> dict[str, float]:
    """What a process of Python prints last."""
    command = [sys.executable, *arguments]
    environment = os.environ | WAYS.get(way, {})
    out = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return dict(json.loads(out.stdout.splitlines()[-1]))


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    if len(sys.argv) > 2:
        print(json.dumps(peers(n) if sys.argv[2] == "peers" else ours(n)))
        return
    ways = [*WAYS, "peers"]
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in (*ways, "unfused", "run")}
    for _ in range(2):
        for way in ways:
            runs[way].append(child(way, n))
        runs["unfused"].append(rows("--no-fusion"))
        runs["run"].append(rows())
    best = {way: {k: min(r[k] for r in made) for k in made[0]} for way, made in runs.items()}
    print(f"{'microseconds, n = ' + str(n):40}{'compiled':>10}{'Python':>10}")
    for name, value in best["compiled"].items():
        print(f"{name:40}{value:10.2f}{best['python'][name]:10.2f}")
    for name, value in best["peers"].items():
        print(f"{name:40}{value:10.2f}")
    print(f"{'a launch of 10 elements':40}{'unfused':>10}{'fused':>10}")
    for name, value in best["unfused"].items():
        print(f"{name:40}{value:10.2f}{best['run'][name]:10.2f}")


if __name__ == "__main__":
    main()
