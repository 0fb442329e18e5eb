# ruff: noqa: SIM108
"""The physics of clouds in columns of air: condensation, rain, radiation up and down, turbulence.

Views of (levels, columns); sweeps over the levels of a column are loops in a workunit.
"""

from dataclasses import dataclass
from math import exp, sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 40, "default": 5_000, "large": 80_000}
LEVELS, STEPS = 24, 3
DT, DZ, LATENT = 20.0, 250.0, 2490.0


@pk.workunit
def copy(k: int, i: int, to: pk.View2D[pk.double], source: pk.View2D[pk.double]):
    to[k][i] = source[k][i]


@pk.workunit
def saturation(k: int, i: int, qs, t, pressure):
    """Vapour that the air can hold."""
    es: pk.double = 611.2 * exp(17.67 * (t[k][i] - 273.15) / (t[k][i] - 29.65))
    qs[k][i] = 0.622 * es / (pressure[k] - 0.378 * es)


@pk.workunit
def condense(k: int, i: int, t, qv, qc, qs):
    slope: pk.double = qs[k][i] * 4302.645 / ((t[k][i] - 29.65) * (t[k][i] - 29.65))
    amount: pk.double = (qv[k][i] - qs[k][i]) / (1.0 + 2490.0 * slope)
    amount = max(amount, -qc[k][i])
    t[k][i] += 2490.0 * amount
    qv[k][i] -= amount
    qc[k][i] += amount


@pk.workunit
def make_rain(k: int, i: int, qc, qr, dt: float):
    born: pk.double = 0.001 * max(qc[k][i] - 0.0005, 0.0)
    swept: pk.double = 2.2 * qc[k][i] * sqrt(qr[k][i] * sqrt(sqrt(qr[k][i])) * qr[k][i])
    amount: pk.double = min(dt * (born + swept), qc[k][i])
    qc[k][i] -= amount
    qr[k][i] += amount


@pk.workunit
def evaporate(k: int, i: int, t, qv, qr, qs, dt: float):
    if qv[k][i] < qs[k][i] and qr[k][i] > 0.0:
        dry: pk.double = 1.0 - qv[k][i] / qs[k][i]
        amount: pk.double = min(dt * 0.003 * dry * sqrt(qr[k][i]), qr[k][i])
        t[k][i] -= 2490.0 * amount
        qv[k][i] += amount
        qr[k][i] -= amount


@pk.workunit
def fall_flux(k: int, i: int, f, qr, density):
    """Through the lower face of the level; drops fall faster in thin air."""
    speed: pk.double = 14.0 * sqrt(sqrt(density[k] * qr[k][i]) / density[k])
    f[k][i] = density[k] * qr[k][i] * min(speed, 9.0)


@pk.workunit
def settle(k: int, i: int, qr, f, density, levels: int, dt_dz: float):
    incoming: pk.double = 0.0
    if k < levels - 1:
        incoming = f[k + 1][i]
    qr[k][i] += dt_dz * (incoming - f[k][i]) / density[k]
    qr[k][i] = max(qr[k][i], 0.0)


@pk.workunit
def collect(i: int, ground, f, dt: float):
    ground[i] += dt * f[0][i]


@pk.workunit
def transmission(k: int, i: int, tr, qv, qc, density, dz: float):
    tr[k][i] = exp(-density[k] * dz * (0.02 * qv[k][i] + 60.0 * qc[k][i]))


@pk.workunit
def emission(k: int, i: int, b, t):
    b[k][i] = 0.0000000567 * t[k][i] * t[k][i] * t[k][i] * t[k][i]


@pk.workunit
def downward(i: int, down, tr, b, levels: int):
    """down[k] crosses the lower face of level k; nothing comes from space."""
    flux: pk.double = 0.0
    for m in range(levels):
        k: int = levels - 1 - m
        flux = flux * tr[k][i] + b[k][i] * (1.0 - tr[k][i])
        down[k][i] = flux


@pk.workunit
def upward(i: int, up, tr, b, surface, levels: int):
    flux: pk.double = 0.0000000567 * surface[i] * surface[i] * surface[i] * surface[i]
    for k in range(levels):
        flux = flux * tr[k][i] + b[k][i] * (1.0 - tr[k][i])
        up[k][i] = flux


@pk.workunit
def radiate(k: int, i: int, t, up, down, surface, density, levels: int, rate: float):
    """up[k] crosses the upper face of level k."""
    below: pk.double = 0.0
    above: pk.double = 0.0
    if k == 0:
        below = 0.0000000567 * surface[i] * surface[i] * surface[i] * surface[i]
    else:
        below = up[k - 1][i]
    if k < levels - 1:
        above = down[k + 1][i]
    t[k][i] += rate * (below - up[k][i] + above - down[k][i]) / density[k]


