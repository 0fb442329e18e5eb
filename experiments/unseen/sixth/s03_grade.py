"""Grading a photograph: [h][w][3] colour Views of 32-bit floats, from bytes to bytes."""

from dataclasses import dataclass
from math import fabs, sqrt

import numpy as np
import pykokkos as pk
from common import main, rnd, view

SIZES = {"small": 48, "default": 600, "large": 2000}
GAINS = np.array([1.9, 1.0, 1.5])
MATRIX = np.array([[1.6, -0.4, -0.2], [-0.2, 1.5, -0.3], [0.0, -0.6, 1.6]])
AMOUNT, CORE, KEY, SATURATION = 0.8, 0.005, 0.18, 1.2


@pk.workunit
def linearise(i, j, lin, raw):
    for c in range(3):
        x: float = raw[i][j][c] / 255.0
        lin[i][j][c] = x * (x * (x * 0.305306011 + 0.682171111) + 0.012522878)


@pk.workunit
def balance(i, j, lin, gains):
    for c in range(3):
        lin[i][j][c] *= gains[c]


@pk.workunit
def colour_matrix(i, j, rgb, lin, m):
    for c in range(3):
        rgb[i][j][c] = m[c][0] * lin[i][j][0] + m[c][1] * lin[i][j][1] + m[c][2] * lin[i][j][2]


@pk.workunit
def luminance(i, j, y, rgb):
    y[i][j] = 0.2126 * rgb[i][j][0] + 0.7152 * rgb[i][j][1] + 0.0722 * rgb[i][j][2]


@pk.workunit
def blur_rows(i, j, b, y, w):
    a: int = max(j - 2, 0)
    c: int = max(j - 1, 0)
    d: int = min(j + 1, w - 1)
    e: int = min(j + 2, w - 1)
    b[i][j] = (y[i][a] + 4.0 * y[i][c] + 6.0 * y[i][j] + 4.0 * y[i][d] + y[i][e]) / 16.0


@pk.workunit
def blur_columns(i, j, b, y, h):
    a: int = max(i - 2, 0)
    c: int = max(i - 1, 0)
    d: int = min(i + 1, h - 1)
    e: int = min(i + 2, h - 1)
    b[i][j] = (y[a][j] + 4.0 * y[c][j] + 6.0 * y[i][j] + 4.0 * y[d][j] + y[e][j]) / 16.0


@pk.workunit
def detail(i, j, d, y, b):
    d[i][j] = y[i][j] - b[i][j]


@pk.workunit
def coring(i, j, d, core):
    if fabs(d[i][j]) < core:
        d[i][j] = 0.0


@pk.workunit
def sharpen(i, j, rgb, d, amount):
    for c in range(3):
        rgb[i][j][c] += amount * d[i][j]


@pk.workunit
def summed(i, j, acc, y):
    acc += y[i][j]


@pk.workunit
def expose(i, j, rgb, gain):
    for c in range(3):
        rgb[i][j][c] *= gain


@pk.workunit
def saturate(i, j, rgb, s):
    y: float = 0.2126 * rgb[i][j][0] + 0.7152 * rgb[i][j][1] + 0.0722 * rgb[i][j][2]
    for c in range(3):
        rgb[i][j][c] = y + s * (rgb[i][j][c] - y)


@pk.workunit
def tone(i, j, rgb):
    for c in range(3):
        x: float = max(rgb[i][j][c], 0.0)
        rgb[i][j][c] = 1.4 * x / (0.4 + x)


@pk.workunit
def encode(i, j, out, rgb):
    for c in range(3):
        out[i][j][c] = int(255.0 * min(sqrt(rgb[i][j][c]), 1.0) + 0.5)


@pk.workunit
def clipped(i, j, acc: pk.Acc[pk.int64], out):
    for c in range(3):
        if out[i][j][c] == 255:
            acc += 1


@dataclass
class State:
    n: int
    raw: pk.View
    out: pk.View
    gains: pk.View
    m: pk.View
    mean: float = 0.0
    clip: int = 0


def setup(size):
    n = size
    i, j = np.indices((n, n))
    smooth = 110 + 90 * np.sin(i * 0.05) * np.cos(j * 0.03)
    raw = (smooth[..., None] + 40 * rnd(n * n * 3, 3).reshape(n, n, 3)).astype(np.uint8)
    return State(
        n,
        view(raw, pk.uint8),
        view(np.zeros((n, n, 3), np.uint8), pk.uint8),
        view(GAINS),
        view(MATRIX),
    )


def run(s):
    n = s.n
    px = pk.MDRangePolicy([0, 0], [n, n])
    lin, rgb = (pk.View([n, n, 3], pk.float) for _ in range(2))
    y, br, bc, d = (pk.View([n, n], pk.float) for _ in range(4))
    pk.parallel_for(px, linearise, lin=lin, raw=s.raw)
    pk.parallel_for(px, balance, lin=lin, gains=s.gains)
    pk.parallel_for(px, colour_matrix, rgb=rgb, lin=lin, m=s.m)
    pk.parallel_for(px, luminance, y=y, rgb=rgb)
    pk.parallel_for(px, blur_rows, b=br, y=y, w=n)
    pk.parallel_for(px, blur_columns, b=bc, y=br, h=n)
    pk.parallel_for(px, detail, d=d, y=y, b=bc)
    pk.parallel_for(px, coring, d=d, core=CORE)
    pk.parallel_for(px, sharpen, rgb=rgb, d=d, amount=AMOUNT)
    s.mean = pk.parallel_reduce(px, summed, y=y) / (n * n)
    pk.parallel_for(px, expose, rgb=rgb, gain=KEY / s.mean)
    pk.parallel_for(px, saturate, rgb=rgb, s=SATURATION)
    pk.parallel_for(px, tone, rgb=rgb)
    pk.parallel_for(px, encode, out=s.out, rgb=rgb)
    s.clip = pk.parallel_reduce(px, clipped, out=s.out)


def outputs(s):
    return {"out": np.array(s.out.data), "mean": float(s.mean), "clip": float(s.clip)}


if __name__ == "__main__":
    main(globals())
