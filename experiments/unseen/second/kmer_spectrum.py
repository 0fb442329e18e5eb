"""k-mers of a genome: codes by a window, a table of canonical counts, its spectrum and entropy.

Source: B. Liu et al., "Estimation of genomic characteristics by k-mer frequency" (2013). A k-mer and
its reverse complement count as one. Counts go to a table of 4**6 entries by atomics, counts of counts
to another one; then every position learns how common its k-mer is, and rare ones are summed.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 500_000, "large": 5_000_000}
K, CODES, SPECTRUM = 6, 4096, 64


@pk.workunit
def encode(i, code, base):
    forward = 0
    for k in range(K):
        forward = forward * 4 + base[i + k]
    code[i] = forward


@pk.workunit
def canonical(i, code):
    reverse = 0
    rest = code[i]
    for k in range(K):
        reverse = (reverse << 2) | (3 - (rest & 3))
        rest = rest >> 2
    if reverse < code[i]:
        code[i] = reverse


@pk.workunit
def count(i, table, code):
    pk.atomic_increment(table, [code[i]])


@pk.workunit
def spectrum(c, bins, table, width):
    if table[c] > 0:
        b = table[c] // width
        pk.atomic_increment(bins, [b if b < SPECTRUM else SPECTRUM - 1])


@pk.workunit
def entropy(c, acc, table, n):
    if table[c] > 0:
        p = float(table[c]) / n
        acc -= p * log2(p)


@pk.workunit
def commonness(i, share, code, table, n):
    share[i] = float(table[code[i]]) / n


@pk.workunit
def window_mean(i, mean, share):
    s = 0.0
    for k in range(16):
        s += share[i + k]
    mean[i] = s / 16.0


@pk.workunit
def rare(i, acc, mean, limit):
    acc += 1 if mean[i] < limit else 0


@dataclass
class State:
    n: int
    base: pk.View
    table: pk.View
    bins: pk.View
    mean: pk.View
    entropy: float = 0.0
    rare: int = 0


def genome(n: int) -> np.ndarray:
    """Bases 0 to 3 with repeats: a short motif comes again and again."""
    rng = np.random.default_rng(19)
    bases = rng.choice(4, n, p=[0.3, 0.2, 0.2, 0.3]).astype(np.uint8)
    motif = rng.integers(0, 4, 40)
    for at in range(0, n - 100, 100 + n // 1000):
        bases[at : at + 40] = motif
    return bases


def setup(size: int) -> State:
    base = pk.View([size], pk.uint8)
    base.data[:] = genome(size)
    table, bins = pk.View([CODES], pk.int32), pk.View([SPECTRUM], pk.int32)
    return State(size, base, table, bins, pk.View([size - K - 14], pk.float))


def run(state: State) -> None:
    n, table = state.n - K + 1, state.table
    code, share = pk.View([n], pk.int32), pk.View([n], pk.float)
    table.fill(0)
    state.bins.fill(0)
    pk.parallel_for(n, encode, code=code, base=state.base)
    pk.parallel_for(n, canonical, code=code)
    pk.parallel_for(n, count, table=table, code=code)
    pk.parallel_for(CODES, spectrum, bins=state.bins, table=table, width=1 + n // 40_000)
    state.entropy = pk.parallel_reduce(CODES, entropy, table=table, n=n)
    pk.parallel_for(n, commonness, share=share, code=code, table=table, n=n)
    pk.parallel_for(n - 15, window_mean, mean=state.mean, share=share)
    state.rare = pk.parallel_reduce(n - 15, rare, mean=state.mean, limit=2.0 / CODES)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    views = {"table": state.table, "bins": state.bins, "mean": state.mean}
    numbers = {"entropy": float(state.entropy), "rare": float(state.rare)}
    return {k: np.array(v.data) for k, v in views.items()} | numbers


def check(state: State, size: int, runs: int) -> None:
    base, n, out = genome(size).astype(np.int64), size - K + 1, outputs(state)
    forward = sum(base[k : k + n] << 2 * (K - 1 - k) for k in range(K))
    back = sum((3 - base[k : k + n]) << 2 * k for k in range(K))
    code = np.minimum(forward, back)
    table = np.bincount(code, minlength=CODES)
    np.testing.assert_array_equal(out["table"], table)
    seen = table[table > 0]
    bins = np.bincount(np.minimum(seen // (1 + n // 40_000), SPECTRUM - 1), minlength=SPECTRUM)
    np.testing.assert_array_equal(out["bins"], bins)
    np.testing.assert_allclose(out["entropy"], -np.sum(seen / n * np.log2(seen / n)), rtol=1e-9)
    sums = np.concatenate([[0.0], np.cumsum(table[code] / n)])
    np.testing.assert_allclose(out["mean"], (sums[16:] - sums[:-16]) / 16, rtol=1e-4)
    assert out["rare"] == np.count_nonzero(out["mean"] < np.float32(2.0 / CODES))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=lambda text: SIZES.get(text) or int(text), default="small")
    parser.add_argument("--runs", type=int, default=1)
    args = parser.parse_args()
    state, start = setup(args.size), perf_counter()
    for _ in range(args.runs):
        run(state)
    seconds = perf_counter() - start
    check(state, args.size, args.runs)
    print(f"kmer_spectrum: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
