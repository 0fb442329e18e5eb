"""Spinodal decomposition of a stirred alloy: composition and temperature, periodic borders."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main, rnd

SIZES = {"small": 48, "default": 900, "large": 2200}
STEPS = 10


@pk.workunit
def potential(i, mu, c, heat, n, kappa):
    y = i // n
    x = i % n
    left = i - 1 if x > 0 else i + n - 1
    right = i + 1 if x < n - 1 else i - n + 1
    up = i - n if y > 0 else i + n * (n - 1)
    down = i + n if y < n - 1 else i - n * (n - 1)
    lap = c[left] + c[right] + c[up] + c[down] - 4.0 * c[i]
    mu[i] = c[i] * c[i] * c[i] - (1.0 - heat[i]) * c[i] - kappa * lap


@pk.workunit
def laplacian(i, out, a, n):
    y = i // n
    x = i % n
    left = i - 1 if x > 0 else i + n - 1
    right = i + 1 if x < n - 1 else i - n + 1
    up = i - n if y > 0 else i + n * (n - 1)
    down = i + n if y < n - 1 else i - n * (n - 1)
    out[i] = a[left] + a[right] + a[up] + a[down] - 4.0 * a[i]


@pk.workunit
def stirring(i, out, a, u, v, n):
    """Upwind advection by the velocity (u, v)."""
    y = i // n
    x = i % n
    left = i - 1 if x > 0 else i + n - 1
    right = i + 1 if x < n - 1 else i - n + 1
    up = i - n if y > 0 else i + n * (n - 1)
    down = i + n if y < n - 1 else i - n * (n - 1)
    ax = a[i] - a[left] if u[i] > 0.0 else a[right] - a[i]
    ay = a[i] - a[up] if v[i] > 0.0 else a[down] - a[i]
    out[i] = u[i] * ax + v[i] * ay


@pk.workunit
def rate(i, out, lap, wind, mobility):
    out[i] = mobility * lap[i] - wind[i]


@pk.workunit
def release(i, dheat, dc, c, latent):
    dheat[i] += latent * c[i] * dc[i]


@pk.workunit
def advance(i, a, da, dt):
    a[i] += dt * da[i]


@pk.workunit
def energy(i, acc, c, mu):
    acc += 0.5 * c[i] * mu[i] - 0.25 * c[i] * c[i] * c[i] * c[i]


@pk.workunit
def add_up(i, acc, a):
    acc += a[i]


@dataclass
class State:
    n: int
    c: pk.View
    heat: pk.View
    u: pk.View
    v: pk.View
    dt: float = 0.02
    energy: float = 1e300
    mass: float = 0.0


def setup(n):
    c, heat, u, v = (pk.View([n * n], pk.double) for _ in range(4))
    c.data[:] = 0.2 * (rnd(n * n, 2) - 0.5) + 0.1
    heat.data[:] = 0.1 * rnd(n * n, 3)
    y, x = np.mgrid[0:n, 0:n] * (2 * np.pi / n)
    u.data[:] = (0.5 * np.sin(x) * np.cos(y)).ravel()
    v.data[:] = (-0.5 * np.cos(x) * np.sin(y)).ravel()
    return State(n, c, heat, u, v)


def run(s):
    n = s.n
    m = n * n
    mu, lap, wind, dc, dheat = (pk.View([m], pk.double) for _ in range(5))
    for step in range(STEPS):
        pk.parallel_for(m, potential, mu=mu, c=s.c, heat=s.heat, n=n, kappa=0.6)
        pk.parallel_for(m, laplacian, out=lap, a=mu, n=n)
        pk.parallel_for(m, stirring, out=wind, a=s.c, u=s.u, v=s.v, n=n)
        pk.parallel_for(m, rate, out=dc, lap=lap, wind=wind, mobility=1.0)
        pk.parallel_for(m, laplacian, out=lap, a=s.heat, n=n)
        pk.parallel_for(m, stirring, out=wind, a=s.heat, u=s.u, v=s.v, n=n)
        pk.parallel_for(m, rate, out=dheat, lap=lap, wind=wind, mobility=0.8)
        pk.parallel_for(m, release, dheat=dheat, dc=dc, c=s.c, latent=0.3)
        pk.parallel_for(m, advance, a=s.c, da=dc, dt=s.dt)
        pk.parallel_for(m, advance, a=s.heat, da=dheat, dt=s.dt)
        if step % 5 == 4:
            now = float(pk.parallel_reduce(m, energy, c=s.c, mu=mu)) / m
            s.dt = min(0.03, s.dt * 1.05) if now < s.energy else s.dt * 0.7
            s.energy = now
    s.mass = float(pk.parallel_reduce(m, add_up, a=s.c)) / m


def outputs(s):
    return {
        "c": np.array(s.c.data),
        "heat": np.array(s.heat.data),
        "dt": s.dt,
        "energy": s.energy,
        "mass": s.mass,
    }


def check(s, size, runs):
    assert np.isfinite(s.energy) and abs(s.mass) < 1.0


if __name__ == "__main__":
    main(globals())
