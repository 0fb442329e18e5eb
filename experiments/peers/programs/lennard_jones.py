"""Lennard-Jones: two passes a step, places first, then forces, velocities and energies."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.lennard_jones import DT, SHELL, SPACING, STEPS, crystal, neighbour_lists, pair_forces

COUNT = len(SHELL)


def setup(size: int) -> State:
    """A shaken crystal, its neighbour lists and its first forces."""
    (x, v), lists, box = crystal(size), neighbour_lists(size), SPACING * size
    f, _ = pair_forces(x, lists, box)
    return State(x=x, v=v, f=f, lists=lists, box=box, energy=np.zeros(2))


def outputs(s: State) -> Outputs:
    """Read places, velocities and energies."""
    return {
        "x": s.x,
        "v": s.v,
        "kinetic": float(s.energy[0]),
        "potential": float(s.energy[1]),
    }


def floor(size: int) -> int:
    """Two passes: x, v and f in, x and v out; then x, v and lists in, v and f out."""
    return (15 * 8 + 12 * 8 + 4 * COUNT) * STEPS * size**3


def cpp(build):
    run_cpp = build("lennard_jones", COUNT=COUNT, DT=DT)

    def run(s: State) -> None:
        for _ in range(STEPS):
            run_cpp(s.x.shape[1], s.x, s.v, s.f, s.lists, s.box, s.energy)

    return run


def numba(njit):
    from numba import prange

    @njit
    def move(x, v, f, box):
        for i in prange(x.shape[1]):
            for c in range(3):
                v[c, i] += 0.5 * DT * f[c, i]
                place = x[c, i] + DT * v[c, i]
                place += box if place < 0.0 else 0.0
                x[c, i] = place - box if place >= box else place

    @njit(parallel=False)
    def nearest(d, half, box):
        d -= box if d > half else 0.0
        return d + (box if d < -half else 0.0)

    @njit
    def push(x, v, f, lists, box):
        kinetic, potential, half = 0.0, 0.0, 0.5 * box
        for i in prange(x.shape[1]):
            fx, fy, fz, e = 0.0, 0.0, 0.0, 0.0
            for k in range(COUNT):
                j = lists[i, k]
                dx = nearest(x[0, i] - x[0, j], half, box)
                dy = nearest(x[1, i] - x[1, j], half, box)
                dz = nearest(x[2, i] - x[2, j], half, box)
                r2 = 1.0 / (dx * dx + dy * dy + dz * dz)
                r6 = r2 * r2 * r2
                pull = 24.0 * r2 * r6 * (2.0 * r6 - 1.0)
                fx += pull * dx
                fy += pull * dy
                fz += pull * dz
                e += 2.0 * r6 * (r6 - 1.0)
            f[0, i], f[1, i], f[2, i] = fx, fy, fz
            vx = v[0, i] + 0.5 * DT * fx
            vy = v[1, i] + 0.5 * DT * fy
            vz = v[2, i] + 0.5 * DT * fz
            v[0, i], v[1, i], v[2, i] = vx, vy, vz
            kinetic += 0.5 * (vx * vx + vy * vy + vz * vz)
            potential += e
        return kinetic, potential

    def run(s: State) -> None:
        for _ in range(STEPS):
            move(s.x, s.v, s.f, s.box)
            s.energy[:] = push(s.x, s.v, s.f, s.lists, s.box)

    return run


def numpy():
    def run(s: State) -> None:
        for _ in range(STEPS):
            s.v += 0.5 * DT * s.f
            s.x = (s.x + DT * s.v) % s.box
            s.f, s.energy[1] = pair_forces(s.x, s.lists, s.box)
            s.v += 0.5 * DT * s.f
            s.energy[0] = 0.5 * np.vdot(s.v, s.v)

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit

    @jit
    def step(x, v, f, lists, box):
        v += 0.5 * DT * f
        x = (x + DT * v) % box
        d = x[:, :, None] - x[:, lists]
        d -= box * jnp.rint(d / box)
        r2 = 1.0 / jnp.sum(d * d, axis=0)
        r6 = r2 * r2 * r2
        f = jnp.sum(24.0 * r2 * r6 * (2.0 * r6 - 1.0) * d, axis=2)
        v += 0.5 * DT * f
        energies = 0.5 * jnp.sum(v * v), 2.0 * jnp.sum(r6 * (r6 - 1.0))
        return x, v, f, jnp.stack(energies)

    def run(s: State) -> None:
        for _ in range(STEPS):
            s.x, s.v, s.f, s.energy = step(s.x, s.v, s.f, s.lists, s.box)

    return run
