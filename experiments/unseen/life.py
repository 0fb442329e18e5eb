"""Life: J. Conway's game on a torus of bytes, a count of neighbours and a rule apart.

Source: M. Gardner, Scientific American 223 (1970). A generation makes 2 maps; a census follows.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 48, "default": 2_000, "large": 5_000}
GENERATIONS = 3


@pk.workunit
def neighbours(i, j, count, cell, n):
    up: int = (i + n - 1) % n
    down: int = (i + 1) % n
    left: int = (j + n - 1) % n
    right: int = (j + 1) % n
    count[i][j] = (
        cell[up][left] + cell[up][j] + cell[up][right] + cell[i][left]
        + cell[i][right] + cell[down][left] + cell[down][j] + cell[down][right]
    )  # fmt: skip


@pk.workunit
def rule(i, j, new, cell, count):
    new[i][j] = 0
    if count[i][j] == 3 or (count[i][j] == 2 and cell[i][j] == 1):
        new[i][j] = 1


@pk.workunit
def census(i, j, acc, cell):
    acc += cell[i][j]


def setup(size):
    rng = np.random.default_rng(33)
    cell, new = (pk.View([size, size], pk.uint8) for _ in range(2))
    cell.data[:] = rng.random((size, size)) < 0.35
    return {"n": size, "cell": cell, "new": new, "alive": 0}


def run(state):
    n = state["n"]
    every = pk.MDRangePolicy([0, 0], [n, n])
    count = pk.View([n, n], pk.uint8)
    for _ in range(GENERATIONS):
        cell, new = state["cell"], state["new"]
        pk.parallel_for(every, neighbours, count=count, cell=cell, n=n)
        pk.parallel_for(every, rule, new=new, cell=cell, count=count)
        state["cell"], state["new"] = new, cell
    state["alive"] = float(pk.parallel_reduce(every, census, cell=state["cell"]))


def outputs(state):
    return {"cell": np.array(state["cell"].data), "alive": state["alive"]}


def check(state, size, runs):
    assert state["alive"] == np.array(state["cell"].data).sum(), "census"
