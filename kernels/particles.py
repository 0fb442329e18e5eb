"""Charged particles in a box: those that leave it are removed by stream compaction.

Source: leapfrog steps as in C. Birdsall and A. Langdon, "Plasma Physics via Computer Simulation";
compaction by a prefix sum as in G. Blelloch, "Prefix Sums and Their Applications" (1990).

One run makes STEPS steps of 10 launches: 5 maps, a scan, 4 maps that move what stays together. The
maps before the scan share a loop, and so do those after it; all go over a tile of the scan while it
is in cache. Unfused, a step moves some 300 bytes a particle; fused, some 140.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 3_000, "default": 4_000_000, "large": 12_000_000, "gpu": 32_000_000}
STEPS = 4
DT, DRAG = 0.002, 0.1


@pk.workunit
def kick(i: int, v: pk.View1D[pk.double], x: pk.View1D[pk.double], dt: float) -> None:
    """A force that pushes away from the middle."""
    v[i] += dt * (x[i] - 0.5)


@pk.workunit
def slow(i: int, vx: pk.View1D[pk.double], vy: pk.View1D[pk.double], factor: float) -> None:
    vx[i] *= factor
    vy[i] *= factor


@pk.workunit
def move(
    i: int,
    x: pk.View1D[pk.double],
    y: pk.View1D[pk.double],
    vx: pk.View1D[pk.double],
    vy: pk.View1D[pk.double],
    dt: float,
) -> None:
    x[i] += dt * vx[i]
    y[i] += dt * vy[i]


@pk.workunit
def stays(
    i: int, inside: pk.View1D[pk.int32], x: pk.View1D[pk.double], y: pk.View1D[pk.double]
) -> None:
    inside[i] = 0
    if x[i] >= 0.0 and x[i] < 1.0 and y[i] >= 0.0 and y[i] < 1.0:
        inside[i] = 1


@pk.workunit
def number(
    i: int,
    acc: pk.Acc[pk.int32],
    last_pass: bool,
    place: pk.View1D[pk.int32],
    inside: pk.View1D[pk.int32],
) -> None:
    """Count those that stay, this one included."""
    acc += inside[i]
    if last_pass:
        place[i] = acc


@pk.workunit
def gather(
    i: int,
    target: pk.View1D[pk.double],
    source: pk.View1D[pk.double],
    place: pk.View1D[pk.int32],
    inside: pk.View1D[pk.int32],
) -> None:
    if inside[i] == 1:
        target[place[i] - 1] = source[i]


@dataclass
class State:
    """Positions and velocities, room for those that stay, and how many there are."""

    size: int
    now: list[pk.View]
    then: list[pk.View]
    count: int


def initial(size: int) -> np.ndarray:
    """Return x, y, vx and vy of particles all over the box."""
    rng = np.random.default_rng(13)
    return np.concatenate([rng.uniform(0.0, 1.0, (2, size)), rng.normal(0.0, 1.0, (2, size))])


def setup(size: int) -> State:
    """Place the particles."""
    now, then = ([pk.View([size], pk.double) for _ in range(4)] for _ in range(2))
    for view, values in zip(now, initial(size), strict=True):
        view.data[:] = values
    return State(size, now, then, size)


def run(state: State) -> None:
    """Advance STEPS steps; who leaves is gone."""
    inside, place = (pk.View([state.size], pk.int32) for _ in range(2))
    for _ in range(STEPS):
        count, (x, y, vx, vy) = state.count, state.now
        pk.parallel_for(count, kick, v=vx, x=x, dt=DT)
        pk.parallel_for(count, kick, v=vy, x=y, dt=DT)
        pk.parallel_for(count, slow, vx=vx, vy=vy, factor=1.0 - DRAG * DT)
        pk.parallel_for(count, move, x=x, y=y, vx=vx, vy=vy, dt=DT)
        pk.parallel_for(count, stays, inside=inside, x=x, y=y)
        left = pk.parallel_scan(count, number, place=place, inside=inside)
        for source, target in zip(state.now, state.then, strict=True):
            pk.parallel_for(count, gather, target=target, source=source, place=place, inside=inside)
        state.count = int(left)
        state.now, state.then = state.then, state.now


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read the particles."""
    values = {
        name: np.array(view.data[: state.count])
        for name, view in zip(("x", "y", "vx", "vy"), state.now, strict=True)
    }
    return {**values, "count": float(state.count)}


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """The same steps in NumPy, compaction by a mask."""
    x, y, vx, vy = initial(size)
    for _ in range(runs * STEPS):
        vx, vy = (v + DT * (p - 0.5) for v, p in ((vx, x), (vy, y)))
        vx, vy = vx * (1.0 - DRAG * DT), vy * (1.0 - DRAG * DT)
        x, y = x + DT * vx, y + DT * vy
        kept = (x >= 0.0) & (x < 1.0) & (y >= 0.0) & (y < 1.0)
        x, y, vx, vy = x[kept], y[kept], vx[kept], vy[kept]
    return {"x": x, "y": y, "vx": vx, "vy": vy, "count": float(len(x))}


def check(state: State, size: int, runs: int) -> None:
    """Nobody stands within some eps of a side, so the same ones leave."""
    actual, expected = outputs(state), reference(size, runs)
    assert actual["count"] == expected["count"], "count: others left"
    tolerance = 1e-14 * (1 + runs * STEPS)
    for name in ("x", "y", "vx", "vy"):
        np.testing.assert_allclose(
            actual[name], expected[name], rtol=tolerance, atol=tolerance, err_msg=name
        )


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
    print(f"particles: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
