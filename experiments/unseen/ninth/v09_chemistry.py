"""Chemistry of many cells: a stiff chain of three species that heats, by a Rosenbrock method.

Each cell has a step of its own, which an error estimate adapts.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main, view

SIZES = {"small": 500, "default": 12_000, "large": 150_000}
STEPS, GAMMA, TOL = 3, 1.0 + 0.7071067811865476, 1e-3


@pk.function
def arrhenius(a: float, e: float, t: float) -> float:
    return a * pk.exp(-e / t)


@pk.workunit
def start(i: int, y: pk.View2D[pk.double], y0: pk.View2D[pk.double]):
    for a in range(3):
        y[i][a] = y0[i][a]


@pk.workunit
def start_scalar(i: int, x: pk.View1D[pk.double], x0: pk.View1D[pk.double]):
    x[i] = x0[i]


@pk.workunit
def rate_constants(i: int, k: pk.View2D[pk.double], t: pk.View1D[pk.double]):
    k[i][0] = arrhenius(40.0, 2.0, t[i])
    k[i][1] = arrhenius(9e3, 4.0, t[i])
    k[i][2] = arrhenius(3e2, 3.0, t[i])


@pk.workunit
def production(i: int, f: pk.View2D[pk.double], y: pk.View2D[pk.double], k: pk.View2D[pk.double]):
    """A -> B, B + B -> C + B, C + B -> A + B"""
    r0: float = k[i][0] * y[i][0]
    r1: float = k[i][1] * y[i][1] * y[i][1]
    r2: float = k[i][2] * y[i][1] * y[i][2]
    f[i][0] = r2 - r0
    f[i][1] = r0 - r1
    f[i][2] = r1 - r2


@pk.workunit
def jacobian(i: int, j: pk.View3D[pk.double], y: pk.View2D[pk.double], k: pk.View2D[pk.double]):
    j[i][0][0] = -k[i][0]
    j[i][0][1] = k[i][2] * y[i][2]
    j[i][0][2] = k[i][2] * y[i][1]
    j[i][1][0] = k[i][0]
    j[i][1][1] = -2.0 * k[i][1] * y[i][1]
    j[i][1][2] = 0.0
    j[i][2][0] = 0.0
    j[i][2][1] = 2.0 * k[i][1] * y[i][1] - k[i][2] * y[i][2]
    j[i][2][2] = -k[i][2] * y[i][1]


@pk.workunit
def shift(
    i: int,
    m: pk.View3D[pk.double],
    j: pk.View3D[pk.double],
    h: pk.View1D[pk.double],
    gamma: float,
):
    """I - gamma h J"""
    for a in range(3):
        for b in range(3):
            m[i][a][b] = -gamma * h[i] * j[i][a][b]
        m[i][a][a] += 1.0


@pk.workunit
def factorise(i: int, m: pk.View3D[pk.double]):
    for p in range(3):
        for a in range(p + 1, 3):
            m[i][a][p] /= m[i][p][p]
            for b in range(p + 1, 3):
                m[i][a][b] -= m[i][a][p] * m[i][p][b]


@pk.workunit
def solve(i: int, x: pk.View2D[pk.double], m: pk.View3D[pk.double], rhs: pk.View2D[pk.double]):
    for a in range(3):
        x[i][a] = rhs[i][a]
        for b in range(a):
            x[i][a] -= m[i][a][b] * x[i][b]
    for c in range(3):
        a: int = 2 - c
        for b in range(a + 1, 3):
            x[i][a] -= m[i][a][b] * x[i][b]
        x[i][a] /= m[i][a][a]


@pk.workunit
def advance(
    i: int,
    out: pk.View2D[pk.double],
    y: pk.View2D[pk.double],
    k: pk.View2D[pk.double],
    h: pk.View1D[pk.double],
    c: float,
):
    for a in range(3):
        out[i][a] = y[i][a] + c * h[i] * k[i][a]


@pk.workunit
def second_rhs(i: int, rhs: pk.View2D[pk.double], f: pk.View2D[pk.double], k: pk.View2D[pk.double]):
    for a in range(3):
        rhs[i][a] = f[i][a] - 2.0 * k[i][a]


@pk.workunit
def error_norm(
    i: int,
    err: pk.View1D[pk.double],
    k1: pk.View2D[pk.double],
    k2: pk.View2D[pk.double],
    y: pk.View2D[pk.double],
    h: pk.View1D[pk.double],
    tol: float,
):
    total: float = 0.0
    for a in range(3):
        d: float = 0.5 * h[i] * (k1[i][a] + k2[i][a]) / (tol * (0.01 + abs(y[i][a])))
        total += d * d
    err[i] = pk.sqrt(total / 3.0)


@pk.workunit
def judge(i: int, ok: pk.View1D[pk.uint8], err: pk.View1D[pk.double]):
    ok[i] = 1 if err[i] <= 1.0 else 0


@pk.workunit
def accept(
    i: int,
    y: pk.View2D[pk.double],
    new: pk.View2D[pk.double],
    ok: pk.View1D[pk.uint8],
):
    if ok[i] == 1:
        for a in range(3):
            y[i][a] = max(new[i][a], 0.0)


@pk.workunit
def heat(
    i: int,
    t: pk.View1D[pk.double],
    f: pk.View2D[pk.double],
    h: pk.View1D[pk.double],
    ok: pk.View1D[pk.uint8],
):
    if ok[i] == 1:
        t[i] += 0.2 * h[i] * abs(f[i][2])


@pk.workunit
def clock(i: int, time: pk.View1D[pk.double], h: pk.View1D[pk.double], ok: pk.View1D[pk.uint8]):
    if ok[i] == 1:
        time[i] += h[i]


@pk.workunit
def adapt(i: int, h: pk.View1D[pk.double], err: pk.View1D[pk.double]):
    h[i] *= min(4.0, max(0.2, 0.9 / pk.sqrt(err[i] + 1e-12)))


@pk.workunit
def count(i: int, acc: pk.Acc[pk.int64], ok: pk.View1D[pk.uint8]):
    acc += ok[i]


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]):
    acc += x[i]


@dataclass
class State:
    size: int
    y0: pk.View
    t0: pk.View
    h0: pk.View
    y: pk.View
    t: pk.View
    h: pk.View
    time: pk.View
    accepted: list = field(default_factory=list)
    elapsed: list = field(default_factory=list)


def problem(n):
    rng = np.random.default_rng(9)
    y = rng.uniform(0.05, 1, (n, 3))
    y[:, 1] *= 0.05
    return y, rng.uniform(1, 2, n), 10 ** rng.uniform(-4, -2, n)


def setup(n):
    y, t, h = problem(n)
    return State(n, view(y), view(t), view(h), view(y), view(t), view(h), view(0 * h))


def step(s):
    n = s.size
    k, f, k1, k2, mid, f2, rhs, new, part = (pk.View([n, 3], pk.double) for _ in range(9))
    j, m = pk.View([n, 3, 3], pk.double), pk.View([n, 3, 3], pk.double)
    err, ok = pk.View([n], pk.double), pk.View([n], pk.uint8)
    pk.parallel_for(n, rate_constants, k=k, t=s.t)
    pk.parallel_for(n, production, f=f, y=s.y, k=k)
    pk.parallel_for(n, jacobian, j=j, y=s.y, k=k)
    pk.parallel_for(n, shift, m=m, j=j, h=s.h, gamma=GAMMA)
    pk.parallel_for(n, factorise, m=m)
    pk.parallel_for(n, solve, x=k1, m=m, rhs=f)
    pk.parallel_for(n, advance, out=mid, y=s.y, k=k1, h=s.h, c=1.0)
    pk.parallel_for(n, production, f=f2, y=mid, k=k)
    pk.parallel_for(n, second_rhs, rhs=rhs, f=f2, k=k1)
    pk.parallel_for(n, solve, x=k2, m=m, rhs=rhs)
    pk.parallel_for(n, advance, out=part, y=s.y, k=k1, h=s.h, c=1.5)
    pk.parallel_for(n, advance, out=new, y=part, k=k2, h=s.h, c=0.5)
    pk.parallel_for(n, error_norm, err=err, k1=k1, k2=k2, y=s.y, h=s.h, tol=TOL)
    pk.parallel_for(n, judge, ok=ok, err=err)
    pk.parallel_for(n, accept, y=s.y, new=new, ok=ok)
    pk.parallel_for(n, heat, t=s.t, f=f, h=s.h, ok=ok)
    pk.parallel_for(n, clock, time=s.time, h=s.h, ok=ok)
    pk.parallel_for(n, adapt, h=s.h, err=err)
    return pk.parallel_reduce(n, count, ok=ok), pk.parallel_reduce(n, total, x=s.time)


def run(s):
    n = s.size
    pk.parallel_for(n, start, y=s.y, y0=s.y0)
    for x, x0 in ((s.t, s.t0), (s.h, s.h0)):
        pk.parallel_for(n, start_scalar, x=x, x0=x0)
    s.time.fill(0.0)
    s.accepted, s.elapsed = [], []
    for _ in range(STEPS):
        done, time = step(s)
        s.accepted.append(int(done))
        s.elapsed.append(float(time) / n)


def outputs(s):
    return {a: np.array(getattr(s, a).data) for a in ("y", "t", "h", "time")} | {
        "accepted": np.array(s.accepted),
        "elapsed": np.array(s.elapsed),
    }


def check(s):
    y, t, h = problem(s.size)
    time = 0 * t

    def rates(y, k):
        r0, r1, r2 = k[0] * y[:, 0], k[1] * y[:, 1] ** 2, k[2] * y[:, 1] * y[:, 2]
        return np.stack([r2 - r0, r0 - r1, r1 - r2], axis=1)

    for step in range(STEPS):
        k = 40 * np.exp(-2 / t), 9e3 * np.exp(-4 / t), 3e2 * np.exp(-3 / t)
        f = rates(y, k)
        j = np.zeros((s.size, 3, 3))
        j[:, 0] = np.stack([-k[0], k[2] * y[:, 2], k[2] * y[:, 1]], axis=1)
        j[:, 1, 0], j[:, 1, 1] = k[0], -2 * k[1] * y[:, 1]
        j[:, 2] = -j[:, 0] - j[:, 1]
        m = np.eye(3) - GAMMA * h[:, None, None] * j
        k1 = np.linalg.solve(m, f[..., None])[..., 0]
        k2 = np.linalg.solve(m, (rates(y + h[:, None] * k1, k) - 2 * k1)[..., None])[..., 0]
        new = y + h[:, None] * (1.5 * k1 + 0.5 * k2)
        err = np.sqrt(((0.5 * h[:, None] * (k1 + k2) / (TOL * (0.01 + abs(y)))) ** 2).mean(axis=1))
        ok = err <= 1
        y = np.where(ok[:, None], np.maximum(new, 0), y)
        t = t + ok * 0.2 * h * abs(f[:, 2])
        time = time + ok * h
        h = h * np.clip(0.9 / np.sqrt(err + 1e-12), 0.2, 4)
        assert s.accepted[step] == ok.sum() and 0 < ok.sum() < s.size
        np.testing.assert_allclose(s.elapsed[step], time.mean(), rtol=1e-9)
    for a, b in ((s.y, y), (s.t, t), (s.h, h), (s.time, time)):
        np.testing.assert_allclose(a.data, b, rtol=1e-8, atol=1e-12)


if __name__ == "__main__":
    main(globals())
