"""A bank of Kalman filters: every track has a state of 4 and a covariance of 4 x 4.

Constant velocity, position measured; gating by the Mahalanobis distance.
"""

from dataclasses import dataclass
import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_000, "default": 30_000, "large": 600_000}
STEPS, DT, NOISE, DRIVE, GATE = 3, 0.5, 0.2, 0.05, 9.0


@pk.workunit
def predict_state(
    t: int, x: pk.View2D[pk.double], f: pk.View2D[pk.double], y: pk.View2D[pk.double]
):
    for a in range(4):
        total: float = 0.0
        for b in range(4):
            total += f[a][b] * x[t][b]
        y[t][a] = total


@pk.workunit
def left_product(
    t: int, out: pk.View3D[pk.double], f: pk.View2D[pk.double], p: pk.View3D[pk.double]
):
    for a in range(4):
        for b in range(4):
            total: float = 0.0
            for c in range(4):
                total += f[a][c] * p[t][c][b]
            out[t][a][b] = total


@pk.workunit
def right_product(
    t: int,
    out: pk.View3D[pk.double],
    p: pk.View3D[pk.double],
    f: pk.View2D[pk.double],
    q: pk.View2D[pk.double],
):
    """p f' + q"""
    for a in range(4):
        for b in range(4):
            total: float = q[a][b]
            for c in range(4):
                total += p[t][a][c] * f[b][c]
            out[t][a][b] = total


@pk.workunit
def innovation(
    t: int, r: pk.View2D[pk.double], z: pk.View3D[pk.double], x: pk.View2D[pk.double], s: int
):
    for a in range(2):
        r[t][a] = z[s][t][a] - x[t][a]


@pk.workunit
def spread(t: int, cov: pk.View2D[pk.double], p: pk.View3D[pk.double], noise: float):
    """The innovation's covariance: xx, xy, yy."""
    cov[t][0] = p[t][0][0] + noise
    cov[t][1] = p[t][0][1]
    cov[t][2] = p[t][1][1] + noise


@pk.workunit
def determinant(t: int, det: pk.View1D[pk.double], cov: pk.View2D[pk.double]):
    det[t] = cov[t][0] * cov[t][2] - cov[t][1] * cov[t][1]


@pk.workunit
def invert(t: int, inv: pk.View2D[pk.double], cov: pk.View2D[pk.double], det: pk.View1D[pk.double]):
    inv[t][0] = cov[t][2] / det[t]
    inv[t][1] = -cov[t][1] / det[t]
    inv[t][2] = cov[t][0] / det[t]


@pk.workunit
def mahalanobis(
    t: int, d: pk.View1D[pk.double], r: pk.View2D[pk.double], inv: pk.View2D[pk.double]
):
    d[t] = (
        inv[t][0] * r[t][0] * r[t][0]
        + 2.0 * inv[t][1] * r[t][0] * r[t][1]
        + inv[t][2] * r[t][1] * r[t][1]
    )


@pk.workunit
def accept(t: int, ok: pk.View1D[pk.uint8], d: pk.View1D[pk.double], gate: float):
    ok[t] = 1 if d[t] < gate else 0


@pk.workunit
def gain(t: int, k: pk.View3D[pk.double], p: pk.View3D[pk.double], inv: pk.View2D[pk.double]):
    for a in range(4):
        k[t][a][0] = p[t][a][0] * inv[t][0] + p[t][a][1] * inv[t][1]
        k[t][a][1] = p[t][a][0] * inv[t][1] + p[t][a][1] * inv[t][2]


@pk.workunit
def correct(
    t: int,
    x: pk.View2D[pk.double],
    pred: pk.View2D[pk.double],
    k: pk.View3D[pk.double],
    r: pk.View2D[pk.double],
    ok: pk.View1D[pk.uint8],
):
    for a in range(4):
        x[t][a] = pred[t][a]
        if ok[t] == 1:
            x[t][a] += k[t][a][0] * r[t][0] + k[t][a][1] * r[t][1]


@pk.workunit
def shrink(
    t: int,
    p: pk.View3D[pk.double],
    pred: pk.View3D[pk.double],
    k: pk.View3D[pk.double],
    ok: pk.View1D[pk.uint8],
):
    for a in range(4):
        for b in range(4):
            p[t][a][b] = pred[t][a][b]
            if ok[t] == 1:
                p[t][a][b] -= k[t][a][0] * pred[t][0][b] + k[t][a][1] * pred[t][1][b]


@pk.workunit
def count(t: int, acc: pk.Acc[pk.int64], ok: pk.View1D[pk.uint8]):
    acc += ok[t]


