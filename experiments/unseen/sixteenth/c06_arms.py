"""Inverse kinematics of many robot arms with six joints each: damped least squares (3x3 Cholesky).

Each arm shall bring its hand to a place and a direction in the plane, within limits of its joints.
"""

from dataclasses import dataclass
from math import cos, sin, sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 300, "default": 20_000, "large": 500_000}
JOINTS, ITERATIONS = 6, 6
TURN = 0.5  # what a radian counts beside a metre


@pk.workunit
def fill(a: int, j: int, to, source):
    to[a][j] = source[a][j]


@pk.workunit
def headings(a: int, heading, q):
    """Joint angles are relative, headings absolute."""
    total: pk.double = 0.0
    for j in range(JOINTS):
        total += q[a][j]
        heading[a][j] = total


@pk.workunit
def links(a: int, j: int, lx, ly, heading, length):
    lx[a][j] = length[j] * cos(heading[a][j])
    ly[a][j] = length[j] * sin(heading[a][j])


@pk.workunit
def hand(a: int, tip, lx, ly, heading):
    x: pk.double = 0.0
    y: pk.double = 0.0
    for j in range(JOINTS):
        x += lx[a][j]
        y += ly[a][j]
    tip[a][0] = x
    tip[a][1] = y
    tip[a][2] = TURN * heading[a][JOINTS - 1]


@pk.workunit
def mismatch(a: int, r: int, error, goal, tip):
    error[a][r] = goal[a][r] - tip[a][r]


@pk.workunit
def square(a: int, r: int, acc: pk.Acc[pk.double], error):
    acc += error[a][r] * error[a][r]


@pk.workunit
def shorten(a: int, error, longest: float):
    length: pk.double = sqrt(
        error[a][0] * error[a][0] + error[a][1] * error[a][1] + error[a][2] * error[a][2]
    )
    if length > longest:
        for r in range(3):
            error[a][r] *= longest / length


@pk.workunit
def jacobian(a: int, jac, lx, ly):
    """From the hand back to the shoulder: a joint turns all that is beyond it."""
    x: pk.double = 0.0
    y: pk.double = 0.0
    for j in range(JOINTS - 1, -1, -1):
        x += lx[a][j]
        y += ly[a][j]
        jac[a][0][j] = -y
        jac[a][1][j] = x
        jac[a][2][j] = TURN


@pk.workunit
def normal(a: int, r: int, c: int, m, jac, damping: float):
    total: pk.double = 0.0
    if r == c:
        total = damping
    for j in range(JOINTS):
        total += jac[a][r][j] * jac[a][c][j]
    m[a][r][c] = total


@pk.workunit
def cholesky(a: int, m):
    for c in range(3):
        for k in range(c):
            m[a][c][c] -= m[a][c][k] * m[a][c][k]
        m[a][c][c] = sqrt(m[a][c][c])
        for r in range(c + 1, 3):
            for k in range(c):
                m[a][r][c] -= m[a][r][k] * m[a][c][k]
            m[a][r][c] /= m[a][c][c]


@pk.workunit
def solve(a: int, y, m, error):
    for r in range(3):
        total: pk.double = error[a][r]
        for k in range(r):
            total -= m[a][r][k] * y[a][k]
        y[a][r] = total / m[a][r][r]
    for r in range(2, -1, -1):
        rest: pk.double = y[a][r]
        for k in range(r + 1, 3):
            rest -= m[a][k][r] * y[a][k]
        y[a][r] = rest / m[a][r][r]


@pk.workunit
def step(a: int, j: int, q, jac, y):
    change: pk.double = 0.0
    for r in range(3):
        change += jac[a][r][j] * y[a][r]
    q[a][j] += change


@pk.workunit
def limit(a: int, j: int, q, low, high):
    if q[a][j] < low[j]:
        q[a][j] = low[j]
    elif q[a][j] > high[j]:
        q[a][j] = high[j]


@dataclass
class State:
    n: int
    damping: float
    longest: float
    length: pk.View
    low: pk.View
    high: pk.View
    goal: pk.View
    q0: pk.View
    q: pk.View
    tip: pk.View
    history: pk.View


