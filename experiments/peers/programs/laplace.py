"""Laplace's equation: the sides are set in the pass that makes a step; C++ makes several in one."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.laplace import COLD, STEPS, initial

DEPTH = 5  # steps of a pass in C++


def setup(size: int) -> State:
    """Temperatures now and next, and those of the hot side."""
    u, heater = initial(size)
    return State(u=u, new=u.copy(), heater=heater, residual=np.zeros(1))


def outputs(s: State) -> Outputs:
    """Read the temperatures and the residual."""
    return {"u": np.asarray(s.u), "residual": float(s.residual[0])}


def floor(size: int) -> int:
    """A step reads temperatures and writes them."""
    return 16 * STEPS * size * size


def cpp(build):
    run_cpp = build("laplace", COLD=COLD)
    assert STEPS % DEPTH == 0

    def run(s: State) -> None:
        for _ in range(STEPS // DEPTH):
            run_cpp(len(s.u), s.u, s.new, s.heater, s.residual)
            s.u, s.new = s.new, s.u

    return run


def numba(njit):
    from numba import prange

    @njit
    def step(u, new, heater):
        n = len(u)
        for i in prange(1, n - 1):
            for j in range(1, n - 1):
                new[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
            new[i, 0], new[i, n - 1] = heater[i], COLD
            if i == 1:
                new[0, 1 : n - 1] = new[1, 1 : n - 1]
            if i == n - 2:
                new[n - 1, 1 : n - 1] = new[n - 2, 1 : n - 1]

    @njit
    def change(u, new):
        total = 0.0
        for i in prange(1, len(u) - 1):
            for j in range(1, len(u) - 1):
                total += (u[i, j] - new[i, j]) ** 2
        return total

    def run(s: State) -> None:
        for _ in range(STEPS):
            step(s.u, s.new, s.heater)
            s.u, s.new = s.new, s.u
        s.residual[0] = change(s.u, s.new)

    return run


def numpy(np=np):
    def run(s: State) -> None:
        for _ in range(STEPS):
            u, new = s.u, s.new
            inner = new[1:-1, 1:-1]
            np.add(u[:-2, 1:-1], u[2:, 1:-1], out=inner)
            inner += u[1:-1, :-2]
            inner += u[1:-1, 2:]
            inner *= 0.25
            new[0], new[-1] = new[1], new[-2]
            new[:, 0], new[:, -1] = s.heater, COLD
            s.u, s.new = new, u
        change = s.u[1:-1, 1:-1] - s.new[1:-1, 1:-1]
        s.residual[0] = np.vdot(change, change)

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit

    def step(u, heater):
        inner = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        tall = jnp.concatenate([inner[:1], inner, inner[-1:]])
        return jnp.column_stack([heater, tall, jnp.full_like(heater, COLD)])

    @jit
    def steps(u, heater):
        for _ in range(STEPS - 1):
            u = step(u, heater)
        new = step(u, heater)
        return new, jnp.sum((new - u)[1:-1, 1:-1] ** 2, keepdims=True)[0]

    def run(s: State) -> None:
        s.u, s.residual = steps(s.u, s.heater)

    return run