@pk.workunit
def surprise(t: int, acc: pk.Acc[pk.double], d: pk.View1D[pk.double], ok: pk.View1D[pk.uint8]):
    if ok[t] == 1:
        acc += d[t]


@dataclass
class State:
    size: int
    x: pk.View
    p: pk.View
    z: pk.View
    f: pk.View
    q: pk.View
    accepted: int = 0
    nis: float = 0.0


def problem(n):
    rng = np.random.default_rng(5)
    x = rng.normal(0, 1, (n, 4))
    p = np.zeros((n, 4, 4)) + np.diag([1, 1, 0.5, 0.5]) * rng.uniform(0.5, 1.5, (n, 1, 1))
    z = (
        x[:, :2]
        + DT * np.arange(1, STEPS + 1)[:, None, None] * x[:, 2:]
        + NOISE * rng.standard_normal((STEPS, n, 2))
    )
    z[rng.random((STEPS, n)) < 0.03] += 8.0
    x = x + 0.5 * rng.normal(0, 1, (n, 4))
    f = np.eye(4) + DT * np.eye(4, k=2)
    q = DRIVE * np.array(
        [
            [DT**3 / 3, 0, DT**2 / 2, 0],
            [0, DT**3 / 3, 0, DT**2 / 2],
            [DT**2 / 2, 0, DT, 0],
            [0, DT**2 / 2, 0, DT],
        ]
    )
    return x, p, z, f, q


def setup(n):
    views = []
    for a in problem(n):
        v = pk.View(list(a.shape), pk.double)
        v.data[:] = a
        views.append(v)
    return State(n, *views)


def step(s, k):
    n = s.size
    xp, pp, fp = (
        pk.View([n, 4], pk.double),
        pk.View([n, 4, 4], pk.double),
        pk.View([n, 4, 4], pk.double),
    )
    r, cov, inv, kg = (
        pk.View([n, 2], pk.double),
        pk.View([n, 3], pk.double),
        pk.View([n, 3], pk.double),
        pk.View([n, 4, 2], pk.double),
    )
    det, d, ok = pk.View([n], pk.double), pk.View([n], pk.double), pk.View([n], pk.uint8)
    pk.parallel_for(n, predict_state, x=s.x, f=s.f, y=xp)
    pk.parallel_for(n, left_product, out=fp, f=s.f, p=s.p)
    pk.parallel_for(n, right_product, out=pp, p=fp, f=s.f, q=s.q)
    pk.parallel_for(n, innovation, r=r, z=s.z, x=xp, s=k)
    pk.parallel_for(n, spread, cov=cov, p=pp, noise=NOISE**2)
    pk.parallel_for(n, determinant, det=det, cov=cov)
    pk.parallel_for(n, invert, inv=inv, cov=cov, det=det)
    pk.parallel_for(n, mahalanobis, d=d, r=r, inv=inv)
    pk.parallel_for(n, accept, ok=ok, d=d, gate=GATE)
    pk.parallel_for(n, gain, k=kg, p=pp, inv=inv)
    pk.parallel_for(n, correct, x=s.x, pred=xp, k=kg, r=r, ok=ok)
    pk.parallel_for(n, shrink, p=s.p, pred=pp, k=kg, ok=ok)
    return pk.parallel_reduce(n, count, ok=ok), pk.parallel_reduce(n, surprise, d=d, ok=ok)


def run(s):
    results = [step(s, k) for k in range(STEPS)]
    s.accepted = sum(int(a) for a, _ in results)
    s.nis = sum(float(d) for _, d in results) / max(1, s.accepted)


def outputs(s):
    return {"x": np.array(s.x.data), "p": np.array(s.p.data), "accepted": s.accepted, "nis": s.nis}


def check(s):
    x, p, z, f, q = problem(s.size)
    accepted, nis = 0, 0.0
    for k in range(STEPS):
        x, p = x @ f.T, f @ p @ f.T + q
        r = z[k] - x[:, :2]
        inv = np.linalg.inv(p[:, :2, :2] + NOISE**2 * np.eye(2))
        d = np.einsum("ta,tab,tb->t", r, inv, r)
        ok = d < GATE
        kg = p[:, :, :2] @ inv
        x = x + ok[:, None] * np.einsum("tab,tb->ta", kg, r)
        p = p - ok[:, None, None] * (kg @ p[:, :2])
        accepted += ok.sum()
        nis += d[ok].sum()
    assert s.accepted == accepted
    np.testing.assert_allclose(s.x.data, x, rtol=0, atol=1e-10)
    np.testing.assert_allclose(s.p.data, p, rtol=0, atol=1e-10)
    np.testing.assert_allclose(s.nis, nis / accepted, rtol=1e-9)


if __name__ == "__main__":
    main(globals())
