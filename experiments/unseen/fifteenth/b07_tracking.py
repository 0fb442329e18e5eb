"""A particle filter tracks a ship by range and bearing: weights, a scan and systematic resampling."""

from dataclasses import dataclass, field
from math import atan2, cos, exp, log, sin, sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_000, "default": 50_000, "large": 500_000}
STEPS, DT, RANGE_ERROR, BEARING_ERROR = 5, 1.0, 3.0, 0.02


@pk.function
def jumble(x: pk.uint32) -> pk.uint32:
    h: pk.uint32 = x
    h = (h ^ (h >> 16)) * 73244475
    h = (h ^ (h >> 16)) * 73244475
    return h ^ (h >> 16)


@pk.workunit
def noise(i: int, a, b, seed: pk.uint32):
    k: pk.uint32 = jumble(i + seed)
    u: pk.double = (k + 0.5) / 4294967296.0
    v: pk.double = jumble(k + 1) / 4294967296.0
    r: pk.double = sqrt(-2.0 * log(u))
    a[i] = r * cos(6.283185307179586 * v)
    b[i] = r * sin(6.283185307179586 * v)


@pk.workunit
def spread(i: int, x, centre: float, width: float, z):
    x[i] = centre + width * z[i]


@pk.workunit
def drift(i: int, x, v, dt: float):
    x[i] += dt * v[i]


@pk.workunit
def turn(i: int, v, z, strength: float):
    v[i] += strength * z[i]


@pk.workunit
def likelihood(i: int, w, x, y, distance: float, bearing: float):
    dr: pk.double = (sqrt(x[i] * x[i] + y[i] * y[i]) - distance) / RANGE_ERROR
    db: pk.double = (atan2(y[i], x[i]) - bearing) / BEARING_ERROR
    w[i] *= exp(-0.5 * (dr * dr + db * db))


@pk.workunit
def weights(i: int, acc: pk.Acc[pk.double], w):
    acc += w[i]


@pk.workunit
def normalise(i: int, w, total: float):
    w[i] = w[i] / total


@pk.workunit
def square(i: int, acc: pk.Acc[pk.double], w):
    acc += w[i] * w[i]


@pk.workunit
def mean(i: int, acc: pk.Acc[pk.double], w, x):
    acc += w[i] * x[i]


@pk.workunit
def cumulate(i: int, acc: pk.Acc[pk.double], last: bool, w, c):
    acc += w[i]
    if last:
        c[i] = acc


@pk.workunit
def pick(i: int, parent, c, n: int, offset: float):
    """The first particle whose cumulated weight reaches (i + offset) / n."""
    target: pk.double = (i + offset) / n
    low: int = 0
    high: int = n - 1
    while low < high:
        middle: int = (low + high) // 2
        if c[middle] < target:
            low = middle + 1
        else:
            high = middle
    parent[i] = low


@pk.workunit
def inherit(i: int, to, x, parent):
    to[i] = x[parent[i]]


@pk.workunit
def even(i: int, w, value: float):
    w[i] = value


@dataclass
class State:
    n: int
    truth: list
    distances: list
    bearings: list
    x: list
    w: pk.View
    track: list = field(default_factory=list)
    effective: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(207)
    place, speed, truth = np.array([80.0, 60.0]), np.array([-3.0, 2.0]), []
    for _ in range(STEPS):
        place = place + DT * speed
        speed = speed + 0.3 * rng.standard_normal(2)
        truth.append(place)
    distances = [float(np.hypot(*p) + rng.normal(0, RANGE_ERROR)) for p in truth]
    bearings = [float(np.arctan2(p[1], p[0]) + rng.normal(0, BEARING_ERROR)) for p in truth]
    flat = [float(q) for p in truth for q in p]
    views = [pk.View([n], pk.double) for _ in range(4)]
    return State(n, flat, distances, bearings, views, pk.View([n], pk.double))


def run(s: State) -> None:
    n, w, z1, z2 = s.n, s.w, pk.View([s.n], pk.double), pk.View([s.n], pk.double)
    c, parent = pk.View([n], pk.double), pk.View([n], pk.int32)
    now, spare = s.x, [pk.View([n], pk.double) for _ in range(4)]
    for k, (centre, width) in enumerate(((80.0, 8.0), (60.0, 8.0), (-2.5, 1.5), (1.5, 1.5))):
        if k % 2 == 0:
            pk.parallel_for(n, noise, a=z1, b=z2, seed=1000003 * (k + 1))
        pk.parallel_for(n, spread, x=now[k], centre=centre, width=width, z=z1 if k % 2 == 0 else z2)
    pk.parallel_for(n, even, w=w, value=1.0 / n)
    s.track, s.effective = [], []
    for step in range(STEPS):
        x, y, vx, vy = now
        pk.parallel_for(n, noise, a=z1, b=z2, seed=15485863 * (step + 1) % 2**31)
        pk.parallel_for(n, drift, x=x, v=vx, dt=DT)
        pk.parallel_for(n, drift, x=y, v=vy, dt=DT)
        pk.parallel_for(n, turn, v=vx, z=z1, strength=0.3)
        pk.parallel_for(n, turn, v=vy, z=z2, strength=0.3)
        seen = {"distance": s.distances[step], "bearing": s.bearings[step]}
        pk.parallel_for(n, likelihood, w=w, x=x, y=y, **seen)
        total = pk.parallel_reduce(n, weights, w=w)
        pk.parallel_for(n, normalise, w=w, total=total)
        s.track += [float(pk.parallel_reduce(n, mean, w=w, x=v)) for v in now]
        s.effective.append(1.0 / float(pk.parallel_reduce(n, square, w=w)))
        if s.effective[-1] < 0.5 * n:
            pk.parallel_scan(n, cumulate, w=w, c=c)
            pk.parallel_for(n, pick, parent=parent, c=c, n=n, offset=0.5)
            for to, old in zip(spare, now):
                pk.parallel_for(n, inherit, to=to, x=old, parent=parent)
            pk.parallel_for(n, even, w=w, value=1.0 / n)
            now, spare = spare, now
    s.x = now


def outputs(s: State) -> dict:
    names = dict(zip(("x", "y", "vx", "vy"), (np.array(v.data) for v in s.x)))
    return {**names, "track": np.array(s.track), "effective": np.array(s.effective)}


def check(s: State, n: int) -> None:
    track, truth = np.reshape(s.track, (STEPS, 4)), np.reshape(s.truth, (STEPS, 2))
    assert np.hypot(*(track[:, :2] - truth).T).max() < 8
    assert all(1 <= e <= n for e in s.effective) and min(s.effective) < 0.5 * n
    np.testing.assert_allclose(np.sum(s.w.data), 1)
    sure = np.array(s.x[0].data).std()
    assert 0.1 < sure < 8 and len(np.unique(s.x[0].data)) > 20


if __name__ == "__main__":
    main(globals())
