# ruff: noqa: B905
"""One layer of an ocean between coasts: finite volumes with a land mask, Coriolis force and a tracer.

Rusanov fluxes, walls where a face touches land, wind by row, quadratic drag.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 32, "default": 320, "large": 1600}
STEPS = 3
G = 9.81


@pk.workunit
def copy(i: int, j: int, to: pk.View2D[pk.double], source: pk.View2D[pk.double]):
    to[i][j] = source[i][j]


@pk.workunit
def per_depth(i: int, j: int, out, content, h, wet):
    """Velocity from momentum, concentration from content."""
    if wet[i][j] == 1:
        out[i][j] = content[i][j] / h[i][j]
    else:
        out[i][j] = 0.0


@pk.workunit
def signal_speed(i: int, j: int, c, u, v, h):
    c[i][j] = max(abs(u[i][j]), abs(v[i][j])) + sqrt(G * h[i][j])


@pk.workunit
def mass_flux(i: int, j: int, f, m, h, c, wet, di: int, dj: int):
    if wet[i - di][j - dj] == 1 and wet[i][j] == 1:
        fastest: pk.double = max(c[i - di][j - dj], c[i][j])
        jump: pk.double = h[i][j] - h[i - di][j - dj]
        f[i][j] = 0.5 * (m[i - di][j - dj] + m[i][j]) - 0.5 * fastest * jump
    else:
        f[i][j] = 0.0


@pk.workunit
def normal_flux(i: int, j: int, f, m, u, h, c, wet, di: int, dj: int):
    """Of the momentum across the face: at a coast only the pressure of the water."""
    left: int = wet[i - di][j - dj]
    right: int = wet[i][j]
    h_left: pk.double = h[i - di][j - dj]
    h_right: pk.double = h[i][j]
    if left == 1 and right == 1:
        f_left: pk.double = m[i - di][j - dj] * u[i - di][j - dj] + 0.5 * G * h_left * h_left
        f_right: pk.double = m[i][j] * u[i][j] + 0.5 * G * h_right * h_right
        fastest: pk.double = max(c[i - di][j - dj], c[i][j])
        f[i][j] = 0.5 * (f_left + f_right) - 0.5 * fastest * (m[i][j] - m[i - di][j - dj])
    elif left == 1:
        f[i][j] = 0.5 * G * h_left * h_left
    elif right == 1:
        f[i][j] = 0.5 * G * h_right * h_right
    else:
        f[i][j] = 0.0


@pk.workunit
def carried_flux(i: int, j: int, f, m, u, c, wet, di: int, dj: int):
    """Of the momentum along the face."""
    if wet[i - di][j - dj] == 1 and wet[i][j] == 1:
        fastest: pk.double = max(c[i - di][j - dj], c[i][j])
        both: pk.double = m[i - di][j - dj] * u[i - di][j - dj] + m[i][j] * u[i][j]
        f[i][j] = 0.5 * both - 0.5 * fastest * (m[i][j] - m[i - di][j - dj])
    else:
        f[i][j] = 0.0


@pk.workunit
def tracer_flux(i: int, j: int, f, mass, tracer, di: int, dj: int):
    if mass[i][j] > 0.0:
        f[i][j] = mass[i][j] * tracer[i - di][j - dj]
    else:
        f[i][j] = mass[i][j] * tracer[i][j]


@pk.workunit
def divergence(i: int, j: int, q, fx, fy, wet, k: float):
    if wet[i][j] == 1:
        q[i][j] -= k * (fx[i + 1][j] - fx[i][j] + fy[i][j + 1] - fy[i][j])


@pk.workunit
def wind(i: int, j: int, hu, stress, wet, dt: float):
    if wet[i][j] == 1:
        hu[i][j] += dt * stress[i]


@pk.workunit
def coriolis(i: int, j: int, hu, hv, cosine, sine):
    east: pk.double = hu[i][j]
    hu[i][j] = cosine[i] * east + sine[i] * hv[i][j]
    hv[i][j] = cosine[i] * hv[i][j] - sine[i] * east


@pk.workunit
def drag(i: int, j: int, hu, hv, h, wet, strength: float):
    if wet[i][j] == 1:
        momentum: pk.double = sqrt(hu[i][j] * hu[i][j] + hv[i][j] * hv[i][j])
        slower: pk.double = 1.0 + strength * momentum / (h[i][j] * h[i][j])
        hu[i][j] /= slower
        hv[i][j] /= slower


@pk.workunit
def energy(i: int, j: int, acc: pk.Acc[pk.double], hu, hv, h, wet):
    if wet[i][j] == 1:
        acc += 0.5 * (hu[i][j] * hu[i][j] + hv[i][j] * hv[i][j]) / h[i][j]
        acc += 0.5 * G * h[i][j] * h[i][j]


@pk.workunit
def total(i: int, j: int, acc: pk.Acc[pk.double], q):
    acc += q[i][j]


@dataclass
class State:
    n: int
    k: float
    dt: float
    friction: float
    h0: pk.View
    hu0: pk.View
    hv0: pk.View
    ht0: pk.View
    wet: pk.View
    stress: pk.View
    cosine: pk.View
    sine: pk.View
    h: pk.View
    hu: pk.View
    hv: pk.View
    ht: pk.View
    history: pk.View


def setup(n: int) -> State:
    rng = np.random.default_rng(11)
    y, x = np.mgrid[0:n, 0:n] / n
    coast = 0.35 + 0.08 * np.sin(9 * x) + 0.06 * np.cos(14 * y)
    sea = ((x - 0.5) ** 2 + (y - 0.5) ** 2 < coast**2 * 1.4) & (
        (x - 0.55) ** 2 + (y - 0.4) ** 2 > 0.004
    )
    sea[[0, -1]] = sea[:, [0, -1]] = False
    wet = pk.View([n, n], pk.uint8)
    wet.data[:] = sea
    depth = 2 + 0.3 * np.exp(-60 * ((x - 0.4) ** 2 + (y - 0.6) ** 2)) + 0.01 * rng.random((n, n))
    first = [depth, depth * 0.2 * np.sin(6 * y), depth * 0.2 * np.cos(5 * x), depth * (x > 0.5)]
    start = [pk.View([n, n], pk.double) for _ in range(4)]
    for view, values in zip(start, first):
        view.data[:] = np.where(sea, values, 0.0)
    dt, rows = 0.05, np.arange(n) / n
    stress, cosine, sine = (pk.View([n], pk.double) for _ in range(3))
    stress.data[:] = -0.1 * np.cos(np.pi * rows)
    cosine.data[:], sine.data[:] = np.cos(dt * (0.5 + rows)), np.sin(dt * (0.5 + rows))
    last = [pk.View([n, n], pk.double) for _ in range(4)]
    history = pk.View([STEPS, 3], pk.double)
    return State(n, 0.05, dt, 0.003 * dt, *start, wet, stress, cosine, sine, *last, history)


def run(s: State) -> None:
    n, wet, h, hu, hv, ht = s.n, s.wet, s.h, s.hu, s.hv, s.ht
    cells = pk.MDRangePolicy([0, 0], [n, n])
    faces = pk.MDRangePolicy([1, 1], [n, n])
    inner = pk.MDRangePolicy([1, 1], [n - 1, n - 1])
    for to, source in ((h, s.h0), (hu, s.hu0), (hv, s.hv0), (ht, s.ht0)):
        pk.parallel_for(cells, copy, to=to, source=source)
    u, v, t, c, mx, my, px, py, qx, qy, tx, ty = (pk.View([n, n], pk.double) for _ in range(12))
    for step in range(STEPS):
        for out, content in ((u, hu), (v, hv), (t, ht)):
            pk.parallel_for(cells, per_depth, out=out, content=content, h=h, wet=wet)
        pk.parallel_for(cells, signal_speed, c=c, u=u, v=v, h=h)
        pk.parallel_for(faces, mass_flux, f=mx, m=hu, h=h, c=c, wet=wet, di=0, dj=1)
        pk.parallel_for(faces, mass_flux, f=my, m=hv, h=h, c=c, wet=wet, di=1, dj=0)
        pk.parallel_for(faces, normal_flux, f=px, m=hu, u=u, h=h, c=c, wet=wet, di=0, dj=1)
        pk.parallel_for(faces, carried_flux, f=py, m=hu, u=v, c=c, wet=wet, di=1, dj=0)
        pk.parallel_for(faces, carried_flux, f=qx, m=hv, u=u, c=c, wet=wet, di=0, dj=1)
        pk.parallel_for(faces, normal_flux, f=qy, m=hv, u=v, h=h, c=c, wet=wet, di=1, dj=0)
        pk.parallel_for(faces, tracer_flux, f=tx, mass=mx, tracer=t, di=0, dj=1)
        pk.parallel_for(faces, tracer_flux, f=ty, mass=my, tracer=t, di=1, dj=0)
        for q, across, along in ((h, my, mx), (hu, py, px), (hv, qy, qx), (ht, ty, tx)):
            pk.parallel_for(inner, divergence, q=q, fx=across, fy=along, wet=wet, k=s.k)
        pk.parallel_for(inner, wind, hu=hu, stress=s.stress, wet=wet, dt=s.dt)
        pk.parallel_for(inner, coriolis, hu=hu, hv=hv, cosine=s.cosine, sine=s.sine)
        pk.parallel_for(inner, drag, hu=hu, hv=hv, h=h, wet=wet, strength=s.friction)
        s.history[step, 0] = float(pk.parallel_reduce(inner, energy, hu=hu, hv=hv, h=h, wet=wet))
        s.history[step, 1] = float(pk.parallel_reduce(inner, total, q=h))
        s.history[step, 2] = float(pk.parallel_reduce(inner, total, q=ht))


def outputs(s: State) -> dict:
    views = {"h": s.h, "hu": s.hu, "hv": s.hv, "ht": s.ht, "history": s.history}
    return {name: np.array(view.data) for name, view in views.items()}


def check(s: State, n: int) -> None:
    wet = np.array(s.wet.data) == 1
    h, hu, hv, ht = (np.array(v.data) for v in (s.h0, s.hu0, s.hv0, s.ht0))
    deep = np.where(wet, h, 1.0)

    def fluxes(axis, m, u, across):
        lo, hi = [slice(None)] * 2, [slice(None)] * 2
        lo[axis], hi[axis] = slice(0, -1), slice(1, None)
        lo, hi = tuple(lo), tuple(hi)
        both, fastest = wet[lo] & wet[hi], np.maximum(c[lo], c[hi])

        def rusanov(f, q):
            return np.where(both, 0.5 * (f[lo] + f[hi]) - 0.5 * fastest * (q[hi] - q[lo]), 0.0)

        mass = rusanov(m, h)
        press = 0.5 * G * h * h
        normal = np.where(both, rusanov(m * u + press, m), np.where(wet[lo], press[lo], press[hi]))
        return mass, normal, rusanov(across * u, across), mass * np.where(mass > 0, t[lo], t[hi])

    for step in range(STEPS):
        u, v, t = hu / deep, hv / deep, ht / deep
        c = np.maximum(abs(u), abs(v)) + np.sqrt(G * h)
        mx, px, qx, tx = fluxes(1, hu, u, hv)
        my, qy, py, ty = fluxes(0, hv, v, hu)
        for q, along, across in ((h, mx, my), (hu, px, py), (hv, qx, qy), (ht, tx, ty)):
            change = np.diff(along, axis=1)[1:-1] + np.diff(across, axis=0)[:, 1:-1]
            q[1:-1, 1:-1] -= np.where(wet[1:-1, 1:-1], s.k * change, 0.0)
        hu += np.where(wet, s.dt * np.array(s.stress.data)[:, None], 0.0)
        cosine, sine = np.array(s.cosine.data)[:, None], np.array(s.sine.data)[:, None]
        hu, hv = cosine * hu + sine * hv, cosine * hv - sine * hu
        deep = np.where(wet, h, 1.0)
        slower = 1 + s.friction * np.hypot(hu, hv) / deep**2
        hu, hv = hu / slower, hv / slower
        e = (0.5 * (hu**2 + hv**2) / deep + 0.5 * G * h * h).sum()
        np.testing.assert_allclose(s.history.data[step], [e, h.sum(), ht.sum()], rtol=1e-10)
    for view, expected in ((s.h, h), (s.hu, hu), (s.hv, hv), (s.ht, ht)):
        np.testing.assert_allclose(view.data, expected, rtol=1e-9, atol=1e-11)


if __name__ == "__main__":
    main(globals())
