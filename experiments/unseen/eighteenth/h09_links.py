# ruff: noqa: B905
"""SU(2) links of a periodic lattice in 3-D: a random gauge transformation, plaquettes, one smearing.

A link is a unit quaternion, a row of a (sites, 4) view for each direction; sites are numbered along z.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 8, "default": 30, "large": 80}


@pk.function
def ahead(i: int, stride: int, n: int) -> int:
    if (i // stride) % n == n - 1:
        return i - stride * (n - 1)
    return i + stride


@pk.function
def behind(i: int, stride: int, n: int) -> int:
    if (i // stride) % n == 0:
        return i + stride * (n - 1)
    return i - stride


@pk.function
def scramble(x: pk.uint32) -> pk.uint32:
    h: pk.uint32 = (x ^ (x >> 16)) * 73244475
    h = (h ^ (h >> 16)) * 73244475
    return h ^ (h >> 16)


@pk.workunit
def draw(i: int, c: int, q: pk.View2D[pk.double], seed: pk.uint32):
    key: pk.uint32 = 4 * i + c
    q[i][c] = (scramble(scramble(key) + seed) + 0.5) / 4294967296.0 - 0.5


@pk.workunit
def unit(i: int, q: pk.View2D[pk.double]):
    length: pk.double = sqrt(
        q[i][0] * q[i][0] + q[i][1] * q[i][1] + q[i][2] * q[i][2] + q[i][3] * q[i][3]
    )
    if length > 0.001:
        for c in range(4):
            q[i][c] /= length
    else:
        q[i][0] = 1.0
        for c in range(1, 4):
            q[i][c] = 0.0


@pk.workunit
def clear(i: int, c: int, q: pk.View2D[pk.double]):
    q[i][c] = 0.0


@pk.workunit
def times(i: int, out, a, b):
    out[i][0] = a[i][0] * b[i][0] - a[i][1] * b[i][1] - a[i][2] * b[i][2] - a[i][3] * b[i][3]
    out[i][1] = a[i][0] * b[i][1] + a[i][1] * b[i][0] + a[i][2] * b[i][3] - a[i][3] * b[i][2]
    out[i][2] = a[i][0] * b[i][2] - a[i][1] * b[i][3] + a[i][2] * b[i][0] + a[i][3] * b[i][1]
    out[i][3] = a[i][0] * b[i][3] + a[i][1] * b[i][2] - a[i][2] * b[i][1] + a[i][3] * b[i][0]


@pk.workunit
def dagger_times(i: int, out, a, b):
    out[i][0] = a[i][0] * b[i][0] + a[i][1] * b[i][1] + a[i][2] * b[i][2] + a[i][3] * b[i][3]
    out[i][1] = a[i][0] * b[i][1] - a[i][1] * b[i][0] - a[i][2] * b[i][3] + a[i][3] * b[i][2]
    out[i][2] = a[i][0] * b[i][2] + a[i][1] * b[i][3] - a[i][2] * b[i][0] - a[i][3] * b[i][1]
    out[i][3] = a[i][0] * b[i][3] - a[i][1] * b[i][2] + a[i][2] * b[i][1] - a[i][3] * b[i][0]


@pk.workunit
def times_ahead(i: int, out, a, b, stride: int, n: int):
    """By the quaternion of the next site."""
    j: int = ahead(i, stride, n)
    out[i][0] = a[i][0] * b[j][0] - a[i][1] * b[j][1] - a[i][2] * b[j][2] - a[i][3] * b[j][3]
    out[i][1] = a[i][0] * b[j][1] + a[i][1] * b[j][0] + a[i][2] * b[j][3] - a[i][3] * b[j][2]
    out[i][2] = a[i][0] * b[j][2] - a[i][1] * b[j][3] + a[i][2] * b[j][0] + a[i][3] * b[j][1]
    out[i][3] = a[i][0] * b[j][3] + a[i][1] * b[j][2] - a[i][2] * b[j][1] + a[i][3] * b[j][0]


@pk.workunit
def times_dagger_ahead(i: int, out, a, b, stride: int, n: int):
    """By the inverse of the quaternion of the next site."""
    j: int = ahead(i, stride, n)
    out[i][0] = a[i][0] * b[j][0] + a[i][1] * b[j][1] + a[i][2] * b[j][2] + a[i][3] * b[j][3]
    out[i][1] = a[i][1] * b[j][0] - a[i][0] * b[j][1] - a[i][2] * b[j][3] + a[i][3] * b[j][2]
    out[i][2] = a[i][2] * b[j][0] - a[i][0] * b[j][2] + a[i][1] * b[j][3] - a[i][3] * b[j][1]
    out[i][3] = a[i][3] * b[j][0] - a[i][0] * b[j][3] - a[i][1] * b[j][2] + a[i][2] * b[j][1]


@pk.workunit
def add(i: int, c: int, total: pk.View2D[pk.double], part: pk.View2D[pk.double]):
    total[i][c] += part[i][c]


@pk.workunit
def add_behind(i: int, c: int, total, part, stride: int, n: int):
    total[i][c] += part[behind(i, stride, n)][c]


@pk.workunit
def mix(i: int, c: int, out, link, staples, keep: float, share: float):
    out[i][c] = keep * link[i][c] + share * staples[i][c]


@pk.workunit
def agreement(i: int, acc: pk.Acc[pk.double], p: pk.View2D[pk.double], q: pk.View2D[pk.double]):
    acc += p[i][0] * q[i][0] + p[i][1] * q[i][1] + p[i][2] * q[i][2] + p[i][3] * q[i][3]


@dataclass
class State:
    n: int
    seed: int
    start: list
    links: list
    plaquettes: pk.View


def setup(n: int) -> State:
    rng = np.random.default_rng(19)
    start, links = [], []
    for _ in range(3):
        view = pk.View([n**3, 4], pk.double)
        q = rng.normal(size=(n**3, 4)) * 0.25 + [1, 0, 0, 0]
        view.data[:] = q / np.linalg.norm(q, axis=1, keepdims=True)
        start.append(view)
        links.append(pk.View([n**3, 4], pk.double))
    return State(n, 99, start, links, pk.View([2, 3], pk.double))


def measure(s: State, links, result):
    n, sites = s.n, s.n**3
    for plane, (mu, nu) in enumerate(((0, 1), (0, 2), (1, 2))):
        p, q = pk.View([sites, 4], pk.double), pk.View([sites, 4], pk.double)
        pk.parallel_for(
            sites, times_ahead, out=p, a=links[mu], b=links[nu], stride=n ** (2 - mu), n=n
        )
        pk.parallel_for(
            sites, times_ahead, out=q, a=links[nu], b=links[mu], stride=n ** (2 - nu), n=n
        )
        s.plaquettes[result, plane] = float(pk.parallel_reduce(sites, agreement, p=p, q=q)) / sites


def run(s: State) -> None:
    n, sites = s.n, s.n**3
    parts = pk.MDRangePolicy([0, 0], [sites, 4])

    def field():
        return pk.View([sites, 4], pk.double)

    gauge, links = field(), [field() for _ in range(3)]
    pk.parallel_for(parts, draw, q=gauge, seed=s.seed)
    pk.parallel_for(sites, unit, q=gauge)
    for mu in range(3):
        turned = field()
        pk.parallel_for(sites, times, out=turned, a=gauge, b=s.start[mu])
        pk.parallel_for(
            sites, times_dagger_ahead, out=links[mu], a=turned, b=gauge, stride=n ** (2 - mu), n=n
        )
    measure(s, links, 0)
    for mu in range(3):
        staples = field()
        pk.parallel_for(parts, clear, q=staples)
        for nu in range(3):
            if nu == mu:
                continue
            here, there = {"stride": n ** (2 - mu), "n": n}, {"stride": n ** (2 - nu), "n": n}
            half, upper, corner, lower = field(), field(), field(), field()
            pk.parallel_for(sites, times_ahead, out=half, a=links[nu], b=links[mu], **there)
            pk.parallel_for(sites, times_dagger_ahead, out=upper, a=half, b=links[nu], **here)
            pk.parallel_for(parts, add, total=staples, part=upper)
            pk.parallel_for(sites, dagger_times, out=corner, a=links[nu], b=links[mu])
            pk.parallel_for(sites, times_ahead, out=lower, a=corner, b=links[nu], **here)
            pk.parallel_for(parts, add_behind, total=staples, part=lower, **there)
        pk.parallel_for(
            parts, mix, out=s.links[mu], link=links[mu], staples=staples, keep=0.6, share=0.1
        )
        pk.parallel_for(sites, unit, q=s.links[mu])
    measure(s, s.links, 1)


def outputs(s: State) -> dict:
    views = {"x": s.links[0], "y": s.links[1], "z": s.links[2], "plaquettes": s.plaquettes}
    return {name: np.array(view.data) for name, view in views.items()}


def check(s: State, n: int) -> None:
    """With matrices: a + ib, c + id."""

    def matrix(q):
        a, b, c, d = np.moveaxis(q.reshape(n, n, n, 4), 3, 0)
        return np.stack(
            [np.stack([a + 1j * d, c + 1j * b], -1), np.stack([-c + 1j * b, a - 1j * d], -1)], -2
        )

    def dagger(m):
        return np.conj(np.swapaxes(m, -1, -2))

    def up(m, axis):
        return np.roll(m, -1, axis)

    def plaquettes(u):
        for mu, nu in ((0, 1), (0, 2), (1, 2)):
            loop = u[mu] @ up(u[nu], mu) @ dagger(u[nu] @ up(u[mu], nu))
            yield np.trace(loop, axis1=-2, axis2=-1).real.mean() / 2

    # i, j, k as these matrices multiply like quaternions, up to their order.
    one = [np.eye(4)[c][None].repeat(n**3, 0) for c in range(4)]
    i, j, k = (matrix(q)[0, 0, 0] for q in one[1:])
    assert np.allclose(i @ j, k) or np.allclose(j @ i, k)
    swap = not np.allclose(i @ j, k)
    start = [np.array(v.data) for v in s.start]
    if swap:
        conjugate = np.array([1, -1, -1, -1])
        u = [matrix(q * conjugate) for q in start]
    else:
        u = [matrix(q) for q in start]
    # The transformation changes no plaquette.
    np.testing.assert_allclose(s.plaquettes.data[0], list(plaquettes(u)), rtol=1e-10)
    new = []
    for mu in range(3):
        total = 0
        for nu in range(3):
            if nu != mu:
                total = total + u[nu] @ up(u[mu], nu) @ dagger(up(u[nu], mu))
                total = total + np.roll(dagger(u[nu]) @ u[mu] @ up(u[nu], mu), 1, nu)
        m = 0.6 * u[mu] + 0.1 * total
        new.append(m / np.sqrt(np.linalg.det(m).real)[..., None, None])
    np.testing.assert_allclose(s.plaquettes.data[1], list(plaquettes(new)), rtol=1e-10)
    for view in s.links:
        np.testing.assert_allclose((np.array(view.data) ** 2).sum(axis=1), 1, rtol=1e-12)


if __name__ == "__main__":
    main(globals())
