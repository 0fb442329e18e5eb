"""Histogram equalisation of a grey picture of bytes, with a clipped histogram (limited contrast).

Source: S. Pizer et al., "Adaptive Histogram Equalization and Its Variations" (1987), for one tile:
a tally by atomics, a clip whose excess is shared out, a scan over the 256 bins, and a look-up.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 1_000_000, "large": 12_000_000}
BINS, LIMIT = 256, 3.0


@pk.workunit
def clear(b: int, bins: pk.View1D[pk.int32]):
    bins[b] = 0


@pk.workunit
def tally(i: int, bins: pk.View1D[pk.int32], pixel: pk.View1D[pk.uint8]):
    pk.atomic_fetch_add(bins, [pixel[i]], 1)


@pk.workunit
def excess(b: int, acc: pk.Acc[pk.int64], bins: pk.View1D[pk.int32], most: int):
    if bins[b] > most:
        acc += bins[b] - most


@pk.workunit
def clip(b: int, bins: pk.View1D[pk.int32], most: int, share: int):
    bins[b] = (min(bins[b], most)) + share


@pk.workunit
def cumulate(
    b: int, acc: pk.Acc[pk.int64], last: bool, below: pk.View1D[pk.int64], bins: pk.View1D[pk.int32]
):
    acc += bins[b]
    if last:
        below[b] = acc


@pk.workunit
def make_table(b: int, table: pk.View1D[pk.uint8], below: pk.View1D[pk.int64]):
    first: pk.int64 = below[0]
    span: pk.int64 = below[255] - first
    table[b] = (255 * (below[b] - first) + span // 2) // span


@pk.workunit
def look_up(
    i: int, out: pk.View1D[pk.uint8], pixel: pk.View1D[pk.uint8], table: pk.View1D[pk.uint8]
):
    out[i] = table[pixel[i]]


@pk.workunit
def deviation(i: int, acc: pk.Acc[pk.int64], out: pk.View1D[pk.uint8]):
    d: int = out[i] - 128
    acc += d * d


@dataclass
class State:
    n: int
    pixel: pk.View
    out: pk.View
    bins: pk.View
    table: pk.View
    spread: float = 0.0


def picture(n: int) -> np.ndarray:
    """A dark picture with smooth parts, so neighbours often fall into one bin."""
    rng = np.random.default_rng(8)
    smooth = 60 + 40 * np.sin(np.arange(n) * 2e-3)
    return np.clip(smooth + rng.normal(0.0, 6.0, n), 0, 255).astype(np.uint8)


def setup(size: int) -> State:
    pixel, out = pk.View([size], pk.uint8), pk.View([size], pk.uint8)
    pixel.data[:] = picture(size)
    return State(size, pixel, out, pk.View([BINS], pk.int32), pk.View([BINS], pk.uint8))


def run(state: State) -> None:
    n, bins, below = state.n, state.bins, pk.View([BINS], pk.int64)
    most = int(LIMIT * n / BINS)
    pk.parallel_for(BINS, clear, bins=bins)
    pk.parallel_for(n, tally, bins=bins, pixel=state.pixel)
    over = pk.parallel_reduce(BINS, excess, bins=bins, most=most)
    pk.parallel_for(BINS, clip, bins=bins, most=most, share=int(over) // BINS)
    pk.parallel_scan(BINS, cumulate, below=below, bins=bins)
    pk.parallel_for(BINS, make_table, table=state.table, below=below)
    pk.parallel_for(n, look_up, out=state.out, pixel=state.pixel, table=state.table)
    state.spread = pk.parallel_reduce(n, deviation, out=state.out)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    views = {"out": state.out, "bins": state.bins, "table": state.table}
    return {k: np.array(v.data) for k, v in views.items()} | {"spread": float(state.spread)}


def check(state: State, size: int, runs: int) -> None:
    pixel, out = picture(size), outputs(state)
    bins, most = np.bincount(pixel, minlength=BINS), int(LIMIT * size / BINS)
    bins = np.minimum(bins, most) + np.maximum(bins - most, 0).sum() // BINS
    below = np.cumsum(bins) - bins[0]
    table = (255 * below + below[-1] // 2) // below[-1]
    np.testing.assert_array_equal(out["bins"], bins)
    np.testing.assert_array_equal(out["out"], table[pixel])
    assert out["spread"] == np.sum((table[pixel].astype(int) - 128) ** 2)


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
    print(f"equalise_image: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
