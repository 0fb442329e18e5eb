"""Rising smoke (Stam's stable fluids) on a staggered grid in single precision.

Buoyancy, divergence, Jacobi sweeps that go to and fro, the gradient subtracted; then velocities and
smoke are traced back and sampled, with clamped positions.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 26, "default": 140, "large": 1_500}
SWEEPS = 10


@pk.workunit
def copy(i: int, j: int, out: pk.View2D[pk.float], x: pk.View2D[pk.float]):
    out[i][j] = x[i][j]


@pk.workunit
def clear(i: int, j: int, out: pk.View2D[pk.float]):
    out[i][j] = 0.0


@pk.workunit
def rise(i: int, j: int, u: pk.View2D[pk.float], s: pk.View2D[pk.float], lift: float):
    u[i][j] += lift * 0.5 * (s[i][j] + s[i - 1][j])


@pk.workunit
def divergence(
    i: int, j: int, d: pk.View2D[pk.float], u: pk.View2D[pk.float], v: pk.View2D[pk.float]
):
    d[i][j] = u[i + 1][j] - u[i][j] + v[i][j + 1] - v[i][j]


@pk.workunit
def sweep(
    i: int, j: int, q: pk.View2D[pk.float], p: pk.View2D[pk.float], d: pk.View2D[pk.float], n: int
):
    up: int = max(i - 1, 0)
    down: int = min(i + 1, n - 1)
    left: int = max(j - 1, 0)
    right: int = min(j + 1, n - 1)
    q[i][j] = 0.25 * (p[up][j] + p[down][j] + p[i][left] + p[i][right] - d[i][j])


@pk.workunit
def push_u(i: int, j: int, u: pk.View2D[pk.float], p: pk.View2D[pk.float]):
    u[i][j] -= p[i][j] - p[i - 1][j]


@pk.workunit
def push_v(i: int, j: int, v: pk.View2D[pk.float], p: pk.View2D[pk.float]):
    v[i][j] -= p[i][j] - p[i][j - 1]


@pk.workunit
def trace_u(
    i: int,
    j: int,
    x: pk.View2D[pk.float],
    y: pk.View2D[pk.float],
    u: pk.View2D[pk.float],
    v: pk.View2D[pk.float],
    dt: float,
):
    """Back from a face between two rows, where v is a mean of four."""
    across: float = 0.25 * (v[i][j] + v[i][j + 1] + v[i - 1][j] + v[i - 1][j + 1])
    x[i][j] = i - dt * u[i][j]
    y[i][j] = j - dt * across


@pk.workunit
def trace_v(
    i: int,
    j: int,
    x: pk.View2D[pk.float],
    y: pk.View2D[pk.float],
    u: pk.View2D[pk.float],
    v: pk.View2D[pk.float],
    dt: float,
):
    across: float = 0.25 * (u[i][j] + u[i + 1][j] + u[i][j - 1] + u[i + 1][j - 1])
    x[i][j] = i - dt * across
    y[i][j] = j - dt * v[i][j]


@pk.workunit
def trace_s(
    i: int,
    j: int,
    x: pk.View2D[pk.float],
    y: pk.View2D[pk.float],
    u: pk.View2D[pk.float],
    v: pk.View2D[pk.float],
    dt: float,
):
    x[i][j] = i - dt * 0.5 * (u[i][j] + u[i + 1][j])
    y[i][j] = j - dt * 0.5 * (v[i][j] + v[i][j + 1])


@pk.workunit
def sample(
    i: int,
    j: int,
    out: pk.View2D[pk.float],
    f: pk.View2D[pk.float],
    x: pk.View2D[pk.float],
    y: pk.View2D[pk.float],
    rows: int,
    columns: int,
):
    px: float = min(max(x[i][j], 0.0), rows - 1.001)
    py: float = min(max(y[i][j], 0.0), columns - 1.001)
    a: int = int(px)
    b: int = int(py)
    r: float = px - a
    t: float = py - b
    top: float = (1.0 - t) * f[a][b] + t * f[a][b + 1]
    low: float = (1.0 - t) * f[a + 1][b] + t * f[a + 1][b + 1]
    out[i][j] = (1.0 - r) * top + r * low


@pk.workunit
def fade(i: int, j: int, s: pk.View2D[pk.float], source: pk.View2D[pk.float], keep: float):
    s[i][j] = keep * s[i][j] + source[i][j]


@pk.workunit
def total(i: int, j: int, acc: pk.Acc[pk.double], x: pk.View2D[pk.float]):
    acc += x[i][j]


@dataclass
class State:
    n: int
    steps: int
    source: pk.View
    s: pk.View
    u: pk.View
    v: pk.View
    smoke: list = field(default_factory=list)


def setup(n: int) -> State:
    source, s = pk.View([n, n], pk.float), pk.View([n, n], pk.float)
    x = (np.arange(n) + 0.5) / n
    spot = (x[:, None] - 0.25) ** 2 + (x - 0.5) ** 2
    source.data[:] = 0.3 * np.exp(-spot / 0.01) * (1.0 + 0.3 * np.sin(40.0 * x))
    u, v = pk.View([n + 1, n], pk.float), pk.View([n, n + 1], pk.float)
    return State(n, 6 if n < 1_000 else 2, source, s, u, v)


def run(st: State) -> None:
    n, source, s, u, v = st.n, st.source, st.s, st.u, st.v
    cells, inner_u = pk.MDRangePolicy([0, 0], [n, n]), pk.MDRangePolicy([1, 0], [n, n])
    inner_v = pk.MDRangePolicy([0, 1], [n, n])
    all_u, all_v = pk.MDRangePolicy([0, 0], [n + 1, n]), pk.MDRangePolicy([0, 0], [n, n + 1])
    p, q, d, new_s = (pk.View([n, n], pk.float) for _ in range(4))
    new_u, new_v = pk.View([n + 1, n], pk.float), pk.View([n, n + 1], pk.float)
    x, y = pk.View([n, n], pk.float), pk.View([n, n], pk.float)
    pk.parallel_for(cells, copy, out=s, x=source)
    for policy, field_ in ((all_u, u), (all_v, v), (all_u, new_u), (all_v, new_v), (cells, p)):
        pk.parallel_for(policy, clear, out=field_)
    st.smoke = []
    for step in range(st.steps):
        dt = 0.8 + 0.05 * step
        pk.parallel_for(inner_u, rise, u=u, s=s, lift=1.5 * dt)
        pk.parallel_for(cells, divergence, d=d, u=u, v=v)
        for _ in range(SWEEPS):
            pk.parallel_for(cells, sweep, q=q, p=p, d=d, n=n)
            p, q = q, p
        pk.parallel_for(inner_u, push_u, u=u, p=p)
        pk.parallel_for(inner_v, push_v, v=v, p=p)
        pk.parallel_for(inner_u, trace_u, x=x, y=y, u=u, v=v, dt=dt)
        pk.parallel_for(inner_u, sample, out=new_u, f=u, x=x, y=y, rows=n + 1, columns=n)
        pk.parallel_for(inner_v, trace_v, x=x, y=y, u=u, v=v, dt=dt)
        pk.parallel_for(inner_v, sample, out=new_v, f=v, x=x, y=y, rows=n, columns=n + 1)
        pk.parallel_for(cells, trace_s, x=x, y=y, u=u, v=v, dt=dt)
        pk.parallel_for(cells, sample, out=new_s, f=s, x=x, y=y, rows=n, columns=n)
        u, new_u, v, new_v, s, new_s = new_u, u, new_v, v, new_s, s
        pk.parallel_for(cells, fade, s=s, source=source, keep=0.98)
        st.smoke.append(float(pk.parallel_reduce(cells, total, x=s)))
    st.s, st.u, st.v = s, u, v


def outputs(st: State) -> dict:
    views = {"s": st.s, "u": st.u, "v": st.v}
    return {k: np.array(x.data) for k, x in views.items()} | {"smoke": np.array(st.smoke)}


def check(st: State, n: int) -> None:
    source = np.array(st.source.data).astype(np.float64)
    s, u, v, p = source, np.zeros((n + 1, n)), np.zeros((n, n + 1)), np.zeros((n, n))

    def at(f, x, y):
        x = np.clip(x, 0.0, f.shape[0] - 1.001)
        y = np.clip(y, 0.0, f.shape[1] - 1.001)
        a, b = x.astype(int), y.astype(int)
        r, t = x - a, y - b
        top = (1 - t) * f[a, b] + t * f[a, b + 1]
        return (1 - r) * top + r * ((1 - t) * f[a + 1, b] + t * f[a + 1, b + 1])

    for step in range(st.steps):
        dt = 0.8 + 0.05 * step
        u[1:-1] += 0.75 * dt * (s[1:] + s[:-1])
        d = np.diff(u, axis=0) + np.diff(v, axis=1)
        for _ in range(SWEEPS):
            e = np.pad(p, 1, "edge")
            p = 0.25 * (e[:-2, 1:-1] + e[2:, 1:-1] + e[1:-1, :-2] + e[1:-1, 2:] - d)
        u[1:-1] -= np.diff(p, axis=0)
        v[:, 1:-1] -= np.diff(p, axis=1)
        uc, vc = 0.5 * (u[1:] + u[:-1]), 0.5 * (v[:, 1:] + v[:, :-1])
        i, j = np.mgrid[0:n, 0:n]
        new_u, new_v = np.zeros_like(u), np.zeros_like(v)
        new_u[1:-1] = at(u, i[1:] - dt * u[1:-1], j[1:] - dt * 0.5 * (vc[1:] + vc[:-1]))
        across = 0.5 * (uc[:, 1:] + uc[:, :-1])
        new_v[:, 1:-1] = at(v, i[:, 1:] - dt * across, j[:, 1:] - dt * v[:, 1:-1])
        s = 0.98 * at(s, i - dt * uc, j - dt * vc) + source
        u, v = new_u, new_v
        np.testing.assert_allclose(st.smoke[step], s.sum(), rtol=1e-4)
    np.testing.assert_allclose(st.s.data, s, rtol=1e-3, atol=1e-3)


if __name__ == "__main__":
    main(globals())
