"""Diffusion tensors of a scan: Jacobi's rotations on a batch of 3x3 matrices, logarithms, anisotropy."""

from dataclasses import dataclass
from math import log, sqrt
import numpy as np
from common import main, rnd, view
import pyfuser
import pykokkos as pk

SIZES = {"small": 1000, "default": 80_000, "large": 600_000}
SWEEPS = 3


@pk.workunit
def tensor(i, a, v, signal):
    """Dual-gradient scheme: six directions (0 1 1), (0 1 -1), ..."""
    xx: float = 0.5 * (
        signal[i][2] + signal[i][3] + signal[i][4] + signal[i][5] - signal[i][0] - signal[i][1]
    )
    yy: float = 0.5 * (
        signal[i][0] + signal[i][1] + signal[i][4] + signal[i][5] - signal[i][2] - signal[i][3]
    )
    zz: float = 0.5 * (
        signal[i][0] + signal[i][1] + signal[i][2] + signal[i][3] - signal[i][4] - signal[i][5]
    )
    a[i][0][0] = xx
    a[i][1][1] = yy
    a[i][2][2] = zz
    a[i][1][2] = 0.5 * (signal[i][0] - signal[i][1])
    a[i][2][1] = a[i][1][2]
    a[i][0][2] = 0.5 * (signal[i][2] - signal[i][3])
    a[i][2][0] = a[i][0][2]
    a[i][0][1] = 0.5 * (signal[i][4] - signal[i][5])
    a[i][1][0] = a[i][0][1]
    for r in range(3):
        for c in range(3):
            v[i][r][c] = 0.0
        v[i][r][r] = 1.0


@pk.workunit
def angle(i, cs, sn, a, p, q):
    cs[i] = 1.0
    sn[i] = 0.0
    if abs(a[i][p][q]) > 1e-14:
        theta: float = (a[i][q][q] - a[i][p][p]) / (2.0 * a[i][p][q])
        t: float = 1.0 / (abs(theta) + sqrt(theta * theta + 1.0))
        if theta < 0.0:
            t = -t
        cs[i] = 1.0 / sqrt(t * t + 1.0)
        sn[i] = t * cs[i]


@pk.workunit
def columns(i, m, cs, sn, p, q):
    for r in range(3):
        x: float = m[i][r][p]
        y: float = m[i][r][q]
        m[i][r][p] = cs[i] * x - sn[i] * y
        m[i][r][q] = sn[i] * x + cs[i] * y


@pk.workunit
def rows(i, m, cs, sn, p, q):
    for r in range(3):
        x: float = m[i][p][r]
        y: float = m[i][q][r]
        m[i][p][r] = cs[i] * x - sn[i] * y
        m[i][q][r] = sn[i] * x + cs[i] * y


@pk.workunit
def eigenvalues(i, lam, a, floor):
    for r in range(3):
        lam[i][r] = max(a[i][r][r], floor)


@pk.workunit
def anisotropy(i, fa, lam):
    mean: float = (lam[i][0] + lam[i][1] + lam[i][2]) / 3.0
    num: float = 0.0
    den: float = 0.0
    for r in range(3):
        num += (lam[i][r] - mean) * (lam[i][r] - mean)
        den += lam[i][r] * lam[i][r]
    fa[i] = sqrt(1.5 * num / den)


@pk.workunit
def logarithm(i, lam):
    for r in range(3):
        lam[i][r] = log(lam[i][r])


@pk.workunit
def compose(i, out, v, lam):
    for r in range(3):
        for c in range(3):
            x: float = 0.0
            for k in range(3):
                x += v[i][r][k] * lam[i][k] * v[i][c][k]
            out[i][r][c] = x


@pk.workunit
def total(i, acc, x):
    acc += x[i]


@dataclass
class State:
    n: int
    signal: pk.View
    out: pk.View
    fa: pk.View
    mean: float = 0.0


def setup(n):
    signal = 1.0 + 0.3 * rnd(6 * n, 3).reshape(n, 6)
    return State(n, view(signal), pk.View([n, 3, 3], pk.double), pk.View([n], pk.double))


def run(s):
    n = s.n
    a, v = pk.View([n, 3, 3], pk.double), pk.View([n, 3, 3], pk.double)
    cs, sn, lam = pk.View([n], pk.double), pk.View([n], pk.double), pk.View([n, 3], pk.double)
    pk.parallel_for(n, tensor, a=a, v=v, signal=s.signal)
    for _ in range(SWEEPS):
        for p, q in ((0, 1), (0, 2), (1, 2)):
            pk.parallel_for(n, angle, cs=cs, sn=sn, a=a, p=p, q=q)
            pk.parallel_for(n, columns, m=a, cs=cs, sn=sn, p=p, q=q)
            pk.parallel_for(n, rows, m=a, cs=cs, sn=sn, p=p, q=q)
            pk.parallel_for(n, columns, m=v, cs=cs, sn=sn, p=p, q=q)
    pk.parallel_for(n, eigenvalues, lam=lam, a=a, floor=1e-6)
    pk.parallel_for(n, anisotropy, fa=s.fa, lam=lam)
    pk.parallel_for(n, logarithm, lam=lam)
    pk.parallel_for(n, compose, out=s.out, v=v, lam=lam)
    s.mean = pk.parallel_reduce(n, total, x=s.fa) / n


def outputs(s):
    return {"out": np.array(s.out.data), "fa": np.array(s.fa.data), "mean": float(s.mean)}


if __name__ == "__main__":
    main(globals())
