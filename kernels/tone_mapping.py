"""Tone mapping: a picture of high dynamic range for a display, with local contrast kept.

Source: E. Reinhard et al., "Photographic Tone Reproduction for Digital Images" (2002): luminance,
its logarithmic mean (the key), a local adaptation luminance by a small blur, and the curve
L (1 + L / white^2) / (1 + V); then colours in proportion and a gamma of 2. The key is that of the
frame before, as renderers of video do, so nothing waits for it. Pixels are treated as such programs
do: colours and curves by one index over the flattened picture (`p // width`, `p % width`), filters
over rows and columns, the meter a row at a time.

One run maps FRAMES frames by 9 maps and 2 reductions each, with 5 temporaries. Unfused a frame
moves 31 doubles (248 bytes) a pixel with the lines that stores read first; fused 11 (88 bytes), of
colours and luminance.
"""

import argparse
from dataclasses import dataclass
from math import exp, log, sqrt
from time import perf_counter

import numpy as np
import pykokkos as pk

UPSTREAM = False  # upstream PyKokkos takes an MDRangePolicy in workloads only
SIZES = {"small": 48, "default": 1800, "large": 3200, "gpu": 6000}
FRAMES = 2
EXPOSURE, WHITE, DARKEST = 0.18, 3.0, 1e-4


@pk.workunit
def luminance(
    p: int,
    y: pk.View2D[pk.double],
    r: pk.View2D[pk.double],
    g: pk.View2D[pk.double],
    b: pk.View2D[pk.double],
    width: int,
) -> None:
    i: int = p // width
    j: int = p % width
    y[i][j] = 0.2126 * r[i][j] + 0.7152 * g[i][j] + 0.0722 * b[i][j]


@pk.workunit
def meter(
    i: int, brightness: pk.View1D[pk.double], y: pk.View2D[pk.double], dark: float, width: int
) -> None:
    """The logarithms of a row's luminances."""
    total: float = 0.0
    for j in range(width):
        total += log(dark + y[i][j])
    brightness[i] = total


@pk.workunit
def whole(i: int, acc: pk.Acc[pk.double], brightness: pk.View1D[pk.double]) -> None:
    acc += brightness[i]


