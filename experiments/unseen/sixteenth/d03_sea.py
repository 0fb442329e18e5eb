# ruff: noqa: SIM102
"""Pictures of a sea: a mesh of waves, normals by scatter, points with a depth buffer, shading.

Normals are summed in fixed point, so that pictures do not depend on the order of the triangles.
"""

from dataclasses import dataclass
from math import cos, exp, log, pow, sin, sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 40, "default": 300, "large": 1500}
FRAMES, FAR, NOBODY = 3, 2147483647, 2147483647
FIXED = 1099511627776.0  # 2**40
LX, LY, LZ = 0.36, 0.80, -0.48  # towards the sun
HX, HY, HZ = 0.2093, 0.4651, -0.8602  # halfway between it and the eye


@pk.workunit
def waves(v: int, height, gx, gz, t: float):
    height[v] = (
        0.08 * sin(5.0 * gx[v] + 2.0 * gz[v] + 1.1 * t)
        + 0.04 * sin(-7.0 * gx[v] + 9.0 * gz[v] + 1.7 * t)
        + 0.015 * sin(31.0 * gx[v] + 17.0 * gz[v] + 3.1 * t)
    )


@pk.workunit
def look(
    v: int, px, py, pz, gx, height, gz, ct: float, st: float, cp: float, sp: float, away: float
):
    """From the world to the camera: turned, tilted, moved away."""
    x: pk.double = ct * gx[v] + st * gz[v]
    z: pk.double = ct * gz[v] - st * gx[v]
    px[v] = x
    py[v] = cp * height[v] + sp * z
    pz[v] = cp * z - sp * height[v] + away


@pk.workunit
def face_normals(f: int, fx, fy, fz, px, py, pz, tri):
    a: int = tri[f][0]
    b: int = tri[f][1]
    c: int = tri[f][2]
    ux: pk.double = px[b] - px[a]
    uy: pk.double = py[b] - py[a]
    uz: pk.double = pz[b] - pz[a]
    wx: pk.double = px[c] - px[a]
    wy: pk.double = py[c] - py[a]
    wz: pk.double = pz[c] - pz[a]
    fx[f] = FIXED * (uy * wz - uz * wy)
    fy[f] = FIXED * (uz * wx - ux * wz)
    fz[f] = FIXED * (ux * wy - uy * wx)


@pk.workunit
def clear_sums(v: int, sx, sy, sz):
    sx[v] = 0
    sy[v] = 0
    sz[v] = 0


@pk.workunit
def scatter(f: int, sums, faces, tri):
    for corner in range(3):
        pk.atomic_add(sums, [tri[f][corner]], faces[f])


@pk.workunit
def normalise(v: int, nx, ny, nz, sx, sy, sz):
    x: pk.double = sx[v]
    y: pk.double = sy[v]
    z: pk.double = sz[v]
    length: pk.double = sqrt(x * x + y * y + z * z)
    nx[v] = x / length
    ny[v] = y / length
    nz[v] = z / length


@pk.workunit
def project(v: int, row, col, depth, px, py, pz, focal: float, width: int):
    col[v] = 0.5 * width + focal * px[v] / pz[v]
    row[v] = 0.5 * width - focal * py[v] / pz[v]
    depth[v] = 65536.0 * pz[v]


@pk.workunit
def clear_buffers(r: int, c: int, nearest, owner):
    nearest[r][c] = FAR
    owner[r][c] = NOBODY


@pk.workunit
def depth_test(v: int, nearest, row, col, depth, width: int):
    if row[v] >= 0 and row[v] < width and col[v] >= 0 and col[v] < width:
        pk.atomic_fetch_min(nearest, [row[v], col[v]], depth[v])


@pk.workunit
def claim(v: int, owner, nearest, row, col, depth, width: int):
    r: int = row[v]
    c: int = col[v]
    if r >= 0 and r < width and c >= 0 and c < width:
        if nearest[r][c] == depth[v]:
            pk.atomic_fetch_min(owner, [r, c], v)


@pk.workunit
def shade(v: int, colour, nx, ny, nz, height):
    diffuse: pk.double = max(0.0, nx[v] * LX + ny[v] * LY + nz[v] * LZ)
    gloss: pk.double = pow(max(0.0, nx[v] * HX + ny[v] * HY + nz[v] * HZ), 24.0)
    foam: pk.double = min(1.0, max(0.0, 20.0 * (height[v] - 0.07)))
    colour[v][0] = diffuse * (0.05 + 0.85 * foam) + gloss
    colour[v][1] = diffuse * (0.25 + 0.65 * foam) + gloss
    colour[v][2] = diffuse * (0.45 + 0.45 * foam) + 0.9 * gloss


