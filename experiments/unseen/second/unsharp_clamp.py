"""Sharpen a picture of floats: Gaussian blur, unsharp mask, and no overshoot beyond the neighbours.

Source: R. Gonzalez, R. Woods, "Digital Image Processing", 3.6; local limits as in halo suppression.
Pixels beyond the edge are those at the edge: subscripts are clamped by conditional expressions.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 32, "default": 500, "large": 1_800}
ROUNDS, AMOUNT = 3, 0.8


@pk.workunit
def blur_across(i, j, out, x, w):
    l2 = j - 2 if j >= 2 else 0
    l1 = j - 1 if j >= 1 else 0
    r1 = j + 1 if j + 1 < w else w - 1
    r2 = j + 2 if j + 2 < w else w - 1
    out[i][j] = 0.0625 * (x[i][l2] + x[i][r2]) + 0.25 * (x[i][l1] + x[i][r1]) + 0.375 * x[i][j]


@pk.workunit
def blur_down(i, j, out, x, h):
    u2 = i - 2 if i > 1 else 0
    u1 = i - 1 if i > 0 else 0
    d1 = h - 1 if i + 1 >= h else i + 1
    d2 = h - 1 if i + 2 >= h else i + 2
    out[i][j] = 0.0625 * (x[u2][j] + x[d2][j]) + 0.25 * (x[u1][j] + x[d1][j]) + 0.375 * x[i][j]


@pk.workunit
def sharpen(i, j, out, x, blurred, amount):
    out[i][j] = x[i][j] + amount * (x[i][j] - blurred[i][j])


@pk.workunit
def limits(i, j, low, high, x, h, w):
    u = i - 1 if i > 0 else i
    d = i + 1 if i < h - 1 else i
    l = j - 1 if j > 0 else j
    r = j + 1 if j < w - 1 else j
    low[i][j] = fmin(fmin(fmin(x[u][j], x[d][j]), fmin(x[i][l], x[i][r])), x[i][j])
    high[i][j] = fmax(fmax(fmax(x[u][j], x[d][j]), fmax(x[i][l], x[i][r])), x[i][j])


@pk.workunit
def restrain(i, j, out, sharp, low, high, slack):
    room = slack * (high[i][j] - low[i][j])
    out[i][j] = fmin(fmax(sharp[i][j], low[i][j] - room), high[i][j] + room)


@pk.workunit
def gradient(i, j, acc, x, h, w):
    dx = x[i][j + 1 if j + 1 < w else j] - x[i][j]
    dy = x[i + 1 if i + 1 < h else i][j] - x[i][j]
    acc += dx * dx + dy * dy


@dataclass
class State:
    h: int
    w: int
    picture: pk.View
    result: pk.View
    sharpness: float = 0.0


def photo(h: int, w: int) -> np.ndarray:
    y, x = np.mgrid[0:h, 0:w]
    noise = np.random.default_rng(9).normal(0.0, 0.01, (h, w))
    return (0.5 + 0.3 * np.sin(0.11 * x + 0.02 * y) + 0.2 * (x * y % 97 > 48) + noise).astype(
        np.float32
    )


def setup(size: int) -> State:
    h, w = size, size + size // 4
    picture, result = pk.View([h, w], pk.float), pk.View([h, w], pk.float)
    picture.data[:] = photo(h, w)
    return State(h, w, picture, result)


def run(state: State) -> None:
    h, w = state.h, state.w
    pixels = pk.MDRangePolicy([0, 0], [h, w])
    x, y, a, b, sharp, low, high = state.picture, *(pk.View([h, w], pk.float) for _ in range(6))
    for k in range(ROUNDS):
        out = state.result if k == ROUNDS - 1 else y
        pk.parallel_for(pixels, blur_across, out=a, x=x, w=w)
        pk.parallel_for(pixels, blur_down, out=b, x=a, h=h)
        pk.parallel_for(pixels, sharpen, out=sharp, x=x, blurred=b, amount=AMOUNT / (k + 1))
        pk.parallel_for(pixels, limits, low=low, high=high, x=x, h=h, w=w)
        pk.parallel_for(pixels, restrain, out=out, sharp=sharp, low=low, high=high, slack=0.1)
        x, y = out, (y if k else pk.View([h, w], pk.float))
    state.sharpness = pk.parallel_reduce(pixels, gradient, x=state.result, h=h, w=w)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    return {"result": np.array(state.result.data), "sharpness": float(state.sharpness)}


def check(state: State, size: int, runs: int) -> None:
    x = photo(state.h, state.w).astype(float)
    for k in range(ROUNDS):
        b = x
        for axis in (1, 0):
            e = np.pad(b, [(2, 2) if a == axis else (0, 0) for a in (0, 1)], "edge")
            t = [np.take(e, range(s, s + b.shape[axis]), axis) for s in range(5)]
            b = 0.0625 * (t[0] + t[4]) + 0.25 * (t[1] + t[3]) + 0.375 * t[2]
        e = np.pad(x, 1, "edge")
        around = np.stack([e[:-2, 1:-1], e[2:, 1:-1], e[1:-1, :-2], e[1:-1, 2:], x])
        low, high = around.min(0), around.max(0)
        room = 0.1 * (high - low)
        x = np.clip(x + AMOUNT / (k + 1) * (x - b), low - room, high + room)
    np.testing.assert_allclose(outputs(state)["result"], x, atol=2e-5)
    sharp = np.sum(np.diff(x, axis=0) ** 2) + np.sum(np.diff(x, axis=1) ** 2)
    np.testing.assert_allclose(float(state.sharpness), sharp, rtol=1e-3)


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
    print(f"unsharp_clamp: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
