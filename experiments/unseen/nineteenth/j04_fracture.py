"""A crack in a sheet under antiplane shear: a phase field of damage, minimised in turns.

Sweeps for displacement and for damage until both rest, then the load grows; energies each load.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 40, "default": 320, "large": 1100}
LOADS, ROUNDS = 3, 7
TOUGHNESS, WIDTH, RELAX = 0.02, 2.0, 0.8


@pk.workunit
def copy(i: int, j: int, to: pk.View2D[pk.double], source: pk.View2D[pk.double]):
    to[i][j] = source[i][j]


@pk.workunit
def clear(i: int, j: int, to: pk.View2D[pk.double]):
    to[i][j] = 0.0


@pk.workunit
def pull_edges(j: int, u: pk.View2D[pk.double], n: int, load: float):
    """The rows at both ends are held."""
    u[0][j] = -load
    u[n - 1][j] = load


@pk.workunit
def degrade(i: int, j: int, g: pk.View2D[pk.double], d: pk.View2D[pk.double]):
    g[i][j] = (1.0 - d[i][j]) * (1.0 - d[i][j]) + 0.001


@pk.workunit
def face_stiffness(i: int, j: int, k: pk.View2D[pk.double], g, di: int, dj: int):
    """Harmonic mean over the face before the cell; none at the free sides."""
    if i - di < 0 or j - dj < 0:
        k[i][j] = 0.0
    else:
        k[i][j] = 2.0 * g[i - di][j - dj] * g[i][j] / (g[i - di][j - dj] + g[i][j])


@pk.workunit
def relax_u(i: int, j: int, out, u, kx, ky, n: int, weight: float):
    left: pk.double = kx[i][j]
    right: pk.double = 0.0
    total: pk.double = left + ky[i][j] + ky[i + 1][j]
    force: pk.double = ky[i][j] * u[i - 1][j] + ky[i + 1][j] * u[i + 1][j]
    if j > 0:
        force += left * u[i][j - 1]
    if j < n - 1:
        right = kx[i][j + 1]
        force += right * u[i][j + 1]
    total += right
    out[i][j] = (1.0 - weight) * u[i][j] + weight * force / total


@pk.workunit
def strain_energy(i: int, j: int, psi, u, n: int):
    up: int = max(i - 1, 0)
    down: int = min(i + 1, n - 1)
    left: int = max(j - 1, 0)
    right: int = min(j + 1, n - 1)
    gy: pk.double = (u[down][j] - u[up][j]) / (down - up)
    gx: pk.double = (u[i][right] - u[i][left]) / (right - left)
    psi[i][j] = 0.5 * (gx * gx + gy * gy)


@pk.workunit
def remember(i: int, j: int, worst: pk.View2D[pk.double], psi: pk.View2D[pk.double]):
    """Cracks do not heal."""
    worst[i][j] = max(worst[i][j], psi[i][j])


@pk.workunit
def laplacian(i: int, j: int, out, d, n: int):
    up: int = max(i - 1, 0)
    down: int = min(i + 1, n - 1)
    left: int = max(j - 1, 0)
    right: int = min(j + 1, n - 1)
    out[i][j] = d[up][j] + d[down][j] + d[i][left] + d[i][right] - 4.0 * d[i][j]


@pk.workunit
def relax_d(i: int, j: int, d, lap, worst, toughness: float, width: float):
    source: pk.double = 2.0 * worst[i][j]
    residual: pk.double = source * (1.0 - d[i][j])
    residual += toughness * (width * lap[i][j] - d[i][j] / width)
    d[i][j] += residual / (source + toughness * (1.0 / width + 4.0 * width))


@pk.workunit
def clamp(i: int, j: int, d: pk.View2D[pk.double]):
    d[i][j] = min(max(d[i][j], 0.0), 1.0)


@pk.workunit
def notch(i: int, j: int, d: pk.View2D[pk.double], row: int):
    d[row + i][j] = 1.0


@pk.workunit
def change(i: int, j: int, acc: pk.Acc[pk.double], new, old):
    acc += (new[i][j] - old[i][j]) * (new[i][j] - old[i][j])


@pk.workunit
def elastic(i: int, j: int, acc: pk.Acc[pk.double], g, psi):
    acc += g[i][j] * psi[i][j]


@pk.workunit
def cracked(i: int, j: int, acc: pk.Acc[pk.double], d, lap, toughness: float, width: float):
    acc += 0.5 * toughness * d[i][j] * (d[i][j] / width - width * lap[i][j])


@pk.workunit
def reaction(j: int, acc: pk.Acc[pk.double], u, ky, i: int):
    acc += ky[i][j] * (u[i][j] - u[i - 1][j])


@dataclass
class State:
    n: int
    u0: pk.View
    d0: pk.View
    u: pk.View
    d: pk.View
    history: pk.View


def setup(n: int) -> State:
    rng = np.random.default_rng(8)
    u0, d0, u, d = (pk.View([n, n], pk.double) for _ in range(4))
    u0.data[:] = 0.0
    d0.data[:] = 0.02 * rng.random((n, n))
    return State(n, u0, d0, u, d, pk.View([LOADS, 6], pk.double))


def run(s: State) -> None:
    n, u, d = s.n, s.u, s.d
    cells = pk.MDRangePolicy([0, 0], [n, n])
    inner = pk.MDRangePolicy([1, 0], [n - 1, n])
    slit = pk.MDRangePolicy([0, 0], [2, n // 3])
    old_u, old_d, other, g, kx, ky, psi, worst, lap = (pk.View([n, n], pk.double) for _ in range(9))

    def sweep_u():
        pk.parallel_for(inner, relax_u, out=other, u=u, kx=kx, ky=ky, n=n, weight=RELAX)
        pk.parallel_for(inner, copy, to=u, source=other)

    def sweep_d():
        pk.parallel_for(cells, laplacian, out=lap, d=d, n=n)
        pk.parallel_for(cells, relax_d, d=d, lap=lap, worst=worst, toughness=TOUGHNESS, width=WIDTH)
        pk.parallel_for(cells, clamp, d=d)
        pk.parallel_for(slit, notch, d=d, row=n // 2 - 1)

    def moved(new, old):
        return sqrt(pk.parallel_reduce(cells, change, new=new, old=old)) / n

    pk.parallel_for(cells, copy, to=u, source=s.u0)
    pk.parallel_for(cells, copy, to=d, source=s.d0)
    pk.parallel_for(cells, clear, to=worst)
    for load in range(LOADS):
        pk.parallel_for(n, pull_edges, u=u, n=n, load=1.5 * (load + 1))
        rounds, du, dd = 0, 1.0, 1.0
        while rounds < ROUNDS and (du > 0.1 or dd > 0.02):
            pk.parallel_for(cells, copy, to=old_u, source=u)
            pk.parallel_for(cells, copy, to=old_d, source=d)
            pk.parallel_for(cells, degrade, g=g, d=d)
            pk.parallel_for(cells, face_stiffness, k=kx, g=g, di=0, dj=1)
            pk.parallel_for(cells, face_stiffness, k=ky, g=g, di=1, dj=0)
            sweep_u()
            sweep_u()
            pk.parallel_for(cells, strain_energy, psi=psi, u=u, n=n)
            pk.parallel_for(cells, remember, worst=worst, psi=psi)
            sweep_d()
            sweep_d()
            du, dd = moved(u, old_u) * sqrt(n), moved(d, old_d)
            rounds += 1
        pk.parallel_for(cells, degrade, g=g, d=d)
        pk.parallel_for(cells, laplacian, out=lap, d=d, n=n)
        bulk = float(pk.parallel_reduce(cells, elastic, g=g, psi=psi))
        surface = pk.parallel_reduce(cells, cracked, d=d, lap=lap, toughness=TOUGHNESS, width=WIDTH)
        force = float(pk.parallel_reduce(n, reaction, u=u, ky=ky, i=n - 1))
        row = (rounds, du, dd, bulk, float(surface), force)
        for column in range(6):
            s.history[load, column] = row[column]


def outputs(s: State) -> dict:
    views = {"u": s.u, "d": s.d, "history": s.history}
    return {name: np.array(view.data) for name, view in views.items()}


def check(s: State, n: int) -> None:
    u, d = np.array(s.u0.data), np.array(s.d0.data)
    worst = np.zeros((n, n))

    def laplacian(d):
        p = np.pad(d, 1, mode="edge")
        return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * d

    for load in range(LOADS):
        u[0], u[-1] = -1.5 * (load + 1), 1.5 * (load + 1)
        rounds, du, dd = 0, 1.0, 1.0
        while rounds < ROUNDS and (du > 0.1 or dd > 0.02):
            old_u, old_d = u.copy(), d.copy()
            g = (1 - d) ** 2 + 0.001
            kx = np.zeros((n, n + 1))
            kx[:, 1:-1] = 2 * g[:, 1:] * g[:, :-1] / (g[:, 1:] + g[:, :-1])
            ky = 2 * g[1:] * g[:-1] / (g[1:] + g[:-1])
            for _ in range(2):
                p = np.pad(u, ((0, 0), (1, 1)))
                left, right = kx[1:-1, :-1], kx[1:-1, 1:]
                top, low = ky[:-1], ky[1:]
                force = left * p[1:-1, :-2] + right * p[1:-1, 2:] + top * u[:-2] + low * u[2:]
                u[1:-1] = (1 - RELAX) * u[1:-1] + RELAX * force / (left + right + top + low)
            gy, gx = np.gradient(u)
            psi = 0.5 * (gx**2 + gy**2)
            worst = np.maximum(worst, psi)
            for _ in range(2):
                r = 2 * worst * (1 - d) + TOUGHNESS * (WIDTH * laplacian(d) - d / WIDTH)
                d = np.clip(d + r / (2 * worst + TOUGHNESS * (1 / WIDTH + 4 * WIDTH)), 0, 1)
                d[n // 2 - 1 : n // 2 + 1, : n // 3] = 1
            du = np.sqrt(((u - old_u) ** 2).sum() / n)
            dd = np.sqrt(((d - old_d) ** 2).mean())
            rounds += 1
        bulk = (((1 - d) ** 2 + 0.001) * psi).sum()
        surface = (0.5 * TOUGHNESS * d * (d / WIDTH - WIDTH * laplacian(d))).sum()
        force = (ky[-1] * (u[-1] - u[-2])).sum()
        expected = [rounds, du, dd, bulk, surface, force]
        np.testing.assert_allclose(s.history.data[load], expected, rtol=1e-9)
    np.testing.assert_allclose(s.u.data, u, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(s.d.data, d, rtol=1e-9, atol=1e-11)


if __name__ == "__main__":
    main(globals())
