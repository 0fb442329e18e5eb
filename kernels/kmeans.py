"""k-means: Lloyd's iterations on points in three dimensions.

Source: S. Lloyd, "Least Squares Quantization in PCM" (1982).

One run makes ITERATIONS iterations of 2 + 7 * CLUSTERS launches: nearest centre 1, inertia 1, and
for each cluster 4 reductions (number and coordinate sums) and 3 one-element moves of its centre
that take them as scalars. Unfused, an iteration moves 44 + 40 * CLUSTERS bytes a point: the
reductions read the labels 4 * CLUSTERS times and each coordinate CLUSTERS times.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 2_000, "default": 6_000_000, "large": 20_000_000, "gpu": 60_000_000}
CLUSTERS, ITERATIONS = 8, 1


@pk.workunit
def assign(
    i: int,
    label: pk.View1D[pk.int32],
    distance: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    y: pk.View1D[pk.double],
    z: pk.View1D[pk.double],
    centre: pk.View2D[pk.double],
    clusters: int,
) -> None:
    """Find the nearest centre and the square distance to it."""
    best: float = 1e300
    nearest: int = 0
    for c in range(clusters):
        dx: float = x[i] - centre[c][0]
        dy: float = y[i] - centre[c][1]
        dz: float = z[i] - centre[c][2]
        d2: float = dx * dx + dy * dy + dz * dz
        if d2 < best:
            best = d2
            nearest = c
    label[i] = nearest
    distance[i] = best


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], values: pk.View1D[pk.double]) -> None:
    acc += values[i]


@pk.workunit
def members(i: int, acc: pk.Acc[pk.double], label: pk.View1D[pk.int32], cluster: int) -> None:
    if label[i] == cluster:
        acc += 1.0


@pk.workunit
def member_sum(
    i: int,
    acc: pk.Acc[pk.double],
    values: pk.View1D[pk.double],
    label: pk.View1D[pk.int32],
    cluster: int,
) -> None:
    if label[i] == cluster:
        acc += values[i]


@pk.workunit
def move_centre(
    k: int,
    centre: pk.View2D[pk.double],
    cluster: int,
    axis: int,
    value: float,
    number: float,
) -> None:
    """Put one coordinate of a centre at its members' mean; an empty cluster stays (k = 0)."""
    if number > 0.0:
        centre[cluster + k][axis] = value / number


@dataclass
class State:
    """Points by coordinate, their labels, the centres, and the sum of square distances."""

    size: int
    points: list[pk.View]
    label: pk.View
    centre: pk.View
    inertia: float = 0.0


def cloud(size: int) -> np.ndarray:
    """Return points in overlapping heaps, one row a coordinate."""
    rng = np.random.default_rng(11)
    heaps = rng.uniform(-4.0, 4.0, (3, CLUSTERS))
    return heaps[:, rng.integers(0, CLUSTERS, size)] + rng.normal(0.0, 1.0, (3, size))


def setup(size: int) -> State:
    """Make points; the first ones are the first centres."""
    rows = cloud(size)
    points = [pk.View([size], pk.double) for _ in rows]
    for view, row in zip(points, rows, strict=True):
        view.data[:] = row
    centre = pk.View([CLUSTERS, 3], pk.double)
    centre.data[:] = rows[:, :CLUSTERS].T
    return State(size, points, pk.View([size], pk.int32), centre)


def iterate(state: State) -> None:
    """Assign every point to its nearest centre, then move the centres."""
    n, label, centre = state.size, state.label, state.centre
    x, y, z = state.points
    distance = pk.View([n], pk.double)
    pk.parallel_for(
        n, assign, label=label, distance=distance, x=x, y=y, z=z, centre=centre, clusters=CLUSTERS
    )
    state.inertia = pk.parallel_reduce(n, total, values=distance)
    for c in range(CLUSTERS):
        number = pk.parallel_reduce(n, members, label=label, cluster=c)
        for axis, values in enumerate(state.points):
            value = pk.parallel_reduce(n, member_sum, values=values, label=label, cluster=c)
            pk.parallel_for(
                1, move_centre, centre=centre, cluster=c, axis=axis, value=value, number=number
            )


def run(state: State) -> None:
    """Make ITERATIONS iterations."""
    for _ in range(ITERATIONS):
        iterate(state)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read labels, centres and inertia."""
    return {
        "label": np.array(state.label.data),
        "centre": np.array(state.centre.data),
        "inertia": float(state.inertia),
    }


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """Lloyd's iterations with bincount."""
    points = cloud(size)
    centre, label, inertia = points[:, :CLUSTERS].T.copy(), np.zeros(size, np.int32), 0.0
    for _ in range(runs * ITERATIONS):
        distances = np.stack([np.sum((points - c[:, None]) ** 2, axis=0) for c in centre])
        label = np.argmin(distances, axis=0).astype(np.int32)
        inertia = float(np.sum(np.min(distances, axis=0)))
        number = np.bincount(label, minlength=CLUSTERS)
        for axis, row in enumerate(points):
            sums = np.bincount(label, weights=row, minlength=CLUSTERS)
            centre[:, axis] = np.where(number > 0, sums / np.maximum(number, 1), centre[:, axis])
    return {"label": label, "centre": centre, "inertia": inertia}


def check(state: State, size: int, runs: int) -> None:
    """Sums of n terms: 1e-9. A tie decided otherwise moves a centre by a few point / n."""
    actual, expected = outputs(state), reference(size, runs)
    differ = np.count_nonzero(np.asarray(actual["label"]) != np.asarray(expected["label"]))
    assert differ <= size // 1_000_000 * runs, f"label: {differ} points lie in other clusters"
    atol = 1e-9 + 20.0 * CLUSTERS * differ / size
    for name in ("centre", "inertia"):
        np.testing.assert_allclose(actual[name], expected[name], rtol=1e-9, atol=atol, err_msg=name)


def main() -> None:
    """Run and check from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=lambda text: SIZES.get(text) or int(text), default="small")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--space", default=None, help="an execution space, such as OpenMP")
    args = parser.parse_args()
    if args.space:
        pk.set_default_space(pk.ExecutionSpace(args.space))
    state = setup(args.size)
    start = perf_counter()
    for _ in range(args.runs):
        run(state)
    seconds = perf_counter() - start
    check(state, args.size, args.runs)
    print(f"kmeans: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
