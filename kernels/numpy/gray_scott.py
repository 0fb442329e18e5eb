"""Gray and Scott's reaction and diffusion on a grid."""

import numpy as np

GPU = {"n": 6000, "steps": 5}  # what fills one


def make(n=1024, steps=20):
    u, v = np.ones((n, n)), np.zeros((n, n))
    middle = slice(n // 2 - 20, n // 2 + 20)
    u[middle, middle] = 0.5
    v[middle, middle] = 0.25
    return u, v, steps


def run(u, v, steps):
    u, v = u.copy(), v.copy()
    for _ in range(steps):
        inner_u, inner_v = u[1:-1, 1:-1], v[1:-1, 1:-1]
        lap_u = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner_u
        lap_v = v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:] - 4 * inner_v
        reaction = inner_u * inner_v * inner_v
        inner_u += 0.16 * lap_u - reaction + 0.06 * (1 - inner_u)
        inner_v += 0.08 * lap_v + reaction - 0.122 * inner_v
    return u, v