@pk.workunit
def mixing(k: int, i: int, kz, t, levels: int):
    """Of the upper face: strong where the air is unstable."""
    if k == levels - 1:
        kz[k][i] = 0.0
    else:
        lapse: pk.double = (t[k][i] - t[k + 1][i]) - 2.44
        kz[k][i] = 0.02 + 0.2 * max(lapse, 0.0) / (1.0 + abs(lapse))


@pk.workunit
def eliminate(i: int, c, d, q, kz, levels: int):
    """Implicit diffusion in the column: Thomas, forwards."""
    beta: pk.double = 1.0 + kz[0][i]
    c[0][i] = -kz[0][i] / beta
    d[0][i] = q[0][i] / beta
    for k in range(1, levels):
        beta = 1.0 + kz[k][i] + kz[k - 1][i] * (1.0 + c[k - 1][i])
        c[k][i] = -kz[k][i] / beta
        d[k][i] = (q[k][i] + kz[k - 1][i] * d[k - 1][i]) / beta


@pk.workunit
def substitute(i: int, q, c, d, levels: int):
    value: pk.double = d[levels - 1][i]
    q[levels - 1][i] = value
    for m in range(1, levels):
        k: int = levels - 1 - m
        value = d[k][i] - c[k][i] * value
        q[k][i] = value


@pk.workunit
def water_path(i: int, path, qc, density, levels: int, dz: float):
    total: pk.double = 0.0
    for k in range(levels):
        total += density[k] * dz * qc[k][i]
    path[i] = total


@dataclass
class State:
    n: int
    t0: pk.View
    qv0: pk.View
    qc0: pk.View
    qr0: pk.View
    pressure: pk.View
    density: pk.View
    surface: pk.View
    t: pk.View
    qv: pk.View
    qc: pk.View
    qr: pk.View
    ground: pk.View
    path: pk.View


def setup(n: int) -> State:
    rng = np.random.default_rng(31)
    first, last = ([pk.View([LEVELS, n], pk.double) for _ in range(4)] for _ in range(2))
    height = (np.arange(LEVELS) + 0.5) * DZ
    pressure, density = pk.View([LEVELS], pk.double), pk.View([LEVELS], pk.double)
    pressure.data[:] = 1e5 * np.exp(-height / 8000)
    density.data[:] = 1.2 * np.exp(-height / 9500)
    surface, ground, path = (pk.View([n], pk.double) for _ in range(3))
    surface.data[:] = 296 + 4 * rng.random(n)
    warm = 296 - 0.0065 * height[:, None] + 2 * rng.standard_normal((LEVELS, n))
    es = 611.2 * np.exp(17.67 * (warm - 273.15) / (warm - 29.65))
    moist = 0.6 + 0.5 * rng.random(n) + 0.05 * rng.random((LEVELS, n))
    first[0].data[:] = warm
    first[1].data[:] = moist * 0.622 * es / (np.array(pressure.data)[:, None] - 0.378 * es)
    first[2].data[:] = 0.002 * rng.random((LEVELS, n)) * (moist > 0.95)
    first[3].data[:] = 0.001 * rng.random((LEVELS, n)) * (moist > 1.0)
    return State(n, *first, pressure, density, surface, *last, ground, path)


def run(s: State) -> None:
    n, t, qv, qc, qr = s.n, s.t, s.qv, s.qc, s.qr
    air = pk.MDRangePolicy([0, 0], [LEVELS, n])
    qs, f, tr, b, up, down, kz, c, d = (pk.View([LEVELS, n], pk.double) for _ in range(9))
    for to, source in ((t, s.t0), (qv, s.qv0), (qc, s.qc0), (qr, s.qr0)):
        pk.parallel_for(air, copy, to=to, source=source)
    s.ground.data[:] = 0.0
    for _ in range(STEPS):
        for _ in range(2):
            pk.parallel_for(air, saturation, qs=qs, t=t, pressure=s.pressure)
            pk.parallel_for(air, condense, t=t, qv=qv, qc=qc, qs=qs)
        pk.parallel_for(air, make_rain, qc=qc, qr=qr, dt=DT)
        pk.parallel_for(air, evaporate, t=t, qv=qv, qr=qr, qs=qs, dt=DT)
        pk.parallel_for(air, fall_flux, f=f, qr=qr, density=s.density)
        pk.parallel_for(air, settle, qr=qr, f=f, density=s.density, levels=LEVELS, dt_dz=DT / DZ)
        pk.parallel_for(n, collect, ground=s.ground, f=f, dt=DT)
        pk.parallel_for(air, transmission, tr=tr, qv=qv, qc=qc, density=s.density, dz=DZ)
        pk.parallel_for(air, emission, b=b, t=t)
        pk.parallel_for(n, downward, down=down, tr=tr, b=b, levels=LEVELS)
        pk.parallel_for(n, upward, up=up, tr=tr, b=b, surface=s.surface, levels=LEVELS)
        pk.parallel_for(
            air,
            radiate,
            t=t,
            up=up,
            down=down,
            surface=s.surface,
            density=s.density,
            levels=LEVELS,
            rate=DT / DZ / 1005.0,
        )
        pk.parallel_for(air, mixing, kz=kz, t=t, levels=LEVELS)
        for q in (t, qv, qc):
            pk.parallel_for(n, eliminate, c=c, d=d, q=q, kz=kz, levels=LEVELS)
            pk.parallel_for(n, substitute, q=q, c=c, d=d, levels=LEVELS)
    pk.parallel_for(n, water_path, path=s.path, qc=qc, density=s.density, levels=LEVELS, dz=DZ)


