"""Harris corners on 2-D views: `harris` but for the rim at the left and right."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import State
from experiments.peers.programs import harris
from experiments.peers.programs.harris import KAPPA, THRESHOLD, floor, outputs, setup

__all__ = ["cpp", "floor", "jax", "numba", "numpy", "outputs", "setup"]


def cpp(build):
    return harris.cpp(build, rim=2)


def numba(njit):
    return harris.numba(njit, rim=2)


def structure(p):
    """Response inside a rim of two pixels, by slices of 2-D arrays."""

    def box(x):
        rows = x[:-2] + x[1:-1] + x[2:]
        return rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]

    wide, tall = p[:-2] + 2.0 * p[1:-1] + p[2:], p[:, :-2] + 2.0 * p[:, 1:-1] + p[:, 2:]
    gx, gy = 0.125 * (wide[:, 2:] - wide[:, :-2]), 0.125 * (tall[2:] - tall[:-2])
    sxx, syy, sxy = box(gx * gx), box(gy * gy), box(gx * gy)
    trace = sxx + syy
    return sxx * syy - sxy * sxy - KAPPA * trace * trace


def numpy(np=np):
    def run(s: State) -> None:
        inner = structure(s.image.reshape(s.size, s.size))
        s.response.reshape(s.size, s.size)[2:-2, 2:-2] = inner
        s.corners[0] = inner[inner > THRESHOLD].sum()

    return run


def jax():
    from functools import partial

    import jax.numpy as jnp
    from jax import jit

    @partial(jit, static_argnums=1)
    def corners(image, size):
        inner = structure(image.reshape(size, size))
        strength = jnp.sum(jnp.where(inner > THRESHOLD, inner, 0.0), keepdims=True)
        return jnp.pad(inner, 2).ravel(), strength[0]

    def run(s: State) -> None:
        s.response, s.corners = corners(s.image, s.size)

    return run
