"""Two scans of a surface laid over each other: iterative closest points, with robust weights.

The model's points are sorted into cells, by counting and a scan. In each round the scan is turned
and moved, every point looks for the nearest of the model in the cells around it, Tukey's weights
are found from the mean distance, weighted sums are read, and the host finds the motion.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_000, "default": 8_000, "large": 90_000}
TOLERANCE, FAR = 1e-7, 1.0e30


@pk.workunit
def cell_of(i: int, cell: pk.View1D[pk.int32], x: pk.View2D[pk.double], cells: int):
    a: int = int(x[i][0] * cells)
    b: int = int(x[i][1] * cells)
    c: int = int(x[i][2] * cells)
    a = max(0, min(cells - 1, a))
    b = max(0, min(cells - 1, b))
    c = max(0, min(cells - 1, c))
    cell[i] = (a * cells + b) * cells + c


@pk.workunit
def count_cells(i: int, count: pk.View1D[pk.int32], cell: pk.View1D[pk.int32]):
    pk.atomic_add(count, [cell[i]], 1)


@pk.workunit
def places(
    i: int,
    acc: pk.Acc[pk.int64],
    last: bool,
    start: pk.View1D[pk.int32],
    next: pk.View1D[pk.int32],
    count: pk.View1D[pk.int32],
):
    if last:
        start[i] = acc
        next[i] = acc
    acc += count[i]


@pk.workunit
def sort_points(
    i: int, order: pk.View1D[pk.int32], next: pk.View1D[pk.int32], cell: pk.View1D[pk.int32]
):
    slot: int = pk.atomic_fetch_add(next, [cell[i]], 1)
    order[slot] = i


@pk.workunit
def turn(
    i: int,
    moved: pk.View2D[pk.double],
    scan: pk.View2D[pk.double],
    rotation: pk.View2D[pk.double],
    shift: pk.View1D[pk.double],
):
    for a in range(3):
        s: float = shift[a]
        for b in range(3):
            s += rotation[a][b] * scan[i][b]
        moved[i][a] = s


@pk.workunit
def nearest(
    i: int,
    partner: pk.View1D[pk.int32],
    distance2: pk.View1D[pk.double],
    moved: pk.View2D[pk.double],
    model: pk.View2D[pk.double],
    start: pk.View1D[pk.int32],
    count: pk.View1D[pk.int32],
    order: pk.View1D[pk.int32],
    cells: int,
    reach2: float,
):
    x: float = moved[i][0]
    y: float = moved[i][1]
    z: float = moved[i][2]
    a: int = int(x * cells)
    b: int = int(y * cells)
    c: int = int(z * cells)
    best: float = reach2
    who: int = -1
    for u in range(max(a - 1, 0), min(a + 2, cells)):
        for v in range(max(b - 1, 0), min(b + 2, cells)):
            for w in range(max(c - 1, 0), min(c + 2, cells)):
                cell: int = (u * cells + v) * cells + w
                for k in range(start[cell], start[cell] + count[cell]):
                    j: int = order[k]
                    dx: float = x - model[j][0]
                    dy: float = y - model[j][1]
                    dz: float = z - model[j][2]
                    d2: float = dx * dx + dy * dy + dz * dz
                    if d2 < best or (d2 == best and j < who):
                        best = d2
                        who = j
    partner[i] = who
    distance2[i] = best


@pk.workunit
def matched(i: int, acc: pk.Acc[pk.int64], partner: pk.View1D[pk.int32]):
    if partner[i] >= 0:
        acc += 1


@pk.workunit
def misfit(
    i: int,
    acc: pk.Acc[pk.double],
    distance2: pk.View1D[pk.double],
    partner: pk.View1D[pk.int32],
):
    if partner[i] >= 0:
        acc += distance2[i]


@pk.workunit
def tukey(
    i: int,
    w: pk.View1D[pk.double],
    distance2: pk.View1D[pk.double],
    partner: pk.View1D[pk.int32],
    scale2: float,
):
    w[i] = 0.0
    if partner[i] >= 0 and distance2[i] < scale2:
        t: float = 1.0 - distance2[i] / scale2
        w[i] = t * t


@pk.workunit
def fetch(
    i: int,
    target: pk.View2D[pk.double],
    model: pk.View2D[pk.double],
    partner: pk.View1D[pk.int32],
):
    j: int = max(partner[i], 0)
    for a in range(3):
        target[i][a] = model[j][a]


@pk.workunit
def weight(i: int, acc: pk.Acc[pk.double], w: pk.View1D[pk.double]):
    acc += w[i]


@pk.workunit
def moment(
    i: int, acc: pk.Acc[pk.double], w: pk.View1D[pk.double], x: pk.View2D[pk.double], a: int
):
    acc += w[i] * x[i][a]


@pk.workunit
def cross(
    i: int,
    acc: pk.Acc[pk.double],
    w: pk.View1D[pk.double],
    x: pk.View2D[pk.double],
    y: pk.View2D[pk.double],
    a: int,
    b: int,
    xa: float,
    yb: float,
):
    acc += w[i] * (x[i][a] - xa) * (y[i][b] - yb)


@dataclass
class State:
    """Model and scan; where the scan's points are at last, the motion and how it was found."""

    n: int
    cells: int
    most: int
    model: pk.View
    scan: pk.View
    moved: pk.View
    motion: object = None
    matches: list = field(default_factory=list)
    errors: list = field(default_factory=list)
    weights: list = field(default_factory=list)


def surface(rng, n):
    u, v = rng.random((2, n))
    z = 0.5 + 0.12 * np.sin(7.0 * u) * np.cos(5.0 * v) + 0.08 * np.sin(11.0 * v + 3.0 * u)
    return np.stack([0.1 + 0.8 * u, 0.1 + 0.8 * v, z], 1)


