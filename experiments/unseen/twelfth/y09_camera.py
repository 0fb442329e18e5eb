"""A camera's raw frames developed: from a Bayer mosaic to bytes, with automatic exposure.

Black level, lens shading and white balance; green, red and blue interpolated; a colour matrix, a
tone curve, sharpening by blurred luminance, saturation, rounding to bytes, and the counts of the
luminance. The mean of each frame sets the gain of the next. Single precision.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 40, "default": 300, "large": 1_000}
FRAMES, BLACK, WHITE, SHADE, TARGET, BINS = 6, 64.0, 1023.0, 0.5, 0.42, 64
RED, BLUE, SHARP, SATURATION = 1.8, 1.5, 0.6, 1.2
MATRIX = [[1.5, -0.3, -0.2], [-0.25, 1.45, -0.2], [-0.05, -0.45, 1.5]]


@pk.workunit
def black_level(
    i: int,
    j: int,
    x: pk.View2D[pk.float],
    raw: pk.View3D[pk.int32],
    frame: int,
    black: float,
    white: float,
    gain: float,
):
    x[i][j] = gain * max(raw[frame][i][j] - black, 0.0) / (white - black)


@pk.workunit
def shading(i: int, j: int, x: pk.View2D[pk.float], n: int, shade: float):
    dy: float = (i - 0.5 * n) / n
    dx: float = (j - 0.5 * n) / n
    x[i][j] *= 1.0 + shade * (dx * dx + dy * dy)


@pk.workunit
def balance(i: int, j: int, x: pk.View2D[pk.float], red: float, blue: float):
    if i % 2 == 0 and j % 2 == 0:
        x[i][j] *= red
    elif i % 2 == 1 and j % 2 == 1:
        x[i][j] *= blue


@pk.workunit
def green(i: int, j: int, out: pk.View2D[pk.float], x: pk.View2D[pk.float], n: int):
    """Beyond the rim the image is reflected, which keeps the mosaic."""
    if (i + j) % 2 == 1:
        out[i][j] = x[i][j]
    else:
        up: int = abs(i - 1)
        down: int = n - 1 - abs(n - 2 - i)
        left: int = abs(j - 1)
        right: int = n - 1 - abs(n - 2 - j)
        out[i][j] = 0.25 * (x[up][j] + x[down][j] + x[i][left] + x[i][right])


@pk.workunit
def red_or_blue(i: int, j: int, out: pk.View2D[pk.float], x: pk.View2D[pk.float], odd: int, n: int):
    up: int = abs(i - 1)
    down: int = n - 1 - abs(n - 2 - i)
    left: int = abs(j - 1)
    right: int = n - 1 - abs(n - 2 - j)
    if i % 2 == odd:
        if j % 2 == odd:
            out[i][j] = x[i][j]
        else:
            out[i][j] = 0.5 * (x[i][left] + x[i][right])
    else:
        if j % 2 == odd:
            out[i][j] = 0.5 * (x[up][j] + x[down][j])
        else:
            out[i][j] = 0.25 * (x[up][left] + x[up][right] + x[down][left] + x[down][right])


@pk.workunit
def mix(
    i: int,
    j: int,
    out: pk.View2D[pk.float],
    r: pk.View2D[pk.float],
    g: pk.View2D[pk.float],
    b: pk.View2D[pk.float],
    mr: float,
    mg: float,
    mb: float,
):
    out[i][j] = mr * r[i][j] + mg * g[i][j] + mb * b[i][j]


@pk.workunit
def tone(i: int, j: int, x: pk.View2D[pk.float]):
    v: float = max(x[i][j], 0.0)
    x[i][j] = pk.sqrt(v * (1.0 + 0.1 * v) / (1.0 + v) * 1.2)


@pk.workunit
def luminance(
    i: int,
    j: int,
    y: pk.View2D[pk.float],
    r: pk.View2D[pk.float],
    g: pk.View2D[pk.float],
    b: pk.View2D[pk.float],
):
    y[i][j] = 0.299 * r[i][j] + 0.587 * g[i][j] + 0.114 * b[i][j]


@pk.workunit
def blur_rows(i: int, j: int, out: pk.View2D[pk.float], x: pk.View2D[pk.float], n: int):
    s: float = 0.375 * x[i][j] + 0.25 * (x[i][max(j - 1, 0)] + x[i][min(j + 1, n - 1)])
    out[i][j] = s + 0.0625 * (x[i][max(j - 2, 0)] + x[i][min(j + 2, n - 1)])


@pk.workunit
def blur_columns(i: int, j: int, out: pk.View2D[pk.float], x: pk.View2D[pk.float], n: int):
    s: float = 0.375 * x[i][j] + 0.25 * (x[max(i - 1, 0)][j] + x[min(i + 1, n - 1)][j])
    out[i][j] = s + 0.0625 * (x[max(i - 2, 0)][j] + x[min(i + 2, n - 1)][j])


@pk.workunit
def detail(
    i: int,
    j: int,
    d: pk.View2D[pk.float],
    y: pk.View2D[pk.float],
    blurred: pk.View2D[pk.float],
    sharp: float,
):
    d[i][j] = sharp * (y[i][j] - blurred[i][j])


@pk.workunit
def add(i: int, j: int, x: pk.View2D[pk.float], d: pk.View2D[pk.float]):
    x[i][j] += d[i][j]


@pk.workunit
def saturate(i: int, j: int, x: pk.View2D[pk.float], y: pk.View2D[pk.float], by: float):
    x[i][j] = y[i][j] + by * (x[i][j] - y[i][j])


@pk.workunit
def to_byte(i: int, j: int, out: pk.View3D[pk.uint8], x: pk.View2D[pk.float], channel: int):
    v: float = max(0.0, min(1.0, x[i][j]))
    out[channel][i][j] = int(255.0 * v + 0.5)


@pk.workunit
def clear(b: int, count: pk.View1D[pk.int32]):
    count[b] = 0


@pk.workunit
def count_levels(i: int, j: int, count: pk.View1D[pk.int32], y: pk.View2D[pk.float], bins: int):
    b: int = int(y[i][j] * bins)
    pk.atomic_add(count, [max(0, min(b, bins - 1))], 1)


@pk.workunit
def brightness(i: int, j: int, acc: pk.Acc[pk.double], y: pk.View2D[pk.float]):
    acc += y[i][j]


@dataclass
class State:
    """The raw frames; the last frame's channels and bytes; mean and counts of each frame."""

    n: int
    raw: pk.View
    picture: pk.View
    channels: list = field(default_factory=list)
    means: list = field(default_factory=list)
    counts: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(129)
    raw, picture = pk.View([FRAMES, n, n], pk.int32), pk.View([3, n, n], pk.uint8)
    y, x = np.mgrid[0:n, 0:n] / 40.0
    for frame in range(FRAMES):
        scene = 0.3 + 0.2 * np.sin(3.0 * x + frame) * np.cos(2.0 * y) + 0.1 * np.sign(np.sin(x - y))
        scene[0::2, 0::2] *= 0.6 + 0.2 * np.sin(x[0::2, 0::2])
        scene[1::2, 1::2] *= 0.7 + 0.2 * np.cos(y[1::2, 1::2])
        noisy = BLACK + (WHITE - BLACK) * scene + rng.normal(0.0, 6.0, (n, n))
        raw.data[frame] = np.clip(np.round(noisy), 0, WHITE)
    counts = [pk.View([BINS], pk.int32) for _ in range(FRAMES)]
    return State(n, raw, picture, [], [], counts)


