"""Spot diagram of a triplet lens: rays through spherical surfaces, dispersion, a stop, and a search
for the focus by golden section that reads the spot's size."""

from dataclasses import dataclass
import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 4_000, "default": 200_000, "large": 2_000_000}
# radius of curvature, position of the centre, free aperture, Cauchy's a and b behind it
SURFACES = (
    (22.0, 22.0, 8.0, 1.60, 0.006),
    (-400.0, -397.0, 8.0, 1.0, 0.0),
    (-25.0, -16.0, 6.0, 1.62, 0.012),
    (20.0, 30.0, 6.0, 1.0, 0.0),
    (120.0, 136.0, 7.0, 1.60, 0.006),
    (-18.5, 0.5, 7.0, 1.0, 0.0),
)
SEARCHES, NEAR, FAR = 6, 50.0, 75.0
GOLDEN = 0.5 * (5.0**0.5 - 1.0)


@pk.workunit
def copy(i: int, y: pk.View1D[pk.double], x: pk.View1D[pk.double]):
    y[i] = x[i]


@pk.workunit
def fill(i: int, y: pk.View1D[pk.double], value: float):
    y[i] = value


@pk.workunit
def revive(i: int, alive: pk.View1D[pk.uint8]):
    alive[i] = 1


@pk.workunit
def along(
    i: int,
    b: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    y: pk.View1D[pk.double],
    z: pk.View1D[pk.double],
    u: pk.View1D[pk.double],
    v: pk.View1D[pk.double],
    w: pk.View1D[pk.double],
    centre: float,
):
    """How far the centre of the sphere is along the ray."""
    b[i] = (centre - z[i]) * w[i] - x[i] * u[i] - y[i] * v[i]


@pk.workunit
def off_centre(
    i: int,
    q: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    y: pk.View1D[pk.double],
    z: pk.View1D[pk.double],
    b: pk.View1D[pk.double],
    centre: float,
    radius: float,
):
    dz: float = z[i] - centre
    q[i] = radius * radius - (x[i] * x[i] + y[i] * y[i] + dz * dz - b[i] * b[i])


@pk.workunit
def distance(
    i: int, t: pk.View1D[pk.double], b: pk.View1D[pk.double], q: pk.View1D[pk.double], side: float
):
    t[i] = b[i] - side * pk.sqrt(max(q[i], 0.0))


@pk.workunit
def march(i: int, x: pk.View1D[pk.double], u: pk.View1D[pk.double], t: pk.View1D[pk.double]):
    x[i] += t[i] * u[i]


@pk.workunit
def normal(i: int, m: pk.View1D[pk.double], x: pk.View1D[pk.double], centre: float, radius: float):
    m[i] = (x[i] - centre) / radius


@pk.workunit
def incidence(
    i: int,
    c: pk.View1D[pk.double],
    mx: pk.View1D[pk.double],
    my: pk.View1D[pk.double],
    mz: pk.View1D[pk.double],
    u: pk.View1D[pk.double],
    v: pk.View1D[pk.double],
    w: pk.View1D[pk.double],
):
    c[i] = -(mx[i] * u[i] + my[i] * v[i] + mz[i] * w[i])


@pk.workunit
def ratio(
    i: int,
    mu: pk.View1D[pk.double],
    index: pk.View1D[pk.double],
    colour: pk.View1D[pk.float],
    a: float,
    b: float,
):
    """The quotient of refractive indices; `index` becomes the one behind the surface."""
    behind: float = a + b / (colour[i] * colour[i])
    mu[i] = index[i] / behind
    index[i] = behind


@pk.workunit
def deflection(i: int, g: pk.View1D[pk.double], mu: pk.View1D[pk.double], c: pk.View1D[pk.double]):
    g[i] = mu[i] * c[i] - pk.sqrt(max(1.0 - mu[i] * mu[i] * (1.0 - c[i] * c[i]), 0.0))


@pk.workunit
def bend(
    i: int,
    u: pk.View1D[pk.double],
    m: pk.View1D[pk.double],
    mu: pk.View1D[pk.double],
    g: pk.View1D[pk.double],
):
    u[i] = mu[i] * u[i] + g[i] * m[i]


