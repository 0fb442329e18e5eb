"""Products A B^T of many small matrices, in teams, then a correction of the result.

Source: J. Dongarra et al., "The Design and Performance of Batched BLAS" (2017).
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 32, "default": 2_000, "large": 10_000}
ROWS, INNER = 16, 24


@pk.workunit
def multiply(
    team: pk.TeamMember,
    c: pk.View3D[pk.double],
    a: pk.View3D[pk.double],
    b: pk.View3D[pk.double],
    m: int,
    p: int,
):
    e: int = team.league_rank()

    def row(i: int):
        for j in range(m):
            total: float = 0.0
            for k in range(p):
                total += a[e][i][k] * b[e][j][k]
            c[e][i][j] = total

    pk.parallel_for(pk.TeamThreadRange(team, m), row)


@pk.workunit
def correct(e, i, j, c, shift):
    if i == j:
        c[e][i][j] += shift


def setup(size):
    rng = np.random.default_rng(55)
    state = {"n": size, "c": pk.View([size, ROWS, ROWS], pk.double)}
    for name in "ab":
        state[name] = pk.View([size, ROWS, INNER], pk.double)
        state[name].data[:] = rng.random((size, ROWS, INNER))
    return state


def run(state):
    n = state["n"]
    teams = pk.TeamPolicy(n, pk.AUTO)
    pk.parallel_for(teams, multiply, c=state["c"], a=state["a"], b=state["b"], m=ROWS, p=INNER)
    box = pk.MDRangePolicy([0, 0, 0], [n, ROWS, ROWS])
    pk.parallel_for(box, correct, c=state["c"], shift=0.01)


def outputs(state):
    return {"c": np.array(state["c"].data)}


def check(state, size, runs):
    a, b, c = (np.array(state[name].data) for name in "abc")
    expected = a @ b.transpose(0, 2, 1) + 0.01 * np.eye(ROWS)
    np.testing.assert_allclose(c, expected, rtol=1e-11)
