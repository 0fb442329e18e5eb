"""Interpolate from scattered stations: the K nearest by insertion, inverse-distance weights, a slope.

Source: D. Shepard, "A two-dimensional interpolation function" (1968). Each query keeps its K best in
two rows of K, in order; then weights, values, a local gradient, and the error at known points.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 8_000, "large": 60_000}
K, STATIONS = 5, 160


@pk.workunit
def nearest(q, near, dist, x, y, sx, sy, stations):
    for k in range(K):
        dist[q][k] = 1e30
        near[q][k] = -1
    for s in range(stations):
        d = (x[q] - sx[s]) * (x[q] - sx[s]) + (y[q] - sy[s]) * (y[q] - sy[s])
        if d < dist[q][K - 1]:
            k = K - 1
            while k > 0 and dist[q][k - 1 if k > 0 else 0] > d:
                dist[q][k] = dist[q][k - 1]
                near[q][k] = near[q][k - 1]
                k -= 1
            dist[q][k] = d
            near[q][k] = s


@pk.workunit
def weights(q, k, weight, dist):
    weight[q][k] = 1.0 / (dist[q][k] + 1e-6)


@pk.workunit
def blend(q, value, weight, near, height):
    top = 0.0
    bottom = 0.0
    for k in range(K):
        top += weight[q][k] * height[near[q][k]]
        bottom += weight[q][k]
    value[q] = top / bottom


@pk.workunit
def slope(q, gx, gy, value, weight, near, x, y, sx, sy, height):
    a = 1e-9
    b = 0.0
    c = 1e-9
    r = 0.0
    t = 0.0
    for k in range(K):
        s = near[q][k]
        w = weight[q][k]
        dx = sx[s] - x[q]
        dy = sy[s] - y[q]
        dz = height[s] - value[q]
        a += w * dx * dx
        b += w * dx * dy
        c += w * dy * dy
        r += w * dx * dz
        t += w * dy * dz
    det = a * c - b * b + 1e-12
    gx[q] = (c * r - b * t) / det
    gy[q] = (a * t - b * r) / det


@pk.workunit
def steepness(q, steep, gx, gy):
    steep[q] = sqrt(gx[q] * gx[q] + gy[q] * gy[q])


@pk.workunit
def miss(q, acc, value, truth):
    acc += (value[q] - truth[q]) * (value[q] - truth[q])


@dataclass
class State:
    n: int
    queries: list
    stations: list
    near: pk.View
    value: pk.View
    steep: pk.View
    error: float = 0.0


def field(n: int):
    rng = np.random.default_rng(27)
    rows = [rng.uniform(0.0, 1.0, m) for m in (n, n, STATIONS, STATIONS)]
    height = lambda x, y: np.sin(5 * x) + np.cos(3 * y)
    return [*rows[:2], height(*rows[:2])], [*rows[2:], height(*rows[2:])]


def views(arrays) -> list:
    made = [pk.View([len(a)], pk.double) for a in arrays]
    for view, a in zip(made, arrays, strict=True):
        view.data[:] = a
    return made


def setup(size: int) -> State:
    queries, stations = field(size)
    near = pk.View([size, K], pk.int32)
    value, steep = pk.View([size], pk.double), pk.View([size], pk.double)
    return State(size, views(queries), views(stations), near, value, steep)


def run(state: State) -> None:
    n, near, value = state.n, state.near, state.value
    x, y, truth = state.queries
    sx, sy, height = state.stations
    dist, weight = pk.View([n, K], pk.double), pk.View([n, K], pk.double)
    gx, gy = pk.View([n], pk.double), pk.View([n], pk.double)
    pk.parallel_for(n, nearest, near=near, dist=dist, x=x, y=y, sx=sx, sy=sy, stations=STATIONS)
    pk.parallel_for(pk.MDRangePolicy([0, 0], [n, K]), weights, weight=weight, dist=dist)
    pk.parallel_for(n, blend, value=value, weight=weight, near=near, height=height)
    pk.parallel_for(
        n,
        slope,
        gx=gx,
        gy=gy,
        value=value,
        weight=weight,
        near=near,
        x=x,
        y=y,
        sx=sx,
        sy=sy,
        height=height,
    )
    pk.parallel_for(n, steepness, steep=state.steep, gx=gx, gy=gy)
    state.error = pk.parallel_reduce(n, miss, value=value, truth=truth)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    found = {"near": state.near, "value": state.value, "steep": state.steep}
    return {k: np.array(v.data) for k, v in found.items()} | {"error": float(state.error)}


def check(state: State, size: int, runs: int) -> None:
    (x, y, truth), (sx, sy, height) = field(size)
    d = (x[:, None] - sx) ** 2 + (y[:, None] - sy) ** 2
    near = np.argsort(d, axis=1)[:, :K]
    weight = 1.0 / (np.take_along_axis(d, near, 1) + 1e-6)
    value, out = np.sum(weight * height[near], 1) / weight.sum(1), outputs(state)
    np.testing.assert_array_equal(out["near"], near)
    np.testing.assert_allclose(out["value"], value, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(out["error"], np.sum((value - truth) ** 2), rtol=1e-9)
    assert np.all(np.isfinite(out["steep"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=lambda text: SIZES.get(text) or int(text), default="small")
    parser.add_argument("--runs", type=int, default=1)
    args = parser.parse_args()
    state, start = setup(args.size), perf_counter()
    for _ in range(args.runs):
        run(state)
    seconds = perf_counter() - start
    check(state, args.size, args.runs)
    print(f"knn_idw: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