@pk.workunit
def stop(
    i: int,
    alive: pk.View1D[pk.uint8],
    x: pk.View1D[pk.double],
    y: pk.View1D[pk.double],
    q: pk.View1D[pk.double],
    aperture: float,
):
    if q[i] < 0.0 or x[i] * x[i] + y[i] * y[i] > aperture * aperture:
        alive[i] = 0


@pk.workunit
def hit(
    i: int,
    p: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    u: pk.View1D[pk.double],
    z: pk.View1D[pk.double],
    w: pk.View1D[pk.double],
    plane: float,
):
    p[i] = x[i] + (plane - z[i]) * u[i] / w[i]


@pk.workunit
def count(i: int, acc: pk.Acc[pk.int64], alive: pk.View1D[pk.uint8]):
    acc += alive[i]


@pk.workunit
def sum_alive(i: int, acc: pk.Acc[pk.double], p: pk.View1D[pk.double], alive: pk.View1D[pk.uint8]):
    if alive[i] == 1:
        acc += p[i]


@pk.workunit
def spread(
    i: int, acc: pk.Acc[pk.double], p: pk.View1D[pk.double], mean: float, alive: pk.View1D[pk.uint8]
):
    if alive[i] == 1:
        acc += (p[i] - mean) * (p[i] - mean)


@dataclass
class State:
    size: int
    start_x: pk.View
    start_y: pk.View
    colour: pk.View
    x: pk.View
    y: pk.View
    z: pk.View
    u: pk.View
    v: pk.View
    w: pk.View
    alive: pk.View
    passed: int = 0
    focus: float = 0.0
    spot: float = 0.0


def rays(n):
    rng = np.random.default_rng(9)
    r, phi = 6.0 * np.sqrt(rng.random(n)), 2 * np.pi * rng.random(n)
    return r * np.cos(phi), r * np.sin(phi), rng.uniform(0.45, 0.65, n).astype(np.float32)


def setup(n):
    views = [pk.View([n], t) for t in (pk.double, pk.double, pk.float)]
    for v, a in zip(views, rays(n)):
        v.data[:] = a
    return State(n, *views, *(pk.View([n], pk.double) for _ in range(6)), pk.View([n], pk.uint8))


TILT = 0.05


def trace(s):
    n, x, y, z, u, v, w = s.size, s.x, s.y, s.z, s.u, s.v, s.w
    index = pk.View([n], pk.double)
    pk.parallel_for(n, copy, y=x, x=s.start_x)
    pk.parallel_for(n, copy, y=y, x=s.start_y)
    for view, value in ((z, -10.0), (u, 0.0), (v, TILT), (w, (1 - TILT**2) ** 0.5), (index, 1.0)):
        pk.parallel_for(n, fill, y=view, value=value)
    pk.parallel_for(n, revive, alive=s.alive)
    for radius, centre, aperture, ca, cb in SURFACES:
        b, q, t, mx, my, mz, c, mu, g = (pk.View([n], pk.double) for _ in range(9))
        pk.parallel_for(n, along, b=b, x=x, y=y, z=z, u=u, v=v, w=w, centre=centre)
        pk.parallel_for(n, off_centre, q=q, x=x, y=y, z=z, b=b, centre=centre, radius=radius)
        pk.parallel_for(n, distance, t=t, b=b, q=q, side=1.0 if radius > 0 else -1.0)
        for a, d in ((x, u), (y, v), (z, w)):
            pk.parallel_for(n, march, x=a, u=d, t=t)
        pk.parallel_for(n, normal, m=mx, x=x, centre=0.0, radius=radius)
        pk.parallel_for(n, normal, m=my, x=y, centre=0.0, radius=radius)
        pk.parallel_for(n, normal, m=mz, x=z, centre=centre, radius=radius)
        pk.parallel_for(n, stop, alive=s.alive, x=x, y=y, q=q, aperture=aperture)
        pk.parallel_for(n, ratio, mu=mu, index=index, colour=s.colour, a=ca, b=cb)
        pk.parallel_for(n, incidence, c=c, mx=mx, my=my, mz=mz, u=u, v=v, w=w)
        if radius < 0:  # the normal points along the ray
            for m in (mx, my, mz, c):
                pk.parallel_for(n, normal, m=m, x=m, centre=0.0, radius=-1.0)
        pk.parallel_for(n, deflection, g=g, mu=mu, c=c)
        for d, m in ((u, mx), (v, my), (w, mz)):
            pk.parallel_for(n, bend, u=d, m=m, mu=mu, g=g)


