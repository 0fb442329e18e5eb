"""Haze removal: dark channel prior (He, Sun, Tang 2009) refined by a guided filter; uint8 in, out."""

from dataclasses import dataclass
import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 48, "default": 512, "large": 2000}
OMEGA, EPS, FLOOR = 0.9, 1e-3, 0.1


@pk.workunit
def darkest(
    i: int,
    j: int,
    d: pk.View2D[pk.float],
    rgb: pk.View3D[pk.uint8],
    a0: float,
    a1: float,
    a2: float,
):
    """The least channel, each over its airlight."""
    d[i][j] = min(rgb[i][j][0] / a0, min(rgb[i][j][1] / a1, rgb[i][j][2] / a2))


@pk.workunit
def erode_x(i: int, j: int, out: pk.View2D[pk.float], f: pk.View2D[pk.float], n: int):
    least: pk.float = f[i][j]
    for k in range(-3, 4):
        q: int = min(max(j + k, 0), n - 1)
        if f[i][q] < least:
            least = f[i][q]
    out[i][j] = least


@pk.workunit
def erode_y(i: int, j: int, out: pk.View2D[pk.float], f: pk.View2D[pk.float], n: int):
    least: pk.float = f[i][j]
    for k in range(-3, 4):
        q: int = min(max(i + k, 0), n - 1)
        if f[q][j] < least:
            least = f[q][j]
    out[i][j] = least


@pk.workunit
def sum_plane(i: int, j: int, acc: pk.Acc[pk.double], f: pk.View2D[pk.float]):
    acc += f[i][j]


@pk.workunit
def hazy_sum(
    i: int,
    j: int,
    acc: pk.Acc[pk.double],
    f: pk.View2D[pk.float],
    rgb: pk.View3D[pk.uint8],
    c: int,
    level: float,
):
    if f[i][j] > level:
        acc += rgb[i][j][c]


@pk.workunit
def hazy_count(i: int, j: int, acc: pk.Acc[pk.double], f: pk.View2D[pk.float], level: float):
    if f[i][j] > level:
        acc += 1.0


@pk.workunit
def transmission(i: int, j: int, t: pk.View2D[pk.float], dark: pk.View2D[pk.float], omega: float):
    t[i][j] = 1.0 - omega * dark[i][j]


@pk.workunit
def luma(i: int, j: int, y: pk.View2D[pk.float], rgb: pk.View3D[pk.uint8]):
    y[i][j] = (0.299 * rgb[i][j][0] + 0.587 * rgb[i][j][1] + 0.114 * rgb[i][j][2]) / 255.0


@pk.workunit
def times(i: int, j: int, out: pk.View2D[pk.float], a: pk.View2D[pk.float], b: pk.View2D[pk.float]):
    out[i][j] = a[i][j] * b[i][j]


@pk.workunit
def box_x(i: int, j: int, out: pk.View2D[pk.float], f: pk.View2D[pk.float], n: int):
    total: pk.float = 0.0
    for k in range(-3, 4):
        total += f[i][min(max(j + k, 0), n - 1)]
    out[i][j] = total


@pk.workunit
def box_y(i: int, j: int, out: pk.View2D[pk.float], f: pk.View2D[pk.float], n: int):
    total: pk.float = 0.0
    for k in range(-3, 4):
        total += f[min(max(i + k, 0), n - 1)][j]
    out[i][j] = total / 49.0


@pk.workunit
def slope(
    i: int,
    j: int,
    a: pk.View2D[pk.float],
    mg: pk.View2D[pk.float],
    mt: pk.View2D[pk.float],
    mgg: pk.View2D[pk.float],
    mgt: pk.View2D[pk.float],
    eps: float,
):
    a[i][j] = (mgt[i][j] - mg[i][j] * mt[i][j]) / (mgg[i][j] - mg[i][j] * mg[i][j] + eps)


@pk.workunit
def offset(
    i: int,
    j: int,
    b: pk.View2D[pk.float],
    a: pk.View2D[pk.float],
    mg: pk.View2D[pk.float],
    mt: pk.View2D[pk.float],
):
    b[i][j] = mt[i][j] - a[i][j] * mg[i][j]


@pk.workunit
def refine(
    i: int,
    j: int,
    t: pk.View2D[pk.float],
    a: pk.View2D[pk.float],
    b: pk.View2D[pk.float],
    guide: pk.View2D[pk.float],
    floor: float,
):
    t[i][j] = min(1.0, max(floor, a[i][j] * guide[i][j] + b[i][j]))


@pk.workunit
def recover(
    i: int,
    j: int,
    c: int,
    out: pk.View3D[pk.uint8],
    rgb: pk.View3D[pk.uint8],
    t: pk.View2D[pk.float],
    air: pk.View1D[pk.double],
):
    value: float = (rgb[i][j][c] - air[c]) / t[i][j] + air[c]
    out[i][j][c] = min(255.0, max(0.0, value + 0.5))


@pk.workunit
def brightness(i: int, j: int, c: int, acc: pk.Acc[pk.int64], rgb: pk.View3D[pk.uint8]):
    acc += rgb[i][j][c]


@dataclass
class State:
    size: int
    rgb: pk.View
    out: pk.View
    t: pk.View
    air: pk.View
    before: int = 0
    after: int = 0


