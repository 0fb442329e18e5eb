"""Ambient occlusion of a rendered frame from its depth: positions, normals, taps, bilateral blur.

float32; the taps come from a table of 4 x 4 patterns, the picture leaves as bytes.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 44, "default": 360, "large": 1300}
TAPS = 8


@pk.workunit
def linear_depth(i: int, j: int, z: pk.View2D[pk.float], raw: pk.View2D[pk.uint16], near: pk.float):
    """The buffer holds the reciprocal."""
    z[i][j] = near * 65536.0 / (raw[i][j] + 1)


@pk.workunit
def unproject(i: int, j: int, x, y, z, scale: pk.float, n: int):
    x[i][j] = (j - 0.5 * n) * scale * z[i][j]
    y[i][j] = (i - 0.5 * n) * scale * z[i][j]


@pk.workunit
def across(i: int, j: int, dx, dy, dz, x, y, z, n: int, di: int, dj: int):
    """Towards the neighbour (before or after) that is nearer in depth."""
    ia: int = max(i - di, 0)
    ja: int = max(j - dj, 0)
    ib: int = min(i + di, n - 1)
    jb: int = min(j + dj, n - 1)
    after: pk.float = abs(z[ib][jb] - z[i][j])
    before: pk.float = abs(z[i][j] - z[ia][ja])
    inside: bool = ia < i or ja < j
    if (after <= before or not inside) and (ib > i or jb > j):
        dx[i][j] = x[ib][jb] - x[i][j]
        dy[i][j] = y[ib][jb] - y[i][j]
        dz[i][j] = z[ib][jb] - z[i][j]
    else:
        dx[i][j] = x[i][j] - x[ia][ja]
        dy[i][j] = y[i][j] - y[ia][ja]
        dz[i][j] = z[i][j] - z[ia][ja]


@pk.workunit
def cross_component(i: int, j: int, out, a, b, c, d):
    out[i][j] = a[i][j] * b[i][j] - c[i][j] * d[i][j]


@pk.workunit
def normalise(i: int, j: int, x, y, z):
    """Length one, towards the eye."""
    length: pk.float = sqrt(x[i][j] * x[i][j] + y[i][j] * y[i][j] + z[i][j] * z[i][j]) + 0.000001
    if z[i][j] > 0.0:
        length = -length
    x[i][j] /= length
    y[i][j] /= length
    z[i][j] /= length


@pk.workunit
def occlude(i: int, j: int, ao, x, y, z, nx, ny, nz, taps, n: int, reach: pk.float):
    """The share of light that walls nearby take away."""
    pattern: int = (i % 4) * 4 + j % 4
    dark: pk.float = 0.0
    for k in range(8):
        p: int = min(max(i + taps[pattern][k][0], 0), n - 1)
        q: int = min(max(j + taps[pattern][k][1], 0), n - 1)
        dx: pk.float = x[p][q] - x[i][j]
        dy: pk.float = y[p][q] - y[i][j]
        dz: pk.float = z[p][q] - z[i][j]
        square: pk.float = dx * dx + dy * dy + dz * dz + 0.0001
        rise: pk.float = dx * nx[i][j] + dy * ny[i][j] + dz * nz[i][j]
        fade: pk.float = max(1.0 - square / (reach * reach), 0.0)
        dark += max(rise / sqrt(square) - 0.1, 0.0) * fade
    ao[i][j] = max(1.0 - 2.0 * dark / 8.0, 0.0)


@pk.workunit
def blur(i: int, j: int, out, ao, z, n: int, di: int, dj: int, sharp: pk.float):
    """Along one axis, seven pixels, not across jumps of depth."""
    total: pk.float = 0.0
    weights: pk.float = 0.0
    for k in range(-3, 4):
        p: int = min(max(i + k * di, 0), n - 1)
        q: int = min(max(j + k * dj, 0), n - 1)
        jump: pk.float = (z[p][q] - z[i][j]) * sharp / z[i][j]
        weight: pk.float = 1.0 / ((1.0 + 0.15 * k * k) * (1.0 + jump * jump))
        total += weight * ao[p][q]
        weights += weight
    out[i][j] = total / weights


@pk.workunit
def lambert(i: int, j: int, light, nx, ny, nz, lx: pk.float, ly: pk.float, lz: pk.float):
    light[i][j] = max(nx[i][j] * lx + ny[i][j] * ly + nz[i][j] * lz, 0.0)


@pk.workunit
def shade(i: int, j: int, colour, albedo, light, ao):
    for k in range(3):
        colour[i][j][k] = albedo[i][j][k] * (0.35 * ao[i][j] + 0.9 * light[i][j])


@pk.workunit
def fog(i: int, j: int, colour, z, start: pk.float, thick: pk.float):
    amount: pk.float = min(max((z[i][j] - start) * thick, 0.0), 1.0)
    for k in range(3):
        colour[i][j][k] += amount * (0.7 - colour[i][j][k])


@pk.workunit
def tone(i: int, j: int, picture, colour):
    for k in range(3):
        v: pk.float = colour[i][j][k]
        v = v * (1.0 + 0.25 * v) / (1.0 + v)
        picture[i][j][k] = int(255.0 * min(sqrt(v), 1.0) + 0.5)


@dataclass
class State:
    n: int
    near: float
    scale: float
    raw: pk.View
    albedo: pk.View
    taps: pk.View
    smooth: pk.View
    picture: pk.View


def setup(n: int) -> State:
    rng = np.random.default_rng(17)
    y, x = np.mgrid[0:n, 0:n] / n
    depth = 6 + 2 * y + 0.2 * np.sin(30 * x) * np.sin(25 * y)
    for _ in range(30):
        cx, cy, r, at = rng.random(), rng.random(), 0.03 + 0.08 * rng.random(), 3 + 3 * rng.random()
        inside = 1 - ((x - cx) ** 2 + (y - cy) ** 2) / r**2
        ball = at - 0.8 * np.sqrt(np.maximum(inside, 0))
        depth = np.where(inside > 0, np.minimum(depth, ball), depth)
    raw, albedo = pk.View([n, n], pk.uint16), pk.View([n, n, 3], pk.float)
    raw.data[:] = (65536 / depth - 1).astype(np.uint16)
    albedo.data[:] = 0.2 + 0.8 * rng.random((n, n, 3))
    taps = pk.View([16, TAPS, 2], pk.int32)
    angle = 2 * np.pi * (np.arange(TAPS) / TAPS + rng.random(16)[:, None])
    radius = 1 + np.arange(TAPS) * 1.3 + rng.random((16, TAPS))
    taps.data[:] = np.rint(np.stack([radius * np.sin(angle), radius * np.cos(angle)], axis=2))
    smooth, picture = pk.View([n, n], pk.float), pk.View([n, n, 3], pk.uint8)
    return State(n, 1.0, 1.2 / n, raw, albedo, taps, smooth, picture)


def run(s: State) -> None:
    n = s.n
    pixels = pk.MDRangePolicy([0, 0], [n, n])
    x, y, z, ax, ay, az, bx, by, bz = (pk.View([n, n], pk.float) for _ in range(9))
    nx, ny, nz, ao, half, light = (pk.View([n, n], pk.float) for _ in range(6))
    colour = pk.View([n, n, 3], pk.float)
    pk.parallel_for(pixels, linear_depth, z=z, raw=s.raw, near=s.near)
    pk.parallel_for(pixels, unproject, x=x, y=y, z=z, scale=s.scale, n=n)
    pk.parallel_for(pixels, across, dx=ax, dy=ay, dz=az, x=x, y=y, z=z, n=n, di=0, dj=1)
    pk.parallel_for(pixels, across, dx=bx, dy=by, dz=bz, x=x, y=y, z=z, n=n, di=1, dj=0)
    pk.parallel_for(pixels, cross_component, out=nx, a=ay, b=bz, c=az, d=by)
    pk.parallel_for(pixels, cross_component, out=ny, a=az, b=bx, c=ax, d=bz)
    pk.parallel_for(pixels, cross_component, out=nz, a=ax, b=by, c=ay, d=bx)
    pk.parallel_for(pixels, normalise, x=nx, y=ny, z=nz)
    pk.parallel_for(
        pixels, occlude, ao=ao, x=x, y=y, z=z, nx=nx, ny=ny, nz=nz, taps=s.taps, n=n, reach=0.8
    )
    pk.parallel_for(pixels, blur, out=half, ao=ao, z=z, n=n, di=0, dj=1, sharp=20.0)
    pk.parallel_for(pixels, blur, out=s.smooth, ao=half, z=z, n=n, di=1, dj=0, sharp=20.0)
    pk.parallel_for(pixels, lambert, light=light, nx=nx, ny=ny, nz=nz, lx=0.48, ly=-0.6, lz=-0.64)
    pk.parallel_for(pixels, shade, colour=colour, albedo=s.albedo, light=light, ao=s.smooth)
    pk.parallel_for(pixels, fog, colour=colour, z=z, start=6.5, thick=0.3)
    pk.parallel_for(pixels, tone, picture=s.picture, colour=colour)


def outputs(s: State) -> dict:
    return {"smooth": np.array(s.smooth.data), "picture": np.array(s.picture.data)}


def check(s: State, n: int) -> None:
    """In float64; a few pixels may lie between two bytes, or on a tie of depths."""
    z = s.near * 65536.0 / (np.array(s.raw.data).astype(float) + 1)
    z = z.astype(np.float32).astype(float)
    i, j = np.mgrid[0:n, 0:n]
    p = np.stack([(j - n / 2) * s.scale * z, (i - n / 2) * s.scale * z, z], axis=2)

    def across(axis):
        d = np.diff(p, axis=axis)
        edge = np.full_like(np.take(d, [0], axis=axis), np.inf)
        after, before = np.concatenate([d, edge], axis), np.concatenate([edge, d], axis)
        return np.where(abs(after[..., 2:]) <= abs(before[..., 2:]), after, before)

    normal = np.cross(across(1), across(0))
    length = np.linalg.norm(normal, axis=2, keepdims=True) + 1e-6
    normal = normal / np.where(normal[..., 2:] > 0, -length, length)
    taps, dark = np.array(s.taps.data)[i % 4 * 4 + j % 4], 0.0
    for k in range(TAPS):
        a, b = (np.clip(c + taps[:, :, k, m], 0, n - 1) for m, c in enumerate((i, j)))
        d = p[a, b] - p
        square = (d * d).sum(axis=2) + 0.0001
        rise = (d * normal).sum(axis=2) / np.sqrt(square) - 0.1
        dark = dark + np.maximum(rise, 0) * np.maximum(1 - square / 0.64, 0)
    ao = np.maximum(1 - dark / 4, 0)
    for di, dj in ((0, 1), (1, 0)):
        total = weights = 0.0
        for k in range(-3, 4):
            a, b = np.clip(i + k * di, 0, n - 1), np.clip(j + k * dj, 0, n - 1)
            weight = 1 / ((1 + 0.15 * k * k) * (1 + ((z[a, b] - z) * 20 / z) ** 2))
            total, weights = total + weight * ao[a, b], weights + weight
        ao = total / weights
    light = np.maximum(normal @ [0.48, -0.6, -0.64], 0)
    colour = np.array(s.albedo.data) * (0.35 * ao + 0.9 * light)[:, :, None]
    colour += np.clip((z - 6.5) * 0.3, 0, 1)[:, :, None] * (0.7 - colour)
    tone = 255 * np.minimum(np.sqrt(colour * (1 + 0.25 * colour) / (1 + colour)), 1)
    near = abs(np.array(s.smooth.data) - ao) < 2e-4
    assert near.mean() > 0.97, near.mean()
    same = abs(np.array(s.picture.data) - tone) < 0.6
    assert same.mean() > 0.97, same.mean()


if __name__ == "__main__":
    main(globals())
