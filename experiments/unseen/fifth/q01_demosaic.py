"""Camera pipeline: Bayer mosaic to sharpened 8-bit RGB, exposure steered by the picture's mean."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main, rnd

SIZES = {"small": 48, "default": 1100, "large": 2400}


@pk.workunit
def balance(y, x, lin, raw, gain):
    """Even rows are R G R G, odd ones G B G B."""
    wb = 1.0
    if y % 2 == 0 and x % 2 == 0:
        wb = 1.9
    if y % 2 == 1 and x % 2 == 1:
        wb = 1.5
    lin[y][x] = max(raw[y][x] - 64, 0) * (gain * wb)


@pk.workunit
def green(y, x, g, lin, h, w):
    """Edge-directed interpolation at red and blue sites."""
    c = lin[y][x]
    if (x + y) % 2 == 1:
        g[y][x] = c
    else:
        l = lin[y][max(x - 1, 0)]
        r = lin[y][min(x + 1, w - 1)]
        u = lin[max(y - 1, 0)][x]
        d = lin[min(y + 1, h - 1)][x]
        ch = 2.0 * c - lin[y][max(x - 2, 0)] - lin[y][min(x + 2, w - 1)]
        cv = 2.0 * c - lin[max(y - 2, 0)][x] - lin[min(y + 2, h - 1)][x]
        if abs(l - r) + abs(ch) < abs(u - d) + abs(cv):
            g[y][x] = 0.5 * (l + r) + 0.25 * ch
        else:
            g[y][x] = 0.5 * (u + d) + 0.25 * cv


@pk.workunit
def difference(y, x, d, lin, g):
    d[y][x] = lin[y][x] - g[y][x]


@pk.workunit
def chroma(y, x, out, d, g, odd, h, w):
    """Red (odd = 0) or blue (odd = 1): mean colour difference of the nearest sites, plus green."""
    xm = max(x - 1, 0)
    xp = min(x + 1, w - 1)
    ym = max(y - 1, 0)
    yp = min(y + 1, h - 1)
    v = 0.0
    if y % 2 == odd:
        if x % 2 == odd:
            v = d[y][x]
        else:
            v = 0.5 * (d[y][xm] + d[y][xp])
    else:
        if x % 2 == odd:
            v = 0.5 * (d[ym][x] + d[yp][x])
        else:
            v = 0.25 * (d[ym][xm] + d[ym][xp] + d[yp][xm] + d[yp][xp])
    out[y][x] = g[y][x] + v


@pk.workunit
def matrix(y, x, out, r, g, b, cr, cg, cb):
    out[y][x] = max(cr * r[y][x] + cg * g[y][x] + cb * b[y][x], 0.0)


@pk.workunit
def blur_rows(y, x, out, a, w):
    out[y][x] = (
        0.0625 * (a[y][max(x - 2, 0)] + a[y][min(x + 2, w - 1)])
        + 0.25 * (a[y][max(x - 1, 0)] + a[y][min(x + 1, w - 1)])
        + 0.375 * a[y][x]
    )


@pk.workunit
def blur_columns(y, x, out, a, h):
    out[y][x] = (
        0.0625 * (a[max(y - 2, 0)][x] + a[min(y + 2, h - 1)][x])
        + 0.25 * (a[max(y - 1, 0)][x] + a[min(y + 1, h - 1)][x])
        + 0.375 * a[y][x]
    )


@pk.workunit
def boost(y, x, ratio, luma, blurred, amount):
    ratio[y][x] = max(1.0 + amount * (luma[y][x] - blurred[y][x]) / (luma[y][x] + 0.001), 0.0)


@pk.workunit
def quantise(y, x, out, a, ratio):
    out[y][x] = int(255.0 * sqrt(min(a[y][x] * ratio[y][x], 1.0)) + 0.5)


@pk.workunit
def brightness(y, x, acc, luma):
    acc += luma[y][x]


@pk.workunit
def clipped(y, x, acc, a):
    if a[y][x] == 255:
        acc += 1.0


@dataclass
class State:
    n: int
    raw: pk.View
    rgb: list
    gain: float = 0.001
    burnt: float = 0.0


def setup(n):
    raw = pk.View([n, n], pk.uint16)
    y, x = np.mgrid[0:n, 0:n]
    raw.data[:] = (
        64 + 300 * rnd(n * n, 1).reshape(n, n) + ((x // 9) * 37 + (y // 7) * 53) % 600
    ).astype(np.uint16)
    return State(n, raw, [pk.View([n, n], pk.uint8) for _ in range(3)])


MATRIX = [(1.55, -0.40, -0.15), (-0.20, 1.45, -0.25), (0.02, -0.52, 1.50)]


def run(s):
    n = s.n
    all_ = pk.MDRangePolicy([0, 0], [n, n])
    lin, g, d, r, b, luma, rows, soft, ratio = (pk.View([n, n], pk.float) for _ in range(9))
    out = [pk.View([n, n], pk.float) for _ in range(3)]
    pk.parallel_for(all_, balance, lin=lin, raw=s.raw, gain=s.gain)
    pk.parallel_for(all_, green, g=g, lin=lin, h=n, w=n)
    pk.parallel_for(all_, difference, d=d, lin=lin, g=g)
    pk.parallel_for(all_, chroma, out=r, d=d, g=g, odd=0, h=n, w=n)
    pk.parallel_for(all_, chroma, out=b, d=d, g=g, odd=1, h=n, w=n)
    for o, (cr, cg, cb) in zip(out, MATRIX):
        pk.parallel_for(all_, matrix, out=o, r=r, g=g, b=b, cr=cr, cg=cg, cb=cb)
    pk.parallel_for(
        all_, matrix, out=luma, r=out[0], g=out[1], b=out[2], cr=0.2126, cg=0.7152, cb=0.0722
    )
    pk.parallel_for(all_, blur_rows, out=rows, a=luma, w=n)
    pk.parallel_for(all_, blur_columns, out=soft, a=rows, h=n)
    pk.parallel_for(all_, boost, ratio=ratio, luma=luma, blurred=soft, amount=0.8)
    for o, a in zip(s.rgb, out):
        pk.parallel_for(all_, quantise, out=o, a=a, ratio=ratio)
    mean = pk.parallel_reduce(all_, brightness, luma=luma)
    burnt = [pk.parallel_reduce(all_, clipped, a=a) for a in s.rgb]
    s.burnt = sum(float(v) for v in burnt)
    s.gain *= 0.7 + 0.3 * 0.4 / (float(mean) / (n * n))


def outputs(s):
    return {**{k: np.array(v.data) for k, v in zip("rgb", s.rgb)}, "gain": s.gain, "burnt": s.burnt}


def check(s, size, runs):
    assert 0.0 < s.gain < 1.0


if __name__ == "__main__":
    main(globals())