def setup(n: int) -> State:
    rng = np.random.default_rng(6)
    length, low, high = (pk.View([JOINTS], pk.double) for _ in range(3))
    length.data[:] = [0.9, 0.8, 0.7, 0.5, 0.4, 0.2]
    high.data[:] = [3.0, 2.2, 2.2, 1.8, 1.8, 1.5]
    low.data[:] = -high.data
    goal, tip = pk.View([n, 3], pk.double), pk.View([n, 3], pk.double)
    q0, q = pk.View([n, JOINTS], pk.double), pk.View([n, JOINTS], pk.double)
    q0.data[:] = 0.3 + 0.1 * rng.normal(size=(n, JOINTS))
    wanted = np.cumsum(q0.data + 0.5 * rng.normal(size=(n, JOINTS)), axis=1)
    goal.data[:, 0] = (length.data * np.cos(wanted)).sum(axis=1)
    goal.data[:, 1] = (length.data * np.sin(wanted)).sum(axis=1)
    goal.data[:, 2] = TURN * wanted[:, -1]
    return State(
        n, 0.05, 0.8, length, low, high, goal, q0, q, tip, pk.View([ITERATIONS], pk.double)
    )


def run(s: State) -> None:
    n, q, tip = s.n, s.q, s.tip
    joints = pk.MDRangePolicy([0, 0], [n, JOINTS])
    threes = pk.MDRangePolicy([0, 0], [n, 3])
    squares = pk.MDRangePolicy([0, 0, 0], [n, 3, 3])
    heading, lx, ly = (pk.View([n, JOINTS], pk.double) for _ in range(3))
    error, y = pk.View([n, 3], pk.double), pk.View([n, 3], pk.double)
    jac, m = pk.View([n, 3, JOINTS], pk.double), pk.View([n, 3, 3], pk.double)
    pk.parallel_for(joints, fill, to=q, source=s.q0)
    for iteration in range(ITERATIONS):
        pk.parallel_for(n, headings, heading=heading, q=q)
        pk.parallel_for(joints, links, lx=lx, ly=ly, heading=heading, length=s.length)
        pk.parallel_for(n, hand, tip=tip, lx=lx, ly=ly, heading=heading)
        pk.parallel_for(threes, mismatch, error=error, goal=s.goal, tip=tip)
        far = float(pk.parallel_reduce(threes, square, error=error)) / n
        s.history[iteration] = far
        if far < 1e-12:
            break
        pk.parallel_for(n, shorten, error=error, longest=s.longest)
        pk.parallel_for(n, jacobian, jac=jac, lx=lx, ly=ly)
        pk.parallel_for(squares, normal, m=m, jac=jac, damping=s.damping)
        pk.parallel_for(n, cholesky, m=m)
        pk.parallel_for(n, solve, y=y, m=m, error=error)
        pk.parallel_for(joints, step, q=q, jac=jac, y=y)
        pk.parallel_for(joints, limit, q=q, low=s.low, high=s.high)


def outputs(s: State) -> dict:
    views = {"q": s.q, "tip": s.tip, "history": s.history}
    return {name: np.array(view.data) for name, view in views.items()}


def check(s: State, n: int) -> None:
    q, goal, length = np.array(s.q0.data), np.array(s.goal.data), np.array(s.length.data)
    history = []
    for _ in range(ITERATIONS):
        heading = np.cumsum(q, axis=1)
        lx, ly = length * np.cos(heading), length * np.sin(heading)
        tip = np.stack([lx.sum(axis=1), ly.sum(axis=1), TURN * heading[:, -1]], axis=1)
        error = goal - tip
        history.append((error**2).sum() / n)
        size = np.sqrt((error**2).sum(axis=1, keepdims=True))
        error *= np.minimum(1, s.longest / size)
        jac = np.full((n, 3, JOINTS), TURN)
        jac[:, 0] = -np.cumsum(ly[:, ::-1], axis=1)[:, ::-1]
        jac[:, 1] = np.cumsum(lx[:, ::-1], axis=1)[:, ::-1]
        m = jac @ jac.transpose(0, 2, 1) + s.damping * np.eye(3)
        y = np.linalg.solve(m, error[:, :, None])
        q = np.clip(q + (jac.transpose(0, 2, 1) @ y)[:, :, 0], s.low.data, s.high.data)
    np.testing.assert_allclose(s.q.data, q, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(s.tip.data, tip, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(s.history.data, history, rtol=1e-7)
    assert history[-1] < 0.1 * history[0]


if __name__ == "__main__":
    main(globals())
