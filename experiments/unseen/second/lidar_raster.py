"""Points of an airborne laser scan to a raster: number, lowest, highest and mean height of each cell.

Source: the usual way to elevation models (e.g. PDAL's writers.gdal), heights in millimetres, so
that atomic sums are exact. Then points near their cell's lowest one are ground, and are tallied by
height class; cells without points get the height of the mean of their row's neighbours.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 300_000, "large": 3_000_000}
CLASSES, NOTHING = 16, 1 << 30


@pk.workunit
def reset(c, count, low, high, total):
    count[c] = 0
    low[c] = NOTHING
    high[c] = -NOTHING
    total[c] = 0


@pk.workunit
def locate(i, cell, x, y, across):
    cell[i] = int(y[i]) * across + int(x[i])


@pk.workunit
def rasterise(i, cell, z, count, low, high, total):
    c = cell[i]
    pk.atomic_add(count, [c], 1)
    pk.atomic_min(low, [c], z[i])
    pk.atomic_max(high, [c], z[i])
    pk.atomic_add(total, [c], z[i])


@pk.workunit
def average(c, mean, total, count):
    mean[c] = total[c] / (1000.0 * count[c]) if count[c] > 0 else -1.0


@pk.workunit
def fill_holes(c, filled, mean, count, across):
    filled[c] = mean[c]
    if count[c] == 0:
        s = 0.0
        m = 0
        for d in range(-2, 3):
            column = c % across + d
            if column >= 0 and column < across and count[c + d] > 0:
                s += mean[c + d]
                m += 1
        if m > 0:
            filled[c] = s / m


@pk.workunit
def mark_ground(i, ground, z, low, cell):
    ground[i] = 1 if z[i] - low[cell[i]] < 300 else 0


@pk.workunit
def classes(i, table, z, ground):
    if ground[i] == 1:
        k = z[i] // 2000
        pk.atomic_add(table, [CLASSES - 1 if k >= CLASSES else k], 1)


@pk.workunit
def relief(c, acc, low, high, count):
    if count[c] > 0:
        acc += high[c] - low[c]


@dataclass
class State:
    n: int
    across: int
    points: list
    raster: dict
    table: pk.View
    relief: int = 0


def scan(n: int):
    across = max(8, int(np.sqrt(n / 4)))
    rng = np.random.default_rng(14)
    x, y = rng.uniform(0, across, n), np.sort(rng.uniform(0, across, n))
    tree = np.where(rng.random(n) < 0.3, rng.uniform(0, 15, n), rng.uniform(0, 0.2, n))
    z = 1000 * (10 + 6 * np.sin(x / 9) * np.cos(y / 7) + tree)
    return across, x, y, z.astype(np.int32)


def setup(size: int) -> State:
    across, *rows = scan(size)
    points = [pk.View([size], t) for t in (pk.double, pk.double, pk.int32)]
    for view, row in zip(points, rows, strict=True):
        view.data[:] = row
    types = {"count": pk.int32, "low": pk.int32, "high": pk.int32, "total": pk.int64}
    types |= {"mean": pk.double, "filled": pk.double}
    raster = {name: pk.View([across * across], t) for name, t in types.items()}
    return State(size, across, points, raster, pk.View([CLASSES], pk.int32))


def run(state: State) -> None:
    n, cells, r = state.n, state.across**2, state.raster
    x, y, z = state.points
    count, low, high, total = r["count"], r["low"], r["high"], r["total"]
    cell, ground = pk.View([n], pk.int32), pk.View([n], pk.int8)
    pk.parallel_for(cells, reset, count=count, low=low, high=high, total=total)
    state.table.fill(0)
    pk.parallel_for(n, locate, cell=cell, x=x, y=y, across=state.across)
    pk.parallel_for(n, rasterise, cell=cell, z=z, count=count, low=low, high=high, total=total)
    pk.parallel_for(cells, average, mean=r["mean"], total=total, count=count)
    pk.parallel_for(
        cells, fill_holes, filled=r["filled"], mean=r["mean"], count=count, across=state.across
    )
    pk.parallel_for(n, mark_ground, ground=ground, z=z, low=low, cell=cell)
    pk.parallel_for(n, classes, table=state.table, z=z, ground=ground)
    state.relief = pk.parallel_reduce(cells, relief, low=low, high=high, count=count)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    views = {name: np.array(view.data) for name, view in state.raster.items()}
    return views | {"table": np.array(state.table.data), "relief": float(state.relief)}


def check(state: State, size: int, runs: int) -> None:
    across, x, y, z = scan(size)
    out, cell = outputs(state), y.astype(int) * across + x.astype(int)
    low, count = np.full(across**2, NOTHING), np.bincount(cell, minlength=across**2)
    np.minimum.at(low, cell, z)
    np.testing.assert_array_equal(out["low"], low)
    np.testing.assert_array_equal(out["total"], np.bincount(cell, z, across**2))
    ground = z[z - low[cell] < 300]
    table = np.bincount(np.minimum(ground // 2000, CLASSES - 1), minlength=CLASSES)
    np.testing.assert_array_equal(out["table"], table)
    seen = count > 0
    assert out["relief"] == np.sum((out["high"] - out["low"])[seen], dtype=np.int64)
    np.testing.assert_allclose(out["mean"][seen], out["total"][seen] / 1000 / count[seen])


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
    print(f"lidar_raster: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
