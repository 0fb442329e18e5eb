"""Edit distance: of two long texts, along the anti-diagonals of the table.

Source: V. Levenshtein (1966). A launch computes an anti-diagonal from the two before it; the three
arrays take turns, and spaces grow and shrink.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 40, "default": 2_000, "large": 6_000}


@pk.workunit
def edge(i, d, value):
    d[i] = value


@pk.workunit
def diagonal(i, new, last, before, a, b, number):
    cost: int = 1
    if a[i - 1] == b[number - i - 1]:
        cost = 0
    best: int = before[i - 1] + cost
    if last[i - 1] + 1 < best:
        best = last[i - 1] + 1
    if last[i] + 1 < best:
        best = last[i] + 1
    new[i] = best


def setup(size):
    rng = np.random.default_rng(19)
    a, b = (pk.View([size], pk.int32) for _ in range(2))
    a.data[:] = rng.integers(0, 4, size)
    b.data[:] = np.where(rng.random(size) < 0.8, a.data, rng.integers(0, 4, size))
    diagonals = [pk.View([size + 1], pk.int32) for _ in range(3)]
    return {"n": size, "a": a, "b": b, "diagonals": diagonals, "distance": 0}


def run(state):
    n, (before, last, new) = state["n"], state["diagonals"]
    for number in range(2 * n + 1):
        if number <= n:
            pk.parallel_for(pk.RangePolicy(0, 1), edge, d=new, value=number)
            pk.parallel_for(pk.RangePolicy(number, number + 1), edge, d=new, value=number)
        begin, end = max(1, number - n), min(n + 1, number)
        if begin < end:
            pk.parallel_for(
                pk.RangePolicy(begin, end), diagonal, new=new, last=last, before=before,
                a=state["a"], b=state["b"], number=number,
            )  # fmt: skip
        before, last, new = last, new, before
    state["distance"] = int(last[n])


def outputs(state):
    return {"distance": state["distance"]}


def check(state, size, runs):
    assert 0 <= state["distance"] <= size, "distance"
