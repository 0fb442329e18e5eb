"""Shared: inputs from a hash, checksums, a command line."""

import argparse
from time import perf_counter

import numpy as np
import pyfuser
import pykokkos as pk


def rnd(n, seed):
    with np.errstate(over="ignore"):
        z = np.arange(n, dtype=np.uint64) + np.uint64(seed) * np.uint64(0x632BE59BD9B4E019)
        z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * (1.0 / 9007199254740992.0)


def view(a, t=pk.double):
    v = pk.View(list(a.shape), t)
    v.data[:] = a
    return v


def chk(a):
    a = np.asarray(a, dtype=np.float64).ravel()
    return float(np.sum(a * (1.0 + np.arange(len(a)) % 7)))


def total(outputs):
    return sum(chk(v) for v in outputs.values())


def main(m):
    p = argparse.ArgumentParser()
    p.add_argument("--size", type=lambda t: m["SIZES"].get(t) or int(t), default="small")
    p.add_argument("--runs", type=int, default=1)
    a = p.parse_args()
    s = m["setup"](a.size)
    t = perf_counter()
    for _ in range(a.runs):
        m["run"](s)
    print(f"{perf_counter() - t:.4f} s, checksum {total(m['outputs'](s)):.15g}")
