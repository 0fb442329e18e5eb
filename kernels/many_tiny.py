"""Many tiny launches: a chain of 64 damped beads on springs, one launch per force and update.

Source: the Fermi-Pasta-Ulam chain (1955) with damping, by the symplectic Euler method; the shape
of PyKokkos' documented fusion example, whose cost is all launches.

`size` counts the time steps. One run makes 5 launches a step on 64 elements (a reduction ends the
run): no memory traffic to save, only launches.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 10, "default": 600, "large": 6000, "gpu": 600}
BEADS = 64
STIFFNESS, CUBIC, DAMPING, DT = 1.0, 0.3, 0.02, 0.05


@pk.workunit
def stretch(i, d, x):
    d[i] = x[i + 1] - x[i]


@pk.workunit
def tension(i, t, d, stiffness, cubic):
    t[i] = stiffness * d[i] + cubic * d[i] * d[i] * d[i]


@pk.workunit
def accelerate(i, v, t, dt):
    v[i] += dt * (t[i] - t[i - 1])


@pk.workunit
def damp(i, v, factor):
    v[i] *= factor


@pk.workunit
def move(i, x, v, dt):
    x[i] += dt * v[i]


@pk.workunit
def energy(i, acc, v):
    acc += 0.5 * v[i] * v[i]


@dataclass
class State:
    """Places and velocities of the beads (both ends are held) and their kinetic energy."""

    steps: int
    x: pk.View
    v: pk.View
    kinetic: float = 0.0


def initial() -> tuple[np.ndarray, np.ndarray]:
    """Return places and velocities; the first and the last bead rest at zero."""
    rng = np.random.default_rng(6)
    x, v = rng.uniform(-1, 1, BEADS), rng.uniform(-1, 1, BEADS)
    x[[0, -1]] = v[[0, -1]] = 0.0
    return x, v


def setup(size: int) -> State:
    """Make a chain; `size` is the number of time steps a run."""
    x, v = (pk.View([BEADS], pk.double) for _ in range(2))
    x.data[:], v.data[:] = initial()
    return State(size, x, v)


def step(x: pk.View, v: pk.View, d: pk.View, t: pk.View) -> None:
    """Advance one time step."""
    springs, inner = pk.RangePolicy(0, BEADS - 1), pk.RangePolicy(1, BEADS - 1)
    pk.parallel_for(springs, stretch, d=d, x=x)
    pk.parallel_for(springs, tension, t=t, d=d, stiffness=STIFFNESS, cubic=CUBIC)
    pk.parallel_for(inner, accelerate, v=v, t=t, dt=DT)
    pk.parallel_for(inner, damp, v=v, factor=1.0 - DAMPING * DT)
    pk.parallel_for(inner, move, x=x, v=v, dt=DT)


def run(state: State) -> None:
    """Advance `steps` time steps and sum the kinetic energy."""
    d, t = (pk.View([BEADS], pk.double) for _ in range(2))
    for _ in range(state.steps):
        step(state.x, state.v, d, t)
    state.kinetic = pk.parallel_reduce(BEADS, energy, v=state.v)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read the chain."""
    return {
        "x": np.array(state.x.data),
        "v": np.array(state.v.data),
        "kinetic": float(state.kinetic),
    }


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """The same method in NumPy."""
    x, v = initial()
    for _ in range(size * runs):
        d = np.diff(x)
        v[1:-1] += DT * np.diff(STIFFNESS * d + CUBIC * d**3)
        v[1:-1] *= 1.0 - DAMPING * DT
        x[1:-1] += DT * v[1:-1]
    return {"x": x, "v": v, "kinetic": 0.5 * float(np.dot(v, v)) if runs else 0.0}


def check(state: State, size: int, runs: int) -> None:
    """Damped, but weakly chaotic while the beads swing: errors may grow like exp(0.1 time)."""
    actual, expected = outputs(state), reference(size, runs)
    atol = min(1e-6, 1e-13 * np.exp(min(16.0, 0.1 * DT * size * runs)))
    for name in expected:
        np.testing.assert_allclose(actual[name], expected[name], atol=atol, err_msg=name)


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
    print(f"many_tiny: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
