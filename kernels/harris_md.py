"""Harris corners with an MDRangePolicy: as `harris`, on 2-D views and without the flat rims.

Source: C. Harris and M. Stephens, "A Combined Corner and Edge Detector" (1988), the form that the
Halide papers measure (Sobel gradients, 3 x 3 box). Upstream PyKokkos (November 2025) takes an
MDRangePolicy in workloads only, not with standalone workunits, hence UPSTREAM = False; its Debug
space and PyFuser's engine run this program.

One run makes 11 maps and 1 reduction with 10 temporaries. Unfused they move 28 doubles (224 bytes)
a pixel; fused in two kernels, 1 in, 3 out; 3 in, 1 out (64 bytes).
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

UPSTREAM = False
SIZES = {"small": 48, "default": 2500, "large": 5000, "gpu": 8000}
KAPPA, THRESHOLD = 0.04, 0.5


@pk.workunit
def gradient_x(i: int, j: int, g: pk.View2D[pk.double], p: pk.View2D[pk.double]) -> None:
    left: float = p[i - 1][j - 1] + 2.0 * p[i][j - 1] + p[i + 1][j - 1]
    right: float = p[i - 1][j + 1] + 2.0 * p[i][j + 1] + p[i + 1][j + 1]
    g[i][j] = 0.125 * (right - left)


@pk.workunit
def gradient_y(i: int, j: int, g: pk.View2D[pk.double], p: pk.View2D[pk.double]) -> None:
    above: float = p[i - 1][j - 1] + 2.0 * p[i - 1][j] + p[i - 1][j + 1]
    below: float = p[i + 1][j - 1] + 2.0 * p[i + 1][j] + p[i + 1][j + 1]
    g[i][j] = 0.125 * (below - above)


@pk.workunit
def product(
    i: int, j: int, result: pk.View2D[pk.double], x: pk.View2D[pk.double], y: pk.View2D[pk.double]
) -> None:
    result[i][j] = x[i][j] * y[i][j]


@pk.workunit
def box_sum(i: int, j: int, s: pk.View2D[pk.double], x: pk.View2D[pk.double]) -> None:
    """Sum of the 3 x 3 neighbourhood."""
    total: float = 0.0
    for di in range(-1, 2):
        for dj in range(-1, 2):
            total += x[i + di][j + dj]
    s[i][j] = total


@pk.workunit
def determinant(
    i: int,
    j: int,
    det: pk.View2D[pk.double],
    sxx: pk.View2D[pk.double],
    syy: pk.View2D[pk.double],
    sxy: pk.View2D[pk.double],
) -> None:
    det[i][j] = sxx[i][j] * syy[i][j] - sxy[i][j] * sxy[i][j]


@pk.workunit
def trace(
    i: int, j: int, tr: pk.View2D[pk.double], sxx: pk.View2D[pk.double], syy: pk.View2D[pk.double]
) -> None:
    tr[i][j] = sxx[i][j] + syy[i][j]


@pk.workunit
def respond(
    i: int,
    j: int,
    response: pk.View2D[pk.double],
    det: pk.View2D[pk.double],
    tr: pk.View2D[pk.double],
    kappa: float,
) -> None:
    response[i][j] = det[i][j] - kappa * tr[i][j] * tr[i][j]


@pk.workunit
def strength(
    i: int, j: int, acc: pk.Acc[pk.double], response: pk.View2D[pk.double], threshold: float
) -> None:
    if response[i][j] > threshold:
        acc += response[i][j]


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
    image, response = (pk.View([size, size], pk.double) for _ in range(2))
    image.data[:] = picture(size)
    return State(size, image, response)


def structure(image: pk.View, size: int) -> list[pk.View]:
    """Return the box sums of the gradients' products: xx, yy and xy."""
    near = pk.MDRangePolicy([1, 1], [size - 1, size - 1])
    inner = pk.MDRangePolicy([2, 2], [size - 2, size - 2])
    gx, gy, xx, yy, xy, sxx, syy, sxy = (pk.View([size, size], pk.double) for _ in range(8))
    pk.parallel_for(near, gradient_x, g=gx, p=image)
    pk.parallel_for(near, gradient_y, g=gy, p=image)
    pk.parallel_for(near, product, result=xx, x=gx, y=gx)
    pk.parallel_for(near, product, result=yy, x=gy, y=gy)
    pk.parallel_for(near, product, result=xy, x=gx, y=gy)
    pk.parallel_for(inner, box_sum, s=sxx, x=xx)
    pk.parallel_for(inner, box_sum, s=syy, x=yy)
    pk.parallel_for(inner, box_sum, s=sxy, x=xy)
    return [sxx, syy, sxy]


def run(state: State) -> None:
    """Find the corners; each run does the same."""
    size = state.size
    inner = pk.MDRangePolicy([2, 2], [size - 2, size - 2])
    sxx, syy, sxy = structure(state.image, size)
    det, tr = (pk.View([size, size], pk.double) for _ in range(2))
    pk.parallel_for(inner, determinant, det=det, sxx=sxx, syy=syy, sxy=sxy)
    pk.parallel_for(inner, trace, tr=tr, sxx=sxx, syy=syy)
    pk.parallel_for(inner, respond, response=state.response, det=det, tr=tr, kappa=KAPPA)
    state.corners = pk.parallel_reduce(
        inner, strength, response=state.response, threshold=THRESHOLD
    )


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read the response inside the rim of two pixels, and the strength."""
    return {
        "response": np.array(state.response.data)[2:-2, 2:-2],
        "corners": float(state.corners),
    }


def sums(x: np.ndarray) -> np.ndarray:
    """Sum 3 x 3 neighbourhoods of a 2-D array, inside its rim."""
    rows = x[:-2] + x[1:-1] + x[2:]
    return np.asarray(rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:])


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """Separable filters in NumPy."""
    if runs == 0:
        return {"response": np.zeros((size - 4, size - 4)), "corners": 0.0}
    p = picture(size)
    smooth, slope = p[:-2] + 2 * p[1:-1] + p[2:], p[:, :-2] + 2 * p[:, 1:-1] + p[:, 2:]
    gx, gy = (smooth[:, 2:] - smooth[:, :-2]) / 8, (slope[2:] - slope[:-2]) / 8
    sxx, syy, sxy = sums(gx * gx), sums(gy * gy), sums(gx * gy)
    response = sxx * syy - sxy**2 - KAPPA * (sxx + syy) ** 2
    return {"response": response, "corners": float(np.sum(response[response > THRESHOLD]))}


def check(state: State, size: int, runs: int) -> None:
    """Sums are below 20, products below 400: some eps of that. A response at the threshold may
    count or not: hardly one in 1e12, each worth THRESHOLD."""
    actual, expected = outputs(state), reference(size, runs)
    for name, rtol, atol in (("response", 0.0, 1e-12), ("corners", 1e-9, 0.0)):
        np.testing.assert_allclose(actual[name], expected[name], rtol=rtol, atol=atol, err_msg=name)


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
    print(f"harris_md: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