def run(state: State) -> None:
    n, raw, picture = state.n, state.raw, state.picture
    every = pk.MDRangePolicy([0, 0], [n, n])
    x, r0, g0, b0, r, g, b = (pk.View([n, n], pk.float) for _ in range(7))
    y, rows, blurred, d = (pk.View([n, n], pk.float) for _ in range(4))
    gain, state.means = 1.0, []
    for frame in range(FRAMES):
        pk.parallel_for(
            every, black_level, x=x, raw=raw, frame=frame, black=BLACK, white=WHITE, gain=gain
        )
        pk.parallel_for(every, shading, x=x, n=n, shade=SHADE)
        pk.parallel_for(every, balance, x=x, red=RED, blue=BLUE)
        pk.parallel_for(every, green, out=g0, x=x, n=n)
        pk.parallel_for(every, red_or_blue, out=r0, x=x, odd=0, n=n)
        pk.parallel_for(every, red_or_blue, out=b0, x=x, odd=1, n=n)
        for out, (mr, mg, mb) in zip((r, g, b), MATRIX):
            pk.parallel_for(every, mix, out=out, r=r0, g=g0, b=b0, mr=mr, mg=mg, mb=mb)
        for c in (r, g, b):
            pk.parallel_for(every, tone, x=c)
        pk.parallel_for(every, luminance, y=y, r=r, g=g, b=b)
        pk.parallel_for(every, blur_rows, out=rows, x=y, n=n)
        pk.parallel_for(every, blur_columns, out=blurred, x=rows, n=n)
        pk.parallel_for(every, detail, d=d, y=y, blurred=blurred, sharp=SHARP)
        for c in (r, g, b, y):
            pk.parallel_for(every, add, x=c, d=d)
        for channel, c in enumerate((r, g, b)):
            pk.parallel_for(every, saturate, x=c, y=y, by=SATURATION)
            pk.parallel_for(every, to_byte, out=picture, x=c, channel=channel)
        pk.parallel_for(BINS, clear, count=state.counts[frame])
        pk.parallel_for(every, count_levels, count=state.counts[frame], y=y, bins=BINS)
        mean = float(pk.parallel_reduce(every, brightness, y=y)) / (n * n)
        state.means.append(mean)
        gain *= min(2.0, max(0.5, (TARGET / mean) ** 2))
    state.channels = [r, g, b]


