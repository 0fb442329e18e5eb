# ruff: noqa: B905
"""A photograph from two exposures of a colour sensor: 8-bit mosaics to 8-bit red, green and blue.

Repair of hot pixels, merging, grey-world balance, demosaicing, colour noise, local contrast.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 48, "default": 320, "large": 2000}
RATIO, BLACK = 4.0, 8.0


@pk.function
def mirror(i: int, n: int) -> int:
    if i < 0:
        return -i
    if i >= n:
        return 2 * n - 2 - i
    return i


@pk.workunit
def linear(y: int, x: int, out, raw, vignette, black: pk.float, gain: pk.float):
    out[y][x] = max(raw[y][x] - black, pk.float(0.0)) * gain * vignette[y][x]


@pk.workunit
def repair(y: int, x: int, out, image, n: int):
    """A pixel far above all its neighbours of the same colour becomes their mean."""
    up: pk.float = image[mirror(y - 2, n)][x]
    down: pk.float = image[mirror(y + 2, n)][x]
    left: pk.float = image[y][mirror(x - 2, n)]
    right: pk.float = image[y][mirror(x + 2, n)]
    highest: pk.float = max(up, down, left, right)
    value: pk.float = image[y][x]
    if value > highest + highest:
        value = (up + down + left + right) * pk.float(0.25)
    out[y][x] = value


@pk.workunit
def trust(y: int, x: int, weight, raw, low: int, high: int):
    """How far a reading is from noise and from saturation."""
    level: int = raw[y][x]
    if level < low:
        weight[y][x] = (level + 1.0) / (low + 1.0)
    elif level > high:
        weight[y][x] = (256.0 - level) / (256.0 - high)
    else:
        weight[y][x] = 1.0


@pk.workunit
def merge(y: int, x: int, mosaic, a, b, wa, wb):
    mosaic[y][x] = (a[y][x] * wa[y][x] + b[y][x] * wb[y][x]) / (wa[y][x] + wb[y][x])


@pk.workunit
def colour_sum(y: int, x: int, acc: pk.Acc[pk.double], mosaic, dy: int, dx: int):
    acc += mosaic[2 * y + dy][2 * x + dx]


@pk.workunit
def balance(y: int, x: int, mosaic, red: pk.float, blue: pk.float):
    if y % 2 == 0 and x % 2 == 0:
        mosaic[y][x] *= red
    elif y % 2 == 1 and x % 2 == 1:
        mosaic[y][x] *= blue


@pk.workunit
def demosaic_green(y: int, x: int, green, m, n: int):
    if (y + x) % 2 == 1:
        green[y][x] = m[y][x]
    else:
        beside: pk.float = m[y][mirror(x - 1, n)] + m[y][mirror(x + 1, n)]
        above: pk.float = m[mirror(y - 1, n)][x] + m[mirror(y + 1, n)][x]
        green[y][x] = (beside + above) * pk.float(0.25)


@pk.workunit
def demosaic(y: int, x: int, colour, m, parity: int, n: int):
    """Red (parity 0) or blue (parity 1), which have one pixel of four."""
    up: int = mirror(y - 1, n)
    down: int = mirror(y + 1, n)
    left: int = mirror(x - 1, n)
    right: int = mirror(x + 1, n)
    if y % 2 == parity:
        if x % 2 == parity:
            colour[y][x] = m[y][x]
        else:
            colour[y][x] = (m[y][left] + m[y][right]) * pk.float(0.5)
    else:
        if x % 2 == parity:
            colour[y][x] = (m[up][x] + m[down][x]) * pk.float(0.5)
        else:
            colour[y][x] = (m[up][left] + m[up][right] + m[down][left] + m[down][right]) * pk.float(
                0.25
            )


@pk.workunit
def to_display(y: int, x: int, r, g, b, c):
    red: pk.float = r[y][x]
    green: pk.float = g[y][x]
    blue: pk.float = b[y][x]
    r[y][x] = c[0][0] * red + c[0][1] * green + c[0][2] * blue
    g[y][x] = c[1][0] * red + c[1][1] * green + c[1][2] * blue
    b[y][x] = c[2][0] * red + c[2][1] * green + c[2][2] * blue


@pk.workunit
def luminance(y: int, x: int, light, r, g, b, share):
    light[y][x] = share[0] * r[y][x] + share[1] * g[y][x] + share[2] * b[y][x]


@pk.workunit
def difference(y: int, x: int, out, a, b):
    out[y][x] = a[y][x] - b[y][x]


@pk.workunit
def blur_x(y: int, x: int, out, image, window, n: int):
    total: pk.float = 0.0
    for k in range(5):
        total += window[k] * image[y][mirror(x + k - 2, n)]
    out[y][x] = total


@pk.workunit
def blur_y(y: int, x: int, out, image, window, n: int):
    total: pk.float = 0.0
    for k in range(5):
        total += window[k] * image[mirror(y + k - 2, n)][x]
    out[y][x] = total


@pk.workunit
def contrast(y: int, x: int, gain, light, base, amount: pk.float):
    away: pk.float = light[y][x] - base[y][x]
    gain[y][x] = 1.0 + amount * away / (base[y][x] + 0.01)


@pk.workunit
def develop(y: int, x: int, out, light, chroma, gain, exposure: pk.float):
    """Square root as tone curve, to a byte."""
    value: pk.float = (light[y][x] + chroma[y][x]) * gain[y][x] * exposure
    level: pk.float = 255.0 * sqrt(max(value, pk.float(0.0))) + 0.5
    out[y][x] = int(min(level, pk.float(255.0)))


@dataclass
class State:
    n: int
    short: pk.View
    long: pk.View
    vignette: pk.View
    matrix: pk.View
    share: pk.View
    window: pk.View
    out_r: pk.View
    out_g: pk.View
    out_b: pk.View


def setup(n: int) -> State:
    rng = np.random.default_rng(3)
    y, x = np.mgrid[0:n, 0:n] / n
    scene = (
        0.25
        + 0.2 * np.sin(9 * x + 4 * np.sin(5 * y))
        + 0.5 * ((x - 0.6) ** 2 + (y - 0.4) ** 2 < 0.04)
    )
    tint = np.stack([0.6 + 0.3 * np.sin(7 * y), 0.8 + 0 * x, 0.5 + 0.3 * np.cos(6 * x)])
    rows, cols = np.arange(n)[:, None] % 2, np.arange(n)[None, :] % 2
    colour = np.where(
        (rows == 0) & (cols == 0), tint[0], np.where((rows == 1) & (cols == 1), tint[2], tint[1])
    )
    fall = 1 / (1 + 0.8 * ((x - 0.5) ** 2 + (y - 0.5) ** 2))
    light = np.maximum(scene, 0.02) * colour * fall
    light[rng.random((n, n)) < 0.002] = 1.0
    raws = []
    for exposure in (90.0, 90.0 * RATIO):
        view = pk.View([n, n], pk.uint8)
        noisy = BLACK + exposure * light + rng.normal(scale=1.5, size=(n, n))
        view.data[:] = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
        raws.append(view)
    vignette, matrix = pk.View([n, n], pk.float), pk.View([3, 3], pk.float)
    share, window = pk.View([3], pk.float), pk.View([5], pk.float)
    vignette.data[:] = 1 / fall
    matrix.data[:] = [[1.6, -0.5, -0.1], [-0.2, 1.5, -0.3], [0.0, -0.4, 1.4]]
    share.data[:] = [0.2126, 0.7152, 0.0722]
    window.data[:] = np.array([1, 4, 6, 4, 1]) / 16
    r, g, b = (pk.View([n, n], pk.uint8) for _ in range(3))
    return State(n, *raws, vignette, matrix, share, window, r, g, b)


def run(s: State) -> None:
    n = s.n
    pixels = pk.MDRangePolicy([0, 0], [n, n])
    quarter = pk.MDRangePolicy([0, 0], [n // 2, n // 2])

    def image():
        return pk.View([n, n], pk.float)

    frames, weights = [], []
    for raw, gain in ((s.short, 1 / 90.0), (s.long, 1 / (90.0 * RATIO))):
        plain, good, weight = image(), image(), image()
        pk.parallel_for(
            pixels, linear, out=plain, raw=raw, vignette=s.vignette, black=BLACK, gain=gain
        )
        pk.parallel_for(pixels, repair, out=good, image=plain, n=n)
        pk.parallel_for(pixels, trust, weight=weight, raw=raw, low=24, high=230)
        frames.append(good)
        weights.append(weight)
    mosaic = image()
    pk.parallel_for(
        pixels, merge, mosaic=mosaic, a=frames[0], b=frames[1], wa=weights[0], wb=weights[1]
    )
    sums = {}
    for dy in range(2):
        for dx in range(2):
            sums[dy, dx] = float(
                pk.parallel_reduce(quarter, colour_sum, mosaic=mosaic, dy=dy, dx=dx)
            )
    grey = 0.5 * (sums[0, 1] + sums[1, 0])
    pk.parallel_for(pixels, balance, mosaic=mosaic, red=grey / sums[0, 0], blue=grey / sums[1, 1])
    r, g, b, light = image(), image(), image(), image()
    pk.parallel_for(pixels, demosaic_green, green=g, m=mosaic, n=n)
    pk.parallel_for(pixels, demosaic, colour=r, m=mosaic, parity=0, n=n)
    pk.parallel_for(pixels, demosaic, colour=b, m=mosaic, parity=1, n=n)
    pk.parallel_for(pixels, to_display, r=r, g=g, b=b, c=s.matrix)
    pk.parallel_for(pixels, luminance, light=light, r=r, g=g, b=b, share=s.share)
    rows, base, gain = image(), image(), image()
    pk.parallel_for(pixels, blur_x, out=rows, image=light, window=s.window, n=n)
    pk.parallel_for(pixels, blur_y, out=base, image=rows, window=s.window, n=n)
    pk.parallel_for(pixels, contrast, gain=gain, light=light, base=base, amount=0.7)
    exposure = n * n / 4 * 0.35 / grey
    for colour, out in ((r, s.out_r), (g, s.out_g), (b, s.out_b)):
        chroma, half, smooth = image(), image(), image()
        pk.parallel_for(pixels, difference, out=chroma, a=colour, b=light)
        pk.parallel_for(pixels, blur_x, out=half, image=chroma, window=s.window, n=n)
        pk.parallel_for(pixels, blur_y, out=smooth, image=half, window=s.window, n=n)
        pk.parallel_for(
            pixels, develop, out=out, light=light, chroma=smooth, gain=gain, exposure=exposure
        )


def outputs(s: State) -> dict:
    views = {"r": s.out_r, "g": s.out_g, "b": s.out_b}
    return {name: np.array(view.data) for name, view in views.items()}


def check(s: State, n: int) -> None:
    """In double precision: a byte may differ by one here and there."""

    def pad(f, k):
        return np.pad(f, k, mode="reflect")

    def blur(f):
        w = np.array([1, 4, 6, 4, 1]) / 16
        f = sum(w[k] * pad(f, 2)[2:-2, k : k + n] for k in range(5))
        return sum(w[k] * pad(f, 2)[k : k + n, 2:-2] for k in range(5))

    top = bottom = 0
    for view, exposure in ((s.short, 90.0), (s.long, 90.0 * RATIO)):
        raw = np.array(view.data).astype(float)
        f = np.maximum(raw - BLACK, 0) / exposure * s.vignette.data
        near = pad(f, 2)
        near = np.stack([near[:-4, 2:-2], near[4:, 2:-2], near[2:-2, :-4], near[2:-2, 4:]])
        f = np.where(f > 2 * near.max(axis=0), near.mean(axis=0), f)
        weight = np.where(raw < 24, (raw + 1) / 25, np.where(raw > 230, (256 - raw) / 26, 1.0))
        top, bottom = top + f * weight, bottom + weight
    m = top / bottom
    grey = 0.5 * (m[0::2, 1::2].sum() + m[1::2, 0::2].sum())
    m[0::2, 0::2] *= grey / m[0::2, 0::2].sum()
    m[1::2, 1::2] *= grey / m[1::2, 1::2].sum()

    def spread(f, kernel):  # the known pixels weighted by a 3x3 kernel
        f = pad(f, 1)
        return sum(kernel[a][b] * f[a : a + n, b : b + n] for a in range(3) for b in range(3))

    rows, cols = np.arange(n)[:, None] % 2, np.arange(n)[None, :] % 2
    square = [[0.25, 0.5, 0.25], [0.5, 1, 0.5], [0.25, 0.5, 0.25]]
    r = spread(m * ((rows == 0) & (cols == 0)), square)
    b = spread(m * ((rows == 1) & (cols == 1)), square)
    g = spread(m * (rows != cols), [[0, 0.25, 0], [0.25, 1, 0.25], [0, 0.25, 0]])
    rgb = np.tensordot(s.matrix.data.astype(float), np.stack([r, g, b]), axes=1)
    light = np.tensordot(s.share.data.astype(float), rgb, axes=1)
    base = blur(light)
    gain = 1 + 0.7 * (light - base) / (base + 0.01)
    for colour, view in zip(rgb, (s.out_r, s.out_g, s.out_b)):
        value = (light + blur(colour - light)) * gain * (n * n / 4 * 0.35 / grey)
        level = np.minimum(255 * np.sqrt(np.maximum(value, 0)) + 0.5, 255).astype(int)
        wrong = np.abs(level - np.array(view.data).astype(int))
        assert wrong.max() <= 1 and (wrong > 0).mean() < 0.01, (wrong.max(), (wrong > 0).mean())


if __name__ == "__main__":
    main(globals())