def rotation_of(x, y, z):
    cx, sx, cy, sy, cz, sz = np.cos(x), np.sin(x), np.cos(y), np.sin(y), np.cos(z), np.sin(z)
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    return np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]]) @ about_y @ about_x


def setup(n: int) -> State:
    rng = np.random.default_rng(1307)
    model, scan, moved = (pk.View([n, 3], pk.double) for _ in range(3))
    model.data[:] = surface(rng, n)
    x = surface(rng, n) - 0.5
    x[rng.random(n) < 0.05, 2] += 0.05
    x += rng.normal(0.0, 0.001, (n, 3))
    scan.data[:] = x @ rotation_of(0.03, -0.04, 0.05) + [0.51, 0.49, 0.505]
    return State(
        n,
        int(0.7 * n**0.5 / 2.0),
        16 if n <= 2_000 else 6 if n <= 20_000 else 3,
        model,
        scan,
        moved,
    )


def motion_of(covariance, x, y):
    """The rotation and shift that bring the mean x to y, by singular values."""
    u, _, vt = np.linalg.svd(covariance)
    sign = np.sign(np.linalg.det(u @ vt))
    r = vt.T @ np.diag([1.0, 1.0, sign]) @ u.T
    return r, y - r @ x


def run(state: State) -> None:
    n, cells, model, moved = state.n, state.cells, state.model, state.moved
    cell, order, partner = (pk.View([n], pk.int32) for _ in range(3))
    count, start, next = (pk.View([cells**3], pk.int32) for _ in range(3))
    distance2, w, target = (
        pk.View([n], pk.double),
        pk.View([n], pk.double),
        pk.View([n, 3], pk.double),
    )
    rotation, shift = pk.View([3, 3], pk.double), pk.View([3], pk.double)
    state.matches, state.errors, state.weights = [], [], []
    pk.parallel_for(n, cell_of, cell=cell, x=model, cells=cells)
    pk.parallel_for(n, count_cells, count=count, cell=cell)
    pk.parallel_scan(cells**3, places, start=start, next=next, count=count)
    pk.parallel_for(n, sort_points, order=order, next=next, cell=cell)
    r, t = np.eye(3), np.zeros(3)
    for _ in range(state.most):
        rotation.data[:] = r
        shift.data[:] = t
        pk.parallel_for(n, turn, moved=moved, scan=state.scan, rotation=rotation, shift=shift)
        pk.parallel_for(
            n,
            nearest,
            partner=partner,
            distance2=distance2,
            moved=moved,
            model=model,
            start=start,
            count=count,
            order=order,
            cells=cells,
            reach2=1.0 / cells**2,
        )
        pairs = int(pk.parallel_reduce(n, matched, partner=partner))
        mean = float(pk.parallel_reduce(n, misfit, distance2=distance2, partner=partner)) / pairs
        pk.parallel_for(n, tukey, w=w, distance2=distance2, partner=partner, scale2=6.0 * mean)
        pk.parallel_for(n, fetch, target=target, model=model, partner=partner)
        whole = float(pk.parallel_reduce(n, weight, w=w))
        x = np.array([float(pk.parallel_reduce(n, moment, w=w, x=moved, a=a)) for a in range(3)])
        y = np.array([float(pk.parallel_reduce(n, moment, w=w, x=target, a=a)) for a in range(3)])
        x, y, covariance = x / whole, y / whole, np.zeros((3, 3))
        for a in range(3):
            for b in range(3):
                covariance[a, b] = pk.parallel_reduce(
                    n, cross, w=w, x=moved, y=target, a=a, b=b, xa=x[a], yb=y[b]
                )
        dr, dt = motion_of(covariance, x, y)
        r, t = dr @ r, dr @ t + dt
        state.matches.append(pairs)
        state.errors.append(mean**0.5)
        state.weights.append(whole)
        if np.abs(dr - np.eye(3)).max() + np.abs(dt).max() < TOLERANCE:
            break
    state.motion = np.concatenate([r.ravel(), t])


def outputs(state: State) -> dict:
    return {
        "moved": np.array(state.moved.data),
        "motion": state.motion,
        "matches": np.array(state.matches),
        "errors": np.array(state.errors),
        "weights": np.array(state.weights),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    model, scan = np.array(fresh.model.data), np.array(fresh.scan.data)
    box = np.clip((model * fresh.cells).astype(int), 0, fresh.cells - 1)
    r, t, matches, errors = np.eye(3), np.zeros(3), [], []
    for _ in range(len(state.errors)):
        moved = scan @ r.T + t
        near = (np.abs((moved * fresh.cells).astype(int)[:, None] - box) <= 1).all(2)
        d2 = np.where(near, ((moved[:, None] - model) ** 2).sum(2), FAR)
        who, d2 = d2.argmin(1), d2.min(1)
        good = d2 < 1.0 / fresh.cells**2
        mean = d2[good].mean()
        w = np.where(good & (d2 < 6.0 * mean), (1.0 - d2 / (6.0 * mean)) ** 2, 0.0)
        target = model[who]
        x, y = w @ moved / w.sum(), w @ target / w.sum()
        dr, dt = motion_of((w[:, None] * (moved - x)).T @ (target - y), x, y)
        r, t = dr @ r, dr @ t + dt
        matches.append(good.sum())
        errors.append(mean**0.5)
    out = outputs(state)
    assert list(out["matches"]) == matches
    np.testing.assert_allclose(out["moved"], moved, rtol=1e-9)
    np.testing.assert_allclose(out["errors"], errors, rtol=1e-9)
    np.testing.assert_allclose(out["motion"], np.concatenate([r.ravel(), t]), rtol=1e-7, atol=1e-10)


if __name__ == "__main__":
    main(globals())
