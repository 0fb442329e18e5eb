"""What the programs and their Numba peers share: inputs from a hash, checksums."""

import argparse
import statistics
from time import perf_counter

import numpy as np


def rnd(n, seed):
    """Return n numbers in [0, 1), the same as those of common.hpp."""
    with np.errstate(over="ignore"):
        z = np.arange(n, dtype=np.uint64) + np.uint64(seed) * np.uint64(0x632BE59BD9B4E019)
        z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * (1.0 / 9007199254740992.0)


def chk(a):
    """Return a weighted sum."""
    a = np.asarray(a, dtype=np.float64).ravel()
    return float(np.sum(a * (1.0 + np.arange(len(a)) % 7)))


def total(outputs):
    """Return the checksum of a program's outputs."""
    return sum(chk(v) for v in outputs.values())


def run_numba(setup, step, checksum, size):
    """Return seconds (median of 5 warm runs) and the checksum after the first run."""
    state = setup(size)
    step(state)
    value = checksum(state)
    times = []
    for _ in range(5):
        start = perf_counter()
        step(state)
        times.append(perf_counter() - start)
    return statistics.median(times), value


def main(m):
    """Run a program from the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=lambda t: m["SIZES"].get(t) or int(t), default="small")
    parser.add_argument("--runs", type=int, default=1)
    args = parser.parse_args()
    state = m["setup"](args.size)
    start = perf_counter()
    for _ in range(args.runs):
        m["run"](state)
    print(f"{perf_counter() - start:.4f} s, checksum {total(m['outputs'](state)):.15g}")
