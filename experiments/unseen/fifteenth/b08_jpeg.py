"""Lossy coding of pictures: colour transform, 8x8 cosine transforms, quantisation, and back again."""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_024, "default": 65_536, "large": 2_359_296}
LUMA = [[16, 11, 10, 16, 24, 40, 51, 61], [12, 12, 14, 19, 26, 58, 60, 55]]
LUMA += [[14, 13, 16, 24, 40, 57, 69, 56], [14, 17, 22, 29, 51, 87, 80, 62]]
LUMA += [[18, 22, 37, 56, 68, 109, 103, 77], [24, 35, 55, 64, 81, 104, 113, 92]]
LUMA += [[49, 64, 78, 87, 103, 121, 120, 101], [72, 92, 95, 98, 112, 100, 103, 99]]


@pk.workunit
def luma(i: int, j: int, y, r, g, b):
    y[i][j] = 0.299 * r[i][j] + 0.587 * g[i][j] + 0.114 * b[i][j] - 128.0


@pk.workunit
def chroma(i: int, j: int, c, y, part, scale: float):
    c[i][j] = scale * (part[i][j] - y[i][j] - 128.0)


@pk.workunit
def halve(i: int, j: int, small, c):
    upper: pk.double = c[2 * i][2 * j] + c[2 * i][2 * j + 1]
    small[i][j] = 0.25 * (upper + c[2 * i + 1][2 * j] + c[2 * i + 1][2 * j + 1])


@pk.workunit
def along_rows(i: int, j: int, out, x, d):
    first: int = j - j % 8
    k: int = j % 8
    total: pk.double = 0.0
    for t in range(8):
        total += d[k][t] * x[i][first + t]
    out[i][j] = total


@pk.workunit
def along_columns(i: int, j: int, out, x, d):
    first: int = i - i % 8
    k: int = i % 8
    total: pk.double = 0.0
    for t in range(8):
        total += d[k][t] * x[first + t][j]
    out[i][j] = total


@pk.workunit
def quantise(i: int, j: int, q, x, table):
    v: pk.double = x[i][j] / table[i % 8][j % 8]
    if v >= 0.0:
        q[i][j] = int(v + 0.5)
    else:
        q[i][j] = -int(0.5 - v)


@pk.workunit
def dequantise(i: int, j: int, x, q, table):
    x[i][j] = q[i][j] * table[i % 8][j % 8]


@pk.workunit
def nonzero(i: int, j: int, acc: pk.Acc[pk.int64], q):
    if q[i][j] != 0:
        acc += 1


@pk.function
def to_byte(v: pk.double) -> int:
    return int(min(max(v + 0.5, 0.0), 255.0))


