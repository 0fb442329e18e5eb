"""Mixing in columns: fields are read and written once; all between stays in cache where it can."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.vertical_diffusion import DT, EXCHANGE, FIELDS, GRAVITY, LEVELS, grid, initial


def setup(size: int) -> State:
    """Fields, their rates, what the ground has, and the grid."""
    field, ground = initial(size)
    made = State(**field, **{f"{name}_rate": np.zeros((LEVELS, size)) for name in FIELDS})
    made.theta_ground, made.q_ground = ground["theta"], ground["q"]
    vars(made).update(vars(grid()))
    made.moisture = np.zeros(1)
    return made


def outputs(s: State) -> Outputs:
    """Read fields, rates and the moisture."""
    names = [*FIELDS, *(f"{name}_rate" for name in FIELDS)]
    return {name: np.asarray(getattr(s, name)) for name in names} | {
        "moisture": float(s.moisture[0])
    }


def floor(size: int) -> int:
    """Four fields are read and written, four rates written."""
    return 12 * 8 * LEVELS * size


def cpp(build):
    run_cpp = build("vertical_diffusion", LEVELS=LEVELS, DT=DT, EXCHANGE=EXCHANGE, GRAVITY=GRAVITY)

    def run(s: State) -> None:
        fields = [getattr(s, name) for name in FIELDS]
        rates = [getattr(s, f"{name}_rate") for name in FIELDS]
        levels = s.thickness, s.inverse, s.mixing
        run_cpp(s.u.shape[1], *fields, *rates, s.theta_ground, s.q_ground, *levels, s.moisture)

    return run


def numba(njit):
    from numba import prange

    width = 64

    @njit
    def step(fields, rates, grounds, thickness, inverse, mixing):
        n = fields[0].shape[1]
        total = 0.0
        for block in prange((n + width - 1) // width):
            first = block * width
            last = min(first + width, n)
            below, above = np.empty((LEVELS, width)), np.empty((LEVELS, width))
            pivot, y = np.empty((LEVELS, width)), np.empty((LEVELS, width))
            u, v, theta = fields[0], fields[1], fields[2]
            for j in range(last - first):
                below[0, j] = DT * EXCHANGE / thickness[0]
                above[LEVELS - 1, j] = 0.0
            for k in range(1, LEVELS):
                down, up = DT * inverse[k] / thickness[k], DT * inverse[k] / thickness[k - 1]
                for j in range(last - first):
                    i = first + j
                    du = (u[k, i] - u[k - 1, i]) * inverse[k]
                    dv = (v[k, i] - v[k - 1, i]) * inverse[k]
                    squared = du * du + dv * dv + 1e-8
                    lift = 2.0 * GRAVITY * inverse[k] * (theta[k, i] - theta[k - 1, i])
                    ri = lift / ((theta[k, i] + theta[k - 1, i]) * squared)
                    f = np.sqrt(1.0 - 16.0 * ri) if ri < 0.0 else 1.0 / (1.0 + 10.0 * ri)
                    d = mixing[k] * mixing[k] * np.sqrt(squared) * f
                    below[k, j] = down * d
                    above[k - 1, j] = up * d
            for j in range(last - first):
                pivot[0, j] = 1.0 / (1.0 + below[0, j] + above[0, j])
            for k in range(1, LEVELS):
                for j in range(last - first):
                    rest = 1.0 - above[k - 1, j] * pivot[k - 1, j]
                    pivot[k, j] = 1.0 / (1.0 + above[k, j] + below[k, j] * rest)
            for f in range(4):
                x, rate, ground = fields[f], rates[f], grounds[f]
                for j in range(last - first):
                    y[0, j] = (x[0, first + j] + below[0, j] * ground[first + j]) * pivot[0, j]
                for k in range(1, LEVELS):
                    for j in range(last - first):
                        y[k, j] = (x[k, first + j] + below[k, j] * y[k - 1, j]) * pivot[k, j]
                for k in range(LEVELS - 1, -1, -1):
                    for j in range(last - first):
                        if k < LEVELS - 1:
                            y[k, j] += above[k, j] * pivot[k, j] * y[k + 1, j]
                        rate[k, first + j] = (y[k, j] - x[k, first + j]) * (1.0 / DT)
                        x[k, first + j] = y[k, j]
            for k in range(LEVELS):  # moisture is the last field
                for j in range(last - first):
                    total += thickness[k] * y[k, j]
        return total

    def run(s: State) -> None:
        still = np.zeros_like(s.q_ground)
        fields = tuple(getattr(s, name) for name in FIELDS)
        rates = tuple(getattr(s, f"{name}_rate") for name in FIELDS)
        grounds = (still, still, s.theta_ground, s.q_ground)
        s.moisture[0] = step(fields, rates, grounds, s.thickness, s.inverse, s.mixing)

    return run


def matrix(np, s):
    """Below and above the diagonal, for all columns."""
    inverse, h = s.inverse[1:, None], s.thickness[:, None]
    du, dv = (s.u[1:] - s.u[:-1]) * inverse, (s.v[1:] - s.v[:-1]) * inverse
    squared = du * du + dv * dv + 1e-8
    lift = 2.0 * GRAVITY * inverse * (s.theta[1:] - s.theta[:-1])
    ri = lift / ((s.theta[1:] + s.theta[:-1]) * squared)
    f = np.where(ri < 0.0, np.sqrt(np.maximum(1.0 - 16.0 * ri, 0.0)), 1.0 / (1.0 + 10.0 * ri))
    flow = DT * inverse * s.mixing[1:, None] ** 2 * np.sqrt(squared) * f
    ground = np.full_like(flow[:1], DT * EXCHANGE)
    return np.concatenate([ground, flow]) / h, np.concatenate([flow, 0.0 * ground]) / h


def numpy(np=np):
    def run(s: State) -> None:
        below, above = matrix(np, s)
        pivot = np.empty_like(below)
        pivot[0] = 1.0 / (1.0 + below[0] + above[0])
        for k in range(1, LEVELS):
            rest = 1.0 - above[k - 1] * pivot[k - 1]
            pivot[k] = 1.0 / (1.0 + above[k] + below[k] * rest)
        above *= pivot
        below *= pivot
        for name, ground in zip(FIELDS, (0.0, 0.0, s.theta_ground, s.q_ground), strict=True):
            x, rate = getattr(s, name), getattr(s, f"{name}_rate")
            y = x * pivot
            y[0] += below[0] * ground
            for k in range(1, LEVELS):
                y[k] += below[k] * y[k - 1]
            for k in range(LEVELS - 2, -1, -1):
                y[k] += above[k] * y[k + 1]
            np.subtract(y, x, out=rate)
            rate *= 1.0 / DT
            x[:] = y
        s.moisture[0] = s.thickness @ s.q.sum(axis=1)

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit
    from jax.lax import scan

    def solved(x, ground, below, above, pivot):
        def up(last, row):
            y = row[0] * row[2] + row[1] * last
            return y, y

        def down(last, row):
            y = row[0] + row[1] * last
            return y, y

        _, y = scan(up, ground, (x, below * pivot, pivot))
        return scan(down, jnp.zeros_like(y[0]), (y, above * pivot), reverse=True)[1]

    @jit
    def step(fields, grounds, levels):
        s = State(**dict(zip(FIELDS, fields, strict=True)))
        s.thickness, s.inverse, s.mixing = levels
        below, above = matrix(jnp, s)

        def eliminate(last, row):
            pivot = 1.0 / (1.0 + row[1] + row[0] * (1.0 - last))
            return row[1] * pivot, pivot

        _, pivot = scan(eliminate, jnp.zeros_like(below[0]), (below, above))
        new = [solved(x, g, below, above, pivot) for x, g in zip(fields, grounds, strict=True)]
        rates = [(y - x) / DT for x, y in zip(fields, new, strict=True)]
        return new, rates, (s.thickness @ new[3]).sum(keepdims=True)

    def run(s: State) -> None:
        still = jnp.zeros_like(s.q_ground)
        fields = [getattr(s, name) for name in FIELDS]
        levels = s.thickness, s.inverse, s.mixing
        new, rates, s.moisture = step(fields, [still, still, s.theta_ground, s.q_ground], levels)
        for name, y, rate in zip(FIELDS, new, rates, strict=True):
            setattr(s, name, y)
            setattr(s, f"{name}_rate", rate)

    return run
