"""Resampling: a particle filter tracks a ship by its distances from three beacons.

Source: the bootstrap filter of N. Gordon, D. Salmond and A. Smith (1993) with systematic resampling
(G. Kitagawa, 1996), whose copies are placed by a prefix sum as in L. Murray et al., "Parallel
Resampling in the Particle Filter" (2016). Weights are whole numbers of up to 2^16: their sums are
exact in any order, so every implementation chooses the same particles. Each particle has a 32-bit
linear congruential generator (Numerical Recipes' constants).

One run makes STEPS steps of 24 launches: 6 maps steer and move the particles, 7 give weights to
them; 3 sums; a scan, 3 maps behind it of which the last says for each copy whose it is; and 4
gathers of the chosen particles. Unfused, a step moves some 420 bytes a particle; fused, some 100,
as the gathers join the moves of the next step.
"""

import argparse
from dataclasses import dataclass, field
from math import ceil, exp, sqrt
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 3_000, "default": 2_000_000, "large": 8_000_000, "gpu": 32_000_000}
STEPS = 2
DT, STEERING, ERROR, ONE = 0.1, 0.2, 0.05, 65536.0
BEACONS = ((-2.0, 0.0), (2.0, -1.0), (0.0, 3.0))


@pk.workunit
def shuffle(i: int, seed: pk.View1D[pk.uint32]) -> None:
    """One step of the particle's own generator, modulo 2^32."""
    seed[i] = seed[i] * 1664525 + 1013904223


@pk.workunit
def steer(i: int, v: pk.View1D[pk.double], seed: pk.View1D[pk.uint32], force: float) -> None:
    """Change a velocity by up to half the force, either way."""
    v[i] += force * (seed[i] / 4294967296.0 - 0.5)


@pk.workunit
def move(i: int, x: pk.View1D[pk.double], v: pk.View1D[pk.double], dt: float) -> None:
    x[i] += dt * v[i]


@pk.workunit
def distance(
    i: int,
    d: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    y: pk.View1D[pk.double],
    beacon_x: float,
    beacon_y: float,
) -> None:
    dx: float = x[i] - beacon_x
    dy: float = y[i] - beacon_y
    d[i] = sqrt(dx * dx + dy * dy)


@pk.workunit
def mismatch(
    i: int,
    total: pk.View1D[pk.double],
    d: pk.View1D[pk.double],
    measured: float,
    error: float,
) -> None:
    """Add the square of what a measurement is off, in standard errors."""
    off: float = (d[i] - measured) / error
    total[i] += off * off


@pk.workunit
def weigh(i: int, weight: pk.View1D[pk.int32], mismatch: pk.View1D[pk.double], one: float) -> None:
    """The likelihood of the measurements, in parts of one that are cut off to whole numbers."""
    weight[i] = one * exp(-0.5 * mismatch[i])


@pk.workunit
def total(i: int, acc: pk.Acc[pk.int64], weight: pk.View1D[pk.int32]) -> None:
    acc += weight[i]


@pk.workunit
def moment(
    i: int, acc: pk.Acc[pk.double], weight: pk.View1D[pk.int32], x: pk.View1D[pk.double]
) -> None:
    acc += weight[i] * x[i]


@pk.workunit
def accumulate(
    i: int,
    acc: pk.Acc[pk.int64],
    last_pass: bool,
    upto: pk.View1D[pk.int64],
    weight: pk.View1D[pk.int32],
) -> None:
    """Sum the weights, this one included."""
    acc += weight[i]
    if last_pass:
        upto[i] = acc


@pk.workunit
def first_copy(
    i: int,
    first: pk.View1D[pk.int32],
    upto: pk.View1D[pk.int64],
    weight: pk.View1D[pk.int32],
    scale: float,
    offset: float,
) -> None:
    """The first of the evenly spaced marks that lies in the particle's share, or beyond."""
    first[i] = ceil(scale * (upto[i] - weight[i]) - offset)


@pk.workunit
def end_copy(
    i: int, end: pk.View1D[pk.int32], upto: pk.View1D[pk.int64], scale: float, offset: float
) -> None:
    end[i] = ceil(scale * upto[i] - offset)


@pk.workunit
def choose(
    i: int,
    parent: pk.View1D[pk.int32],
    first: pk.View1D[pk.int32],
    end: pk.View1D[pk.int32],
) -> None:
    for copy in range(first[i], end[i]):
        parent[copy] = i


@pk.workunit
def gather(
    i: int,
    target: pk.View1D[pk.double],
    source: pk.View1D[pk.double],
    parent: pk.View1D[pk.int32],
) -> None:
    target[i] = source[parent[i]]


@dataclass
class State:
    """Places and velocities, room for the chosen ones, generators; the steps and the estimates."""

    size: int
    now: list[pk.View]
    then: list[pk.View]
    seed: pk.View
    time: int = 0
    track: list[tuple[float, float]] = field(default_factory=list)


