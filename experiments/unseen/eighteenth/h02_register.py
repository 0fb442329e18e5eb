# ruff: noqa: B905
"""Registration of two pictures: a displacement for each pixel by the method of Lucas and Kanade.

Gradients, structure tensors in 5 x 5 windows, warping, 2 x 2 systems, smoothing; single precision.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 32, "default": 320, "large": 1600}
STEPS = 3


@pk.function
def clamp(i: int, n: int) -> int:
    if i < 0:
        return 0
    if i >= n:
        return n - 1
    return i


@pk.workunit
def brightness(
    y: int, x: int, out: pk.View2D[pk.float], picture: pk.View2D[pk.uint8], scale: pk.float
):
    out[y][x] = picture[y][x] * scale


@pk.workunit
def clear(y: int, x: int, f: pk.View2D[pk.float]):
    f[y][x] = 0.0


@pk.workunit
def gradient_x(y: int, x: int, out, image, n: int):
    out[y][x] = (image[y][clamp(x + 1, n)] - image[y][clamp(x - 1, n)]) * pk.float(0.5)


@pk.workunit
def gradient_y(y: int, x: int, out, image, n: int):
    out[y][x] = (image[clamp(y + 1, n)][x] - image[clamp(y - 1, n)][x]) * pk.float(0.5)


@pk.workunit
def product(y: int, x: int, out, a, b):
    out[y][x] = a[y][x] * b[y][x]


@pk.workunit
def window_x(y: int, x: int, out, f, n: int):
    total: pk.float = 0.0
    for k in range(5):
        total += f[y][clamp(x + k - 2, n)]
    out[y][x] = total


@pk.workunit
def window_y(y: int, x: int, out, f, n: int):
    total: pk.float = 0.0
    for k in range(5):
        total += f[clamp(y + k - 2, n)][x]
    out[y][x] = total


@pk.workunit
def warp(y: int, x: int, out, image, u, v, n: int):
    """The image at (x + u, y + v), bilinear."""
    px: pk.float = min(max(x + u[y][x], pk.float(0.0)), pk.float(n - 1))
    py: pk.float = min(max(y + v[y][x], pk.float(0.0)), pk.float(n - 1))
    left: int = int(px)
    top: int = int(py)
    right: int = min(left + 1, n - 1)
    bottom: int = min(top + 1, n - 1)
    fx: pk.float = px - left
    fy: pk.float = py - top
    upper: pk.float = image[top][left] + fx * (image[top][right] - image[top][left])
    lower: pk.float = image[bottom][left] + fx * (image[bottom][right] - image[bottom][left])
    out[y][x] = upper + fy * (lower - upper)


@pk.workunit
def difference(y: int, x: int, out, a, b):
    out[y][x] = a[y][x] - b[y][x]


@pk.workunit
def determinant(y: int, x: int, det, xx, xy, yy, ridge: pk.float):
    det[y][x] = (xx[y][x] + ridge) * (yy[y][x] + ridge) - xy[y][x] * xy[y][x]


@pk.workunit
def solve(y: int, x: int, u, v, xx, xy, yy, det, xt, yt, ridge: pk.float, lowest: pk.float):
    """Where the window has an edge or a corner, a step of a pixel at most."""
    if det[y][x] > lowest:
        du: pk.float = (xy[y][x] * yt[y][x] - (yy[y][x] + ridge) * xt[y][x]) / det[y][x]
        dv: pk.float = (xy[y][x] * xt[y][x] - (xx[y][x] + ridge) * yt[y][x]) / det[y][x]
        u[y][x] += min(max(du, pk.float(-1.0)), pk.float(1.0))
        v[y][x] += min(max(dv, pk.float(-1.0)), pk.float(1.0))


@pk.workunit
def smooth(y: int, x: int, out, f, n: int):
    total: pk.float = 0.0
    for a in range(3):
        for b in range(3):
            total += f[clamp(y + a - 1, n)][clamp(x + b - 1, n)]
    out[y][x] = total / pk.float(9.0)


@pk.workunit
def squares(y: int, x: int, acc: pk.Acc[pk.double], f):
    acc += f[y][x] * f[y][x]


@pk.workunit
def to_bytes(y: int, x: int, out: pk.View2D[pk.uint8], f: pk.View2D[pk.float]):
    out[y][x] = int(
        min(max(f[y][x] * pk.float(255.0) + pk.float(0.5), pk.float(0.0)), pk.float(255.0))
    )


@dataclass
class State:
    n: int
    fixed: pk.View
    moving: pk.View
    u: pk.View
    v: pk.View
    aligned: pk.View
    residual: pk.View


def setup(n: int) -> State:
    rng = np.random.default_rng(12)
    y, x = np.mgrid[0:n, 0:n].astype(float)
    noise = rng.normal(size=(2, n, n))

    def scene(x, y):
        return (
            128
            + 60 * np.sin(0.31 * x + 2 * np.sin(0.05 * y)) * np.cos(0.23 * y)
            + 40 * np.sin(0.11 * (x + y))
        )

    fixed, moving, aligned = (pk.View([n, n], pk.uint8) for _ in range(3))
    away_x, away_y = 1.2 + np.sin(7 * y / n), 0.8 * np.cos(5 * x / n)
    fixed.data[:] = np.clip(np.rint(scene(x, y) + noise[0]), 0, 255)
    moving.data[:] = np.clip(np.rint(scene(x - away_x, y - away_y) + noise[1]), 0, 255)
    u, v = pk.View([n, n], pk.float), pk.View([n, n], pk.float)
    return State(n, fixed, moving, u, v, aligned, pk.View([STEPS], pk.double))


def run(s: State) -> None:
    n, u, v = s.n, s.u, s.v
    pixels = pk.MDRangePolicy([0, 0], [n, n])

    def image():
        return pk.View([n, n], pk.float)

    def window(f):
        rows, out = image(), image()
        pk.parallel_for(pixels, window_x, out=rows, f=f, n=n)
        pk.parallel_for(pixels, window_y, out=out, f=rows, n=n)
        return out

    def windowed_product(a, b):
        both = image()
        pk.parallel_for(pixels, product, out=both, a=a, b=b)
        return window(both)

    a, b, ix, iy, det = image(), image(), image(), image(), image()
    pk.parallel_for(pixels, brightness, out=a, picture=s.fixed, scale=1 / 255.0)
    pk.parallel_for(pixels, brightness, out=b, picture=s.moving, scale=1 / 255.0)
    pk.parallel_for(pixels, gradient_x, out=ix, image=a, n=n)
    pk.parallel_for(pixels, gradient_y, out=iy, image=a, n=n)
    xx, xy, yy = windowed_product(ix, ix), windowed_product(ix, iy), windowed_product(iy, iy)
    pk.parallel_for(pixels, determinant, det=det, xx=xx, xy=xy, yy=yy, ridge=0.01)
    pk.parallel_for(pixels, clear, f=u)
    pk.parallel_for(pixels, clear, f=v)
    warped, change = image(), image()
    for step in range(STEPS):
        pk.parallel_for(pixels, warp, out=warped, image=b, u=u, v=v, n=n)
        pk.parallel_for(pixels, difference, out=change, a=warped, b=a)
        xt, yt = windowed_product(ix, change), windowed_product(iy, change)
        rough_u, rough_v = image(), image()
        pk.parallel_for(
            pixels,
            solve,
            u=u,
            v=v,
            xx=xx,
            xy=xy,
            yy=yy,
            det=det,
            xt=xt,
            yt=yt,
            ridge=0.01,
            lowest=0.002,
        )
        pk.parallel_for(pixels, smooth, out=rough_u, f=u, n=n)
        pk.parallel_for(pixels, smooth, out=rough_v, f=v, n=n)
        pk.parallel_for(pixels, smooth, out=u, f=rough_u, n=n)
        pk.parallel_for(pixels, smooth, out=v, f=rough_v, n=n)
        s.residual[step] = float(pk.parallel_reduce(pixels, squares, f=change)) / (n * n)
    pk.parallel_for(pixels, warp, out=warped, image=b, u=u, v=v, n=n)
    pk.parallel_for(pixels, to_bytes, out=s.aligned, f=warped)


def outputs(s: State) -> dict:
    views = {"u": s.u, "v": s.v, "aligned": s.aligned, "residual": s.residual}
    return {name: np.array(view.data) for name, view in views.items()}


def check(s: State, n: int) -> None:
    """In double precision: few pixels are so close to a threshold that they differ."""
    a, b = np.array(s.fixed.data) / 255, np.array(s.moving.data) / 255

    def near(f, k):
        f = np.pad(f, k, mode="edge")
        return lambda dy, dx: f[k + dy : k + dy + n, k + dx : k + dx + n]

    def window(f, k=2):
        at = near(f, k)
        return sum(at(dy, dx) for dy in range(-k, k + 1) for dx in range(-k, k + 1))

    at = near(a, 1)
    ix, iy = (at(0, 1) - at(0, -1)) / 2, (at(1, 0) - at(-1, 0)) / 2
    xx, xy, yy = window(ix * ix), window(ix * iy), window(iy * iy)
    det = (xx + 0.01) * (yy + 0.01) - xy * xy
    u, v = np.zeros((n, n)), np.zeros((n, n))
    y, x = np.mgrid[0:n, 0:n]

    def warped():
        px, py = np.clip(x + u, 0, n - 1), np.clip(y + v, 0, n - 1)
        i, j = py.astype(int), px.astype(int)
        fx, fy, i1, j1 = px - j, py - i, np.minimum(i + 1, n - 1), np.minimum(j + 1, n - 1)
        upper, lower = b[i, j] + fx * (b[i, j1] - b[i, j]), b[i1, j] + fx * (b[i1, j1] - b[i1, j])
        return upper + fy * (lower - upper)

    for step in range(STEPS):
        change = warped() - a
        xt, yt = window(ix * change), window(iy * change)
        du = np.where(det > 0.002, (xy * yt - (yy + 0.01) * xt) / det, 0)
        dv = np.where(det > 0.002, (xy * xt - (xx + 0.01) * yt) / det, 0)
        u, v = u + np.clip(du, -1, 1), v + np.clip(dv, -1, 1)
        for _ in range(2):
            u, v = window(u, 1) / 9, window(v, 1) / 9
        np.testing.assert_allclose(s.residual.data[step], (change**2).mean(), rtol=1e-3)
    for view, expected in ((s.u, u), (s.v, v)):
        wrong = np.abs(np.array(view.data) - expected) > 1e-3
        assert wrong.mean() < 0.02, wrong.mean()
    wrong = np.abs(np.array(s.aligned.data) - np.floor(255 * warped() + 0.5)) > 1
    assert wrong.mean() < 0.02, wrong.mean()


if __name__ == "__main__":
    main(globals())
