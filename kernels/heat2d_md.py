"""Heat in 2-D with an MDRangePolicy: as `heat2d`, but a workunit treats a cell.

Source: the forward-time centred-space scheme, see W. Press et al., "Numerical Recipes", ch. 20.
Upstream PyKokkos (November 2025) takes an MDRangePolicy in workloads only, not with standalone
workunits, hence UPSTREAM = False; its Debug space and PyFuser's engine run this program.

One run makes STEPS steps of 4 launches (3 maps, 1 reduction). Unfused, a step moves 10 doubles
(80 bytes) a cell: laplacian 2, source 3, advance 3, change 2.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

UPSTREAM = False
SIZES = {"small": 64, "default": 3000, "large": 6000, "gpu": 6000}
STEPS = 6
DT = 0.2


@pk.workunit
def diffuse(i, j, rate, u):
    rate[i][j] = u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1] - 4.0 * u[i][j]


@pk.workunit
def heat(i, j, rate, source):
    rate[i][j] += source[i][j]


@pk.workunit
def advance(i, j, after, u, rate, dt):
    after[i][j] = u[i][j] + dt * rate[i][j]


@pk.workunit
def change(i, j, acc, after, u):
    step: float = after[i][j] - u[i][j]
    acc += step * step


@dataclass
class State:
    """Temperatures now and next, the source, and the square of the last step's change."""

    size: int
    u: pk.View
    new: pk.View
    source: pk.View
    residual: float = 0.0


def initial(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the starting temperatures and the source."""
    rng = np.random.default_rng(3)
    return rng.uniform(0.0, 1.0, (size, size)), rng.uniform(0.0, 0.1, (size, size))


def setup(size: int) -> State:
    """Start both grids from the same temperatures: the rim is never written again."""
    u, new, source = (pk.View([size, size], pk.double) for _ in range(3))
    temperature, heating = initial(size)
    u.data[:] = temperature
    new.data[:] = temperature
    source.data[:] = heating
    return State(size, u, new, source)


def run(state: State) -> None:
    """Advance STEPS steps; the rate of change lives only here."""
    size = state.size
    cells = pk.MDRangePolicy([1, 1], [size - 1, size - 1])
    rate = pk.View([size, size], pk.double)
    for _ in range(STEPS):
        u, new = state.u, state.new
        pk.parallel_for(cells, diffuse, rate=rate, u=u)
        pk.parallel_for(cells, heat, rate=rate, source=state.source)
        pk.parallel_for(cells, advance, after=new, u=u, rate=rate, dt=DT)
        state.residual = pk.parallel_reduce(cells, change, after=new, u=u)
        state.u, state.new = new, u


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read the temperatures and the residual."""
    return {"u": np.array(state.u.data), "residual": float(state.residual)}


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """The same scheme in NumPy slices."""
    u, source = initial(size)
    residual = 0.0
    for _ in range(runs * STEPS):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        step = DT * (around - 4.0 * u[1:-1, 1:-1] + source[1:-1, 1:-1])
        u[1:-1, 1:-1] += step
        residual = float(np.sum(step * step))
    return {"u": u, "residual": residual}


def check(state: State, size: int, runs: int) -> None:
    """The scheme is stable (DT < 1/4), so a step adds at most some eps of the largest value."""
    actual, expected = outputs(state), reference(size, runs)
    atol = 1e-14 * (1 + runs * STEPS)
    np.testing.assert_allclose(actual["u"], expected["u"], rtol=1e-13, atol=atol, err_msg="u")
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
    print(f"heat2d_md: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
