"""P-values and quantiles of many gamma distributions: series or continued fraction, Newton's method.

Bodies diverge: each element needs another number of terms, of another expansion.
"""

from dataclasses import dataclass, field
from math import factorial

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 300, "default": 12_000, "large": 300_000}


@pk.workunit
def log_gamma(i: int, lg: pk.View1D[pk.double], a: pk.View1D[pk.double]):
    """Stirling's series, after a shift upwards."""
    z: float = a[i]
    shift: float = 1.0
    while z < 8.0:
        shift *= z
        z += 1.0
    r: float = 1.0 / (z * z)
    tail: float = (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r / 1680.0))) / z
    lg[i] = (z - 0.5) * pk.log(z) - z + 0.9189385332046727 + tail - pk.log(shift)


@pk.workunit
def front(
    i: int,
    f: pk.View1D[pk.double],
    a: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    lg: pk.View1D[pk.double],
):
    f[i] = pk.exp(a[i] * pk.log(x[i]) - x[i] - lg[i])


@pk.workunit
def probability(
    i: int,
    p: pk.View1D[pk.double],
    a: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    f: pk.View1D[pk.double],
):
    """Below a + 1 the series, above it Lentz's continued fraction."""
    if x[i] < a[i] + 1.0:
        term: float = 1.0 / a[i]
        sum: float = term
        k: float = a[i]
        while term > sum * 1.0e-15:
            k += 1.0
            term *= x[i] / k
            sum += term
        p[i] = sum * f[i]
    else:
        b: float = x[i] + 1.0 - a[i]
        c: float = 1.0e300
        d: float = 1.0 / b
        h: float = d
        delta: float = 0.0
        m: float = 0.0
        while abs(delta - 1.0) > 1.0e-15 and m < 200.0:
            m += 1.0
            an: float = -m * (m - a[i])
            b += 2.0
            d = 1.0 / (an * d + b)
            c = b + an / c
            delta = d * c
            h *= delta
        p[i] = 1.0 - h * f[i]


@pk.workunit
def guess(i: int, q: pk.View1D[pk.double], a: pk.View1D[pk.double], z: pk.View1D[pk.double]):
    """Wilson and Hilferty's."""
    t: float = 1.0 / (9.0 * a[i])
    w: float = 1.0 - t + z[i] * pk.sqrt(t)
    q[i] = max(a[i] * w * w * w, 0.02 * a[i])


@pk.workunit
def improve(
    i: int,
    q: pk.View1D[pk.double],
    p: pk.View1D[pk.double],
    f: pk.View1D[pk.double],
    level: pk.View1D[pk.double],
):
    """Newton's step, not below half; the density is f / q."""
    new: float = q[i] - (p[i] - level[i]) * q[i] / f[i]
    q[i] = max(new, 0.5 * q[i])


@pk.workunit
def error(i: int, acc: pk.Acc[pk.double], p: pk.View1D[pk.double], level: pk.View1D[pk.double]):
    acc += (p[i] - level[i]) * (p[i] - level[i])


@pk.workunit
def fisher(i: int, acc: pk.Acc[pk.double], p: pk.View1D[pk.double]):
    acc += -2.0 * pk.log(max(1.0 - p[i], 1.0e-300))


@dataclass
class State:
    n: int
    a: pk.View
    x: pk.View
    z: pk.View
    level: pk.View
    p: pk.View
    q: pk.View
    errors: list = field(default_factory=list)
    statistic: float = 0.0


def setup(n: int) -> State:
    rng = np.random.default_rng(1415)
    a, x, z, level, p, q = (pk.View([n], pk.double) for _ in range(6))
    a.data[:] = rng.integers(1, 40, n)
    x.data[:] = rng.gamma(a.data) * rng.uniform(0.6, 1.6, n)
    z.data[:] = rng.uniform(-1.6, 1.6, n)
    t = 1.0 / (1.0 + 0.2316419 * np.abs(z.data))
    poly = t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 - 1.821255978 * t)))
    poly += t**5 * 1.330274429
    tail = np.exp(-0.5 * z.data**2) / np.sqrt(2.0 * np.pi) * poly
    level.data[:] = np.where(z.data > 0, 1.0 - tail, tail)
    return State(n, a, x, z, level, p, q)


def run(s: State) -> None:
    n, a, p, q = s.n, s.a, s.p, s.q
    lg, f, own = (pk.View([n], pk.double) for _ in range(3))
    pk.parallel_for(n, log_gamma, lg=lg, a=a)
    pk.parallel_for(n, front, f=f, a=a, x=s.x, lg=lg)
    pk.parallel_for(n, probability, p=p, a=a, x=s.x, f=f)
    s.statistic = float(pk.parallel_reduce(n, fisher, p=p))
    pk.parallel_for(n, guess, q=q, a=a, z=s.z)
    s.errors, size = [], 1.0
    while size > 1e-20 * n and len(s.errors) < 6:
        pk.parallel_for(n, front, f=f, a=a, x=q, lg=lg)
        pk.parallel_for(n, probability, p=own, a=a, x=q, f=f)
        size = float(pk.parallel_reduce(n, error, p=own, level=s.level))
        pk.parallel_for(n, improve, q=q, p=own, f=f, level=s.level)
        s.errors.append(size)


def outputs(s: State) -> dict:
    return {
        "p": np.array(s.p.data),
        "q": np.array(s.q.data),
        "errors": np.array(s.errors),
        "statistic": np.array([s.statistic]),
    }


def check(s: State, n: int) -> None:
    def exact(x):
        """For whole a: one less Poisson's sum."""
        terms = np.array([x**k / float(factorial(k)) for k in range(40)])
        return 1.0 - np.exp(-x) * (terms * (np.arange(40)[:, None] < np.array(s.a.data))).sum(0)

    np.testing.assert_allclose(s.p.data, exact(np.array(s.x.data)), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(exact(np.array(s.q.data)), s.level.data, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(s.statistic, -2 * np.log(1 - np.array(s.p.data)).sum(), rtol=1e-9)


if __name__ == "__main__":
    main(globals())
