"""Elementwise chain: from a detector's raw counts to clipped significances in 8 small steps.

Source: the usual reduction of a CCD frame (dark frame, flat field, linearity, gain, noise), see
S. Howell, "Handbook of CCD Astronomy", ch. 4.

One run makes 8 launches with 7 temporaries that die. Unfused they move 19 doubles (152 bytes) a
pixel; fused, 3 inputs and 1 output are left (32 bytes).
"""

import argparse
from dataclasses import dataclass
from math import sqrt
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 10_000, "default": 10_000_000, "large": 16_000_000, "gpu": 100_000_000}
CURVATURE, GAIN, SKY, READ_NOISE, LIMIT = 1e-6, 1.7, 120.0, 4.5, 5.0


@pk.workunit
def subtract(i, result, x, y):
    result[i] = x[i] - y[i]


@pk.workunit
def divide(i, result, x, y):
    result[i] = x[i] / y[i]


@pk.workunit
def linearise(i, result, x, curvature):
    result[i] = x[i] + curvature * x[i] * x[i]


@pk.workunit
def scale(i, result, x, factor):
    result[i] = factor * x[i]


@pk.workunit
def remove_level(i, result, x, level):
    result[i] = x[i] - level


@pk.workunit
def noise(i, result, electrons, floor2):
    result[i] = sqrt(electrons[i] + floor2)


@pk.workunit
def clip(i, result, x, limit):
    value: float = x[i]
    if value > limit:
        value = limit
    if value < -limit:
        value = -limit
    result[i] = value


@dataclass
class State:
    """The frames and what is made of them."""

    size: int
    raw: pk.View
    dark: pk.View
    flat: pk.View
    significance: pk.View


def frames(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the raw, the dark and the flat frame."""
    rng = np.random.default_rng(5)
    return rng.uniform(60, 200, size), rng.uniform(10, 20, size), rng.uniform(0.9, 1.1, size)


def setup(size: int) -> State:
    """Make random frames."""
    raw, dark, flat, significance = (pk.View([size], pk.double) for _ in range(4))
    for view, values in zip((raw, dark, flat), frames(size), strict=True):
        view.data[:] = values
    return State(size, raw, dark, flat, significance)


def calibrate(state: State) -> None:
    """Work through the chain once."""
    n = state.size
    counts, even, linear, electrons, signal, error, ratio = (
        pk.View([n], pk.double) for _ in range(7)
    )
    pk.parallel_for(n, subtract, result=counts, x=state.raw, y=state.dark)
    pk.parallel_for(n, divide, result=even, x=counts, y=state.flat)
    pk.parallel_for(n, linearise, result=linear, x=even, curvature=CURVATURE)
    pk.parallel_for(n, scale, result=electrons, x=linear, factor=GAIN)
    pk.parallel_for(n, remove_level, result=signal, x=electrons, level=SKY)
    pk.parallel_for(n, noise, result=error, electrons=electrons, floor2=READ_NOISE * READ_NOISE)
    pk.parallel_for(n, divide, result=ratio, x=signal, y=error)
    pk.parallel_for(n, clip, result=state.significance, x=ratio, limit=LIMIT)


def run(state: State) -> None:
    """Calibrate the frame; each run does the same."""
    calibrate(state)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read the significances."""
    return {"significance": np.array(state.significance.data)}


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """One formula in NumPy."""
    if runs == 0:
        return {"significance": np.zeros(size)}
    raw, dark, flat = frames(size)
    even = (raw - dark) / flat
    electrons = GAIN * even * (1.0 + CURVATURE * even)
    ratio = (electrons - SKY) / np.hypot(np.sqrt(electrons), READ_NOISE)
    return {"significance": np.clip(ratio, -LIMIT, LIMIT)}


def check(state: State, size: int, runs: int) -> None:
    """About ten roundings; subtracting the sky (120 of up to 340) costs an absolute 1e-13."""
    actual, expected = outputs(state), reference(size, runs)
    np.testing.assert_allclose(
        actual["significance"], expected["significance"], rtol=1e-13, atol=1e-13
    )


def main() -> None:
    """Run and check from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=lambda text: SIZES.get(text) or int(text), default="small")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--space", default=None, help="an execution space, such as OpenMP")
    args = parser.parse_args()
    if args.space:
        pk.set_default_space(pk.ExecutionSpace(args.space))
    state = setup(args.size)
    start = perf_counter()
    for _ in range(args.runs):
        run(state)
    seconds = perf_counter() - start
    check(state, args.size, args.runs)
    print(f"elementwise_chain: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