def outputs(s: State) -> dict:
    names = ("t", "qv", "qc", "qr", "ground", "path")
    return {name: np.array(getattr(s, name).data) for name in names}


def check(s: State, n: int) -> None:
    t, qv, qc, qr = (np.array(v.data) for v in (s.t0, s.qv0, s.qc0, s.qr0))
    pressure, rho = np.array(s.pressure.data)[:, None], np.array(s.density.data)[:, None]
    glow, ground = 5.67e-8 * np.array(s.surface.data) ** 4, np.zeros(n)
    for _ in range(STEPS):
        for _ in range(2):
            es = 611.2 * np.exp(17.67 * (t - 273.15) / (t - 29.65))
            qs = 0.622 * es / (pressure - 0.378 * es)
            amount = (qv - qs) / (1 + LATENT * qs * 4302.645 / (t - 29.65) ** 2)
            amount = np.maximum(amount, -qc)
            t, qv, qc = t + LATENT * amount, qv - amount, qc + amount
        amount = 0.001 * np.maximum(qc - 0.0005, 0) + 2.2 * qc * qr**1.125
        amount = np.minimum(DT * amount, qc)
        qc, qr = qc - amount, qr + amount
        amount = np.minimum(DT * 0.003 * (1 - qv / qs) * np.sqrt(qr), qr)
        amount = np.where((qv < qs) & (qr > 0), amount, 0)
        t, qv, qr = t - LATENT * amount, qv + amount, qr - amount
        f = rho * qr * np.minimum(14 * np.sqrt(np.sqrt(rho * qr) / rho), 9)
        ground += DT * f[0]
        fall = np.concatenate([f[1:], np.zeros((1, n))]) - f
        qr = np.maximum(qr + DT / DZ * fall / rho, 0)
        tr, b = np.exp(-rho * DZ * (0.02 * qv + 60 * qc)), 5.67e-8 * t**4
        up, down = np.zeros((LEVELS + 1, n)), np.zeros((LEVELS + 1, n))
        up[0] = glow
        for k in range(LEVELS):
            up[k + 1] = up[k] * tr[k] + b[k] * (1 - tr[k])
        for k in reversed(range(LEVELS)):
            down[k] = down[k + 1] * tr[k] + b[k] * (1 - tr[k])
        t = t - DT / DZ / 1005 * (np.diff(up, axis=0) - np.diff(down, axis=0)) / rho
        lapse = t[:-1] - t[1:] - 2.44
        kz = 0.02 + 0.2 * np.maximum(lapse, 0) / (1 + abs(lapse))
        matrix = np.zeros((n, LEVELS, LEVELS))
        k = np.arange(LEVELS)
        matrix[:, k, k] = 1
        matrix[:, k[:-1], k[:-1]] += kz.T
        matrix[:, k[1:], k[1:]] += kz.T
        matrix[:, k[:-1], k[1:]] = matrix[:, k[1:], k[:-1]] = -kz.T
        t, qv, qc = np.linalg.solve(matrix, np.stack([t.T, qv.T, qc.T], axis=2)).transpose(2, 1, 0)
    np.testing.assert_allclose(s.t.data, t, rtol=1e-11)
    np.testing.assert_allclose(s.qv.data, qv, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(s.qc.data, qc, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(s.qr.data, qr, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(s.ground.data, ground, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(s.path.data, (rho * DZ * qc).sum(axis=0), rtol=1e-8, atol=1e-9)


if __name__ == "__main__":
    main(globals())
