"""Sine and cosine: one loop, or one expression, over the angles."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.sine_cosine import angles


def setup(size: int) -> State:
    """The angles and room for the result."""
    return State(x=angles(size), total=np.zeros(size))


def outputs(s: State) -> Outputs:
    """Read the sums."""
    return {"total": s.total}


def floor(size: int) -> int:
    """One input, one output."""
    return 16 * size


def cpp(build):
    run_cpp = build("sine_cosine")

    def run(s: State) -> None:
        run_cpp(s.x.size, s.x, s.total)

    return run


def numba(njit):
    from math import cos, sin

    from numba import prange

    @njit
    def add(x, total):
        for i in prange(x.size):
            total[i] = sin(x[i]) ** 2 + cos(x[i]) ** 2

    def run(s: State) -> None:
        add(s.x, s.total)

    return run


def numpy(np=np):
    """As in DelayRepay's paper."""

    def run(s: State) -> None:
        s.total = np.sin(s.x) ** 2 + np.cos(s.x) ** 2

    return run


def cupy_fuse(cupy):
    @cupy.fuse
    def add(x):
        return cupy.sin(x) ** 2 + cupy.cos(x) ** 2

    def run(s: State) -> None:
        s.total = add(s.x)

    return run


def torch(torch):
    @torch.compile
    def add(x):
        return torch.sin(x) ** 2 + torch.cos(x) ** 2

    def run(s: State) -> None:
        s.total = add(s.x)

    return run


def numba_cuda(cuda):
    from math import cos, sin

    @cuda.jit
    def add(x, total):
        i = cuda.grid(1)
        if i < x.size:
            total[i] = sin(x[i]) ** 2 + cos(x[i]) ** 2

    def run(s: State) -> None:
        add[-(-s.x.size // 256), 256](s.x, s.total)

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit

    @jit
    def add(x):
        return jnp.sin(x) ** 2 + jnp.cos(x) ** 2

    def run(s: State) -> None:
        s.total = add(s.x)

    return run


def numexpr():
    from numexpr import evaluate

    def run(s: State) -> None:
        evaluate("sin(x) ** 2 + cos(x) ** 2", {"x": s.x}, out=s.total)

    return run