def outputs(state: State) -> dict:
    return {
        "channels": np.array([c.data for c in state.channels]),
        "picture": np.array(state.picture.data),
        "means": np.array(state.means),
        "counts": np.array([c.data for c in state.counts], dtype=np.float64),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    raw = np.array(setup(n).raw.data, dtype=np.float64)
    i, j = np.mgrid[0:n, 0:n]
    gain, means = 1.0, []
    site_red, site_blue = (i % 2 == 0) & (j % 2 == 0), (i % 2 == 1) & (j % 2 == 1)
    for frame in range(FRAMES):
        x = gain * np.maximum(raw[frame] - BLACK, 0.0) / (WHITE - BLACK)
        x *= 1.0 + SHADE * (((i - 0.5 * n) / n) ** 2 + ((j - 0.5 * n) / n) ** 2)
        x = np.where(site_red, RED * x, np.where(site_blue, BLUE * x, x))
        p = np.pad(x, 1, "reflect")
        sides = p[1:-1, :-2] + p[1:-1, 2:]
        ends = p[:-2, 1:-1] + p[2:, 1:-1]
        corners = p[:-2, :-2] + p[:-2, 2:] + p[2:, :-2] + p[2:, 2:]
        g0 = np.where((i + j) % 2 == 1, x, 0.25 * (sides + ends))
        r0, b0 = (
            np.where(
                i % 2 == odd,
                np.where(j % 2 == odd, x, 0.5 * sides),
                np.where(j % 2 == odd, 0.5 * ends, 0.25 * corners),
            )
            for odd in (0, 1)
        )
        c = np.maximum(np.tensordot(np.array(MATRIX), np.array([r0, g0, b0]), 1), 0.0)
        c = np.sqrt(c * (1.0 + 0.1 * c) / (1.0 + c) * 1.2)
        y = np.tensordot([0.299, 0.587, 0.114], c, 1)
        blurred = y
        for axis in range(2):
            p = np.moveaxis(np.pad(blurred, 2, "edge"), axis, 0)
            p = 0.375 * p[2:-2] + 0.25 * (p[1:-3] + p[3:-1]) + 0.0625 * (p[:-4] + p[4:])
            blurred = np.moveaxis(p[:, 2:-2], 0, axis)
        d = SHARP * (y - blurred)
        y = y + d
        c = y + SATURATION * (c + d - y)
        means.append(y.mean())
        counts = np.bincount(np.clip((y * BINS).astype(int), 0, BINS - 1).ravel(), minlength=BINS)
        assert np.abs(np.array(state.counts[frame].data) - counts).sum() <= 4 + 1e-4 * n * n
        gain *= min(2.0, max(0.5, (TARGET / y.mean()) ** 2))
    out = outputs(state)
    np.testing.assert_allclose(out["channels"], c, rtol=1e-4, atol=1e-5)
    bytes = np.floor(255.0 * np.clip(c, 0.0, 1.0) + 0.5)
    assert np.abs(out["picture"] - bytes).max() <= 1 and np.mean(out["picture"] != bytes) < 1e-3
    np.testing.assert_allclose(out["means"], means, rtol=1e-5)


if __name__ == "__main__":
    main(globals())
