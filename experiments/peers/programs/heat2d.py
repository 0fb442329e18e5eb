"""Heat in 2-D: one pass a step; the rate of change is never stored."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.heat2d import DT, STEPS, initial


def setup(size: int) -> State:
    """Temperatures now and next, and the source."""
    u, source = initial(size)
    return State(u=u, new=u.copy(), source=source, residual=np.zeros(1))


def outputs(s: State) -> Outputs:
    """Read the temperatures and the residual."""
    return {"u": s.u, "residual": float(s.residual[0])}


def floor(size: int) -> int:
    """A step reads temperatures and source and writes temperatures."""
    return 24 * STEPS * size * size


def cpp(build):
    run_cpp = build("heat2d", DT=DT)

    def run(s: State) -> None:
        for _ in range(STEPS):
            run_cpp(len(s.u), s.u, s.new, s.source, s.residual)
            s.u, s.new = s.new, s.u

    return run


def numba(njit):
    from numba import prange

    @njit
    def step(u, new, source):
        residual = 0.0
        for i in prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                rate = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
                new[i, j] = u[i, j] + DT * (rate + source[i, j])
                change = new[i, j] - u[i, j]
                residual += change * change
        return residual

    def run(s: State) -> None:
        for _ in range(STEPS):
            s.residual[0] = step(s.u, s.new, s.source)
            s.u, s.new = s.new, s.u

    return run


def numpy(np=np):
    def run(s: State) -> None:
        for _ in range(STEPS):
            u, inner = s.u, s.new[1:-1, 1:-1]
            rate = u[:-2, 1:-1] + u[2:, 1:-1]
            rate += u[1:-1, :-2]
            rate += u[1:-1, 2:]
            rate -= 4.0 * u[1:-1, 1:-1]
            rate += s.source[1:-1, 1:-1]
            rate *= DT
            np.add(u[1:-1, 1:-1], rate, out=inner)
            change = np.subtract(inner, u[1:-1, 1:-1], out=rate)
            s.residual[0] = np.vdot(change, change)
            s.u, s.new = s.new, u

    return run


def cupy_fuse(cupy):
    @cupy.fuse
    def step(u, above, below, left, right, source, to):
        rate = above + below + left + right - 4.0 * u + source
        cupy.add(u, DT * rate, out=to)

    @cupy.fuse
    def square(new, u):
        return (new - u) * (new - u)

    def run(s: State) -> None:
        for _ in range(STEPS):
            u, inner = s.u, s.new[1:-1, 1:-1]
            here = u[1:-1, 1:-1]
            around = u[:-2, 1:-1], u[2:, 1:-1], u[1:-1, :-2], u[1:-1, 2:]
            step(here, *around, s.source[1:-1, 1:-1], inner)
            s.residual[0] = square(inner, here).sum()
            s.u, s.new = s.new, u

    return run


def torch(torch):
    @torch.compile
    def step(u, source, new):
        here = u[1:-1, 1:-1]
        rate = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * here
        inner = here + DT * (rate + source[1:-1, 1:-1])
        new[1:-1, 1:-1] = inner
        return ((inner - here) ** 2).sum().reshape(1)

    def run(s: State) -> None:
        for _ in range(STEPS):
            s.residual = step(s.u, s.source, s.new)
            s.u, s.new = s.new, s.u

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit

    @jit
    def step(u, source):
        here = u[1:-1, 1:-1]
        rate = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * here
        inner = here + DT * (rate + source[1:-1, 1:-1])
        return u.at[1:-1, 1:-1].set(inner), jnp.sum((inner - here) ** 2, keepdims=True)[0]

    def run(s: State) -> None:
        for _ in range(STEPS):
            s.u, s.residual = step(s.u, s.source)

    return run
