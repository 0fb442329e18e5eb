"""Newton's fractal: which root of z**3 = 1 a start in the plane reaches, how fast, and a shading.

Source: A. Cayley, "The Newton-Fourier Imaginary Problem" (1879). Complex arithmetic in pairs of
doubles; a while loop of unequal length for each pixel; then tallies for each root.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 32, "default": 300, "large": 1_200}
MOST, CLOSE = 60, 1e-10
HALF_ROOT3 = 0.8660254037844386


@pk.workunit
def plane(i, j, re, im, n, centre_re, centre_im, width):
    re[i][j] = centre_re + width * ((j + 0.5) / n - 0.5)
    im[i][j] = centre_im + width * ((i + 0.5) / n - 0.5)


@pk.workunit
def newton(i, j, re, im, steps):
    x = re[i][j]
    y = im[i][j]
    k = 0
    move = 1.0
    while move > CLOSE and k < MOST:
        x2 = x * x - y * y
        y2 = 2.0 * x * y
        fx = x2 * x - y2 * y - 1.0
        fy = x2 * y + y2 * x
        size = 3.0 * (x2 * x2 + y2 * y2) + 1e-300
        dx = (fx * x2 + fy * y2) / size
        dy = (fy * x2 - fx * y2) / size
        x -= dx
        y -= dy
        move = dx * dx + dy * dy
        k += 1
    re[i][j] = x
    im[i][j] = y
    steps[i][j] = k


@pk.workunit
def classify(i, j, root, re, im):
    root[i][j] = 0 if re[i][j] > 0.0 else (1 if im[i][j] > 0.0 else 2)


@pk.workunit
def residual(i, j, off, re, im, root):
    a = 1.0 if root[i][j] == 0 else -0.5
    b = 0.0 if root[i][j] == 0 else (HALF_ROOT3 if root[i][j] == 1 else -HALF_ROOT3)
    off[i][j] = hypot(re[i][j] - a, im[i][j] - b)


@pk.workunit
def shade(i, j, grey, steps, root):
    grey[i][j] = exp(-0.08 * steps[i][j]) * (1.0 - 0.2 * root[i][j])


@pk.workunit
def area(i, j, acc, root, which):
    acc += 1.0 if root[i][j] == which else 0.0


@pk.workunit
def effort(i, j, acc, steps, root, which):
    if root[i][j] == which:
        acc += steps[i][j]


@pk.workunit
def inexact(i, j, acc, off):
    acc += off[i][j]


@dataclass
class State:
    n: int
    grey: pk.View
    root: pk.View
    steps: pk.View
    numbers: list


def setup(size: int) -> State:
    types = (pk.float, pk.int8, pk.int16)
    return State(size, *(pk.View([size, size], t) for t in types), [])


def run(state: State) -> None:
    n, root, steps = state.n, state.root, state.steps
    pixels = pk.MDRangePolicy([0, 0], [n, n])
    re, im, off = (pk.View([n, n], pk.double) for _ in range(3))
    pk.parallel_for(pixels, plane, re=re, im=im, n=n, centre_re=-0.1, centre_im=0.05, width=3.0)
    pk.parallel_for(pixels, newton, re=re, im=im, steps=steps)
    pk.parallel_for(pixels, classify, root=root, re=re, im=im)
    pk.parallel_for(pixels, residual, off=off, re=re, im=im, root=root)
    pk.parallel_for(pixels, shade, grey=state.grey, steps=steps, root=root)
    sums = [pk.parallel_reduce(pixels, area, root=root, which=w) for w in range(3)]
    sums += [pk.parallel_reduce(pixels, effort, steps=steps, root=root, which=w) for w in range(3)]
    state.numbers = sums + [pk.parallel_reduce(pixels, inexact, off=off)]


def outputs(state: State) -> dict[str, np.ndarray | float]:
    views = {"grey": state.grey, "root": state.root, "steps": state.steps}
    numbers = np.array([float(number) for number in state.numbers])
    return {k: np.array(v.data) for k, v in views.items()} | {"numbers": numbers}


def check(state: State, size: int, runs: int) -> None:
    """Pixels on the border of basins may go elsewhere by rounding: few of them."""
    at = 3.0 * ((np.arange(size) + 0.5) / size - 0.5)
    z = (at - 0.1) + 1j * (at[:, None] + 0.05)
    for _ in range(MOST):
        z = z - (z**3 - 1) / (3 * z**2)
    root = np.where(z.real > 0, 0, np.where(z.imag > 0, 1, 2))
    out = outputs(state)
    assert np.count_nonzero(out["root"] != root) <= 2 + size * size // 1000
    counts = np.bincount(out["root"].ravel(), minlength=3)
    np.testing.assert_array_equal(out["numbers"][:3], counts)
    effort = np.bincount(out["root"].ravel(), weights=out["steps"].ravel(), minlength=3)
    np.testing.assert_allclose(out["numbers"][3:6], effort, rtol=1e-12)
    assert out["numbers"][6] < 1e-5 * size * size


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
    print(f"newton_basins: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
