"""All shortest paths between n towns by Floyd and Warshall, with the next town on each way.

Source: R. Floyd, "Algorithm 97: Shortest Path" (1962). Step k allows ways through town k: a launch
over all pairs with another integer argument each time. Row and column k do not change in step k.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 32, "default": 150, "large": 360}
FAR = 1e12


@pk.workunit
def start(
    i: int, j: int, d: pk.View2D[pk.double], via: pk.View2D[pk.int32], road: pk.View2D[pk.double]
):
    d[i][j] = road[i][j]
    via[i][j] = j if road[i][j] < FAR else -1


@pk.workunit
def relax(i: int, j: int, d: pk.View2D[pk.double], via: pk.View2D[pk.int32], k: int):
    through: float = d[i][k] + d[k][j]
    if through < d[i][j]:
        d[i][j] = through
        via[i][j] = via[i][k]


@pk.workunit
def farthest(i: int, worst: pk.View1D[pk.double], d: pk.View2D[pk.double], n: int):
    most: float = 0.0
    for j in range(n):
        most = fmax(most, d[i][j])
    worst[i] = most


@pk.workunit
def closeness(i: int, acc: pk.Acc[pk.double], d: pk.View2D[pk.double], n: int):
    total: float = 0.0
    for j in range(n):
        total += d[i][j]
    acc += (n - 1) / total


@dataclass
class State:
    n: int
    road: pk.View
    d: pk.View
    via: pk.View
    worst: pk.View
    mean: float = 0.0


def roads(n: int) -> np.ndarray:
    """A ring of towns with some random roads."""
    rng = np.random.default_rng(5)
    road = np.where(rng.random((n, n)) < 6.0 / n, rng.uniform(1.0, 30.0, (n, n)), FAR)
    i = np.arange(n)
    road[i, (i + 1) % n] = rng.uniform(1.0, 10.0, n)
    road[i, i] = 0.0
    return road


def setup(size: int) -> State:
    road, d = pk.View([size, size], pk.double), pk.View([size, size], pk.double)
    road.data[:] = roads(size)
    return State(size, road, d, pk.View([size, size], pk.int32), pk.View([size], pk.double))


def run(state: State) -> None:
    n = state.n
    pairs = pk.MDRangePolicy([0, 0], [n, n])
    pk.parallel_for(pairs, start, d=state.d, via=state.via, road=state.road)
    for k in range(n):
        pk.parallel_for(pairs, relax, d=state.d, via=state.via, k=k)
    pk.parallel_for(n, farthest, worst=state.worst, d=state.d, n=n)
    state.mean = pk.parallel_reduce(n, closeness, d=state.d, n=n)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    views = {"d": state.d, "via": state.via, "worst": state.worst}
    return {name: np.array(view.data) for name, view in views.items()} | {"mean": float(state.mean)}


def check(state: State, size: int, runs: int) -> None:
    d, out = roads(size), outputs(state)
    for k in range(size):
        d = np.minimum(d, d[:, k : k + 1] + d[k])
    np.testing.assert_allclose(out["d"], d, rtol=1e-12)
    np.testing.assert_array_equal(out["worst"], out["d"].max(axis=1))
    np.testing.assert_allclose(out["mean"], np.sum((size - 1) / d.sum(axis=1)), rtol=1e-12)
    first = np.take_along_axis(roads(size), out["via"], 1)
    onward = d[out["via"], np.arange(size)]
    np.testing.assert_allclose(first + onward, d, rtol=1e-12, atol=1e-12)


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
    print(f"floyd_warshall: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
