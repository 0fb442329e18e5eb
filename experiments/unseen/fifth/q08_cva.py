"""Credit valuation adjustment of a swap: Monte-Carlo of a rate and a hazard, exposure a quarter."""

from dataclasses import dataclass
from math import cos, exp, log, sin, sqrt

import numpy as np
import pykokkos as pk
from common import main, rnd

SIZES = {"small": 2000, "default": 150_000, "large": 1_200_000}
STEPS, DT = 8, 0.25
SPEED, LEVEL, SIGMA = 0.3, 0.03, 0.012
KAPPA, THETA, XI, RHO = 0.5, 0.02, 0.08, -0.4


@pk.workunit
def begin(i, r, hazard, discount, survival):
    r[i] = 0.025
    hazard[i] = 0.015
    discount[i] = 1.0
    survival[i] = 1.0


@pk.workunit
def uniform(i, u, seed):
    """xorshift64"""
    s = seed[i]
    s ^= s << 13
    s ^= s >> 7
    s ^= s << 17
    seed[i] = s
    u[i] = ((s >> 12) + 0.5) * 2.220446049250313e-16


@pk.workunit
def gauss(i, z1, z2, u1, u2):
    a = sqrt(-2.0 * log(u1[i]))
    z1[i] = a * cos(6.283185307179586 * u2[i])
    z2[i] = a * sin(6.283185307179586 * u2[i])


@pk.workunit
def correlate(i, z2, z1, rho):
    z2[i] = rho * z1[i] + sqrt(1.0 - rho * rho) * z2[i]


@pk.workunit
def decay(i, factor, rate, dt):
    factor[i] *= exp(-rate[i] * dt)


@pk.workunit
def vasicek(i, r, z, speed, level, sigma, dt):
    r[i] += speed * (level - r[i]) * dt + sigma * sqrt(dt) * z[i]


@pk.workunit
def cir(i, hazard, z, kappa, theta, xi, dt):
    """Full truncation."""
    h = max(hazard[i], 0.0)
    hazard[i] += kappa * (theta - h) * dt + xi * sqrt(h * dt) * z[i]


@pk.workunit
def swap_value(i, value, r, a, b, step, steps):
    """Pays the fixed rate; bonds by Vasicek's formula."""
    v = 1.0
    for k in range(steps - step):
        bond = a[k] * exp(-b[k] * r[i])
        v -= 0.0072 * bond
        if k == steps - step - 1:
            v -= bond
    value[i] = v


@pk.workunit
def expected_exposure(i, acc, value, discount):
    acc += max(value[i], 0.0) * discount[i]


@pk.workunit
def loss(i, acc, value, discount, survival, hazard, dt):
    acc += max(value[i], 0.0) * discount[i] * survival[i] * max(hazard[i], 0.0) * dt


@dataclass
class State:
    n: int
    seed: pk.View
    a: pk.View
    b: pk.View
    exposure: list
    cva: float = 0.0


def bonds():
    t = DT * (1 + np.arange(STEPS))
    b = (1 - np.exp(-SPEED * t)) / SPEED
    a = np.exp((LEVEL - SIGMA**2 / (2 * SPEED**2)) * (b - t) - SIGMA**2 * b * b / (4 * SPEED))
    return a, b


def setup(n):
    seed, a, b = pk.View([n], pk.uint64), pk.View([STEPS], pk.double), pk.View([STEPS], pk.double)
    seed.data[:] = (rnd(n, 15) * 2.0**53).astype(np.uint64) + np.uint64(1)
    a.data[:], b.data[:] = bonds()
    return State(n, seed, a, b, [0.0] * STEPS)


def run(s):
    n = s.n
    r, hazard, discount, survival, u1, u2, z1, z2, value = (
        pk.View([n], pk.double) for _ in range(9)
    )
    pk.parallel_for(n, begin, r=r, hazard=hazard, discount=discount, survival=survival)
    exposures, losses = [], []
    for step in range(STEPS):
        pk.parallel_for(n, uniform, u=u1, seed=s.seed)
        pk.parallel_for(n, uniform, u=u2, seed=s.seed)
        pk.parallel_for(n, gauss, z1=z1, z2=z2, u1=u1, u2=u2)
        pk.parallel_for(n, correlate, z2=z2, z1=z1, rho=RHO)
        pk.parallel_for(n, decay, factor=discount, rate=r, dt=DT)
        pk.parallel_for(n, decay, factor=survival, rate=hazard, dt=DT)
        pk.parallel_for(n, vasicek, r=r, z=z1, speed=SPEED, level=LEVEL, sigma=SIGMA, dt=DT)
        pk.parallel_for(n, cir, hazard=hazard, z=z2, kappa=KAPPA, theta=THETA, xi=XI, dt=DT)
        pk.parallel_for(n, swap_value, value=value, r=r, a=s.a, b=s.b, step=step + 1, steps=STEPS)
        exposures.append(pk.parallel_reduce(n, expected_exposure, value=value, discount=discount))
        losses.append(
            pk.parallel_reduce(
                n, loss, value=value, discount=discount, survival=survival, hazard=hazard, dt=DT
            )
        )
    s.exposure = [float(e) / n for e in exposures]
    s.cva = 0.6 * sum(float(v) for v in losses) / n


def outputs(s):
    return {
        "exposure": np.array(s.exposure),
        "cva": s.cva,
        "seed": (np.array(s.seed.data) >> np.uint64(40)) * 2.0**-24,
    }


def check(s, size, runs):
    assert 0.0 < s.cva < 0.01, s.cva


if __name__ == "__main__":
    main(globals())
