"""FISTA: a sparse signal is recovered from a blurred one by gradient steps, shrinkage and momentum.

Source: A. Beck, M. Teboulle, "A Fast Iterative Shrinkage-Thresholding Algorithm" (2009). Arrays have
a margin of zeros. Every few iterations two sums are read: relative change below a goal ends the loop,
and a growing objective restarts the momentum.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 100_000, "large": 500_000}
R, PENALTY, STEP, MOST, EVERY = 4, 0.02, 0.9, 30, 3


@pk.workunit
def convolve(i, out, x, taps):
    s: float = 0.0
    for k in range(2 * R + 1):
        s += taps[k] * x[i + k - R]
    out[i] = s


@pk.workunit
def mismatch(i, r, blurred, b):
    r[i] = blurred[i] - b[i]


@pk.workunit
def shrink(i, new, z, g):
    v = z[i] - STEP * g[i]
    t = STEP * PENALTY
    new[i] = v - t if v > t else (v + t if v < -t else 0.0)


@pk.workunit
def momentum(i, z, new, x, beta):
    z[i] = new[i] + beta * (new[i] - x[i])


@pk.workunit
def moved(i, acc, new, x):
    acc += (new[i] - x[i]) * (new[i] - x[i])


@pk.workunit
def length(i, acc, x):
    acc += x[i] * x[i]


@pk.workunit
def sparsity(i, acc, x):
    acc += PENALTY * abs(x[i])


@dataclass
class State:
    n: int
    b: pk.View
    taps: pk.View
    x: pk.View
    new: pk.View
    iterations: int = 0
    objective: float = 0.0


def problem(n: int):
    rng = np.random.default_rng(3)
    x = np.where(rng.random(n) < 0.03, rng.normal(0.0, 2.0, n), 0.0)
    taps = np.exp(-0.5 * (np.arange(-R, R + 1) / 1.5) ** 2)
    taps /= taps.sum()
    return np.convolve(x, taps, "same") + 0.01 * rng.normal(size=n), taps


def setup(size: int) -> State:
    b, taps, x, new = (
        pk.View([m], pk.double) for m in (size + 2 * R, 2 * R + 1, size + 2 * R, size + 2 * R)
    )
    b.data[R : size + R], taps.data[:] = problem(size)
    return State(size, b, taps, x, new)


def run(state: State) -> None:
    n, x, new, taps = state.n, state.x, state.new, state.taps
    inner = pk.RangePolicy(R, n + R)
    x.fill(0.0)
    z, blurred, r, g = (pk.View([n + 2 * R], pk.double) for _ in range(4))
    theta, state.objective = 1.0, 1e300
    for state.iterations in range(1, MOST + 1):
        pk.parallel_for(inner, convolve, out=blurred, x=z, taps=taps)
        pk.parallel_for(inner, mismatch, r=r, blurred=blurred, b=state.b)
        pk.parallel_for(inner, convolve, out=g, x=r, taps=taps)
        pk.parallel_for(inner, shrink, new=new, z=z, g=g)
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * theta * theta))
        beta = float((theta - 1.0) / following)
        pk.parallel_for(inner, momentum, z=z, new=new, x=x, beta=beta)
        theta = following
        if state.iterations % EVERY == 0:
            fit = pk.parallel_reduce(inner, length, x=r)
            cost = pk.parallel_reduce(inner, sparsity, x=new)
            objective = 0.5 * float(fit) + float(cost)
            d = pk.parallel_reduce(inner, moved, new=new, x=x)
            s = pk.parallel_reduce(inner, length, x=new)
            done = float(d) < 1e-10 * (float(s) + 1e-30)
            if objective > state.objective:
                theta = 1.0
            state.objective = objective
            if done:
                break
        x, new = new, x
    state.x, state.new = x, new


def outputs(state: State) -> dict[str, np.ndarray | float]:
    return {"x": np.array(state.x.data), "objective": state.objective}


def check(state: State, size: int, runs: int) -> None:
    b, taps = problem(size)
    x = outputs(state)["x"][R : size + R]
    assert state.objective < 0.5 * (0.5 * b @ b), state.objective
    r = np.convolve(x, taps, "same") - b
    np.testing.assert_allclose(0.5 * r @ r + PENALTY * np.abs(x).sum(), state.objective, rtol=0.05)


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
    print(f"fista_deblur: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
