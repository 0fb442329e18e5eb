"""Jacobi's iteration for Laplace's equation."""

import numpy as np

GPU = {"n": 8000, "steps": 10}  # what fills one


def make(n=1500, steps=20):
    grid = np.zeros((n, n))
    grid[0] = 100.0
    return grid, steps


def run(grid, steps):
    a, b = grid.copy(), grid.copy()
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
        a, b = b, a
    return a
