"""Numba peer of q10: the second jump counts the changes."""

from functools import partial

import numpy as np
from common import rnd, run_numba, total
from nb import jit
from numba import prange


@jit
def number(label):
    for i in prange(len(label)):
        label[i] = i


@jit
def hook(new, parts, label, start, target):
    """Numba has no atomics here: each thread has its own minima."""
    n = len(label)
    for t in prange(2):
        p = parts[t]
        p[:] = label
        for i in range(t * n // 2, (t + 1) * n // 2):
            v = label[i]
            for e in range(start[i], start[i + 1]):
                v = min(v, label[target[e]])
            if v < label[i]:
                p[label[i]] = min(p[label[i]], v)
                p[i] = min(p[i], v)
    for i in prange(n):
        new[i] = min(parts[0, i], parts[1, i])


@jit
def jump2(out, new, old):
    """Two jumps: from new to a copy and on; out must not be new."""
    c = 0
    for i in prange(len(out)):
        v = new[new[i]]
        w = new[new[v]]
        out[i] = w
        c += w != old[i]
    return c


@jit
def tally(parts, label):
    n = len(label)
    for t in prange(2):
        p = parts[t]
        p[:] = 0
        for i in range(t * n // 2, (t + 1) * n // 2):
            p[label[i]] += 1


@jit
def merge(size, parts, label):
    count, sq = 0, 0.0
    for i in prange(len(size)):
        v = parts[0, i] + parts[1, i]
        size[i] = v
        sq += float(v) * v
        count += label[i] == i
    return count, sq


@jit
def edges(size, label, start, limit):
    c = 0
    for i in prange(len(size)):
        if size[label[i]] >= limit:
            c += start[i + 1] - start[i]
    return c


def graph(n):
    i = np.arange(n - 1)[rnd(n - 1, 18) < 0.97]
    j = i + 1
    k = np.arange(n)[rnd(n, 19) < 0.05]
    m = np.minimum(k + 2 + (rnd(len(k), 20) ** 3 * 3000).astype(np.int64), n - 1)
    src, dst = np.concatenate([i, j, k, m]), np.concatenate([j, i, m, k])
    order = np.argsort(src, kind="stable")
    start = np.zeros(n + 1, np.int32)
    start[1:] = np.cumsum(np.bincount(src, minlength=n))
    return start, dst[order].astype(np.int32)


def setup(n):
    return {
        "g": graph(n),
        "v": [np.empty(n, np.int32) for _ in range(4)],
        "parts": np.empty((2, n), np.int32),
    }


def step(s):
    (start, target), (label, new, out, size) = s["g"], s["v"]
    number(label)
    rounds = 0
    while True:
        hook(new, s["parts"], label, start, target)
        left = jump2(out, new, label)
        label, out = out, label
        rounds += 1
        if left == 0:
            break
    tally(s["parts"], label)
    count, sq = merge(size, s["parts"], label)
    largest = int(size.max())
    e = edges(size, label, start, max(largest // 4, 2))
    s["v"] = [label, new, out, size]
    s["o"] = label, size, float(count), sq, float(largest), float(e), float(rounds)


def checksum(s):
    return total(dict(enumerate((s["o"][0] * 1e-3, *s["o"][1:]))))


run_numba = partial(run_numba, setup, step, checksum)