def picture(n):
    rng = np.random.default_rng(3)
    scene = rng.integers(0, 200, (n // 8 + 1, n // 8 + 1, 3)).repeat(8, 0).repeat(8, 1)[:n, :n]
    scene = scene + rng.integers(0, 40, (n, n, 3))
    depth = np.linspace(1.5, 0.1, n)[:, None, None]
    t = np.exp(-depth)
    return np.clip(scene * t + np.array([230, 225, 215]) * (1 - t), 0, 255).astype(np.uint8)


def setup(n):
    rgb, out = pk.View([n, n, 3], pk.uint8), pk.View([n, n, 3], pk.uint8)
    rgb.data[:] = picture(n)
    return State(n, rgb, out, pk.View([n, n], pk.float), pk.View([3], pk.double))


def eroded(image, all_, n):
    across, both = pk.View([n, n], pk.float), pk.View([n, n], pk.float)
    pk.parallel_for(all_, erode_x, out=across, f=image, n=n)
    pk.parallel_for(all_, erode_y, out=both, f=across, n=n)
    return both


def mean(image, all_, n):
    across, both = pk.View([n, n], pk.float), pk.View([n, n], pk.float)
    pk.parallel_for(all_, box_x, out=across, f=image, n=n)
    pk.parallel_for(all_, box_y, out=both, f=across, n=n)
    return both


def run(s):
    n, rgb = s.size, s.rgb
    all_, channels = pk.MDRangePolicy([0, 0], [n, n]), pk.MDRangePolicy([0, 0, 0], [n, n, 3])
    dark = pk.View([n, n], pk.float)
    pk.parallel_for(all_, darkest, d=dark, rgb=rgb, a0=1.0, a1=1.0, a2=1.0)
    dark = eroded(dark, all_, n)
    level = 1.3 * float(pk.parallel_reduce(all_, sum_plane, f=dark)) / (n * n)
    number = pk.parallel_reduce(all_, hazy_count, f=dark, level=level)
    sums = [pk.parallel_reduce(all_, hazy_sum, f=dark, rgb=rgb, c=c, level=level) for c in range(3)]
    air = [float(x) / max(1.0, float(number)) for x in sums]
    s.air.data[:] = air
    haze, t, guide, gg, gt, a, b = (pk.View([n, n], pk.float) for _ in range(7))
    pk.parallel_for(all_, darkest, d=haze, rgb=rgb, a0=air[0], a1=air[1], a2=air[2])
    pk.parallel_for(all_, transmission, t=t, dark=eroded(haze, all_, n), omega=OMEGA)
    pk.parallel_for(all_, luma, y=guide, rgb=rgb)
    pk.parallel_for(all_, times, out=gg, a=guide, b=guide)
    pk.parallel_for(all_, times, out=gt, a=guide, b=t)
    mg, mt, mgg, mgt = (mean(f, all_, n) for f in (guide, t, gg, gt))
    pk.parallel_for(all_, slope, a=a, mg=mg, mt=mt, mgg=mgg, mgt=mgt, eps=EPS)
    pk.parallel_for(all_, offset, b=b, a=a, mg=mg, mt=mt)
    pk.parallel_for(
        all_, refine, t=s.t, a=mean(a, all_, n), b=mean(b, all_, n), guide=guide, floor=FLOOR
    )
    pk.parallel_for(channels, recover, out=s.out, rgb=rgb, t=s.t, air=s.air)
    s.before = pk.parallel_reduce(channels, brightness, rgb=rgb)
    s.after = pk.parallel_reduce(channels, brightness, rgb=s.out)


def outputs(s):
    return {
        "out": np.array(s.out.data),
        "t": np.array(s.t.data),
        "air": np.array(s.air.data),
        "before": float(s.before),
        "after": float(s.after),
    }


def check(s):
    n = s.size
    rgb = picture(n).astype(float)

    def windows(f, op):
        for axis in (0, 1):
            p = np.pad(f, [(3, 3) if k == axis else (0, 0) for k in (0, 1)], "edge")
            parts = [np.take(p, np.arange(k, k + n), axis) for k in range(7)]
            f = np.minimum.reduce(parts) if op == "min" else sum(parts) / 7
        return f

    dark = windows(rgb.min(2), "min")
    level = 1.3 * dark.sum() / (n * n)
    air = rgb[dark > level].mean(0)
    t = 1 - OMEGA * windows((rgb / air).min(2), "min")
    g = rgb @ [0.299, 0.587, 0.114] / 255
    mg, mt, mgg, mgt = (windows(f, "mean") for f in (g, t, g * g, g * t))
    a = (mgt - mg * mt) / (mgg - mg * mg + EPS)
    t = np.clip(windows(a, "mean") * g + windows(mt - a * mg, "mean"), FLOOR, 1)
    out = np.clip((rgb - air) / t[:, :, None] + air + 0.5, 0, 255).astype(np.uint8)
    np.testing.assert_allclose(s.air.data, air, rtol=1e-6)
    np.testing.assert_allclose(s.t.data, t, rtol=0, atol=2e-4)
    assert np.mean(np.abs(np.array(s.out.data).astype(int) - out)) < 0.01
    assert float(s.before) == rgb.sum() and float(s.after) == np.array(s.out.data).sum(
        dtype=np.int64
    )


if __name__ == "__main__":
    main(globals())
