"""Harris corners: gradients, their products, box sums, and the response of each pixel.

Source: C. Harris and M. Stephens, "A Combined Corner and Edge Detector" (1988), the form that the
Halide papers measure (Sobel gradients, 3 x 3 box). The image lies flat, row after row, and every
launch goes over a stretch of it; near the left and right rim the result has no meaning (shifts
reach into the next row there) and is not looked at. `harris_md` does the same on 2-D views.

One run makes 11 maps and 1 reduction with 10 temporaries. Unfused they move 28 doubles (224 bytes)
a pixel; fused in two kernels, 1 in, 3 out; 3 in, 1 out (64 bytes).
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 64, "default": 2500, "large": 5000, "gpu": 8000}
KAPPA, THRESHOLD = 0.04, 0.5


@pk.workunit
def gradient_x(i: int, g: pk.View1D[pk.double], p: pk.View1D[pk.double], w: int) -> None:
    left: float = p[i - w - 1] + 2.0 * p[i - 1] + p[i + w - 1]
    right: float = p[i - w + 1] + 2.0 * p[i + 1] + p[i + w + 1]
    g[i] = 0.125 * (right - left)


@pk.workunit
def gradient_y(i: int, g: pk.View1D[pk.double], p: pk.View1D[pk.double], w: int) -> None:
    above: float = p[i - w - 1] + 2.0 * p[i - w] + p[i - w + 1]
    below: float = p[i + w - 1] + 2.0 * p[i + w] + p[i + w + 1]
    g[i] = 0.125 * (below - above)


@pk.workunit
def product(
    i: int, result: pk.View1D[pk.double], x: pk.View1D[pk.double], y: pk.View1D[pk.double]
) -> None:
    result[i] = x[i] * y[i]


@pk.workunit
def box_sum(i: int, s: pk.View1D[pk.double], x: pk.View1D[pk.double], w: int) -> None:
    """Sum of the 3 x 3 neighbourhood."""
    above: float = x[i - w - 1] + x[i - w] + x[i - w + 1]
    here: float = x[i - 1] + x[i] + x[i + 1]
    below: float = x[i + w - 1] + x[i + w] + x[i + w + 1]
    s[i] = above + here + below


@pk.workunit
def determinant(
    i: int,
    det: pk.View1D[pk.double],
    sxx: pk.View1D[pk.double],
    syy: pk.View1D[pk.double],
    sxy: pk.View1D[pk.double],
) -> None:
    det[i] = sxx[i] * syy[i] - sxy[i] * sxy[i]


@pk.workunit
def trace(
    i: int, tr: pk.View1D[pk.double], sxx: pk.View1D[pk.double], syy: pk.View1D[pk.double]
) -> None:
    tr[i] = sxx[i] + syy[i]


@pk.workunit
def respond(
    i: int,
    response: pk.View1D[pk.double],
    det: pk.View1D[pk.double],
    tr: pk.View1D[pk.double],
    kappa: float,
) -> None:
    response[i] = det[i] - kappa * tr[i] * tr[i]


@pk.workunit
def strength(
    i: int, acc: pk.Acc[pk.double], response: pk.View1D[pk.double], threshold: float
) -> None:
    if response[i] > threshold:
        acc += response[i]


@dataclass
class State:
    """The image, the response and the strength of all corners."""

    size: int
    image: pk.View
    response: pk.View
    corners: float = 0.0


def picture(size: int) -> np.ndarray:
    """Return a board of squares under noise."""
    rows, columns = np.indices((size, size)) // 8
    return 2.0 * ((rows + columns) % 2) + np.random.default_rng(13).uniform(0, 1, (size, size))


def setup(size: int) -> State:
    """Make an image."""
    image, response = (pk.View([size * size], pk.double) for _ in range(2))
    image.data[:] = picture(size).ravel()
    return State(size, image, response)


def structure(
    image: pk.View, width: int, near: pk.RangePolicy, inner: pk.RangePolicy
) -> list[pk.View]:
    """Return the box sums of the gradients' products: xx, yy and xy."""
    gx, gy, xx, yy, xy, sxx, syy, sxy = (pk.View([width * width], pk.double) for _ in range(8))
    pk.parallel_for(near, gradient_x, g=gx, p=image, w=width)
    pk.parallel_for(near, gradient_y, g=gy, p=image, w=width)
    pk.parallel_for(near, product, result=xx, x=gx, y=gx)
    pk.parallel_for(near, product, result=yy, x=gy, y=gy)
    pk.parallel_for(near, product, result=xy, x=gx, y=gy)
    pk.parallel_for(inner, box_sum, s=sxx, x=xx, w=width)
    pk.parallel_for(inner, box_sum, s=syy, x=yy, w=width)
    pk.parallel_for(inner, box_sum, s=sxy, x=xy, w=width)
    return [sxx, syy, sxy]