def spot(s, plane):
    n = s.size
    px, py = pk.View([n], pk.double), pk.View([n], pk.double)
    pk.parallel_for(n, hit, p=px, x=s.x, u=s.u, z=s.z, w=s.w, plane=plane)
    pk.parallel_for(n, hit, p=py, x=s.y, u=s.v, z=s.z, w=s.w, plane=plane)
    means = [
        pk.parallel_reduce(n, sum_alive, p=p, alive=s.alive) / max(1, s.passed) for p in (px, py)
    ]
    parts = [
        pk.parallel_reduce(n, spread, p=p, mean=m, alive=s.alive) for p, m in zip((px, py), means)
    ]
    return (sum(float(p) for p in parts) / max(1, s.passed)) ** 0.5


def run(s):
    trace(s)
    s.passed = int(pk.parallel_reduce(s.size, count, alive=s.alive))
    low, high = NEAR, FAR
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    sa, sb = spot(s, a), spot(s, b)
    for _ in range(SEARCHES):
        if sa < sb:
            high, b, sb = b, a, sa
            a = high - GOLDEN * (high - low)
            sa = spot(s, a)
        else:
            low, a, sa = a, b, sb
            b = low + GOLDEN * (high - low)
            sb = spot(s, b)
    s.focus, s.spot = 0.5 * (low + high), min(sa, sb)


def outputs(s):
    return {k: np.array(getattr(s, k).data) for k in ("x", "y", "z", "u", "v", "w", "alive")} | {
        "passed": s.passed,
        "focus": s.focus,
        "spot": s.spot,
    }


def check(s):
    x, y, colour = rays(s.size)
    p = np.stack([x, y, np.full(s.size, -10.0)])
    d = np.zeros_like(p)
    d[1], d[2] = TILT, (1 - TILT**2) ** 0.5
    index, alive = np.ones(s.size), np.ones(s.size, bool)
    for radius, centre, aperture, ca, cb in SURFACES:
        c = np.array([[0.0], [0.0], [centre]])
        b = ((c - p) * d).sum(0)
        q = radius**2 - (((p - c) ** 2).sum(0) - b * b)
        p = p + (b - np.sign(radius) * np.sqrt(np.maximum(q, 0))) * d
        m = (p - c) / abs(radius) * np.sign(radius)
        alive &= ~((q < 0) | (p[0] ** 2 + p[1] ** 2 > aperture**2))
        behind = ca + cb / (colour * colour).astype(float)
        mu, index = index / behind, behind
        cosine = -(m * d).sum(0)
        if radius < 0:
            m, cosine = -m, -cosine
        g = mu * cosine - np.sqrt(np.maximum(1 - mu**2 * (1 - cosine**2), 0))
        d = mu * d + g * m
    for k, a in zip("xyzuvw", (*p, *d)):
        np.testing.assert_allclose(
            np.array(getattr(s, k).data)[alive], a[alive], rtol=1e-7, atol=1e-7, err_msg=k
        )
    assert alive.sum() == s.passed > 0
    sizes = lambda f: np.sqrt(sum(np.var((p[k] + (f - p[2]) * d[k] / d[2])[alive]) for k in (0, 1)))
    planes = np.linspace(NEAR, FAR, 501)
    best = min(planes, key=sizes)
    assert abs(best - s.focus) < 1.5, (best, s.focus)
    assert s.spot >= sizes(best) * 0.99 and s.spot <= sizes(best) * 1.5


if __name__ == "__main__":
    main(globals())
