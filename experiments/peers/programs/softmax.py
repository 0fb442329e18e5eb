"""Softmax: a row at a time, from maximum to entropy; the masked columns are never computed."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.softmax import COLUMNS, SCALE, scores


def setup(size: int) -> State:
    """The scores and room for the weights."""
    x = scores(size)
    return State(x=x, weight=np.zeros_like(x), entropy=np.zeros(1))


def outputs(s: State) -> Outputs:
    """Read weights and entropy."""
    return {"weight": s.weight, "entropy": float(s.entropy[0])}


def floor(size: int) -> int:
    """Scores are read, weights written."""
    return 16 * size * COLUMNS


def cpp(build):
    run_cpp = build("softmax", COLUMNS=COLUMNS, SCALE=SCALE)

    def run(s: State) -> None:
        run_cpp(len(s.x), s.x, s.weight, s.entropy)

    return run


def numba(njit):
    from math import exp, log

    from numba import prange

    @njit
    def softmax(x, weight):
        entropy = 0.0
        for i in prange(len(x)):
            seen = i % COLUMNS + 1
            top = SCALE * x[i, 0]
            for j in range(1, seen):
                top = max(top, SCALE * x[i, j])
            total = 0.0
            for j in range(seen):
                weight[i, j] = exp(SCALE * x[i, j] - top)
                total += weight[i, j]
            for j in range(seen):
                weight[i, j] /= total
                if weight[i, j] > 0.0:
                    entropy -= weight[i, j] * log(weight[i, j])
            weight[i, seen:] = 0.0
        return entropy

    def run(s: State) -> None:
        s.entropy[0] = softmax(s.x, s.weight)

    return run


def numpy(np=np):
    def run(s: State) -> None:
        w = np.multiply(SCALE, s.x, out=s.weight)
        seen = np.arange(COLUMNS) <= np.arange(len(w))[:, None] % COLUMNS
        np.copyto(w, -1e30, where=~seen)
        w -= w.max(axis=1, keepdims=True)
        np.exp(w, out=w)
        w /= w.sum(axis=1, keepdims=True)
        logs = np.log(np.maximum(w, 1e-300))
        s.entropy[0] = -np.vdot(w, logs)

    return run


def cupy_fuse(cupy):
    @cupy.fuse
    def masked(x, column, row):
        return cupy.where(column <= row % COLUMNS, SCALE * x, -1e30)

    @cupy.fuse
    def exponential(x, top):
        return cupy.exp(x - top)

    @cupy.fuse
    def normalised(x, total):
        weight = x / total
        return weight, weight * cupy.log(cupy.where(weight > 0.0, weight, 1.0))

    def run(s: State) -> None:
        column, row = cupy.arange(COLUMNS), cupy.arange(len(s.x))[:, None]
        x = masked(s.x, column, row)
        x = exponential(x, x.max(axis=1, keepdims=True))
        s.weight, terms = normalised(x, x.sum(axis=1, keepdims=True))
        s.entropy[0] = -terms.sum()

    return run


def torch(torch):
    @torch.compile
    def softmax(x):
        column = torch.arange(COLUMNS, device=x.device)
        seen = column <= torch.arange(len(x), device=x.device)[:, None] % COLUMNS
        w = torch.softmax(torch.where(seen, SCALE * x, -1e30), dim=1)
        return w, -torch.xlogy(w, w).sum().reshape(1)

    def run(s: State) -> None:
        s.weight, s.entropy = softmax(s.x)

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit

    @jit
    def softmax(x):
        seen = jnp.arange(COLUMNS) <= jnp.arange(len(x))[:, None] % COLUMNS
        w = jnp.where(seen, SCALE * x, -1e30)
        w = jnp.exp(w - w.max(axis=1, keepdims=True))
        w /= w.sum(axis=1, keepdims=True)
        terms = jnp.where(w > 0.0, w * jnp.log(jnp.where(w > 0.0, w, 1.0)), 0.0)
        return w, -jnp.sum(terms, keepdims=True).ravel()

    def run(s: State) -> None:
        s.weight, s.entropy = softmax(s.x)

    return run
