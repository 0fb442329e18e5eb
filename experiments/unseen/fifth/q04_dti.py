"""Diffusion tensors of a brain scan: weighted least squares by Cholesky, eigenvalues, anisotropy."""

from dataclasses import dataclass
from math import acos, cos, log, sqrt

import numpy as np
import pykokkos as pk
from common import main, rnd

SIZES = {"small": 500, "default": 120_000, "large": 600_000}
SHOTS, UNKNOWN = 12, 7


@pk.workunit
def logarithm(i, logs, signal, shots):
    for k in range(shots):
        logs[i][k] = log(max(signal[i][k], 0.001))


@pk.workunit
def normal_matrix(i, a, signal, design, shots, unknown):
    for r in range(unknown):
        for c in range(r + 1):
            v = 0.0
            for k in range(shots):
                v += signal[i][k] * signal[i][k] * design[k][r] * design[k][c]
            a[i][r * (r + 1) // 2 + c] = v


@pk.workunit
def right_side(i, b, signal, logs, design, shots, unknown):
    for r in range(unknown):
        v = 0.0
        for k in range(shots):
            v += signal[i][k] * signal[i][k] * design[k][r] * logs[i][k]
        b[i][r] = v


@pk.workunit
def cholesky(i, a, unknown):
    """In place, the lower half row after row."""
    for r in range(unknown):
        for c in range(r + 1):
            v = a[i][r * (r + 1) // 2 + c]
            for k in range(c):
                v -= a[i][r * (r + 1) // 2 + k] * a[i][c * (c + 1) // 2 + k]
            if c == r:
                a[i][r * (r + 1) // 2 + c] = sqrt(max(v, 1e-30))
            else:
                a[i][r * (r + 1) // 2 + c] = v / a[i][c * (c + 1) // 2 + c]


@pk.workunit
def forward(i, b, a, unknown):
    for r in range(unknown):
        v = b[i][r]
        for k in range(r):
            v -= a[i][r * (r + 1) // 2 + k] * b[i][k]
        b[i][r] = v / a[i][r * (r + 1) // 2 + r]


@pk.workunit
def backward(i, b, a, unknown):
    for q in range(unknown):
        r = unknown - 1 - q
        v = b[i][r]
        for k in range(r + 1, unknown):
            v -= a[i][k * (k + 1) // 2 + r] * b[i][k]
        b[i][r] = v / a[i][r * (r + 1) // 2 + r]


@pk.workunit
def eigenvalues(i, w, t):
    """Of the symmetric tensor xx, yy, zz, xy, xz, yz in t, by Cardano."""
    q = (t[i][0] + t[i][1] + t[i][2]) / 3.0
    xx = t[i][0] - q
    yy = t[i][1] - q
    zz = t[i][2] - q
    off = t[i][3] * t[i][3] + t[i][4] * t[i][4] + t[i][5] * t[i][5]
    p = sqrt((xx * xx + yy * yy + zz * zz + 2.0 * off) / 6.0 + 1e-30)
    det = xx * (yy * zz - t[i][5] * t[i][5]) - t[i][3] * (t[i][3] * zz - t[i][5] * t[i][4])
    det += t[i][4] * (t[i][3] * t[i][5] - yy * t[i][4])
    angle = acos(max(-1.0, min(1.0, 0.5 * det / (p * p * p)))) / 3.0
    w[i][0] = q + 2.0 * p * cos(angle)
    w[i][2] = q + 2.0 * p * cos(angle + 2.0943951023931953)
    w[i][1] = 3.0 * q - w[i][0] - w[i][2]


@pk.workunit
def diffusivity(i, md, w):
    md[i] = (w[i][0] + w[i][1] + w[i][2]) / 3.0


@pk.workunit
def anisotropy(i, fa, w, md):
    a = w[i][0] - md[i]
    b = w[i][1] - md[i]
    c = w[i][2] - md[i]
    s = w[i][0] * w[i][0] + w[i][1] * w[i][1] + w[i][2] * w[i][2]
    fa[i] = sqrt(1.5 * (a * a + b * b + c * c) / (s + 1e-30))


@pk.workunit
def above(i, acc: pk.Acc[pk.int64], fa, level):
    if fa[i] > level:
        acc += 1


@pk.workunit
def inside_mean(i, acc, md, fa, level):
    if fa[i] > level:
        acc += md[i]


@dataclass
class State:
    n: int
    signal: pk.View
    design: pk.View
    fa: pk.View
    md: pk.View
    level: float = 0.0
    mean: float = 0.0


def scheme():
    """Gradient directions as rows of the design matrix, b = 1; the last shots have b = 0.1."""
    k = np.arange(SHOTS) + 0.5
    z = 1.0 - k / SHOTS
    phi = k * 2.399963229728653
    g = np.stack([np.sqrt(1 - z * z) * np.cos(phi), np.sqrt(1 - z * z) * np.sin(phi), z])
    b = np.where(np.arange(SHOTS) < 9, 1.0, 0.1)
    return np.stack(
        [
            -b * g[0] ** 2,
            -b * g[1] ** 2,
            -b * g[2] ** 2,
            -2 * b * g[0] * g[1],
            -2 * b * g[0] * g[2],
            -2 * b * g[1] * g[2],
            np.ones(SHOTS),
        ],
        axis=1,
    )


def scan(n):
    d = rnd(3 * n, 6).reshape(n, 3)
    t = np.zeros((n, 7))
    t[:, :3] = 0.3 + d
    t[:, 3] = 0.3 * (rnd(n, 7) - 0.5)
    t[:, 6] = 1.0
    noise = (rnd(n * SHOTS, 8) - 0.5).reshape(n, SHOTS)
    return np.exp(t @ scheme().T) * (1.0 + 0.05 * noise)


def setup(n):
    signal, design = pk.View([n, SHOTS], pk.double), pk.View([SHOTS, UNKNOWN], pk.double)
    signal.data[:] = scan(n)
    design.data[:] = scheme()
    return State(n, signal, design, pk.View([n], pk.double), pk.View([n], pk.double))


def run(s):
    n = s.n
    logs, a, b = (
        pk.View([n, SHOTS], pk.double),
        pk.View([n, 28], pk.double),
        pk.View([n, UNKNOWN], pk.double),
    )
    w = pk.View([n, 3], pk.double)
    pk.parallel_for(n, logarithm, logs=logs, signal=s.signal, shots=SHOTS)
    pk.parallel_for(
        n, normal_matrix, a=a, signal=s.signal, design=s.design, shots=SHOTS, unknown=UNKNOWN
    )
    pk.parallel_for(
        n,
        right_side,
        b=b,
        signal=s.signal,
        logs=logs,
        design=s.design,
        shots=SHOTS,
        unknown=UNKNOWN,
    )
    pk.parallel_for(n, cholesky, a=a, unknown=UNKNOWN)
    pk.parallel_for(n, forward, b=b, a=a, unknown=UNKNOWN)
    pk.parallel_for(n, backward, b=b, a=a, unknown=UNKNOWN)
    pk.parallel_for(n, eigenvalues, w=w, t=b)
    pk.parallel_for(n, diffusivity, md=s.md, w=w)
    pk.parallel_for(n, anisotropy, fa=s.fa, w=w, md=s.md)
    low, high = 0.0, 1.0
    for _ in range(6):  # the level that a third of the voxels exceed
        level = 0.5 * (low + high)
        if int(pk.parallel_reduce(n, above, fa=s.fa, level=level)) * 3 > n:
            low = level
        else:
            high = level
    s.level = low
    inside = pk.parallel_reduce(n, above, fa=s.fa, level=low)
    s.mean = float(pk.parallel_reduce(n, inside_mean, md=s.md, fa=s.fa, level=low)) / int(inside)


def outputs(s):
    return {"fa": np.array(s.fa.data), "md": np.array(s.md.data), "level": s.level, "mean": s.mean}


def check(s, size, runs):
    fa = np.asarray(s.fa.data)
    assert fa.min() >= 0.0 and fa.max() < 1.3 and 0.5 < s.mean < 1.2


if __name__ == "__main__":
    main(globals())