@pk.workunit
def expose(p: int, y: pk.View2D[pk.double], scale: float, width: int) -> None:
    y[p // width][p % width] *= scale


@pk.workunit
def blur_rows(i: int, j: int, t: pk.View2D[pk.double], y: pk.View2D[pk.double]) -> None:
    """The binomial filter of five pixels."""
    near: float = 4.0 * (y[i][j - 1] + y[i][j + 1]) + 6.0 * y[i][j]
    t[i][j] = 0.0625 * (y[i][j - 2] + near + y[i][j + 2])


@pk.workunit
def blur_columns(i: int, j: int, v: pk.View2D[pk.double], t: pk.View2D[pk.double]) -> None:
    near: float = 4.0 * (t[i - 1][j] + t[i + 1][j]) + 6.0 * t[i][j]
    v[i][j] = 0.0625 * (t[i - 2][j] + near + t[i + 2][j])


@pk.workunit
def curve(
    p: int,
    gain: pk.View2D[pk.double],
    y: pk.View2D[pk.double],
    v: pk.View2D[pk.double],
    inverse_white: float,
    height: int,
    width: int,
) -> None:
    """What colours are multiplied by; two pixels from the rim there is no blur."""
    i: int = p // width
    j: int = p % width
    around: float = y[i][j]
    if i > 1 and i < height - 2 and j > 1 and j < width - 2:
        around = v[i][j]
    gain[i][j] = (1.0 + y[i][j] * inverse_white) / (1.0 + around)


@pk.workunit
def display(
    p: int,
    out: pk.View2D[pk.double],
    colour: pk.View2D[pk.double],
    gain: pk.View2D[pk.double],
    scale: float,
    width: int,
) -> None:
    """Gamma 2, and no more than a display has."""
    i: int = p // width
    j: int = p % width
    value: float = scale * colour[i][j] * gain[i][j]
    if value > 1.0:
        value = 1.0
    out[i][j] = sqrt(value)


@pk.workunit
def clipped(p: int, acc: pk.Acc[pk.double], out: pk.View2D[pk.double], width: int) -> None:
    if out[p // width][p % width] >= 1.0:
        acc += 1.0


@dataclass
class State:
    """The picture's colours, those for the display, the sum of logarithms, the clipped pixels."""

    size: int
    r: pk.View
    g: pk.View
    b: pk.View
    shown: list[pk.View]
    brightness: float
    clipped: float = 0.0


def picture(size: int) -> np.ndarray:
    """Return colours of a dark room with bright windows: a plane each for red, green and blue."""
    rng = np.random.default_rng(23)
    rows, columns = np.indices((size, size)) // max(size // 8, 1)
    light = np.where((rows % 4 == 1) & (columns % 4 == 2), 60.0, 0.3)
    return light * rng.uniform(0.2, 1.0, (3, size, size))


def setup(size: int) -> State:
    """Make a picture, and begin with the key of a grey one."""
    views = [pk.View([size, size], pk.double) for _ in range(6)]
    for view, plane in zip(views[:3], picture(size), strict=True):
        view.data[:] = plane
    return State(size, views[0], views[1], views[2], views[3:], log(EXPOSURE) * size * size)


def frame(state: State) -> None:
    """Map one frame."""
    n, pixels = state.size, state.size * state.size
    y, t, v, gain = (pk.View([n, n], pk.double) for _ in range(4))
    brightness = pk.View([n], pk.double)
    scale = EXPOSURE / exp(float(state.brightness) / pixels)
    pk.parallel_for(pixels, luminance, y=y, r=state.r, g=state.g, b=state.b, width=n)
    pk.parallel_for(n, meter, brightness=brightness, y=y, dark=DARKEST, width=n)
    pk.parallel_for(pixels, expose, y=y, scale=scale, width=n)
    pk.parallel_for(pk.MDRangePolicy([0, 2], [n, n - 2]), blur_rows, t=t, y=y)
    pk.parallel_for(pk.MDRangePolicy([2, 2], [n - 2, n - 2]), blur_columns, v=v, t=t)
    pk.parallel_for(
        pixels, curve, gain=gain, y=y, v=v, inverse_white=1.0 / WHITE**2, height=n, width=n
    )
    for out, colour in zip(state.shown, (state.r, state.g, state.b), strict=True):
        pk.parallel_for(pixels, display, out=out, colour=colour, gain=gain, scale=scale, width=n)
    state.clipped = pk.parallel_reduce(pixels, clipped, out=state.shown[0], width=n)
    state.brightness = pk.parallel_reduce(n, whole, brightness=brightness)


def run(state: State) -> None:
    """Map FRAMES frames of a scene that stands still; the exposure follows."""
    for _ in range(FRAMES):
        frame(state)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read what is shown, the key and the number of clipped pixels."""
    return {
        "shown": np.array([view.data for view in state.shown]),
        "brightness": float(state.brightness),
        "clipped": float(state.clipped),
    }


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """The same in NumPy: the blur by one kernel of 25 weights, colours at once."""
    colours = picture(size)
    pixels = size * size
    brightness, count, shown = float(np.log(EXPOSURE)) * pixels, 0.0, np.zeros_like(colours)
    weights = np.outer([1, 4, 6, 4, 1], [1, 4, 6, 4, 1]) / 256.0
    light = np.tensordot([0.2126, 0.7152, 0.0722], colours, 1)
    for _ in range(runs * FRAMES):
        scale = EXPOSURE / np.exp(brightness / pixels)
        y = scale * light
        around = y.copy()
        windows = np.lib.stride_tricks.sliding_window_view(y, (5, 5))
        around[2:-2, 2:-2] = np.einsum("ijkl,kl->ij", windows, weights)
        mapped = scale * colours * (1.0 + y / WHITE**2) / (1.0 + around)
        shown = np.sqrt(np.minimum(mapped, 1.0))
        count, brightness = float(np.sum(mapped[0] >= 1.0)), float(np.sum(np.log(DARKEST + light)))
    return {"shown": shown, "brightness": brightness, "clipped": count}


def check(state: State, size: int, runs: int) -> None:
    """Some 40 roundings of positive numbers a pixel; sums of up to 1e8 logarithms, below 5 each.

    A value that a rounding moves over 1 counts or does not: hardly one pixel in 1e12.
    """
    actual, expected = outputs(state), reference(size, runs)
    np.testing.assert_allclose(
        actual["shown"], expected["shown"], rtol=1e-11, atol=0.0, err_msg="shown"
    )
    np.testing.assert_allclose(
        actual["brightness"], expected["brightness"], rtol=1e-10, err_msg="brightness"
    )
    np.testing.assert_allclose(
        actual["clipped"], expected["clipped"], rtol=0.0, atol=float(runs > 0), err_msg="clipped"
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
    print(f"tone_mapping: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