@pk.workunit
def grey_back(i: int, j: int, r, y, c, f: float):
    r[i][j] = to_byte(y[i][j] + 128.0 + f * c[i // 2][j // 2])


@pk.workunit
def green_back(i: int, j: int, g, y, cb, cr):
    g[i][j] = to_byte(
        y[i][j] + 128.0 - 0.344136 * cb[i // 2][j // 2] - 0.714136 * cr[i // 2][j // 2]
    )


@pk.workunit
def square_error(i: int, j: int, acc: pk.Acc[pk.double], x, y):
    e: int = x[i][j] - y[i][j]
    acc += e * e


@dataclass
class State:
    m: int
    rgb: list
    dct: pk.View
    idct: pk.View
    table: pk.View
    back: list
    codes: list
    errors: list = field(default_factory=list)
    counts: list = field(default_factory=list)


def setup(n: int) -> State:
    m = max(16, int(n**0.5) // 16 * 16)
    rng = np.random.default_rng(208)
    y, x = np.mgrid[0:m, 0:m] / m
    rgb, back = ([pk.View([m, m], pk.uint8) for _ in range(3)] for _ in range(2))
    for k, v in enumerate(rgb):
        picture = 120 + 90 * np.sin((9 + k) * x + 5 * y * y) * np.cos(7 * y - k) + 40 * (x > y)
        v.data[:] = np.clip(picture + rng.normal(0, 6, (m, m)), 0, 255).astype(np.uint8)
    k, t = np.arange(8)[:, None], np.arange(8)
    d = np.cos((2 * t + 1) * k * np.pi / 16) * np.where(k == 0, 0.125**0.5, 0.5)
    views = [pk.View([8, 8], pk.float) for _ in range(3)]
    for v, a in zip(views, (d, d.T, np.array(LUMA))):
        v.data[:] = a
    codes = [pk.View([q, q], pk.int16) for q in (m, m // 2, m // 2)]
    return State(m, rgb, *views, back, codes)


def code(s: State, q, plane):
    """Code a plane into q, and decode it in place."""
    size = plane.shape[0]
    pixels = pk.MDRangePolicy([0, 0], [size, size])
    other = pk.View([size, size], pk.float)
    pk.parallel_for(pixels, along_rows, out=other, x=plane, d=s.dct)
    pk.parallel_for(pixels, along_columns, out=plane, x=other, d=s.dct)
    pk.parallel_for(pixels, quantise, q=q, x=plane, table=s.table)
    s.counts.append(pk.parallel_reduce(pixels, nonzero, q=q))
    pk.parallel_for(pixels, dequantise, x=plane, q=q, table=s.table)
    pk.parallel_for(pixels, along_columns, out=other, x=plane, d=s.idct)
    pk.parallel_for(pixels, along_rows, out=plane, x=other, d=s.idct)


def run(s: State) -> None:
    m, (r, g, b) = s.m, s.rgb
    pixels, quarter = pk.MDRangePolicy([0, 0], [m, m]), pk.MDRangePolicy([0, 0], [m // 2, m // 2])
    y, full, cb, cr = (pk.View([k, k], pk.float) for k in (m, m, m // 2, m // 2))
    s.counts, s.errors = [], []
    pk.parallel_for(pixels, luma, y=y, r=r, g=g, b=b)
    for half, part, scale in ((cb, b, 0.564), (cr, r, 0.713)):
        pk.parallel_for(pixels, chroma, c=full, y=y, part=part, scale=scale)
        pk.parallel_for(quarter, halve, small=half, c=full)
    for q, plane in zip(s.codes, (y, cb, cr)):
        code(s, q, plane)
    pk.parallel_for(pixels, grey_back, r=s.back[0], y=y, c=cr, f=1.402)
    pk.parallel_for(pixels, green_back, g=s.back[1], y=y, cb=cb, cr=cr)
    pk.parallel_for(pixels, grey_back, r=s.back[2], y=y, c=cb, f=1.772)
    for x, x2 in zip(s.rgb, s.back):
        s.errors.append(pk.parallel_reduce(pixels, square_error, x=x, y=x2) / (m * m))


def outputs(s: State) -> dict:
    pictures = {f"back{k}": np.array(v.data) for k, v in enumerate(s.back)}
    codes = {f"code{k}": np.array(v.data) for k, v in enumerate(s.codes)}
    numbers = np.array([float(x) for x in s.errors + s.counts])
    return {**pictures, **codes, "numbers": numbers}


def check(s: State, n: int) -> None:
    d, m = np.array(s.dct.data, float), s.m
    r, g, b = (np.array(v.data, float) for v in s.rgb)
    y = 0.299 * r + 0.587 * g + 0.114 * b - 128
    cb = (0.564 * (b - y - 128)).reshape(m // 2, 2, m // 2, 2).mean((1, 3))
    for q, plane in ((s.codes[0], y), (s.codes[1], cb)):
        size = len(plane)
        blocks = plane.reshape(size // 8, 8, size // 8, 8)
        c = np.einsum("ka,iajb,lb->ikjl", d, blocks, d) / np.array(LUMA)[None, :, None, :]
        assert np.abs(c.reshape(size, size) - q.data).max() < 0.501
    assert max(float(e) for e in s.errors) < 300
    assert [int(c) for c in s.counts] == [np.count_nonzero(q.data) for q in s.codes]


if __name__ == "__main__":
    main(globals())
