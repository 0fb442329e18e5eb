"""Heat in 2-D by alternating directions: implicit along one axis, then along the other.

Source: D. Peaceman and H. Rachford, "The Numerical Solution of Parabolic and Elliptic Differential
Equations" (1955); tridiagonal systems by L. Thomas' algorithm. Rows are contiguous, so every half
step solves along rows and the grid is transposed in between, as on machines where columns are slow.

One run makes STEPS steps of 8 launches. Unfused, a half step moves 10 doubles (80 bytes) a cell:
explicit 3, transpose 3, forward 2, backward 2; fused, the transpose is a part of the explicit half
and a row stays in cache from forward to backward: 5. Either way a transpose is only as fast as its
order through memory.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

UPSTREAM = False  # upstream PyKokkos takes an MDRangePolicy in workloads only
SIZES = {"small": 48, "default": 2600, "large": 5000, "gpu": 6000}
STEPS = 2
RATE = 0.8  # half a time step over the square of a cell's width


@pk.workunit
def explicit(
    i: int, j: int, half: pk.View2D[pk.double], u: pk.View2D[pk.double], rate: float
) -> None:
    """The half of the step that is known: diffusion along the row."""
    half[i][j] = u[i][j] + rate * (u[i][j - 1] - 2.0 * u[i][j] + u[i][j + 1])


@pk.workunit
def transpose(i: int, j: int, target: pk.View2D[pk.double], source: pk.View2D[pk.double]) -> None:
    target[j][i] = source[i][j]


@pk.workunit
def forward(
    i: int, u: pk.View2D[pk.double], inverse: pk.View1D[pk.double], rate: float, size: int
) -> None:
    """Eliminate what lies left of the diagonal."""
    last: float = 0.0
    for j in range(1, size - 1):
        last = (u[i][j] + rate * last) * inverse[j]
        u[i][j] = last


@pk.workunit
def backward(
    i: int, u: pk.View2D[pk.double], inverse: pk.View1D[pk.double], rate: float, size: int
) -> None:
    """Substitute from the end of the row."""
    last: float = 0.0
    for k in range(1, size - 1):
        j: int = size - 1 - k
        last = u[i][j] + rate * inverse[j] * last
        u[i][j] = last


@dataclass
class State:
    """Temperatures, whose rim stays zero; the pivots' inverses; room for a transposed grid."""

    size: int
    u: pk.View
    turned: pk.View
    inverse: pk.View


def initial(size: int) -> np.ndarray:
    """Return random temperatures inside a cold rim."""
    u = np.zeros((size, size))
    u[1:-1, 1:-1] = np.random.default_rng(7).uniform(0.0, 1.0, (size - 2, size - 2))
    return u


def setup(size: int) -> State:
    """Make the grid and eliminate the matrix, which is the same for all rows."""
    u, turned = (pk.View([size, size], pk.double) for _ in range(2))
    inverse = pk.View([size], pk.double)
    u.data[:] = initial(size)
    pivots = np.zeros(size)
    for j in range(1, size - 1):
        pivots[j] = 1.0 / (1.0 + 2.0 * RATE - RATE * RATE * pivots[j - 1])
    inverse.data[:] = pivots
    return State(size, u, turned, inverse)


def half_step(state: State, u: pk.View, result: pk.View) -> None:
    """Explicit along the rows of `u`, implicit along its columns: the rows of `result`."""
    size, inverse = state.size, state.inverse
    cells = pk.MDRangePolicy([1, 1], [size - 1, size - 1])
    rows = pk.RangePolicy(1, size - 1)
    half = pk.View([size, size], pk.double)
    pk.parallel_for(cells, explicit, half=half, u=u, rate=RATE)
    pk.parallel_for(cells, transpose, target=result, source=half)
    pk.parallel_for(rows, forward, u=result, inverse=inverse, rate=RATE, size=size)
    pk.parallel_for(rows, backward, u=result, inverse=inverse, rate=RATE, size=size)


def run(state: State) -> None:
    """Advance STEPS steps."""
    for _ in range(STEPS):
        half_step(state, state.u, state.turned)
        half_step(state, state.turned, state.u)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read the temperatures."""
    return {"u": np.array(state.u.data)}


def solved(right: np.ndarray) -> np.ndarray:
    """Solve the tridiagonal system for all columns at once, by Gaussian elimination."""
    right, diagonal = right.copy(), np.full(len(right), 1.0 + 2.0 * RATE)
    for n in range(1, len(right)):
        factor = -RATE / diagonal[n - 1]
        diagonal[n] += factor * RATE
        right[n] -= factor * right[n - 1]
    right[-1] /= diagonal[-1]
    for n in reversed(range(len(right) - 1)):
        right[n] = (right[n] + RATE * right[n + 1]) / diagonal[n]
    return right


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """The same scheme in NumPy, without transposes of memory."""
    u = initial(size)
    inner = u[1:-1, 1:-1]
    for _ in range(runs * STEPS):
        inner[:] = solved(inner + RATE * (u[1:-1, :-2] - 2.0 * inner + u[1:-1, 2:]))
        inner[:] = solved((inner + RATE * (u[:-2, 1:-1] - 2.0 * inner + u[2:, 1:-1])).T).T
    return {"u": u}


def check(state: State, size: int, runs: int) -> None:
    """The scheme is stable and its systems well conditioned: some eps a step."""
    actual, expected = outputs(state), reference(size, runs)
    atol = 1e-14 * (1 + runs * STEPS)
    np.testing.assert_allclose(actual["u"], expected["u"], rtol=1e-12, atol=atol, err_msg="u")


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
    print(f"adi: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
