"""Numba peer of p14: lengths by block, then bytes and hash; back by block the same way."""

from functools import partial

import numpy as np
from numba import get_num_threads, prange

from common import rnd, run_numba, total
from nb import inl, jit


@inl
def zig(v, i):
    d = v[i] - v[i - 1] if i > 0 else v[i]
    return (d << 1) ^ (d >> 63)


@inl
def size_of(z):
    return 1 + (z >= 128) + (z >= 16384) + (z >= 2097152) + (z >= 268435456)


@jit
def encode(out, w, first, v):
    n, p = len(v), len(first) - 1
    for t in prange(p):
        s = 0
        for i in range(n * t // p, n * (t + 1) // p):
            k = size_of(zig(v, i))
            w[i] = k
            s += k
        first[t + 1] = s
    first[0] = 0
    for t in range(p):
        first[t + 1] += first[t]
    for t in prange(p):
        at = first[t]
        for i in range(n * t // p, n * (t + 1) // p):
            rest = zig(v, i)
            for k in range(w[i] - 1):
                out[at] = (rest & 127) | 128
                rest >>= 7
                at += 1
            out[at] = rest & 127
            at += 1
    h = 0
    for i in prange(first[p]):
        x = (np.int64(out[i]) + 1) * ((i & 1023) + 17)
        x = (x ^ (x >> 5)) * 40503
        h += (x ^ (x >> 11)) & 65535
    return h


@jit
def decode(back, out, w, first, v):
    n, p = len(v), len(first) - 1
    sums = np.zeros(p + 1, np.int64)
    for t in prange(p):
        at, s = first[t], 0
        for i in range(n * t // p, n * (t + 1) // p):
            x = 0
            for k in range(w[i]):
                x |= (np.int64(out[at]) & 127) << (7 * k)
                at += 1
            s += (x >> 1) ^ -(x & 1)
            back[i] = s
        sums[t + 1] = s
    for t in range(p):
        sums[t + 1] += sums[t]
    wrong = 0
    for t in prange(p):
        s = sums[t]
        bad = 0
        for i in range(n * t // p, n * (t + 1) // p):
            back[i] += s
            bad += back[i] != v[i]
        wrong += bad
    return wrong


def setup(n):
    u = rnd(n, 140)
    step = np.where(u < 0.6, 100.0, np.where(u < 0.9, 20000.0, np.where(u < 0.99, 3e6, 8e8)))
    v = (1e9 + step * (rnd(n, 141) - 0.5)).astype(np.int64)
    return [
        v,
        np.zeros(5 * n, np.uint8),
        np.empty(n, np.int64),
        np.empty(n, np.int32),
        np.zeros(get_num_threads() + 1, np.int64),
        0,
        0,
    ]


def step(s):
    v, out, back, w, first, _, _ = s
    s[5] = encode(out, w, first, v)
    s[6] = decode(back, out, w, first, v)


def checksum(s):
    m = int(s[4][-1])
    return total({"b": s[2] - s[0], "l": m, "h": s[5], "o": s[1][:m], "w": s[6]})


run_numba = partial(run_numba, setup, step, checksum)
