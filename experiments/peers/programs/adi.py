"""Alternating directions: columns are solved side by side, so that nothing is transposed."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.adi import RATE, STEPS, initial, solved


def setup(size: int) -> State:
    """The grid, room for the half step, and the inverses of the pivots."""
    inverse = np.zeros(size)
    for j in range(1, size - 1):
        inverse[j] = 1.0 / (1.0 + 2.0 * RATE - RATE * RATE * inverse[j - 1])
    return State(u=initial(size), half=np.zeros((size, size)), inverse=inverse)


def outputs(s: State) -> Outputs:
    """Read the temperatures."""
    return {"u": np.asarray(s.u)}


def floor(size: int) -> int:
    """A half step reads a grid and writes one."""
    return 32 * STEPS * size * size


def cpp(build):
    run_cpp = build("adi", RATE=RATE)

    def run(s: State) -> None:
        for _ in range(STEPS):
            run_cpp(len(s.u), s.u, s.half, s.inverse)

    return run


def numba(njit):
    from numba import prange

    @njit
    def step(u, half, inverse):
        n = len(u)
        for block in prange((n + 61) // 64):
            first = 1 + 64 * block
            last = min(first + 64, n - 1)
            for i in range(1, n - 1):
                for j in range(first, last):
                    known = u[i, j] + RATE * (u[i, j - 1] - 2.0 * u[i, j] + u[i, j + 1])
                    half[i, j] = (known + RATE * half[i - 1, j]) * inverse[i]
            for i in range(n - 3, 0, -1):
                for j in range(first, last):
                    half[i, j] += RATE * inverse[i] * half[i + 1, j]
        for i in prange(1, n - 1):
            for j in range(1, n - 1):
                around = half[i - 1, j] - 2.0 * half[i, j] + half[i + 1, j]
                u[i, j] = half[i, j] + RATE * around
            for j in range(1, n - 1):
                u[i, j] = (u[i, j] + RATE * u[i, j - 1]) * inverse[j]
            for j in range(n - 3, 0, -1):
                u[i, j] += RATE * inverse[j] * u[i, j + 1]

    def run(s: State) -> None:
        for _ in range(STEPS):
            step(s.u, s.half, s.inverse)

    return run


def numpy():
    def run(s: State) -> None:
        u = s.u
        inner = u[1:-1, 1:-1]
        for _ in range(STEPS):
            inner[:] = solved(inner + RATE * (u[1:-1, :-2] - 2.0 * inner + u[1:-1, 2:]))
            inner[:] = solved((inner + RATE * (u[:-2, 1:-1] - 2.0 * inner + u[2:, 1:-1])).T).T

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit
    from jax.lax import scan

    def columns(right, inverse):
        def forward(last, row):
            value = (row[0] + RATE * last) * row[1]
            return value, value

        def backward(last, row):
            value = row[0] + RATE * row[1] * last
            return value, value

        zero = jnp.zeros_like(right[0])
        _, eliminated = scan(forward, zero, (right, inverse))
        return scan(backward, zero, (eliminated, inverse), reverse=True)[1]

    @jit
    def step(u, inverse):
        inner, pivots = u[1:-1, 1:-1], inverse[1:-1]
        half = columns(inner + RATE * (u[1:-1, :-2] - 2.0 * inner + u[1:-1, 2:]), pivots)
        above, below = jnp.pad(half, ((1, 0), (0, 0)))[:-1], jnp.pad(half, ((0, 1), (0, 0)))[1:]
        right = half + RATE * (above - 2.0 * half + below)
        return u.at[1:-1, 1:-1].set(columns(right.T, pivots).T)

    def run(s: State) -> None:
        for _ in range(STEPS):
            s.u = step(s.u, s.inverse)

    return run
