"""Denoise by wavelets: the CDF 5/3 transform in place by lifting, a threshold, and the way back.

Source: I. Daubechies, W. Sweldens, "Factoring Wavelet Transforms into Lifting Steps" (1998). On each level
the stride doubles and the range halves; the signal is mirrored at its ends.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 1 << 10, "default": 1 << 18, "large": 1 << 22}
LEVELS = 6


@pk.workunit
def load(i, x, signal):
    x[i] = signal[i]


@pk.workunit
def predict(i, x, s, half, sign):
    right = 2 * i + 2 if i + 1 < half else 2 * i
    x[(2 * i + 1) * s] -= sign * 0.5 * (x[2 * i * s] + x[right * s])


@pk.workunit
def update(i, x, s, sign):
    left = 2 * i - 1 if i > 0 else 1
    x[2 * i * s] += sign * 0.25 * (x[left * s] + x[(2 * i + 1) * s])


@pk.workunit
def detail(i, acc, x, s):
    acc += abs(x[(2 * i + 1) * s])


@pk.workunit
def shrink(i, x, s, limit):
    v = x[(2 * i + 1) * s]
    x[(2 * i + 1) * s] = v - limit if v > limit else (v + limit if v < -limit else 0.0)


@pk.workunit
def kept(i, acc, x):
    if x[i] != 0.0:
        acc += 1


@pk.workunit
def difference(i, acc, x, y):
    acc += (x[i] - y[i]) * (x[i] - y[i])


@dataclass
class State:
    n: int
    noisy: pk.View
    clean: pk.View
    x: pk.View
    kept: int = 0
    before: float = 0.0
    after: float = 0.0


def signals(n: int):
    t = np.arange(n) * (20.0 / n)
    clean = np.sin(t) + 0.5 * np.sign(np.sin(2.3 * t)) + 0.05 * t
    return clean + 0.15 * np.random.default_rng(61).normal(size=n), clean


def setup(size: int) -> State:
    noisy, clean, x = (pk.View([size], pk.double) for _ in range(3))
    noisy.data[:], clean.data[:] = signals(size)
    return State(size, noisy, clean, x)


def run(state: State) -> None:
    n, x = state.n, state.x
    pk.parallel_for(n, load, x=x, signal=state.noisy)
    for level in range(LEVELS):
        s, half = 1 << level, n >> (level + 1)
        pk.parallel_for(half, predict, x=x, s=s, half=half, sign=1.0)
        pk.parallel_for(half, update, x=x, s=s, sign=1.0)
    sizes = [
        pk.parallel_reduce(n >> (level + 1), detail, x=x, s=1 << level) for level in range(LEVELS)
    ]
    for level in range(LEVELS):
        limit = 3.0 * float(sizes[level]) / (n >> (level + 1))
        pk.parallel_for(n >> (level + 1), shrink, x=x, s=1 << level, limit=limit)
    number = pk.parallel_reduce(n, kept, x=x)
    for level in reversed(range(LEVELS)):
        s, half = 1 << level, n >> (level + 1)
        pk.parallel_for(half, update, x=x, s=s, sign=-1.0)
        pk.parallel_for(half, predict, x=x, s=s, half=half, sign=-1.0)
    before = pk.parallel_reduce(n, difference, x=state.noisy, y=state.clean)
    after = pk.parallel_reduce(n, difference, x=x, y=state.clean)
    state.kept, state.before, state.after = int(number), float(before), float(after)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    numbers = {"kept": state.kept, "before": state.before, "after": state.after}
    return {"x": np.array(state.x.data)} | numbers


def check(state: State, size: int, runs: int) -> None:
    noisy, clean = signals(size)
    details, a = [], noisy
    for _ in range(LEVELS):
        even, odd = a[::2].copy(), a[1::2].copy()
        odd -= 0.5 * (even + np.append(even[1:], even[-1]))
        even += 0.25 * (np.append(odd[0], odd[:-1]) + odd)
        limit = 3.0 * np.mean(np.abs(odd))
        details.append(np.sign(odd) * np.maximum(np.abs(odd) - limit, 0.0))
        a = even
    for odd in reversed(details):
        even = a - 0.25 * (np.append(odd[0], odd[:-1]) + odd)
        odd = odd + 0.5 * (even + np.append(even[1:], even[-1]))
        a = np.stack([even, odd], axis=1).ravel()
    np.testing.assert_allclose(state.x.data, a, atol=1e-10)
    np.testing.assert_allclose(state.after, np.sum((a - clean) ** 2), rtol=1e-9)
    assert state.kept < size // 3
    assert size < 1 << 14 or state.after < 0.1 * state.before


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
    print(f"lifting_wavelet: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