@pk.workunit
def resolve(r: int, c: int, k: int, image, owner, colour):
    image[r][c][k] = 0.0
    if owner[r][c] != NOBODY:
        image[r][c][k] = colour[owner[r][c]][k]


@pk.workunit
def mend(r: int, c: int, k: int, whole, image, owner, width: int):
    """Pixels that no point fell on: the mean of their neighbours, or else the sky."""
    if owner[r][c] != NOBODY:
        whole[r][c][k] = image[r][c][k]
    else:
        found: int = 0
        light: pk.double = 0.0
        for a in range(max(r - 1, 0), min(r + 2, width)):
            for b in range(max(c - 1, 0), min(c + 2, width)):
                if owner[a][b] != NOBODY:
                    found += 1
                    light += image[a][b][k]
        if found > 0:
            whole[r][c][k] = light / found
        else:
            whole[r][c][k] = 0.5 + 0.15 * k + 0.2 * r / width


@pk.workunit
def luminance(r: int, c: int, acc: pk.Acc[pk.double], whole):
    acc += log(0.001 + 0.2126 * whole[r][c][0] + 0.7152 * whole[r][c][1] + 0.0722 * whole[r][c][2])


@pk.workunit
def tone(r: int, c: int, k: int, picture, whole, exposure: float):
    light: pk.double = exposure * whole[r][c][k]
    picture[r][c][k] = 255.0 * light / (1.0 + light)


@dataclass
class State:
    vertices: int
    faces: int
    width: int
    gx: pk.View
    gz: pk.View
    tri: pk.View
    whole: pk.View
    picture: pk.View
    exposures: pk.View


def setup(n: int) -> State:
    width = 3 * n // 5
    gx, gz = pk.View([n * n], pk.double), pk.View([n * n], pk.double)
    random = np.random.default_rng(3)
    line = np.linspace(-1.0, 1.0, n)
    x, z = np.meshgrid(line, line, indexing="ij")
    gx.data[:] = x.ravel() + random.uniform(-0.3, 0.3, n * n) / n
    gz.data[:] = z.ravel() + random.uniform(-0.3, 0.3, n * n) / n
    corner = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    below = np.stack([corner, corner + 1, corner + n], 1)
    above = np.stack([corner + n, corner + 1, corner + n + 1], 1)
    tri = pk.View([2 * len(corner), 3], pk.int32)
    tri.data[:] = np.stack([below, above], 1).reshape(-1, 3)
    whole = pk.View([width, width, 3], pk.double)
    picture = pk.View([width, width, 3], pk.uint8)
    exposures = pk.View([FRAMES], pk.double)
    return State(n * n, len(tri.data), width, gx, gz, tri, whole, picture, exposures)


def camera(frame):
    turn, tilt = 0.31 + 0.17 * frame, 0.62 - 0.03 * frame
    return {"ct": cos(turn), "st": sin(turn), "cp": cos(tilt), "sp": sin(tilt), "away": 2.9}


def run(s: State) -> None:
    n, m, w, tri, whole = s.vertices, s.faces, s.width, s.tri, s.whole
    pixels = pk.MDRangePolicy([0, 0], [w, w])
    channels = pk.MDRangePolicy([0, 0, 0], [w, w, 3])
    height, px, py, pz, nx, ny, nz = (pk.View([n], pk.double) for _ in range(7))
    fx, fy, fz = (pk.View([m], pk.int64) for _ in range(3))
    sx, sy, sz = (pk.View([n], pk.int64) for _ in range(3))
    row, col, depth = (pk.View([n], pk.int32) for _ in range(3))
    nearest, owner = pk.View([w, w], pk.int32), pk.View([w, w], pk.int32)
    colour, image = pk.View([n, 3], pk.double), pk.View([w, w, 3], pk.double)
    places = {"px": px, "py": py, "pz": pz}
    for frame in range(FRAMES):
        pk.parallel_for(n, waves, height=height, gx=s.gx, gz=s.gz, t=0.4 * frame)
        pk.parallel_for(n, look, gx=s.gx, height=height, gz=s.gz, **places, **camera(frame))
        pk.parallel_for(m, face_normals, fx=fx, fy=fy, fz=fz, tri=tri, **places)
        pk.parallel_for(n, clear_sums, sx=sx, sy=sy, sz=sz)
        for sums, faces in ((sx, fx), (sy, fy), (sz, fz)):
            pk.parallel_for(m, scatter, sums=sums, faces=faces, tri=tri)
        pk.parallel_for(n, normalise, nx=nx, ny=ny, nz=nz, sx=sx, sy=sy, sz=sz)
        screen = {"row": row, "col": col, "depth": depth}
        pk.parallel_for(n, project, focal=1.1 * w, width=w, **screen, **places)
        pk.parallel_for(pixels, clear_buffers, nearest=nearest, owner=owner)
        pk.parallel_for(n, depth_test, nearest=nearest, width=w, **screen)
        pk.parallel_for(n, claim, owner=owner, nearest=nearest, width=w, **screen)
        pk.parallel_for(n, shade, colour=colour, nx=nx, ny=ny, nz=nz, height=height)
        pk.parallel_for(channels, resolve, image=image, owner=owner, colour=colour)
        pk.parallel_for(channels, mend, whole=whole, image=image, owner=owner, width=w)
        light = pk.parallel_reduce(pixels, luminance, whole=whole)
        exposure = 0.6 / exp(float(light) / (w * w))
        pk.parallel_for(channels, tone, picture=s.picture, whole=whole, exposure=exposure)
        s.exposures.data[frame] = exposure


