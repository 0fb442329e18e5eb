"""PageRank: ranks of linked pages, by the power method on a sparse matrix in CSR.

Source: L. Page et al. (1999). A step makes a map (rank by links out), a sparse product, a map with
the jump, and 2 sums; the error decides on the host whether to go on.
"""

from math import fabs

import numpy as np
import pykokkos as pk

SIZES = {"small": 500, "default": 400_000, "large": 2_000_000}
STEPS, LINKS, DAMPING = 3, 8, 0.85


@pk.workunit
def share(i, s, rank, out):
    s[i] = rank[i] / out[i]


@pk.workunit
def gather(i, t, s, begin, source):
    total: float = 0.0
    for k in range(begin[i], begin[i + 1]):
        total += s[source[k]]
    t[i] = total


@pk.workunit
def jump(i, new, t, damping, base):
    new[i] = base + damping * t[i]


@pk.workunit
def change(i, acc, new, rank):
    acc += fabs(new[i] - rank[i])


@pk.workunit
def everything(i, acc, new):
    acc += new[i]


def setup(size):
    rng = np.random.default_rng(30)
    degree = rng.integers(1, 2 * LINKS, size)
    begin, source = pk.View([size + 1], pk.int32), pk.View([int(degree.sum())], pk.int32)
    begin.data[1:] = np.cumsum(degree)
    source.data[:] = rng.integers(0, size, degree.sum())
    rank, new, out = (pk.View([size], pk.double) for _ in range(3))
    out.data[:] = np.maximum(np.bincount(source.data, minlength=size), 1)
    rank.data[:] = 1.0 / size
    links = {"begin": begin, "source": source, "out": out}
    return {"n": size, "rank": rank, "new": new, "links": links, "error": 0.0, "sum": 0.0}


def run(state):
    n, links = state["n"], state["links"]
    s, t = (pk.View([n], pk.double) for _ in range(2))
    for _ in range(STEPS):
        rank, new = state["rank"], state["new"]
        pk.parallel_for(n, share, s=s, rank=rank, out=links["out"])
        pk.parallel_for(n, gather, t=t, s=s, begin=links["begin"], source=links["source"])
        pk.parallel_for(n, jump, new=new, t=t, damping=DAMPING, base=(1.0 - DAMPING) / n)
        error = pk.parallel_reduce(n, change, new=new, rank=rank)
        state["sum"] = float(pk.parallel_reduce(n, everything, new=new))
        state["rank"], state["new"], state["error"] = new, rank, float(error)
        if state["error"] < 1e-14:
            break


def outputs(state):
    return {"rank": np.array(state["rank"].data), "error": state["error"]}


def check(state, size, runs):
    assert np.array(state["rank"].data).min() > 0.0, "rank"
