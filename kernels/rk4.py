"""RK4: the classical Runge-Kutta method on an ensemble of predator-prey systems.

Source: W. Kutta (1901); A. Lotka and V. Volterra's equations, one independent pair of prey and
predators an element, each with its own birth rate.

One run makes STEPS steps of 26 launches: 8 rates, 10 weighted sums, 6 stages and 2 updates, and a
reduction at the end. Unfused, a step moves 74 doubles (592 bytes) an element; fused, the two
populations and the birth rate are read and the populations written (40 bytes).
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 5_000, "default": 4_000_000, "large": 16_000_000, "gpu": 80_000_000}
STEPS = 2
EATEN, GROWN, DEATH, DT = 0.9, 0.4, 0.7, 0.01


@pk.workunit
def prey_rate(
    i: int,
    k: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    y: pk.View1D[pk.double],
    birth: pk.View1D[pk.double],
    eaten: float,
) -> None:
    k[i] = x[i] * (birth[i] - eaten * y[i])


@pk.workunit
def predator_rate(
    i: int,
    k: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    y: pk.View1D[pk.double],
    grown: float,
    death: float,
) -> None:
    k[i] = y[i] * (grown * x[i] - death)


@pk.workunit
def assign(i: int, total: pk.View1D[pk.double], k: pk.View1D[pk.double]) -> None:
    total[i] = k[i]


@pk.workunit
def accumulate(i: int, total: pk.View1D[pk.double], k: pk.View1D[pk.double], weight: float) -> None:
    total[i] += weight * k[i]


@pk.workunit
def stage(
    i: int,
    result: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    k: pk.View1D[pk.double],
    h: float,
) -> None:
    result[i] = x[i] + h * k[i]


@pk.workunit
def update(i: int, x: pk.View1D[pk.double], total: pk.View1D[pk.double], h: float) -> None:
    x[i] += h * total[i]


@pk.workunit
def living(
    i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double], y: pk.View1D[pk.double]
) -> None:
    acc += x[i] + y[i]


@dataclass
class State:
    """Prey, predators, birth rates, and how many live."""

    size: int
    x: pk.View
    y: pk.View
    birth: pk.View
    alive: float = 0.0


def initial(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return prey, predators and birth rates."""
    rng = np.random.default_rng(14)
    return rng.uniform(1, 3, size), rng.uniform(0.5, 2, size), rng.uniform(0.8, 1.4, size)


def setup(size: int) -> State:
    """Make an ensemble."""
    x, y, birth = (pk.View([size], pk.double) for _ in range(3))
    x.data[:], y.data[:], birth.data[:] = initial(size)
    return State(size, x, y, birth)


def rates(state: State, kx: pk.View, ky: pk.View, x: pk.View, y: pk.View) -> None:
    """Compute the rates of change of populations x and y."""
    n = state.size
    pk.parallel_for(n, prey_rate, k=kx, x=x, y=y, birth=state.birth, eaten=EATEN)
    pk.parallel_for(n, predator_rate, k=ky, x=x, y=y, grown=GROWN, death=DEATH)


def step(state: State, scratch: list[pk.View]) -> None:
    """Advance one step."""
    n, x, y = state.size, state.x, state.y
    kx, ky, stage_x, stage_y, sum_x, sum_y = scratch
    rates(state, kx, ky, x, y)
    pk.parallel_for(n, assign, total=sum_x, k=kx)
    pk.parallel_for(n, assign, total=sum_y, k=ky)
    for h, weight in ((0.5 * DT, 2.0), (0.5 * DT, 2.0), (DT, 1.0)):
        pk.parallel_for(n, stage, result=stage_x, x=x, k=kx, h=h)
        pk.parallel_for(n, stage, result=stage_y, x=y, k=ky, h=h)
        rates(state, kx, ky, stage_x, stage_y)
        pk.parallel_for(n, accumulate, total=sum_x, k=kx, weight=weight)
        pk.parallel_for(n, accumulate, total=sum_y, k=ky, weight=weight)
    pk.parallel_for(n, update, x=x, total=sum_x, h=DT / 6.0)
    pk.parallel_for(n, update, x=y, total=sum_y, h=DT / 6.0)


def run(state: State) -> None:
    """Advance STEPS steps and count the living; scratch vectors live only here."""
    scratch = [pk.View([state.size], pk.double) for _ in range(6)]
    for _ in range(STEPS):
        step(state, scratch)
    state.alive = pk.parallel_reduce(state.size, living, x=state.x, y=state.y)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read the populations."""
    return {
        "x": np.array(state.x.data),
        "y": np.array(state.y.data),
        "alive": float(state.alive),
    }


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """The textbook's k1 to k4 on both populations stacked."""
    x, y, birth = initial(size)
    z = np.stack([x, y])

    def f(s: np.ndarray) -> np.ndarray:
        return np.stack([birth * s[0] - EATEN * s[0] * s[1], GROWN * s[0] * s[1] - DEATH * s[1]])

    for _ in range(runs * STEPS):
        k1 = f(z)
        k2 = f(z + DT / 2 * k1)
        k3 = f(z + DT / 2 * k2)
        k4 = f(z + DT * k3)
        z = z + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return {"x": z[0], "y": z[1], "alive": float(np.sum(z)) if runs else 0.0}


def check(state: State, size: int, runs: int) -> None:
    """Orbits are closed (a conserved quantity), so errors grow with the steps: some eps each."""
    actual, expected = outputs(state), reference(size, runs)
    for name in expected:
        rtol = 1e-9 if name == "alive" else 1e-14 * (1 + runs * STEPS)
        np.testing.assert_allclose(actual[name], expected[name], rtol=rtol, err_msg=name)


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
    print(f"rk4: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
