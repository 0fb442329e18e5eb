"""Numba peer of q03: one loop of particles a step, tallies a thread."""

from functools import partial

import numpy as np
from common import rnd, run_numba, total
from nb import jit, rjit
from numba import prange

DT = 0.1


@jit
def deposit(x, cells, parts):
    n = len(x)
    for t in prange(2):
        tally = parts[t]
        tally[:] = 0
        for i in range(t * n // 2, (t + 1) * n // 2):
            cell = int(x[i])
            w = int((x[i] - cell) * 65536.0)
            right = cell + 1 if cell + 1 < cells else 0
            tally[cell] += 65536 - w
            tally[right] += w


@rjit
def push(x, v, field, cells, parts):
    n = len(x)
    kin = 0.0
    for t in prange(2):
        tally = parts[t]
        tally[:] = 0
        k = 0.0
        for i in range(t * n // 2, (t + 1) * n // 2):
            a = x[i]
            cell = int(a)
            w = a - cell
            right = cell + 1 if cell + 1 < cells else 0
            u = v[i] + DT * ((1.0 - w) * field[cell] + w * field[right])
            k += u * u
            v[i] = u
            a += DT * u
            if a < 0.0:
                a += cells
            if a >= cells:
                a -= cells
            x[i] = a
            cell = int(a)
            q = int((a - cell) * 65536.0)
            right = cell + 1 if cell + 1 < cells else 0
            tally[cell] += 65536 - q
            tally[right] += q
        kin += k
    return kin


def setup(n):
    cells = 64 if n < 10_000 else 4096
    v = np.where(np.arange(n) % 2 == 0, 2.0, -2.0) + 0.4 * (rnd(n, 5) - 0.5)
    return [cells, cells * rnd(n, 4), v, np.zeros((2, cells), np.int64), 0.0]


def step(s):
    cells, x, v, parts, _ = s
    n = len(x)
    kin = el = 0.0
    deposit(x, cells, parts)
    for _ in range(4):
        field = np.cumsum(parts.sum(axis=0) * (cells / (65536.0 * n)) - 1.0)
        field -= field.sum() / cells
        el += float(np.dot(field, field))
        kin += push(x, v, field, cells, parts)
    s[4] = kin / n + el / cells


def checksum(s):
    return total({"x": s[1], "v": s[2], "e": s[4]})


run_numba = partial(run_numba, setup, step, checksum)
