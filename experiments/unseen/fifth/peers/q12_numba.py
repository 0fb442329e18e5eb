"""Numba peer of q12: a day is two loops of people and one of cells; tallies a thread."""

from functools import partial
from math import exp

import numpy as np
from common import rnd, run_numba, total
from nb import inl, jit, rjit
from numba import prange

CONTACTS, REGIONS = 6, 64
S13, S7, S17, S12 = np.uint64(13), np.uint64(7), np.uint64(17), np.uint64(12)


@jit
def begin(virus, start, seed, seeds, shield, cell, parts):
    n = len(virus)
    for t in prange(2):
        p = parts[t]
        p[:] = 0
        for i in range(t * n // 2, (t + 1) * n // 2):
            virus[i] = start[i]
            seed[i] = seeds[i]
            shield[i] = 0.0
            if start[i] > 0.05:
                p[cell[i]] += int(1000.0 * start[i])


@jit
def breeze(out, air, parts):
    n = air.shape[0]
    for y in prange(n):
        u, d = y - 1 if y > 0 else n - 1, y + 1 if y < n - 1 else 0
        for x in range(n):
            l, r = x - 1 if x > 0 else n - 1, x + 1 if x < n - 1 else 0
            a = air[y, x]
            out[y, x] = 0.6 * (
                a + 0.15 * (air[y, l] + air[y, r] + air[u, x] + air[d, x] - 4.0 * a)
            ) + 0.001 * (parts[0, y * n + x] + parts[1, y * n + x])


@inl
def gr(v, s):
    return v * (1.2 * (1.0 - v) - 2.5 * s)


@inl
def re(v, s):
    return 0.8 * v * (1.0 - s) - 0.01 * s


@rjit
def day(new, virus, shield, seed, contact, cell, region, air, beta, parts, cases):
    n = len(virus)
    immune, sick = 0.0, 0
    for t in prange(2):
        p, q = parts[t], cases[t]
        p[:] = 0
        q[:] = 0
        im, si = 0.0, 0
        for i in range(t * n // 2, (t + 1) * n // 2):
            pr = 0.0
            for k in range(CONTACTS):
                w = virus[contact[i, k]]
                if w > 0.05:
                    pr += w
            pr += 0.1 * air[cell[i]]
            s = seed[i]
            s ^= s << S13
            s ^= s >> S7
            s ^= s << S17
            seed[i] = s
            u = np.int64(s >> S12) * 2.220446049250313e-16
            v, h = virus[i], shield[i]
            if v < 0.05 and u < 1.0 - exp(-beta * pr * (1.0 - h)):
                v = 0.1
            a, b = v + 0.5 * gr(v, h), h + 0.5 * re(v, h)
            v += gr(a, b)
            h += re(a, b)
            if v < 0.01:
                v = 0.0
            new[i], shield[i] = v, h
            im += h
            if v > 0.05:
                si += 1
                q[region[i]] += 1
                p[cell[i]] += int(1000.0 * v)
        immune += im
        sick += si
    return immune, sick


@jit
def vaccinate(shield, region, worst):
    for i in prange(len(shield)):
        if region[i] == worst:
            shield[i] = max(shield[i], 0.5)


def people(n):
    side = max(int((n / 8) ** 0.5), 8)
    i = np.arange(n)
    away = (
        (rnd(n * CONTACTS, 22) - 0.5)
        * np.where(np.arange(n * CONTACTS) % CONTACTS == 5, 20_000, 60)
    ).astype(np.int64)
    contact = (np.repeat(i, CONTACTS) + away) % n
    cell = (i * side * side // n + (rnd(n, 23) * side * 4).astype(np.int64)) % (side * side)
    start = np.where(rnd(n, 24) < 0.02, 0.3, 0.0)
    seeds = (rnd(n, 25) * 2.0**53).astype(np.uint64) + np.uint64(1)
    return (
        side,
        contact.reshape(n, CONTACTS).astype(np.int32),
        cell.astype(np.int32),
        (i * REGIONS // n).astype(np.int32),
        start,
        seeds,
    )


def setup(n):
    side, *rest = people(n)
    return {
        "p": rest,
        "n": n,
        "virus": [np.empty(n), np.empty(n)],
        "shield": np.empty(n),
        "seed": np.empty(n, np.uint64),
        "air": [np.empty((side, side)), np.empty((side, side))],
        "parts": np.empty((2, side * side), np.int64),
        "cases": np.empty((2, REGIONS), np.int32),
    }


def step(s):
    contact, cell, region, start, seeds = s["p"]
    (virus, new), (air, spare), shield, seed, parts, n = (
        s["virus"],
        s["air"],
        s["shield"],
        s["seed"],
        s["parts"],
        s["n"],
    )
    begin(virus, start, seed, seeds, shield, cell, parts)
    air[:] = 0.0
    beta, story = 0.3, []
    for _ in range(5):
        breeze(spare, air, parts)
        air, spare = spare, air
        immune, sick = day(
            new, virus, shield, seed, contact, cell, region, air.ravel(), beta, parts, s["cases"]
        )
        virus, new = new, virus
        worst = int(np.argmax(s["cases"].sum(axis=0)))
        vaccinate(shield, region, worst)
        share = sick / n
        beta = 0.15 if share > 0.2 else 0.3
        story += [share, immune / n, float(worst)]
    s["o"] = virus, shield, air, story


def checksum(s):
    return total(dict(enumerate(s["o"])))


run_numba = partial(run_numba, setup, step, checksum)
