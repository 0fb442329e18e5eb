"""CG on Poisson's equation: three passes an iteration, over a direction padded with zeros."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.cg_poisson import ITERATIONS, right_side


def setup(size: int) -> State:
    """The right side, solution and residual, and a direction with a rim of zeros."""
    b = right_side(size).reshape(size, size)
    x, r, ap = np.zeros_like(b), np.zeros_like(b), np.zeros_like(b)
    return State(b=b, x=x, r=r, ap=ap, p=np.zeros((size + 2, size + 2)), rr=np.zeros(1))


def outputs(s: State) -> Outputs:
    """Read the solution, the residual and its square norm."""
    return {"x": s.x.ravel(), "r": s.r.ravel(), "rr": float(s.rr[0])}


def floor(size: int) -> int:
    """An iteration reads and writes p, r and x, and reads p and r again: p.Ap is needed between.

    The start reads b and writes x, r and p.
    """
    return (64 * ITERATIONS + 32) * size * size


def cpp(build):
    run_cpp = build("cg_poisson", ITERATIONS=ITERATIONS)

    def run(s: State) -> None:
        run_cpp(len(s.b), s.b, s.x, s.r, s.ap, s.p, s.rr)

    return run


def numba(njit):
    from numba import prange

    @njit
    def apply(p, ap):
        n, pap = len(ap), 0.0
        for i in prange(n):
            for j in range(n):
                k, m = i + 1, j + 1
                ap[i, j] = 4.0 * p[k, m] - p[i, m] - p[k + 1, m] - p[k, j] - p[k, m + 1]
                pap += p[k, m] * ap[i, j]
        return pap

    @njit
    def descend(r, ap, alpha):
        n, rr = len(r), 0.0
        for i in prange(n):
            for j in range(n):
                r[i, j] -= alpha * ap[i, j]
                rr += r[i, j] * r[i, j]
        return rr

    @njit
    def advance(x, r, p, alpha, beta):
        n = len(x)
        for i in prange(n):
            for j in range(n):
                before = p[i + 1, j + 1]
                x[i, j] += alpha * before
                p[i + 1, j + 1] = r[i, j] + beta * before

    @njit
    def start(b, x, r, p):
        rr = 0.0
        for i in prange(len(b)):
            for j in range(len(b)):
                x[i, j], r[i, j], p[i + 1, j + 1] = 0.0, b[i, j], b[i, j]
                rr += b[i, j] * b[i, j]
        return rr

    def run(s: State) -> None:
        rr = start(s.b, s.x, s.r, s.p)
        for _ in range(ITERATIONS):
            alpha = rr / apply(s.p, s.ap)
            rr, before = descend(s.r, s.ap, alpha), rr
            advance(s.x, s.r, s.p, alpha, rr / before)
        s.rr[0] = rr

    return run


def numpy(np=np):
    def run(s: State) -> None:
        x, r, ap, p = s.x, s.r, s.ap, s.p[1:-1, 1:-1]
        x[...], r[...], p[...] = 0.0, s.b, s.b
        rr = np.vdot(r, r)
        for _ in range(ITERATIONS):
            np.multiply(4.0, p, out=ap)
            for near in (s.p[:-2, 1:-1], s.p[2:, 1:-1], s.p[1:-1, :-2], s.p[1:-1, 2:]):
                ap -= near
            alpha = rr / np.sum(p * ap)
            x += alpha * p
            ap *= alpha
            r -= ap
            rr, before = np.vdot(r, r), rr
            p *= rr / before
            p += r
        s.rr[0] = rr

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit

    def iterate(x, r, p, rr):
        padded = jnp.pad(p, 1)
        ap = 4.0 * p - padded[:-2, 1:-1] - padded[2:, 1:-1] - padded[1:-1, :-2] - padded[1:-1, 2:]
        alpha = rr / jnp.sum(p * ap)
        x, r = x + alpha * p, r - alpha * ap
        rr, before = jnp.sum(r * r), rr
        return x, r, r + (rr / before) * p, rr

    @jit
    def solve(b):
        state = jnp.zeros_like(b), b, b, jnp.sum(b * b)
        for _ in range(ITERATIONS):
            state = iterate(*state)
        x, r, _, rr = state
        return x, r, rr.reshape(1)

    def run(s: State) -> None:
        s.x, s.r, s.rr = solve(s.b)

    return run
