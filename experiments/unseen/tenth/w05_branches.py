"""Logistic regressions, one for each branch of a shop, by Newton's method with a small ridge.

A branch is a team: its customers' probabilities, the gradient, the Hessian, and Newton's step by a
Cholesky factorisation in scratch memory. The fits go on until the deviance hardly falls.
"""

from dataclasses import dataclass, field
from math import exp, log, sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 8, "default": 1_000, "large": 25_000}
CUSTOMERS, FEATURES, RIDGE, ROUNDS, ENOUGH = 32, 8, 0.5, 8, 1e-4


@pk.workunit
def zero(i: int, j: int, beta: pk.View2D[pk.double]):
    beta[i][j] = 0.0


@pk.workunit
def probabilities(
    team: pk.TeamMember,
    p: pk.View2D[pk.double],
    x: pk.View3D[pk.double],
    beta: pk.View2D[pk.double],
    m: int,
    k: int,
):
    b: int = team.league_rank()

    def one(c: int):
        eta: float = 0.0
        for f in range(k):
            eta += x[b][c][f] * beta[b][f]
        p[b][c] = 1.0 / (1.0 + exp(-eta))

    pk.parallel_for(pk.TeamThreadRange(team, m), one)


@pk.workunit
def gradients(
    team: pk.TeamMember,
    g: pk.View2D[pk.double],
    x: pk.View3D[pk.double],
    y: pk.View2D[pk.double],
    p: pk.View2D[pk.double],
    beta: pk.View2D[pk.double],
    m: int,
    k: int,
    ridge: float,
):
    b: int = team.league_rank()

    def one(f: int):
        s: float = 0.0
        for c in range(m):
            s += x[b][c][f] * (y[b][c] - p[b][c])
        g[b][f] = s - ridge * beta[b][f]

    pk.parallel_for(pk.TeamThreadRange(team, k), one)


@pk.workunit
def hessians(
    team: pk.TeamMember,
    h: pk.View3D[pk.double],
    x: pk.View3D[pk.double],
    p: pk.View2D[pk.double],
    m: int,
    k: int,
    ridge: float,
):
    """The lower half."""
    b: int = team.league_rank()

    def one(f: int):
        for e in range(f + 1):
            s: float = 0.0
            for c in range(m):
                s += p[b][c] * (1.0 - p[b][c]) * x[b][c][f] * x[b][c][e]
            if e == f:
                s += ridge
            h[b][f][e] = s

    pk.parallel_for(pk.TeamThreadRange(team, k), one)


@pk.workunit
def newton(
    team: pk.TeamMember,
    beta: pk.View2D[pk.double],
    h: pk.View3D[pk.double],
    g: pk.View2D[pk.double],
    k: int,
):
    """Factorise the Hessian, solve, and step."""
    b: int = team.league_rank()
    low: pk.ScratchView2D[float] = pk.ScratchView2D(team.team_scratch(0), 8, 8)
    z: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), 8)
    for r in range(k):
        for c in range(r + 1):
            s: float = h[b][r][c]
            for q in range(c):
                s -= low[r][q] * low[c][q]
            if c == r:
                low[r][r] = sqrt(s)
            else:
                low[r][c] = s / low[c][c]
    for r in range(k):
        t: float = g[b][r]
        for q in range(r):
            t -= low[r][q] * z[q]
        z[r] = t / low[r][r]
    for back in range(k):
        r: int = k - 1 - back
        t: float = z[r]
        for q in range(r + 1, k):
            t -= low[q][r] * z[q]
        z[r] = t / low[r][r]
        beta[b][r] += z[r]


@pk.workunit
def deviance(
    i: int, j: int, acc: pk.Acc[pk.double], y: pk.View2D[pk.double], p: pk.View2D[pk.double]
):
    if y[i][j] > 0.5:
        acc -= 2.0 * log(p[i][j])
    else:
        acc -= 2.0 * log(1.0 - p[i][j])


@dataclass
class State:
    """Customers' features and what they chose, the coefficients, and the deviances of each round."""

    n: int
    x: pk.View
    y: pk.View
    beta: pk.View
    deviances: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(105)
    x = pk.View([n, CUSTOMERS, FEATURES], pk.double)
    y, beta = pk.View([n, CUSTOMERS], pk.double), pk.View([n, FEATURES], pk.double)
    x.data[:] = rng.normal(0.0, 1.0, x.shape)
    x.data[:, :, 0] = 1.0
    true = rng.normal(0.0, 1.0, FEATURES) + rng.normal(0.0, 0.5, (n, FEATURES))
    eta = np.einsum("bcf,bf->bc", x.data, true)
    y.data[:] = rng.random((n, CUSTOMERS)) < 1.0 / (1.0 + np.exp(-eta))
    return State(n, x, y, beta)


def run(state: State) -> None:
    n, x, y, beta = state.n, state.x, state.y, state.beta
    m, k = CUSTOMERS, FEATURES
    branches = pk.TeamPolicy(n, pk.AUTO)
    p, g = pk.View([n, m], pk.double), pk.View([n, k], pk.double)
    h = pk.View([n, k, k], pk.double)
    pk.parallel_for(pk.MDRangePolicy([0, 0], [n, k]), zero, beta=beta)
    state.deviances = []
    for _ in range(ROUNDS):
        pk.parallel_for(branches, probabilities, p=p, x=x, beta=beta, m=m, k=k)
        pk.parallel_for(branches, gradients, g=g, x=x, y=y, p=p, beta=beta, m=m, k=k, ridge=RIDGE)
        pk.parallel_for(branches, hessians, h=h, x=x, p=p, m=m, k=k, ridge=RIDGE)
        pk.parallel_for(branches, newton, beta=beta, h=h, g=g, k=k)
        now = float(pk.parallel_reduce(pk.MDRangePolicy([0, 0], [n, m]), deviance, y=y, p=p))
        state.deviances.append(now)
        if len(state.deviances) > 1 and abs(state.deviances[-2] - now) < ENOUGH * now:
            break


def outputs(state: State) -> dict:
    return {"beta": np.array(state.beta.data), "deviances": np.array(state.deviances)}


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    x, y, beta = np.array(fresh.x.data), np.array(fresh.y.data), np.zeros((n, FEATURES))
    deviances = []
    for _ in range(ROUNDS):
        p = 1.0 / (1.0 + np.exp(-np.einsum("bcf,bf->bc", x, beta)))
        g = np.einsum("bcf,bc->bf", x, y - p) - RIDGE * beta
        h = np.einsum("bc,bcf,bce->bfe", p * (1.0 - p), x, x) + RIDGE * np.eye(FEATURES)
        beta = beta + np.linalg.solve(h, g[:, :, None])[:, :, 0]
        deviances.append(-2.0 * np.sum(np.where(y > 0.5, np.log(p), np.log(1.0 - p))))
        if len(deviances) > 1 and abs(deviances[-2] - deviances[-1]) < ENOUGH * deviances[-1]:
            break
    out = outputs(state)
    np.testing.assert_allclose(out["beta"], beta, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(out["deviances"], deviances, rtol=1e-10)


if __name__ == "__main__":
    main(globals())
