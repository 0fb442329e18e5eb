"""FDTD: all three fields in one pass over the rows a step."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.fdtd import COURANT, STEPS, current, initial


def setup(size: int) -> State:
    """The fields, and what does not change."""
    ez, rate, keep = initial(size)
    hx, hy = np.zeros((size, size - 1)), np.zeros((size - 1, size))
    return State(ez=ez, hx=hx, hy=hy, rate=rate, keep=keep, time=0, energy=np.zeros(1))


def outputs(s: State) -> Outputs:
    """Read the fields and the energy."""
    return {"ez": s.ez, "hx": s.hx, "hy": s.hy, "energy": float(s.energy[0])}


def floor(size: int) -> int:
    """A step reads and writes three fields, and reads the rates; the sum joins the last one."""
    return 56 * STEPS * size * size


def cpp(build):
    step = build("fdtd", COURANT=COURANT)
    measure = build("fdtd_energy", COURANT=COURANT)

    def run(s: State) -> None:
        n = len(s.ez)
        for _ in range(STEPS):
            s.time += 1
            step(n, s.ez, s.hx, s.hy, s.rate, s.keep, n // 4, n // 3, current(s.time))
        measure(n, s.ez, s.hx, s.hy, s.rate, s.energy)

    return run


def numba(njit):
    from numba import get_num_threads, prange

    @njit(parallel=False)  # a part of the next
    def update_hy(i, ez, hy, keep):
        for j in range(ez.shape[1]):
            hy[i, j] = (hy[i, j] + COURANT * (ez[i + 1, j] - ez[i, j])) * (keep[i] * keep[j])

    @njit
    def step(ez, hx, hy, rate, keep, parts, added):
        n = len(ez)
        for part in prange(parts - 1):
            update_hy(n * (part + 1) // parts - 1, ez, hy, keep)
        for part in prange(parts):
            begin, end = n * part // parts, n * (part + 1) // parts
            for i in range(begin, end):
                for j in range(n - 1):
                    h = hx[i, j] - COURANT * (ez[i, j + 1] - ez[i, j])
                    hx[i, j] = h * (keep[i] * keep[j])
                if i < end - 1:
                    update_hy(i, ez, hy, keep)
                if 0 < i < n - 1:
                    for j in range(1, n - 1):
                        curl = hy[i, j] - hy[i - 1, j] - hx[i, j] + hx[i, j - 1]
                        ez[i, j] = (ez[i, j] + rate[i, j] * curl) * (keep[i] * keep[j])
        ez[n // 4, n // 3] += added

    @njit
    def measure(ez, hx, hy, rate):
        total = 0.0
        for i in prange(1, len(ez) - 1):
            for j in range(1, len(ez) - 1):
                electric = COURANT / rate[i, j] * ez[i, j] * ez[i, j]
                total += electric + hx[i, j] * hx[i, j] + hy[i, j] * hy[i, j]
        return 0.5 * total

    def run(s: State) -> None:
        parts = min(get_num_threads(), len(s.ez) // 2)
        for _ in range(STEPS):
            s.time += 1
            step(s.ez, s.hx, s.hy, s.rate, s.keep, parts, current(s.time))
        s.energy[0] = measure(s.ez, s.hx, s.hy, s.rate)

    return run


def numpy(np=np):
    def run(s: State) -> None:
        ez, hx, hy, n = s.ez, s.hx, s.hy, len(s.ez)
        row, column = s.keep[:, None], s.keep
        for _ in range(STEPS):
            s.time += 1
            change = ez[:, 1:] - ez[:, :-1]
            change *= COURANT
            hx -= change
            hx *= row
            hx *= column[:-1]
            change = ez[1:] - ez[:-1]
            change *= COURANT
            hy += change
            hy *= row[:-1]
            hy *= column
            curl = hy[1:, 1:-1] - hy[:-1, 1:-1]
            curl -= hx[1:-1, 1:]
            curl += hx[1:-1, :-1]
            curl *= s.rate[1:-1, 1:-1]
            inner = ez[1:-1, 1:-1]
            inner += curl
            inner *= row[1:-1]
            inner *= column[1:-1]
            ez[n // 4, n // 3] += current(s.time)
        electric = COURANT / s.rate[1:-1, 1:-1]
        electric *= inner
        magnetic = np.vdot(hx[1:-1, 1:], hx[1:-1, 1:]) + np.vdot(hy[1:, 1:-1], hy[1:, 1:-1])
        s.energy[0] = 0.5 * (np.vdot(electric, inner) + magnetic)

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit

    @jit
    def step(ez, hx, hy, rate, keep, added):
        n = len(ez)
        left = keep[:, None] * keep
        hx = (hx - COURANT * (ez[:, 1:] - ez[:, :-1])) * left[:, :-1]
        hy = (hy + COURANT * (ez[1:] - ez[:-1])) * left[:-1]
        curl = hy[1:, 1:-1] - hy[:-1, 1:-1] - hx[1:-1, 1:] + hx[1:-1, :-1]
        inner = (ez[1:-1, 1:-1] + rate[1:-1, 1:-1] * curl) * left[1:-1, 1:-1]
        return ez.at[1:-1, 1:-1].set(inner).at[n // 4, n // 3].add(added), hx, hy

    @jit
    def measure(ez, hx, hy, rate):
        inner = ez[1:-1, 1:-1]
        density = COURANT / rate[1:-1, 1:-1] * inner * inner
        density += hx[1:-1, 1:] ** 2 + hy[1:, 1:-1] ** 2
        return 0.5 * jnp.sum(density, keepdims=True)[0]

    def run(s: State) -> None:
        for _ in range(STEPS):
            s.time += 1
            s.ez, s.hx, s.hy = step(s.ez, s.hx, s.hy, s.rate, s.keep, current(s.time))
        s.energy = measure(s.ez, s.hx, s.hy, s.rate)

    return run
