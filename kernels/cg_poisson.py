"""CG on Poisson's equation: conjugate gradients on a matrix-free 2-D five-point operator.

Source: M. Hestenes and E. Stiefel, "Methods of Conjugate Gradients" (1952); the operator is the
usual [-1 -1 4 -1 -1] stencil on a size x size grid, zero outside, vectors stored row after row.

One run solves from x = 0 for ITERATIONS iterations: 3 + 6 * ITERATIONS launches (and a reduction
first). Unfused, an iteration moves 14 doubles (112 bytes) a grid point: apply 2, p.Ap 2, x 3, r 3,
r.r 1, p 3. The scalars alpha and beta are quotients of reduction results.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 64, "default": 2400, "large": 5000, "gpu": 6000}
ITERATIONS = 8


@pk.workunit
def clear(i: int, x: pk.View1D[pk.double]) -> None:
    x[i] = 0.0


@pk.workunit
def assign(i: int, target: pk.View1D[pk.double], source: pk.View1D[pk.double]) -> None:
    target[i] = source[i]


@pk.workunit
def apply_laplacian(
    i: int, result: pk.View1D[pk.double], p: pk.View1D[pk.double], width: int, total: int
) -> None:
    """Five-point stencil; what lies outside the grid is zero."""
    column: int = i % width
    value: float = 4.0 * p[i]
    if i >= width:
        value -= p[i - width]
    if i < total - width:
        value -= p[i + width]
    if column > 0:
        value -= p[i - 1]
    if column < width - 1:
        value -= p[i + 1]
    result[i] = value


@pk.workunit
def dot(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double], y: pk.View1D[pk.double]) -> None:
    acc += x[i] * y[i]


@pk.workunit
def norm2(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]) -> None:
    acc += x[i] * x[i]


@pk.workunit
def advance(i: int, x: pk.View1D[pk.double], p: pk.View1D[pk.double], alpha: float) -> None:
    x[i] += alpha * p[i]


@pk.workunit
def reduce_residual(
    i: int, r: pk.View1D[pk.double], ap: pk.View1D[pk.double], alpha: float
) -> None:
    r[i] -= alpha * ap[i]


@pk.workunit
def new_direction(i: int, p: pk.View1D[pk.double], r: pk.View1D[pk.double], beta: float) -> None:
    p[i] = r[i] + beta * p[i]


@dataclass
class State:
    """The grid's width, the right side, the solution and the residual with its square norm."""

    width: int
    b: pk.View
    x: pk.View
    r: pk.View
    rr: float = 0.0


def right_side(size: int) -> np.ndarray:
    """Return the right side, row after row."""
    return np.random.default_rng(2).uniform(-1.0, 1.0, size * size)


def setup(size: int) -> State:
    """Make a random right side."""
    b, x, r = (pk.View([size * size], pk.double) for _ in range(3))
    b.data[:] = right_side(size)
    return State(size, b, x, r)


def run(state: State) -> None:
    """Solve from zero; the search direction and its image live only here."""
    width, x, r = state.width, state.x, state.r
    total = width * width
    policy = pk.RangePolicy(0, total)
    p = pk.View([total], pk.double)
    ap = pk.View([total], pk.double)

    pk.parallel_for(policy, clear, x=x)
    pk.parallel_for(policy, assign, target=r, source=state.b)
    pk.parallel_for(policy, assign, target=p, source=state.b)
    rr = pk.parallel_reduce(policy, norm2, x=r)
    for _ in range(ITERATIONS):
        pk.parallel_for(policy, apply_laplacian, result=ap, p=p, width=width, total=total)
        pap = pk.parallel_reduce(policy, dot, x=p, y=ap)
        alpha = rr / pap
        pk.parallel_for(policy, advance, x=x, p=p, alpha=alpha)
        pk.parallel_for(policy, reduce_residual, r=r, ap=ap, alpha=alpha)
        rr_before, rr = rr, pk.parallel_reduce(policy, norm2, x=r)
        pk.parallel_for(policy, new_direction, p=p, r=r, beta=rr / rr_before)
    state.rr = rr


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read the solution, the residual and its square norm."""
    return {"x": np.array(state.x.data), "r": np.array(state.r.data), "rr": float(state.rr)}


def laplacian(x: np.ndarray) -> np.ndarray:
    """Apply the operator to a 2-D array, by shifts of a padded copy."""
    padded = np.pad(x, 1)
    return np.asarray(
        4.0 * x - padded[:-2, 1:-1] - padded[2:, 1:-1] - padded[1:-1, :-2] - padded[1:-1, 2:]
    )


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """CG in NumPy on 2-D arrays; every run starts from zero, so their number does not matter."""
    x = np.zeros((size, size))
    if runs == 0:
        return {"x": x.ravel(), "r": x.ravel(), "rr": 0.0}
    r = right_side(size).reshape(size, size)
    p, rr = r.copy(), float(np.vdot(r, r))
    for _ in range(ITERATIONS):
        ap = laplacian(p)
        alpha = rr / float(np.vdot(p, ap))
        x, r = x + alpha * p, r - alpha * ap
        rr, rr_before = float(np.vdot(r, r)), rr
        p = r + (rr / rr_before) * p
    return {"x": x.ravel(), "r": r.ravel(), "rr": rr}


def check(state: State, size: int, runs: int) -> None:
    """Sums of n terms agree within n eps (1e-9 at most); few iterations hardly amplify that.

    Apart from the reference, the residual must be what its definition b - A x says.
    """
    actual, expected = outputs(state), reference(size, runs)
    for name in expected:
        np.testing.assert_allclose(actual[name], expected[name], rtol=1e-9, atol=1e-9, err_msg=name)
    if runs:
        image = laplacian(np.reshape(actual["x"], (size, size))).ravel()
        np.testing.assert_allclose(
            actual["r"], right_side(size) - image, atol=1e-12, err_msg="r is not b - A x"
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
    print(f"cg_poisson: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
