"""Where a short template fits a signal best: sums of squared differences in windows, then least.

Source: J. P. Lewis, "Fast Normalized Cross-Correlation" (1995).
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 256, "default": 100_000, "large": 1_000_000}
WINDOW, TEMPLATES = 24, 6


@pk.workunit
def fits(t, k, error, x, template, w: int):
    total: float = 0.0
    for c in range(w):
        step: float = x[t + c] - template[k][c]
        total += step * step
    error[t][k] = total


@pk.workunit
def choose(t, best, error, m: int):
    least: float = error[t][0]
    for k in range(1, m):
        least = min(least, error[t][k])
    best[t] = least


def setup(size):
    rng = np.random.default_rng(54)
    x, template = pk.View([size + WINDOW], pk.double), pk.View([TEMPLATES, WINDOW], pk.double)
    x.data[:] = rng.random(size + WINDOW)
    template.data[:] = rng.random((TEMPLATES, WINDOW))
    return {"n": size, "x": x, "template": template, "best": pk.View([size], pk.double)}


def run(state):
    n = state["n"]
    error = pk.View([n, TEMPLATES], pk.double)
    box = pk.MDRangePolicy([0, 0], [n, TEMPLATES])
    pk.parallel_for(box, fits, error=error, x=state["x"], template=state["template"], w=WINDOW)
    pk.parallel_for(n, choose, best=state["best"], error=error, m=TEMPLATES)


def outputs(state):
    return {"best": np.array(state["best"].data)}


def check(state, size, runs):
    x, template = np.array(state["x"].data), np.array(state["template"].data)
    windows = np.lib.stride_tricks.sliding_window_view(x, WINDOW)[:size]
    error = np.stack([((windows - row) ** 2).sum(axis=1) for row in template])
    np.testing.assert_allclose(np.array(state["best"].data), error.min(axis=0), rtol=1e-11)
