"""Gray-Scott: two chemicals diffuse and react in 2-D and form patterns.

Source: J. Pearson, "Complex Patterns in a Simple System" (1993); the grid is stored row after row
with helical sides (the right neighbour of a row's last cell is the next row's first, as in
M. Newman and G. Barkema, "Monte Carlo Methods in Statistical Physics", ch. 13), so every cell but
those of the first and the last row, which are fixed, is treated alike.

One run makes STEPS steps of 9 launches and a reduction at the end. Unfused, a step moves 25
doubles (200 bytes) a cell; fused, u and v are read and written (32 bytes).
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 48, "default": 2200, "large": 5000, "gpu": 6000}
STEPS = 5
FEED, KILL, SPREAD_U, SPREAD_V, DT = 0.037, 0.06, 0.16, 0.08, 1.0


@pk.workunit
def laplacian(i, lap, x, width):
    lap[i] = x[i - width] + x[i + width] + x[i - 1] + x[i + 1] - 4.0 * x[i]


@pk.workunit
def react(i, r, u, v):
    r[i] = u[i] * v[i] * v[i]


@pk.workunit
def consume(i, rate, lap, r, spread):
    rate[i] = spread * lap[i] - r[i]


@pk.workunit
def produce(i, rate, lap, r, spread):
    rate[i] = spread * lap[i] + r[i]


@pk.workunit
def feed(i, rate, u, amount):
    rate[i] += amount * (1.0 - u[i])


@pk.workunit
def drain(i, rate, v, amount):
    rate[i] -= amount * v[i]


@pk.workunit
def advance(i, after, x, rate, dt):
    after[i] = x[i] + dt * rate[i]


@pk.workunit
def total(i, acc, x):
    acc += x[i]


@dataclass
class State:
    """Concentrations now and next, and the amount of the second chemical."""

    size: int
    u: pk.View
    v: pk.View
    new_u: pk.View
    new_v: pk.View
    amount: float = 0.0


def initial(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return u = 1 with a disturbed square in the middle, where v is not zero."""
    rng = np.random.default_rng(12)
    u, v = np.ones((size, size)), np.zeros((size, size))
    middle = slice(size // 4, 3 * size // 4)
    u[middle, middle] = rng.uniform(0.4, 0.6, u[middle, middle].shape)
    v[middle, middle] = rng.uniform(0.2, 0.3, v[middle, middle].shape)
    return u.ravel(), v.ravel()


def setup(size: int) -> State:
    """Start both pairs of grids alike: the first and the last row are never written again."""
    u, v, new_u, new_v = (pk.View([size * size], pk.double) for _ in range(4))
    u.data[:], v.data[:] = initial(size)
    new_u.data[:], new_v.data[:] = initial(size)
    return State(size, u, v, new_u, new_v)


def step(state: State, cells: pk.RangePolicy) -> None:
    """Advance one step into the other pair of grids; five temporaries die."""
    u, v, new_u, new_v, width = state.u, state.v, state.new_u, state.new_v, state.size
    lap_u, lap_v, r, rate_u, rate_v = (pk.View([width * width], pk.double) for _ in range(5))
    pk.parallel_for("laplacian", cells, laplacian, lap=lap_u, x=u, width=width)
    pk.parallel_for("laplacian", cells, laplacian, lap=lap_v, x=v, width=width)
    pk.parallel_for("react", cells, react, r=r, u=u, v=v)
    pk.parallel_for("consume", cells, consume, rate=rate_u, lap=lap_u, r=r, spread=SPREAD_U)
    pk.parallel_for("produce", cells, produce, rate=rate_v, lap=lap_v, r=r, spread=SPREAD_V)
    pk.parallel_for("feed", cells, feed, rate=rate_u, u=u, amount=FEED)
    pk.parallel_for("drain", cells, drain, rate=rate_v, v=v, amount=FEED + KILL)
    pk.parallel_for("advance", cells, advance, after=new_u, x=u, rate=rate_u, dt=DT)
    pk.parallel_for("advance", cells, advance, after=new_v, x=v, rate=rate_v, dt=DT)
    state.u, state.v, state.new_u, state.new_v = new_u, new_v, u, v


def run(state: State) -> None:
    """Advance STEPS steps and sum what there is of v."""
    width = state.size
    cells = pk.RangePolicy(width, width * width - width)
    for _ in range(STEPS):
        step(state, cells)
    state.amount = pk.parallel_reduce("total", width * width, total, x=state.v)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read the concentrations."""
    return {
        "u": np.array(state.u.data),
        "v": np.array(state.v.data),
        "amount": float(state.amount),
    }


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """The same scheme by rolled arrays, which are helical of themselves."""
    u, v = initial(size)
    inner = slice(size, size * size - size)

    def spread(x: np.ndarray) -> np.ndarray:
        around = np.roll(x, size) + np.roll(x, -size) + np.roll(x, 1) + np.roll(x, -1)
        return np.asarray(around - 4.0 * x)

    for _ in range(runs * STEPS):
        reaction = u * v**2
        du = SPREAD_U * spread(u) - reaction + FEED * (1.0 - u)
        dv = SPREAD_V * spread(v) + reaction - (FEED + KILL) * v
        u[inner] += DT * du[inner]
        v[inner] += DT * dv[inner]
    return {"u": u, "v": v, "amount": float(np.sum(v)) if runs else 0.0}


def check(state: State, size: int, runs: int) -> None:
    """Some 20 roundings of numbers near 1 a step, and patterns that grow by percents a step."""
    actual, expected = outputs(state), reference(size, runs)
    atol = 1e-14 * runs * STEPS * np.exp(min(10.0, 0.05 * runs * STEPS))
    for name in ("u", "v"):
        np.testing.assert_allclose(actual[name], expected[name], rtol=0, atol=atol, err_msg=name)
    np.testing.assert_allclose(actual["amount"], expected["amount"], rtol=1e-8, err_msg="amount")


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
    print(f"gray_scott: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
