"""Euler 1-D: one pass a step; fluxes of a block of cells stay in the cache."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.euler1d import COURANT, FASTEST, GAMMA, STEPS, initial

RATIO = COURANT / FASTEST
BLOCK = 1024


def setup(size: int) -> State:
    """The fields now and next: the end cells are never written again."""
    q = initial(size)
    return State(q=q, new=q.copy(), mass=np.zeros(1))


def outputs(s: State) -> Outputs:
    """Read the fields and the mass."""
    return {"fields": s.q, "mass": float(s.mass[0])}


def floor(size: int) -> int:
    """A step reads three fields and writes them."""
    return 48 * STEPS * size


def cpp(build):
    run_cpp = build("euler1d", GAMMA=GAMMA, RATIO=RATIO)

    def run(s: State) -> None:
        for _ in range(STEPS):
            run_cpp(s.q.shape[1], s.q, s.new, s.mass)
            s.q, s.new = s.new, s.q

    return run


def numba(njit):
    from numba import prange

    @njit
    def step(q, new):
        n = q.shape[1]
        mass = 0.0
        for block in prange((n - 2 + BLOCK - 1) // BLOCK):
            begin = 1 + block * BLOCK
            cells = min(BLOCK, n - 1 - begin)
            f, s = np.empty((3, BLOCK + 2)), np.empty(BLOCK + 2)
            for k in range(cells + 2):
                rho, mom, energy = q[0, begin - 1 + k], q[1, begin - 1 + k], q[2, begin - 1 + k]
                u = mom / rho
                p = (GAMMA - 1.0) * (energy - 0.5 * mom * u)
                s[k] = abs(u) + np.sqrt(GAMMA * p / rho)
                f[0, k], f[1, k], f[2, k] = mom, mom * u + p, u * (energy + p)
            for c in range(3):
                for k in range(1, cells + 1):
                    i = begin - 1 + k
                    left = 0.5 * (f[c, k - 1] + f[c, k]) - 0.5 * max(s[k - 1], s[k]) * (
                        q[c, i] - q[c, i - 1]
                    )
                    right = 0.5 * (f[c, k] + f[c, k + 1]) - 0.5 * max(s[k], s[k + 1]) * (
                        q[c, i + 1] - q[c, i]
                    )
                    new[c, i] = q[c, i] - RATIO * (right - left)
            mass += new[0, begin : begin + cells].sum()
        return mass + new[0, 0] + new[0, -1]

    def run(s: State) -> None:
        for _ in range(STEPS):
            s.mass[0] = step(s.q, s.new)
            s.q, s.new = s.new, s.q

    return run


def differences(xp, q):
    """What a step takes off the inner cells, by whole arrays."""
    rho, mom, energy = q
    u = mom / rho
    p = (GAMMA - 1.0) * (energy - 0.5 * mom * u)
    s = xp.abs(u) + xp.sqrt(GAMMA * p / rho)
    f = xp.stack([mom, mom * u + p, u * (energy + p)])
    fastest = xp.maximum(s[1:], s[:-1])
    face = 0.5 * (f[:, 1:] + f[:, :-1] - fastest * (q[:, 1:] - q[:, :-1]))
    return RATIO * (face[:, 1:] - face[:, :-1])


def numpy(np=np):
    def run(s: State) -> None:
        for _ in range(STEPS):
            s.q[:, 1:-1] -= differences(np, s.q)
        s.mass[0] = s.q[0].sum()

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit

    @jit
    def step(q):
        q = q.at[:, 1:-1].add(-differences(jnp, q))
        return q, jnp.sum(q[0], keepdims=True)

    def run(s: State) -> None:
        for _ in range(STEPS):
            s.q, s.mass = step(s.q)

    return run
