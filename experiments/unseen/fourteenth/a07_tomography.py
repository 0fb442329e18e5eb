"""Tomography by SIRT: rays are projected through short lists of pixels, and pixels gather from rays.

The residual is read each round; the relaxation falls by the host when it stops to shrink fast.
"""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 24, "default": 64, "large": 300}
ROUNDS = 8


@pk.workunit
def clear(p: int, f: pk.View1D[pk.double]):
    f[p] = 0.0


@pk.workunit
def project(
    r: int,
    out: pk.View1D[pk.double],
    f: pk.View1D[pk.double],
    pixel: pk.View2D[pk.int32],
    length: pk.View1D[pk.int32],
):
    s: float = 0.0
    for k in range(length[r]):
        s += f[pixel[r][k]]
    out[r] = s


@pk.workunit
def difference(
    r: int, e: pk.View1D[pk.double], measured: pk.View1D[pk.double], p: pk.View1D[pk.double]
):
    e[r] = measured[r] - p[r]


@pk.workunit
def weigh(r: int, w: pk.View1D[pk.double], e: pk.View1D[pk.double], length: pk.View1D[pk.int32]):
    w[r] = e[r] / length[r] if length[r] > 0 else 0.0


@pk.workunit
def gather(
    p: int,
    g: pk.View1D[pk.double],
    w: pk.View1D[pk.double],
    begin: pk.View1D[pk.int32],
    ray: pk.View1D[pk.int32],
):
    s: float = 0.0
    for k in range(begin[p], begin[p + 1]):
        s += w[ray[k]]
    g[p] = s


@pk.workunit
def average(p: int, g: pk.View1D[pk.double], begin: pk.View1D[pk.int32]):
    count: int = begin[p + 1] - begin[p]
    if count > 0:
        g[p] /= count


@pk.workunit
def step(p: int, f: pk.View1D[pk.double], g: pk.View1D[pk.double], relax: float):
    f[p] += relax * g[p]


@pk.workunit
def positive(p: int, f: pk.View1D[pk.double], most: float):
    f[p] = min(max(f[p], 0.0), most)


@pk.workunit
def squares(r: int, acc: pk.Acc[pk.double], e: pk.View1D[pk.double]):
    acc += e[r] * e[r]


@dataclass
class State:
    n: int
    rays: int
    pixel: pk.View
    length: pk.View
    begin: pk.View
    ray: pk.View
    measured: pk.View
    f: pk.View
    residuals: list = field(default_factory=list)


def setup(n: int) -> State:
    angles = n // 2
    rays, m = angles * n, 2 * n
    theta = np.repeat(np.pi * np.arange(angles) / angles, n)[:, None]
    offset = np.tile(np.arange(n) - 0.5 * (n - 1), angles)[:, None]
    along = (np.arange(m) - 0.5 * (m - 1)) * 0.75
    i = np.rint(offset * np.cos(theta) - along * np.sin(theta) + 0.5 * (n - 1)).astype(np.int32)
    j = np.rint(offset * np.sin(theta) + along * np.cos(theta) + 0.5 * (n - 1)).astype(np.int32)
    inside = (i >= 0) & (i < n) & (j >= 0) & (j < n)
    counts = inside.sum(1)
    s = State(
        n,
        rays,
        pk.View([rays, int(counts.max())], pk.int32),
        pk.View([rays], pk.int32),
        pk.View([n * n + 1], pk.int32),
        pk.View([int(counts.sum())], pk.int32),
        pk.View([rays], pk.double),
        pk.View([n * n], pk.double),
    )
    flat = (i * n + j)[inside]
    s.pixel.data[np.arange(counts.max()) < counts[:, None]] = flat
    s.length.data[:] = counts
    owner = np.repeat(np.arange(rays, dtype=np.int32), counts)
    s.ray.data[:] = owner[np.argsort(flat, kind="stable")]
    s.begin.data[1:] = np.cumsum(np.bincount(flat, minlength=n * n))
    x = (np.arange(n) - 0.5 * n) / n
    phantom = (x[:, None] ** 2 + 2.0 * x**2 < 0.15) + 0.5 * ((x[:, None] - 0.1) ** 2 + x**2 < 0.02)
    s.measured.data[:] = np.bincount(owner, phantom.ravel()[flat], minlength=rays)
    return s


def run(s: State) -> None:
    pixels, rays, f = s.n * s.n, s.rays, s.f
    p, e, w = (pk.View([rays], pk.double) for _ in range(3))
    g = pk.View([pixels], pk.double)
    pk.parallel_for(pixels, clear, f=f)
    relax, s.residuals = 1.6, []
    for _ in range(ROUNDS):
        pk.parallel_for(rays, project, out=p, f=f, pixel=s.pixel, length=s.length)
        pk.parallel_for(rays, difference, e=e, measured=s.measured, p=p)
        pk.parallel_for(rays, weigh, w=w, e=e, length=s.length)
        pk.parallel_for(pixels, gather, g=g, w=w, begin=s.begin, ray=s.ray)
        pk.parallel_for(pixels, average, g=g, begin=s.begin)
        pk.parallel_for(pixels, step, f=f, g=g, relax=relax)
        pk.parallel_for(pixels, positive, f=f, most=2.0)
        s.residuals.append(sqrt(float(pk.parallel_reduce(rays, squares, e=e))))
        if len(s.residuals) > 1 and s.residuals[-1] > 0.9 * s.residuals[-2]:
            relax *= 0.9


def outputs(s: State) -> dict:
    return {"f": np.array(s.f.data), "residuals": np.array(s.residuals)}


def check(s: State, n: int) -> None:
    used = np.arange(s.pixel.shape[1]) < np.array(s.length.data)[:, None]
    a = np.zeros((s.rays, n * n))
    np.add.at(a, (np.nonzero(used)[0], np.array(s.pixel.data)[used]), 1.0)
    rows, columns = np.maximum(a.sum(1), 1), np.maximum(a.sum(0), 1)
    f, relax, residuals = np.zeros(n * n), 1.6, []
    for _ in range(ROUNDS):
        e = np.array(s.measured.data) - a @ f
        f = np.clip(f + relax * (a.T @ (e / rows)) / columns, 0.0, 2.0)
        residuals.append(np.sqrt(e @ e))
        if len(residuals) > 1 and residuals[-1] > 0.9 * residuals[-2]:
            relax *= 0.9
    np.testing.assert_allclose(s.residuals, residuals, rtol=1e-9)
    np.testing.assert_allclose(s.f.data, f, rtol=1e-8, atol=1e-10)


if __name__ == "__main__":
    main(globals())
