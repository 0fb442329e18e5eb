"""Kalman filters of many tracks: 4 states, 2 measured, a gate, and the likelihood; small matrices."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk

from common import main, rnd

SIZES = {"small": 700, "default": 500_000, "large": 1_100_000}
STEPS = 4
DT, DRIFT, NOISE, GATE = 0.1, 0.05, 0.3, 9.0


@pk.workunit
def predict_state(i, x, dt):
    x[i][0] += dt * x[i][2]
    x[i][1] += dt * x[i][3]


@pk.workunit
def predict_cov(i, p, dt, drift):
    for k in range(4):
        p[i][0][k] += dt * p[i][2][k]
        p[i][1][k] += dt * p[i][3][k]
    for k in range(4):
        p[i][k][0] += dt * p[i][k][2]
        p[i][k][1] += dt * p[i][k][3]
    for k in range(4):
        p[i][k][k] += drift


@pk.workunit
def innovate(i, r, z, x, t):
    r[i][0] = z[t][i][0] - x[i][0]
    r[i][1] = z[t][i][1] - x[i][1]


@pk.workunit
def invert(i, s, det, p, noise):
    """The inverse of the innovation's covariance, symmetric."""
    a = p[i][0][0] + noise
    b = 0.5 * (p[i][0][1] + p[i][1][0])
    c = p[i][1][1] + noise
    d = a * c - b * b
    s[i][0] = c / d
    s[i][1] = -b / d
    s[i][2] = a / d
    det[i] = d


@pk.workunit
def distance(i, d2, r, s):
    d2[i] = r[i][0] * (s[i][0] * r[i][0] + 2.0 * s[i][1] * r[i][1]) + s[i][2] * r[i][1] * r[i][1]


@pk.workunit
def gains(i, g, p, s):
    for k in range(4):
        g[i][k][0] = p[i][k][0] * s[i][0] + p[i][k][1] * s[i][1]
        g[i][k][1] = p[i][k][0] * s[i][1] + p[i][k][1] * s[i][2]


@pk.workunit
def close_gate(i, g, d2, gate):
    """Measurements too far away are ignored."""
    if d2[i] > gate:
        for k in range(4):
            g[i][k][0] = 0.0
            g[i][k][1] = 0.0


@pk.workunit
def correct_state(i, x, g, r):
    for k in range(4):
        x[i][k] += g[i][k][0] * r[i][0] + g[i][k][1] * r[i][1]


@pk.workunit
def correct_cov(i, p, g):
    for c in range(4):
        a = p[i][0][c]
        b = p[i][1][c]
        for k in range(4):
            p[i][k][c] -= g[i][k][0] * a + g[i][k][1] * b


@pk.workunit
def likelihood(i, acc, d2, det):
    acc += 0.5 * (d2[i] + pk.log(det[i]))


@pk.workunit
def inside(i, acc: pk.Acc[pk.int64], d2, gate):
    if d2[i] <= gate:
        acc += 1


@dataclass
class State:
    size: int
    x: pk.View
    p: pk.View
    z: pk.View
    start: np.ndarray
    likelihood: float = 0.0
    hits: int = 0


def measurements(n):
    t = np.arange(STEPS).reshape(-1, 1, 1)
    return 0.3 * t * DT + 2.0 * rnd(STEPS * n * 2, 5).reshape(STEPS, n, 2)


def setup(n):
    x, p, z = (
        pk.View([n, 4], pk.double),
        pk.View([n, 4, 4], pk.double),
        pk.View([STEPS, n, 2], pk.double),
    )
    start = rnd(n * 4, 4).reshape(n, 4)
    x.data[:] = start
    p.data[:] = np.eye(4)
    z.data[:] = measurements(n)
    return State(n, x, p, z, start)


def run(st):
    n, x, p = st.size, st.x, st.p
    r, s, g = pk.View([n, 2], pk.double), pk.View([n, 3], pk.double), pk.View([n, 4, 2], pk.double)
    det, d2 = pk.View([n], pk.double), pk.View([n], pk.double)
    total, hits = [], []
    for t in range(STEPS):
        pk.parallel_for(n, predict_state, x=x, dt=DT)
        pk.parallel_for(n, predict_cov, p=p, dt=DT, drift=DRIFT)
        pk.parallel_for(n, innovate, r=r, z=st.z, x=x, t=t)
        pk.parallel_for(n, invert, s=s, det=det, p=p, noise=NOISE)
        pk.parallel_for(n, distance, d2=d2, r=r, s=s)
        pk.parallel_for(n, gains, g=g, p=p, s=s)
        pk.parallel_for(n, close_gate, g=g, d2=d2, gate=GATE)
        pk.parallel_for(n, correct_state, x=x, g=g, r=r)
        pk.parallel_for(n, correct_cov, p=p, g=g)
        total.append(pk.parallel_reduce(n, likelihood, d2=d2, det=det))
        hits.append(pk.parallel_reduce(n, inside, d2=d2, gate=GATE))
    st.likelihood = sum(float(v) for v in total)
    st.hits = sum(int(v) for v in hits)


def outputs(st):
    return {
        "x": np.array(st.x.data),
        "p": np.array(st.p.data),
        "l": st.likelihood,
        "h": float(st.hits),
    }


def check(st, size, runs):
    assert 0 < st.hits <= size * STEPS


if __name__ == "__main__":
    main(globals())
