"""Nearest of many reference points for each query: squared distances over 16 features.

Source: T. Cover and P. Hart, IEEE Transactions on Information Theory 13 (1967).
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 64, "default": 2_000, "large": 8_000}
FEATURES, REFERENCES = 16, 512


@pk.workunit
def nearest(i, best, label, query, reference, m: int, d: int):
    least: float = 1e300
    at: int = 0
    for j in range(m):
        total: float = 0.0
        for c in range(d):
            step: float = query[i][c] - reference[j][c]
            total += step * step
        if total < least:
            least = total
            at = j
    best[i] = least
    label[i] = at


@pk.workunit
def count_close(i, acc, best, limit):
    if best[i] < limit:
        acc += 1.0


def setup(size):
    rng = np.random.default_rng(51)
    query, reference = (
        pk.View([size, FEATURES], pk.double),
        pk.View([REFERENCES, FEATURES], pk.double),
    )
    query.data[:] = rng.random((size, FEATURES))
    reference.data[:] = rng.random((REFERENCES, FEATURES))
    best, label = pk.View([size], pk.double), pk.View([size], pk.int32)
    return {
        "n": size,
        "query": query,
        "reference": reference,
        "best": best,
        "label": label,
        "close": 0.0,
    }


def run(state):
    n = state["n"]
    pk.parallel_for(
        n,
        nearest,
        best=state["best"],
        label=state["label"],
        query=state["query"],
        reference=state["reference"],
        m=REFERENCES,
        d=FEATURES,
    )
    state["close"] = float(pk.parallel_reduce(n, count_close, best=state["best"], limit=0.5))


def outputs(state):
    return {
        "best": np.array(state["best"].data),
        "label": np.array(state["label"].data),
        "close": state["close"],
    }


def check(state, size, runs):
    x, y = np.array(state["query"].data), np.array(state["reference"].data)
    r = ((x[:, None, :64] - y[None, :, :]) ** 2).sum(axis=2) if size <= 2_000 else None
    if r is not None:
        np.testing.assert_allclose(np.array(state["best"].data), r.min(axis=1), rtol=1e-12)
