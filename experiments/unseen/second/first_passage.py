"""First passage of random walks on a lattice out of a disc, by Monte Carlo with integer generators.

Source: S. Redner, "A Guide to First-Passage Processes" (2001); G. Marsaglia, "Xorshift RNGs" (2003). Each
walker loops until it leaves; then its side, statistics of all and a histogram of times.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 40_000, "large": 180_000}
RADIUS, MOST, BINS = 12, 2_000, 40


@pk.workunit
def seed(i: int, s: pk.View1D[pk.uint32]):
    h: pk.uint32 = i
    h = (h ^ 61) ^ (h >> 16)
    h *= 9
    h ^= h >> 4
    h *= 668265261
    h ^= h >> 15
    s[i] = h if h != 0 else 1


@pk.workunit
def walk(
    i: int,
    s: pk.View1D[pk.uint32],
    x: pk.View1D[pk.int16],
    y: pk.View1D[pk.int16],
    time: pk.View1D[pk.int32],
):
    r: pk.uint32 = s[i]
    a: int = 0
    b: int = 0
    t: int = 0
    while a * a + b * b < RADIUS * RADIUS and t < MOST:
        r ^= r << 13
        r ^= r >> 17
        r ^= r << 5
        way: int = r >> 30
        if way == 0:
            a += 1
        elif way == 1:
            a -= 1
        elif way == 2:
            b += 1
        else:
            b -= 1
        t += 1
    x[i] = a
    y[i] = b
    time[i] = t
    s[i] = r


@pk.workunit
def side(i: int, quarter: pk.View1D[pk.uint8], x: pk.View1D[pk.int16], y: pk.View1D[pk.int16]):
    quarter[i] = (2 if y[i] < 0 else 0) + (1 if x[i] < 0 else 0)


@pk.workunit
def in_quarter(i: int, acc: pk.Acc[pk.int64], quarter: pk.View1D[pk.uint8], which: int):
    if quarter[i] == which:
        acc += 1


@pk.workunit
def moment(i: int, acc: pk.Acc[pk.double], time: pk.View1D[pk.int32], power: int):
    t: float = time[i]
    p: float = 1.0
    for _ in range(power):
        p *= t
    acc += p


@pk.workunit
def tally(i: int, bins: pk.View1D[pk.int32], time: pk.View1D[pk.int32]):
    pk.atomic_add(bins, [time[i] * BINS // (MOST + 1)], 1)


@dataclass
class State:
    n: int
    time: pk.View
    bins: pk.View
    numbers: list


def setup(size: int) -> State:
    return State(size, pk.View([size], pk.int32), pk.View([BINS], pk.int32), [])


def run(state: State) -> None:
    n, time = state.n, state.time
    s, quarter = pk.View([n], pk.uint32), pk.View([n], pk.uint8)
    x, y = pk.View([n], pk.int16), pk.View([n], pk.int16)
    state.bins.fill(0)
    pk.parallel_for(n, seed, s=s)
    pk.parallel_for(n, walk, s=s, x=x, y=y, time=time)
    pk.parallel_for(n, side, quarter=quarter, x=x, y=y)
    pk.parallel_for(n, tally, bins=state.bins, time=time)
    counts = [pk.parallel_reduce(n, in_quarter, quarter=quarter, which=q) for q in range(4)]
    moments = [pk.parallel_reduce(n, moment, time=time, power=p) for p in (1, 2, 3)]
    state.numbers = [float(number) for number in counts + moments]


def outputs(state: State) -> dict[str, np.ndarray | float]:
    out = {"time": np.array(state.time.data), "bins": np.array(state.bins.data)}
    return out | {"numbers": np.array(state.numbers)}


def check(state: State, size: int, runs: int) -> None:
    """The mean time is about RADIUS**2 (variance 1 a step), within the error of the sample."""
    out = outputs(state)
    time, numbers = out["time"].astype(float), out["numbers"]
    h = np.arange(size, dtype=np.uint32)
    h = ((h ^ np.uint32(61)) ^ (h >> np.uint32(16))) * np.uint32(9)
    h ^= h >> np.uint32(4)
    h *= np.uint32(668265261)
    h ^= h >> np.uint32(15)
    r, a, b, t = np.maximum(h, 1), np.zeros(size, int), np.zeros(size, int), np.zeros(size, int)
    inside = np.ones(size, bool)
    while inside.any():
        r ^= r << np.uint32(13)
        r ^= r >> np.uint32(17)
        r ^= r << np.uint32(5)
        way = r >> np.uint32(30)
        a += inside * ((way == 0).astype(int) - (way == 1))
        b += inside * ((way == 2).astype(int) - (way == 3))
        t += inside
        inside &= (a * a + b * b < RADIUS**2) & (t < MOST)
    np.testing.assert_array_equal(time, t)
    assert sum(numbers[:4]) == size and out["bins"].sum() == size
    np.testing.assert_allclose(numbers[4:], [np.sum(time**p) for p in (1, 2, 3)], rtol=1e-12)
    assert abs(time.mean() / RADIUS**2 - 1.1) < 0.25, time.mean()


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
    print(f"first_passage: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