def initial(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return x, y, vx and vy of particles around the start, and a seed each."""
    rng = np.random.default_rng(19)
    spread = np.array([0.2, 0.2, 0.1, 0.1])[:, None]
    mean = np.array([0.0, 0.0, 0.3, 0.4])[:, None]
    particles = mean + spread * rng.normal(0.0, 1.0, (4, size))
    return particles, rng.integers(0, 2**32, size, dtype=np.uint32)


def measurement(time: int) -> tuple[list[float], float]:
    """Return the distances that are measured at a step, and the offset of that step's marks."""
    rng = np.random.default_rng((19, time))
    x, y = 0.3 * DT * time, 0.4 * DT * time
    distances = [sqrt((x - p) ** 2 + (y - q) ** 2) for p, q in BEACONS]
    return [d + ERROR * rng.normal() for d in distances], rng.uniform(0.01, 0.99)


def setup(size: int) -> State:
    """Place the particles."""
    now, then = ([pk.View([size], pk.double) for _ in range(4)] for _ in range(2))
    seed = pk.View([size], pk.uint32)
    particles, seed.data[:] = initial(size)
    for view, values in zip(now, particles, strict=True):
        view.data[:] = values
    return State(size, now, then, seed)


def predict(state: State) -> None:
    """Steer every particle somewhere and let it go on."""
    n, (x, y, vx, vy) = state.size, state.now
    for v in (vx, vy):
        pk.parallel_for(n, shuffle, seed=state.seed)
        pk.parallel_for(n, steer, v=v, seed=state.seed, force=STEERING)
    pk.parallel_for(n, move, x=x, v=vx, dt=DT)
    pk.parallel_for(n, move, x=y, v=vy, dt=DT)


def weights(state: State, distances: list[float]) -> pk.View:
    """Return how well each particle explains what was measured."""
    n, (x, y, _, _) = state.size, state.now
    d, off = (pk.View([n], pk.double) for _ in range(2))
    weight = pk.View([n], pk.int32)
    for (beacon_x, beacon_y), measured in zip(BEACONS, distances, strict=True):
        pk.parallel_for(n, distance, d=d, x=x, y=y, beacon_x=beacon_x, beacon_y=beacon_y)
        pk.parallel_for(n, mismatch, total=off, d=d, measured=measured, error=ERROR)
    pk.parallel_for(n, weigh, weight=weight, mismatch=off, one=ONE)
    return weight


def resample(state: State, weight: pk.View, everything: int, offset: float) -> None:
    """Copy particles as often as marks, evenly spaced over all weights, fall into their share."""
    n, scale = state.size, state.size / everything
    upto, (first, end, parent) = pk.View([n], pk.int64), (pk.View([n], pk.int32) for _ in range(3))
    pk.parallel_scan(n, accumulate, upto=upto, weight=weight)
    pk.parallel_for(
        n, first_copy, first=first, upto=upto, weight=weight, scale=scale, offset=offset
    )
    pk.parallel_for(n, end_copy, end=end, upto=upto, scale=scale, offset=offset)
    pk.parallel_for(n, choose, parent=parent, first=first, end=end)
    for source, target in zip(state.now, state.then, strict=True):
        pk.parallel_for(n, gather, target=target, source=source, parent=parent)
    state.now, state.then = state.then, state.now


def run(state: State) -> None:
    """Follow the ship for STEPS measurements."""
    n = state.size
    for _ in range(STEPS):
        state.time += 1
        distances, offset = measurement(state.time)
        predict(state)
        weight = weights(state, distances)
        everything = pk.parallel_reduce(n, total, weight=weight)
        x, y = (pk.parallel_reduce(n, moment, weight=weight, x=view) for view in state.now[:2])
        state.track.append((float(x / everything), float(y / everything)))
        resample(state, weight, int(everything), offset)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read the particles, and where the ship is thought to have been."""
    names = ("x", "y", "vx", "vy")
    values = {n: np.array(view.data) for n, view in zip(names, state.now, strict=True)}
    return {**values, "track": np.array(state.track).reshape(-1, 2)}


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """The same filter in NumPy: each mark is looked up in the sums of the weights."""
    particles, seed = initial(size)
    track = []
    for time in range(1, runs * STEPS + 1):
        distances, offset = measurement(time)
        for v in particles[2:]:
            seed = seed * np.uint32(1664525) + np.uint32(1013904223)
            v += STEERING * (seed / 2.0**32 - 0.5)
        particles[:2] += DT * particles[2:]
        off = sum(
            ((np.sqrt((particles[0] - p) ** 2 + (particles[1] - q) ** 2) - measured) / ERROR) ** 2
            for (p, q), measured in zip(BEACONS, distances, strict=True)
        )
        weight = (ONE * np.exp(-0.5 * off)).astype(np.int64)
        upto = np.cumsum(weight)
        track.append(particles[:2] @ weight / upto[-1])
        marks = (np.arange(size) + offset) * (upto[-1] / size)
        particles = particles[:, np.searchsorted(upto, marks, side="right")]
    values = dict(zip(("x", "y", "vx", "vy"), particles, strict=True))
    return {**values, "track": np.array(track).reshape(-1, 2)}


def check(state: State, size: int, runs: int) -> None:
    """Sums of weights are exact: the same particles are chosen, and are a few roundings off.

    A weight is one off, and with it the choice, if a rounding of some 1e-15 takes its exponential
    over a multiple of 2^-16: that happens to one of 1e11 particles a step.
    """
    actual, expected = outputs(state), reference(size, runs)
    atol = 1e-14 * (1 + runs * STEPS)
    for name in ("x", "y", "vx", "vy"):
        np.testing.assert_allclose(actual[name], expected[name], rtol=0, atol=atol, err_msg=name)
    np.testing.assert_allclose(
        actual["track"], expected["track"], rtol=0, atol=1e-9, err_msg="track"
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
    print(f"resampling: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