def run(state: State) -> None:
    """Find the corners; each run does the same."""
    width, total = state.size, state.size * state.size
    near = pk.RangePolicy(width + 1, total - width - 1)
    inner = pk.RangePolicy(2 * width + 2, total - 2 * width - 2)
    sxx, syy, sxy = structure(state.image, width, near, inner)
    det, tr = (pk.View([total], pk.double) for _ in range(2))
    pk.parallel_for(inner, determinant, det=det, sxx=sxx, syy=syy, sxy=sxy)
    pk.parallel_for(inner, trace, tr=tr, sxx=sxx, syy=syy)
    pk.parallel_for(inner, respond, response=state.response, det=det, tr=tr, kappa=KAPPA)
    state.corners = pk.parallel_reduce(
        inner, strength, response=state.response, threshold=THRESHOLD
    )


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read the response inside the rim of two pixels, and the strength."""
    response = np.array(state.response.data).reshape(state.size, state.size)
    return {"response": response[2:-2, 2:-2], "corners": float(state.corners)}


def sums(x: np.ndarray) -> np.ndarray:
    """Sum 3 x 3 neighbourhoods of a 2-D array, inside its rim."""
    rows = x[:-2] + x[1:-1] + x[2:]
    return np.asarray(rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:])


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """Separable filters in NumPy; the strength from the flat image, rims and all."""
    if runs == 0:
        return {"response": np.zeros((size - 4, size - 4)), "corners": 0.0}
    p = picture(size)
    smooth, slope = p[:-2] + 2 * p[1:-1] + p[2:], p[:, :-2] + 2 * p[:, 1:-1] + p[:, 2:]
    gx, gy = (smooth[:, 2:] - smooth[:, :-2]) / 8, (slope[2:] - slope[:-2]) / 8
    sxx, syy, sxy = sums(gx * gx), sums(gy * gy), sums(gx * gy)
    response = sxx * syy - sxy**2 - KAPPA * (sxx + syy) ** 2
    return {"response": response, "corners": flat_strength(p.ravel(), size)}


def flat_strength(p: np.ndarray, w: int) -> float:
    """Sum responses above the threshold as the program does: neighbours are shifts of the flat."""

    def at(x: np.ndarray, row: int, column: int) -> np.ndarray:
        return np.roll(x, -(row * w + column))

    smooth, slope = at(p, -1, 0) + 2 * p + at(p, 1, 0), at(p, 0, -1) + 2 * p + at(p, 0, 1)
    gx = (at(smooth, 0, 1) - at(smooth, 0, -1)) / 8
    gy = (at(slope, 1, 0) - at(slope, -1, 0)) / 8
    boxes = []
    for product_ in (gx * gx, gy * gy, gx * gy):
        rows = at(product_, -1, 0) + product_ + at(product_, 1, 0)
        boxes.append(at(rows, 0, -1) + rows + at(rows, 0, 1))
    sxx, syy, sxy = boxes
    response = (sxx * syy - sxy**2 - KAPPA * (sxx + syy) ** 2)[2 * w + 2 : -2 * w - 2]
    return float(np.sum(response[response > THRESHOLD]))


def check(state: State, size: int, runs: int) -> None:
    """Sums are below 20, products below 400: some eps of that. A response at the threshold may
    count or not: hardly one in 1e12, each worth THRESHOLD."""
    actual, expected = outputs(state), reference(size, runs)
    np.testing.assert_allclose(
        actual["response"], expected["response"], rtol=0, atol=1e-12, err_msg="response"
    )
    np.testing.assert_allclose(actual["corners"], expected["corners"], rtol=1e-9, err_msg="corners")


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
    print(f"harris: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
