"""k-means: labels and the sums of every cluster in one pass over the points."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.kmeans import CLUSTERS, ITERATIONS, cloud


def setup(size: int) -> State:
    """The points, one row a coordinate; the first ones are the first centres."""
    points = cloud(size)
    centre, label = points[:, :CLUSTERS].T.copy(), np.zeros(size, np.int32)
    return State(points=points, centre=centre, label=label, inertia=np.zeros(1))


def outputs(s: State) -> Outputs:
    """Read labels, centres and inertia."""
    return {"label": s.label, "centre": s.centre, "inertia": float(s.inertia[0])}


def floor(size: int) -> int:
    """An iteration reads three coordinates and writes the labels."""
    return 28 * ITERATIONS * size


def cpp(build):
    run_cpp = build("kmeans", CLUSTERS=CLUSTERS)

    def run(s: State) -> None:
        for _ in range(ITERATIONS):
            run_cpp(s.label.size, s.points, s.centre, s.label, s.inertia)

    return run


def numba(njit):
    from numba import get_num_threads, prange

    @njit(parallel=False)
    def part(points, centre, label, begin, end, out):
        x, y, z = points
        sums, inertia = np.zeros((CLUSTERS, 4)), 0.0
        for i in range(begin, end):
            best, nearest = 1e300, 0
            for c in range(CLUSTERS):
                dx, dy, dz = x[i] - centre[c, 0], y[i] - centre[c, 1], z[i] - centre[c, 2]
                d2 = dx * dx + dy * dy + dz * dz
                if d2 < best:
                    best, nearest = d2, c
            label[i] = nearest
            inertia += best
            sums[nearest, 0] += x[i]
            sums[nearest, 1] += y[i]
            sums[nearest, 2] += z[i]
            sums[nearest, 3] += 1.0
        out[:] = sums
        return inertia

    @njit
    def iterate(points, centre, label, parts):
        threads, n, inertia = len(parts), label.size, 0.0
        for k in prange(threads):
            begin, end = n * k // threads, n * (k + 1) // threads
            inertia += part(points, centre, label, begin, end, parts[k])
        return inertia

    def run(s: State) -> None:
        for _ in range(ITERATIONS):
            parts = np.empty((get_num_threads(), CLUSTERS, 4))
            s.inertia[0] = iterate(s.points, s.centre, s.label, parts)
            sums = parts.sum(axis=0)
            full = sums[:, 3] > 0
            s.centre[full] = sums[full, :3] / sums[full, 3:]

    return run


def numpy(np=np):
    def run(s: State) -> None:
        x, y, z = s.points
        for _ in range(ITERATIONS):
            best = np.full(x.size, 1e300)
            for c, (cx, cy, cz) in enumerate(s.centre):
                d2 = (x - cx) ** 2 + (y - cy) ** 2 + (z - cz) ** 2
                s.label[d2 < best] = c
                np.minimum(best, d2, out=best)
            s.inertia[0] = best.sum()
            number = np.bincount(s.label, minlength=CLUSTERS)
            for axis, row in enumerate(s.points):
                sums = np.bincount(s.label, weights=row, minlength=CLUSTERS)
                means = sums / np.maximum(number, 1)
                np.copyto(s.centre[:, axis], means, where=number > 0)

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit

    @jit
    def iterate(points, centre):
        d2 = sum((points[axis] - centre[:, axis, None]) ** 2 for axis in range(3))
        label = jnp.argmin(d2, axis=0).astype(jnp.int32)
        member = (label == jnp.arange(CLUSTERS)[:, None]).astype(jnp.float64)
        number = member.sum(axis=1, keepdims=True)
        means = jnp.where(number > 0, member @ points.T / number, centre)
        return label, means, jnp.sum(jnp.min(d2, axis=0), keepdims=True)

    def run(s: State) -> None:
        for _ in range(ITERATIONS):
            s.label, s.centre, s.inertia = iterate(s.points, s.centre)

    return run
