"""Particles: one pass moves and counts, another one puts what stays together."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.particles import DRAG, DT, STEPS, initial

MAX_THREADS = 4096


def setup(size: int) -> State:
    """Positions and velocities, room for those that stay, and a count for each thread."""
    now = initial(size)
    inside, counts = np.zeros(size, np.uint8), np.zeros(MAX_THREADS, np.int64)
    return State(now=now, then=np.zeros_like(now), inside=inside, counts=counts, count=size)


def outputs(s: State) -> Outputs:
    """Read the particles."""
    values = zip(("x", "y", "vx", "vy"), s.now, strict=True)
    return {**{n: np.array(v[: s.count]) for n, v in values}, "count": float(s.count)}


def floor(size: int) -> int:
    """A step reads and writes four numbers a particle."""
    return 64 * STEPS * size


def cpp(build):
    run_cpp = build("particles", DT=DT, DRAG=DRAG)

    def run(s: State) -> None:
        for _ in range(STEPS):
            run_cpp(s.count, s.now.shape[1], s.now, s.then, s.inside, s.counts)
            s.count = int(s.counts[0])
            s.now, s.then = s.then, s.now

    return run


def numba(njit):
    from numba import get_num_threads, prange

    @njit
    def step(now, then, counts, count, parts):
        for part in prange(parts):
            stay = 0
            for i in range(count * part // parts, count * (part + 1) // parts):
                for axis in range(2):
                    v = now[2 + axis, i] + DT * (now[axis, i] - 0.5)
                    now[2 + axis, i] = v * (1.0 - DRAG * DT)
                    now[axis, i] += DT * now[2 + axis, i]
                x, y = now[0, i], now[1, i]
                stay += 0.0 <= x < 1.0 and 0.0 <= y < 1.0
            counts[part] = stay
        for part in prange(parts):
            place = counts[:part].sum()
            for i in range(count * part // parts, count * (part + 1) // parts):
                if 0.0 <= now[0, i] < 1.0 and 0.0 <= now[1, i] < 1.0:
                    for field in range(4):
                        then[field, place] = now[field, i]
                    place += 1

    def run(s: State) -> None:
        parts = get_num_threads()
        for _ in range(STEPS):
            step(s.now, s.then, s.counts, s.count, parts)
            s.count = int(s.counts[:parts].sum())
            s.now, s.then = s.then, s.now

    return run


def numpy(np=np):
    def run(s: State) -> None:
        for _ in range(STEPS):
            p = s.now[:, : s.count]
            p[2:] += DT * (p[:2] - 0.5)
            p[2:] *= 1.0 - DRAG * DT
            p[:2] += DT * p[2:]
            kept = ((p[:2] >= 0.0) & (p[:2] < 1.0)).all(axis=0)
            s.count = int(np.count_nonzero(kept))
            np.compress(kept, p, axis=1, out=s.then[:, : s.count])
            s.now, s.then = s.then, s.now

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit

    @jit
    def move(p):
        v = (p[2:] + DT * (p[:2] - 0.5)) * (1.0 - DRAG * DT)
        x = p[:2] + DT * v
        return jnp.concatenate([x, v]), ((x >= 0.0) & (x < 1.0)).all(axis=0)

    def run(s: State) -> None:
        for _ in range(STEPS):
            moved, kept = move(s.now)
            s.now = moved[:, kept]  # a new shape: not inside jit
            s.count = s.now.shape[1]

    return run
