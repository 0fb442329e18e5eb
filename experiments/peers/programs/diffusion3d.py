"""Diffusion in 3-D: one pass a step, by Kirchhoff's potential, which is never stored."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.diffusion3d import BASE, DT, GROWTH, STEPS, initial

CURVE = 0.5 * BASE * GROWTH


def setup(size: int) -> State:
    """Temperatures now and next."""
    u = initial(size)
    return State(u=u, new=u.copy(), heat=np.zeros(1))


def outputs(s: State) -> Outputs:
    """Read the temperatures and the heat."""
    return {"u": s.u, "heat": float(s.heat[0])}


def floor(size: int) -> int:
    """A step reads temperatures and writes temperatures; the sum joins the last one."""
    return 16 * STEPS * size**3


def cpp(build):
    run_cpp = build("diffusion3d", DT=DT, BASE=BASE, GROWTH=GROWTH)

    def run(s: State) -> None:
        for _ in range(STEPS):
            run_cpp(len(s.u), s.u, s.new, s.heat)
            s.u, s.new = s.new, s.u

    return run


def numba(njit):
    from numba import prange

    @njit
    def step(u, new):
        n = len(u)
        heat = 0.0
        for i in prange(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    here, left, right = u[i, j, k], u[i, j, k - 1], u[i, j, k + 1]
                    front, back = u[i, j - 1, k], u[i, j + 1, k]
                    above, below = u[i - 1, j, k], u[i + 1, j, k]
                    around = left * (BASE + CURVE * left) + right * (BASE + CURVE * right)
                    around += front * (BASE + CURVE * front) + back * (BASE + CURVE * back)
                    around += above * (BASE + CURVE * above) + below * (BASE + CURVE * below)
                    new[i, j, k] = here + DT * (around - 6.0 * here * (BASE + CURVE * here))
                    heat += new[i, j, k]
        return heat

    def run(s: State) -> None:
        for _ in range(STEPS):
            s.heat[0] = step(s.u, s.new)
            s.u, s.new = s.new, s.u

    return run


def numpy(np=np):
    def run(s: State) -> None:
        inner = (slice(1, -1),) * 3
        for _ in range(STEPS):
            v = CURVE * s.u
            v += BASE
            v *= s.u
            rate = v[:-2, 1:-1, 1:-1] + v[2:, 1:-1, 1:-1]
            rate += v[1:-1, :-2, 1:-1]
            rate += v[1:-1, 2:, 1:-1]
            rate += v[1:-1, 1:-1, :-2]
            rate += v[1:-1, 1:-1, 2:]
            rate -= 6.0 * v[inner]
            rate *= DT
            np.add(s.u[inner], rate, out=s.new[inner])
            s.u, s.new = s.new, s.u
        s.heat[0] = s.u[inner].sum()

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit

    @jit
    def step(u):
        v = u * (BASE + CURVE * u)
        around = v[:-2, 1:-1, 1:-1] + v[2:, 1:-1, 1:-1] + v[1:-1, :-2, 1:-1] + v[1:-1, 2:, 1:-1]
        around += v[1:-1, 1:-1, :-2] + v[1:-1, 1:-1, 2:]
        inner = u[1:-1, 1:-1, 1:-1] + DT * (around - 6.0 * v[1:-1, 1:-1, 1:-1])
        return u.at[1:-1, 1:-1, 1:-1].set(inner), jnp.sum(inner, keepdims=True)[0, 0]

    def run(s: State) -> None:
        for _ in range(STEPS):
            s.u, s.heat = step(s.u)

    return run