def outputs(s: State) -> dict:
    return {name: np.array(getattr(s, name).data) for name in ("whole", "picture", "exposures")}


def check(s: State, n: int) -> None:
    w, gx, gz, tri = s.width, s.gx.data, s.gz.data, s.tri.data
    for frame in range(FRAMES):
        t, c = 0.4 * frame, camera(frame)
        height = 0.08 * np.sin(5 * gx + 2 * gz + 1.1 * t)
        height += 0.04 * np.sin(-7 * gx + 9 * gz + 1.7 * t)
        height += 0.015 * np.sin(31 * gx + 17 * gz + 3.1 * t)
        z = c["ct"] * gz - c["st"] * gx
        p = np.stack([c["ct"] * gx + c["st"] * gz, c["cp"] * height + c["sp"] * z], 1)
        p = np.concatenate([p, (c["cp"] * z - c["sp"] * height + c["away"])[:, None]], 1)
        face = FIXED * np.cross(p[tri[:, 1]] - p[tri[:, 0]], p[tri[:, 2]] - p[tri[:, 0]])
        normal = np.zeros((n * n, 3))
        for corner in range(3):
            np.add.at(normal, tri[:, corner], np.trunc(face))
        normal /= np.linalg.norm(normal, axis=1)[:, None]
        col = np.trunc(0.5 * w + 1.1 * w * p[:, 0] / p[:, 2]).astype(int)
        row = np.trunc(0.5 * w - 1.1 * w * p[:, 1] / p[:, 2]).astype(int)
        depth = np.trunc(65536.0 * p[:, 2]).astype(int)
        owner = np.full((w, w), -1)
        for v in sorted(range(n * n), key=lambda v: (-depth[v], -v)):
            if 0 <= row[v] < w and 0 <= col[v] < w:
                owner[row[v], col[v]] = v
        diffuse = np.maximum(normal @ [LX, LY, LZ], 0)
        gloss = np.maximum(normal @ [HX, HY, HZ], 0) ** 24
        foam = np.clip(20 * (height - 0.07), 0, 1)
        colour = diffuse[:, None] * ([0.05, 0.25, 0.45] + foam[:, None] * [0.85, 0.65, 0.45])
        colour += gloss[:, None] * [1, 1, 0.9]
        seen = (owner >= 0)[:, :, None]
        image = np.where(seen, colour[owner], 0.0)
        padded = np.pad(np.concatenate([image, 1.0 * seen], 2), ((1, 1), (1, 1), (0, 0)))
        around = sum(padded[a : a + w, b : b + w] for a in range(3) for b in range(3))
        sky = 0.5 + 0.15 * np.arange(3) + 0.2 * np.arange(w)[:, None, None] / w
        mean = around[:, :, :3] / np.maximum(around[:, :, 3:], 1)
        whole = np.where(seen, image, np.where(around[:, :, 3:] > 0, mean, sky))
        light = np.log(0.001 + whole @ [0.2126, 0.7152, 0.0722])
        exposure = 0.6 / np.exp(light.mean())
        np.testing.assert_allclose(s.exposures.data[frame], exposure, rtol=1e-9)
    assert 0.2 < seen.mean() <= 1.0
    np.testing.assert_allclose(s.whole.data, whole, atol=1e-8)
    picture = 255 * exposure * whole / (1 + exposure * whole)
    assert (abs(s.picture.data - np.floor(picture)) <= 1).all()
    assert (s.picture.data == np.floor(picture)).mean() > 0.999


if __name__ == "__main__":
    main(globals())
