"""Laplace's equation by Jacobi's method: a plate, hot on the left, cold on the right.

Source: see W. Press et al., "Numerical Recipes", ch. 20.5; the boundary conditions are those of
courses on MPI: temperatures are given along the left and right side (Dirichlet), nothing flows
through top and bottom (zero gradient: the rim is a copy of the row beside it). Each side is a
workunit of its own, called after every step.

One run makes STEPS steps of 5 launches (the stencil, four sides) and 1 reduction. Unfused, a step
moves 3 doubles (24 bytes) a cell with the line that a store reads first; the sides are small, but
a step cannot share a loop, nor a walk over memory, with the next one unless they come along.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

UPSTREAM = False  # upstream PyKokkos takes an MDRangePolicy in workloads only
SIZES = {"small": 64, "default": 3000, "large": 6000, "gpu": 8000}
STEPS = 10
COLD = 0.0


@pk.workunit
def jacobi(i: int, j: int, after: pk.View2D[pk.double], u: pk.View2D[pk.double]) -> None:
    after[i][j] = 0.25 * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1])


@pk.workunit
def insulated_top(j: int, u: pk.View2D[pk.double]) -> None:
    u[0][j] = u[1][j]


@pk.workunit
def insulated_bottom(j: int, u: pk.View2D[pk.double], last: int) -> None:
    u[last][j] = u[last - 1][j]


@pk.workunit
def hot_side(i: int, u: pk.View2D[pk.double], heater: pk.View1D[pk.double]) -> None:
    u[i][0] = heater[i]


@pk.workunit
def cold_side(i: int, u: pk.View2D[pk.double], last: int, cold: float) -> None:
    u[i][last] = cold


@pk.workunit
def change(
    i: int, j: int, acc: pk.Acc[pk.double], after: pk.View2D[pk.double], u: pk.View2D[pk.double]
) -> None:
    step: float = after[i][j] - u[i][j]
    acc += step * step


@dataclass
class State:
    """Temperatures now and next, those of the hot side, and the square of the last change."""

    size: int
    u: pk.View
    new: pk.View
    heater: pk.View
    residual: float = 0.0


def initial(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first guess, sides included, and the temperatures of the hot side."""
    u = np.random.default_rng(21).uniform(0.0, 1.0, (size, size))
    heater = 1.0 + np.sin(np.linspace(0.0, np.pi, size))
    u[:, 0], u[:, -1] = heater, COLD
    u[0, 1:-1], u[-1, 1:-1] = u[1, 1:-1], u[-2, 1:-1]
    return u, heater


def setup(size: int) -> State:
    """Start from a guess."""
    u, new = (pk.View([size, size], pk.double) for _ in range(2))
    heater = pk.View([size], pk.double)
    u.data[:], heater.data[:] = initial(size)
    return State(size, u, new, heater)


def set_sides(u: pk.View, heater: pk.View, size: int) -> None:
    """Apply the boundary conditions; corners belong to the left and right side."""
    pk.parallel_for(size, insulated_top, u=u)
    pk.parallel_for(size, insulated_bottom, u=u, last=size - 1)
    pk.parallel_for(size, hot_side, u=u, heater=heater)
    pk.parallel_for(size, cold_side, u=u, last=size - 1, cold=COLD)


def run(state: State) -> None:
    """Make STEPS steps, then see how far the last one went."""
    cells = pk.MDRangePolicy([1, 1], [state.size - 1, state.size - 1])
    for _ in range(STEPS):
        u, new = state.u, state.new
        pk.parallel_for(cells, jacobi, after=new, u=u)
        set_sides(new, state.heater, state.size)
        state.u, state.new = new, u
    state.residual = pk.parallel_reduce(cells, change, after=state.u, u=state.new)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read the temperatures and the residual."""
    return {"u": np.array(state.u.data), "residual": float(state.residual)}


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """The unknowns alone, in NumPy: the sides are put around them for each step."""
    u, heater = initial(size)
    sides = heater[1:-1], np.full(size - 2, COLD)
    inner, residual = u[1:-1, 1:-1], 0.0
    for _ in range(runs * STEPS):
        before = inner
        wide = np.column_stack([sides[0], inner, sides[1]])
        tall = np.concatenate([inner[:1], inner, inner[-1:]])
        inner = ((tall[:-2] + tall[2:]) + (wide[:, :-2] + wide[:, 2:])) / 4.0
        residual = float(np.sum((inner - before) ** 2))
    u = np.pad(inner, 1, mode="edge")
    u[:, 0], u[:, -1] = heater, COLD
    return {"u": u, "residual": residual}


def check(state: State, size: int, runs: int) -> None:
    """A step takes means of four numbers below 2: three roundings of sums below 8, a quarter each,
    on either side. Means of errors do not grow, so errors add up step by step.

    The residual's terms are squares of changes, each off by twice that error at most."""
    actual, expected = outputs(state), reference(size, runs)
    atol = 2 * 3 * 8 / 4 * 2.0**-53 * (1 + runs * STEPS)
    np.testing.assert_allclose(actual["u"], expected["u"], rtol=0.0, atol=atol, err_msg="u")
    np.testing.assert_allclose(
        actual["residual"], expected["residual"], rtol=1e-9, atol=1e-20, err_msg="residual"
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
    print(f"laplace: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
