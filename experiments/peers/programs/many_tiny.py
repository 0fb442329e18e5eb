"""Many tiny launches: a loop over the steps, by one thread; 64 beads are no work to share."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.many_tiny import BEADS, CUBIC, DAMPING, DT, STIFFNESS, initial

KEEP = 1.0 - DAMPING * DT


def setup(size: int) -> State:
    """The chain; `size` is the number of steps."""
    x, v = initial()
    return State(steps=size, x=x, v=v, kinetic=np.zeros(1))


def outputs(s: State) -> Outputs:
    """Read the chain."""
    return {"x": s.x, "v": s.v, "kinetic": float(s.kinetic[0])}


def floor(size: int) -> int:
    """Everything stays in the cache."""
    return 0


def cpp(build):
    run_cpp = build("many_tiny", BEADS=BEADS, STIFFNESS=STIFFNESS, CUBIC=CUBIC, KEEP=KEEP, DT=DT)

    def run(s: State) -> None:
        run_cpp(s.steps, s.x, s.v, s.kinetic)

    return run


def numba(njit):
    @njit(parallel=False)
    def steps(number, x, v):
        t = np.empty(BEADS - 1)
        for _ in range(number):
            for i in range(BEADS - 1):
                d = x[i + 1] - x[i]
                t[i] = STIFFNESS * d + CUBIC * d * d * d
            for i in range(1, BEADS - 1):
                v[i] = KEEP * (v[i] + DT * (t[i] - t[i - 1]))
                x[i] += DT * v[i]
        return 0.5 * np.sum(v * v)

    def run(s: State) -> None:
        s.kinetic[0] = steps(s.steps, s.x, s.v)

    return run


def numpy(np=np):
    def run(s: State) -> None:
        x, v = s.x, s.v
        for _ in range(s.steps):
            d = x[1:] - x[:-1]
            t = STIFFNESS * d + CUBIC * d * d * d
            v[1:-1] += DT * (t[1:] - t[:-1])
            v[1:-1] *= KEEP
            x[1:-1] += DT * v[1:-1]
        s.kinetic[0] = 0.5 * np.dot(v, v)

    return run


def jax():
    from functools import partial

    import jax.numpy as jnp
    from jax import jit
    from jax.lax import fori_loop

    def step(_, chain):
        x, v = chain
        d = x[1:] - x[:-1]
        t = STIFFNESS * d + CUBIC * d * d * d
        v = v.at[1:-1].set(KEEP * (v[1:-1] + DT * (t[1:] - t[:-1])))
        return x.at[1:-1].add(DT * v[1:-1]), v

    @partial(jit, static_argnums=0)
    def steps(number, x, v):
        x, v = fori_loop(0, number, step, (x, v))
        return x, v, 0.5 * jnp.sum(v * v, keepdims=True)

    def run(s: State) -> None:
        s.x, s.v, s.kinetic = steps(s.steps, s.x, s.v)

    return run
