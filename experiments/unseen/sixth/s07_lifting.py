"""Denoising a signal: five levels of the 5/3 lifting wavelet, soft thresholds, the inverse."""

from dataclasses import dataclass
from math import fabs

import numpy as np
import pykokkos as pk
from common import main, rnd, view

SIZES = {"small": 4_096, "default": 1 << 18, "large": 1 << 22}
LEVELS, FACTOR = 5, 1.8


@pk.workunit
def split(i, even, odd, x):
    even[i] = x[2 * i]
    odd[i] = x[2 * i + 1]


@pk.workunit
def predict(i, d, even, sign, h):
    d[i] += sign * 0.5 * (even[i] + even[min(i + 1, h - 1)])


@pk.workunit
def update(i, s, d, sign):
    s[i] += sign * 0.25 * (d[max(i - 1, 0)] + d[i])


@pk.workunit
def absolute(i, acc, d):
    acc += fabs(d[i])


@pk.workunit
def shrink(i, d, t):
    """Soft threshold."""
    if d[i] > t:
        d[i] -= t
    elif d[i] < -t:
        d[i] += t
    else:
        d[i] = 0.0


@pk.workunit
def kept(i, acc, d):
    if d[i] != 0.0:
        acc += 1.0


@pk.workunit
def merge(i, x, even, odd):
    x[2 * i] = even[i]
    x[2 * i + 1] = odd[i]


@pk.workunit
def squared_error(i, acc, a, b):
    acc += (a[i] - b[i]) * (a[i] - b[i])


@dataclass
class State:
    n: int
    x: pk.View
    out: pk.View
    noise: float = 0.0
    kept: float = 0.0
    error: float = 0.0


def setup(size):
    t = np.arange(size)
    x = (
        np.sin(t * 0.002)
        + 0.5 * np.cos(t * 0.0131)
        + (t % 5000 > 2500)
        + 0.3 * (rnd(size, 4) + rnd(size, 5) - 1)
    )
    return State(size, view(x), view(np.zeros(size)))


def run(s):
    x, details, h = s.x, [], s.n
    for _ in range(LEVELS):
        h //= 2
        even, odd = (pk.View([h], pk.double) for _ in range(2))
        pk.parallel_for(h, split, even=even, odd=odd, x=x)
        pk.parallel_for(h, predict, d=odd, even=even, sign=-1.0, h=h)
        pk.parallel_for(h, update, s=even, d=odd, sign=1.0)
        details.append(odd)
        x = even
    s.noise = pk.parallel_reduce(s.n // 2, absolute, d=details[0]) / (s.n // 2)
    s.kept, t = 0.0, FACTOR * s.noise
    for k, d in enumerate(details):
        pk.parallel_for(s.n >> (k + 1), shrink, d=d, t=t)
        s.kept += pk.parallel_reduce(s.n >> (k + 1), kept, d=d)
    for k in reversed(range(LEVELS)):
        h = s.n >> (k + 1)
        pk.parallel_for(h, update, s=x, d=details[k], sign=-1.0)
        pk.parallel_for(h, predict, d=details[k], even=x, sign=1.0, h=h)
        y = s.out if k == 0 else pk.View([2 * h], pk.double)
        pk.parallel_for(h, merge, x=y, even=x, odd=details[k])
        x = y
    s.error = pk.parallel_reduce(s.n, squared_error, a=s.x, b=s.out)


def outputs(s):
    return {
        "out": np.array(s.out.data),
        "noise": float(s.noise),
        "kept": float(s.kept),
        "error": float(s.error),
    }


if __name__ == "__main__":
    main(globals())
