"""Turbulent mixing in the columns of an atmosphere model: winds, heat and moisture, implicitly.

Source: a first-order closure after J.-F. Louis, "A Parametric Model of Vertical Eddy Fluxes in the
Atmosphere" (1979): diffusivities follow from shear, stability and a mixing length. Tridiagonal
systems by L. Thomas' algorithm, with one elimination for all fields. As in most such models a
workunit treats a column in loops over its levels, and fields lie level after level:
x[level][column], level 0 at the ground.

One run makes 21 maps (shear, stability, diffusivity, matrix, elimination; for each of 4 fields the
way up, the way down, the tendency and the step) and 1 reduction. Unfused they move 85 doubles (680
bytes) a cell with the lines that stores read first; fused, fields and tendencies: 16 (128 bytes).
"""

import argparse
from dataclasses import dataclass
from math import sqrt
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 150, "default": 50_000, "large": 150_000, "gpu": 600_000}
LEVELS, DT = 40, 300.0
FIELDS = ("u", "v", "theta", "q")  # two winds, potential temperature, moisture
GRAVITY, KARMAN, LONGEST, EXCHANGE = 9.81, 0.4, 150.0, 0.008  # m/s2, -, m, m/s


@pk.workunit
def shear(
    i: int,
    s: pk.View2D[pk.double],
    u: pk.View2D[pk.double],
    v: pk.View2D[pk.double],
    inverse: pk.View1D[pk.double],
    levels: int,
) -> None:
    """How fast the wind changes with height, at the interface below each level."""
    for k in range(1, levels):
        du: float = (u[k][i] - u[k - 1][i]) * inverse[k]
        dv: float = (v[k][i] - v[k - 1][i]) * inverse[k]
        s[k][i] = sqrt(du * du + dv * dv + 1e-8)


@pk.workunit
def richardson(
    i: int,
    ri: pk.View2D[pk.double],
    s: pk.View2D[pk.double],
    theta: pk.View2D[pk.double],
    inverse: pk.View1D[pk.double],
    gravity: float,
    levels: int,
) -> None:
    """Stability: what lifting takes, over what the shear gives."""
    for k in range(1, levels):
        mean: float = 0.5 * (theta[k][i] + theta[k - 1][i])
        lift: float = gravity * (theta[k][i] - theta[k - 1][i]) * inverse[k] / mean
        ri[k][i] = lift / (s[k][i] * s[k][i])


@pk.workunit
def diffusivity(
    i: int,
    d: pk.View2D[pk.double],
    s: pk.View2D[pk.double],
    ri: pk.View2D[pk.double],
    mixing: pk.View1D[pk.double],
    levels: int,
) -> None:
    """Mixing length squared times shear, more where the air is unstable, less where it is not."""
    for k in range(1, levels):
        f: float = 1.0 / (1.0 + 10.0 * ri[k][i])
        if ri[k][i] < 0.0:
            f = sqrt(1.0 - 16.0 * ri[k][i])
        d[k][i] = mixing[k] * mixing[k] * s[k][i] * f


@pk.workunit
def matrix(
    i: int,
    below: pk.View2D[pk.double],
    above: pk.View2D[pk.double],
    d: pk.View2D[pk.double],
    inverse: pk.View1D[pk.double],
    thickness: pk.View1D[pk.double],
    dt: float,
    exchange: float,
    levels: int,
) -> None:
    """What a level shares with the one below it (the lowest: the ground) and above it in a step."""
    below[0][i] = dt * exchange / thickness[0]
    above[levels - 1][i] = 0.0
    for k in range(1, levels):
        flow: float = dt * d[k][i] * inverse[k]
        below[k][i] = flow / thickness[k]
        above[k - 1][i] = flow / thickness[k - 1]


@pk.workunit
def eliminate(
    i: int,
    pivot: pk.View2D[pk.double],
    below: pk.View2D[pk.double],
    above: pk.View2D[pk.double],
    levels: int,
) -> None:
    """The inverses of the pivots, which are the same for all fields."""
    last: float = 1.0 / (1.0 + below[0][i] + above[0][i])
    pivot[0][i] = last
    for k in range(1, levels):
        last = 1.0 / (1.0 + above[k][i] + below[k][i] * (1.0 - above[k - 1][i] * last))
        pivot[k][i] = last


@pk.workunit
def upwards(
    i: int,
    y: pk.View2D[pk.double],
    x: pk.View2D[pk.double],
    below: pk.View2D[pk.double],
    pivot: pk.View2D[pk.double],
    ground: pk.View1D[pk.double],
    levels: int,
) -> None:
    """Eliminate what lies below the diagonal."""
    last: float = (x[0][i] + below[0][i] * ground[i]) * pivot[0][i]
    y[0][i] = last
    for k in range(1, levels):
        last = (x[k][i] + below[k][i] * last) * pivot[k][i]
        y[k][i] = last


@pk.workunit
def downwards(
    i: int,
    y: pk.View2D[pk.double],
    above: pk.View2D[pk.double],
    pivot: pk.View2D[pk.double],
    levels: int,
) -> None:
    """Substitute from the top."""
    last: float = y[levels - 1][i]
    for n in range(1, levels):
        k: int = levels - 1 - n
        last = y[k][i] + above[k][i] * pivot[k][i] * last
        y[k][i] = last


@pk.workunit
def tendency(
    i: int,
    rate: pk.View2D[pk.double],
    y: pk.View2D[pk.double],
    x: pk.View2D[pk.double],
    dt: float,
    levels: int,
) -> None:
    """How fast a field changes, which the rest of the model asks for."""
    for k in range(levels):
        rate[k][i] = (y[k][i] - x[k][i]) / dt


@pk.workunit
def advance(
    i: int, x: pk.View2D[pk.double], rate: pk.View2D[pk.double], dt: float, levels: int
) -> None:
    for k in range(levels):
        x[k][i] += dt * rate[k][i]


@pk.workunit
def moisture(
    i: int,
    acc: pk.Acc[pk.double],
    q: pk.View2D[pk.double],
    thickness: pk.View1D[pk.double],
    levels: int,
) -> None:
    for k in range(levels):
        acc += thickness[k] * q[k][i]


@dataclass
class Grid:
    """Of each level: thickness, and over the interface below it, distance and mixing length."""

    thickness: np.ndarray
    inverse: np.ndarray
    mixing: np.ndarray


@dataclass
class State:
    """Fields, their tendencies, what the ground has of each, the grid, and the moisture in all."""

    columns: int
    field: dict[str, pk.View]
    rate: dict[str, pk.View]
    ground: dict[str, pk.View]
    thickness: pk.View
    inverse: pk.View
    mixing: pk.View
    moisture: float = 0.0


def grid() -> Grid:
    """Return levels that get thicker with height, from 20 m."""
    thickness = 20.0 * 1.08 ** np.arange(LEVELS)
    interface = np.cumsum(thickness) - thickness
    distance = np.ones(LEVELS)
    distance[1:] = 0.5 * (thickness[1:] + thickness[:-1])
    mixing = KARMAN * interface / (1.0 + KARMAN * interface / LONGEST)
    return Grid(thickness, 1.0 / distance, mixing)


def initial(size: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return gusty winds in air that is stable in some columns and not in others; the ground."""
    rng = np.random.default_rng(22)
    z = np.cumsum(grid().thickness)[:, None]
    field = {name: rng.normal(0.0, 0.3, (LEVELS, size)) for name in FIELDS}
    field["u"] += 5.0 * np.log1p(z / 10.0)
    field["theta"] += 290.0 + rng.uniform(-0.001, 0.005, size) * z
    field["q"] = 0.01 * np.exp(-z / 2000.0) * (1.0 + 0.1 * field["q"])
    ground = {name: np.zeros(size) for name in FIELDS}
    ground["theta"] = rng.uniform(285.0, 300.0, size)
    ground["q"] = rng.uniform(0.008, 0.02, size)
    return field, ground


def view(values: np.ndarray) -> pk.View:
    """Return a View with these values."""
    made = pk.View(list(values.shape), pk.double)
    made.data[:] = values
    return made


def setup(size: int) -> State:
    """Make `size` columns."""
    field, ground = initial(size)
    levels = grid()
    return State(
        size,
        {name: view(values) for name, values in field.items()},
        {name: pk.View([LEVELS, size], pk.double) for name in FIELDS},
        {name: view(values) for name, values in ground.items()},
        view(levels.thickness),
        view(levels.inverse),
        view(levels.mixing),
    )


def system(s: State) -> tuple[pk.View, pk.View, pk.View]:
    """Return the tridiagonal matrix: below and above the diagonal, and the inverse pivots."""
    n, inverse = s.columns, s.inverse
    wind, ri, d, below, above, pivot = (pk.View([LEVELS, n], pk.double) for _ in range(6))
    u, v, theta = s.field["u"], s.field["v"], s.field["theta"]
    pk.parallel_for(n, shear, s=wind, u=u, v=v, inverse=inverse, levels=LEVELS)
    pk.parallel_for(
        n, richardson, ri=ri, s=wind, theta=theta, inverse=inverse, gravity=GRAVITY, levels=LEVELS
    )
    pk.parallel_for(n, diffusivity, d=d, s=wind, ri=ri, mixing=s.mixing, levels=LEVELS)
    pk.parallel_for(
        n, matrix, below=below, above=above, d=d, inverse=inverse, thickness=s.thickness,
        dt=DT, exchange=EXCHANGE, levels=LEVELS,
    )  # fmt: skip
    pk.parallel_for(n, eliminate, pivot=pivot, below=below, above=above, levels=LEVELS)
    return below, above, pivot


def run(s: State) -> None:
    """Advance one step."""
    n = s.columns
    below, above, pivot = system(s)
    for name in FIELDS:
        x, rate, ground = s.field[name], s.rate[name], s.ground[name]
        y = pk.View([LEVELS, n], pk.double)
        pk.parallel_for(
            n, upwards, y=y, x=x, below=below, pivot=pivot, ground=ground, levels=LEVELS
        )
        pk.parallel_for(n, downwards, y=y, above=above, pivot=pivot, levels=LEVELS)
        pk.parallel_for(n, tendency, rate=rate, y=y, x=x, dt=DT, levels=LEVELS)
        pk.parallel_for(n, advance, x=x, rate=rate, dt=DT, levels=LEVELS)
    s.moisture = pk.parallel_reduce(
        n, moisture, q=s.field["q"], thickness=s.thickness, levels=LEVELS
    )


def outputs(s: State) -> dict[str, np.ndarray | float]:
    """Read fields, tendencies and moisture."""
    result: dict[str, np.ndarray | float] = {"moisture": float(s.moisture)}
    for name in FIELDS:
        result[name] = np.array(s.field[name].data)
        result[f"{name}_rate"] = np.array(s.rate[name].data)
    return result


def solved(below: np.ndarray, above: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve the systems of all columns at once, by Gaussian elimination from the top."""
    right, diagonal = right.copy(), 1.0 + below + above
    for k in reversed(range(LEVELS - 1)):
        factor = above[k] / diagonal[k + 1]
        diagonal[k] -= factor * below[k + 1]
        right[k] += factor * right[k + 1]
    right[0] /= diagonal[0]
    for k in range(1, LEVELS):
        right[k] = (right[k] + below[k] * right[k - 1]) / diagonal[k]
    return right


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """The same physics in NumPy, eliminated in the other direction."""
    field, ground = initial(size)
    levels = grid()
    h, gap = levels.thickness[:, None], 1.0 / levels.inverse[1:, None]
    result: dict[str, np.ndarray | float] = {"moisture": 0.0}
    rate = {name: np.zeros((LEVELS, size)) for name in FIELDS}
    for _ in range(runs):
        du, dv, dtheta = (np.diff(field[name], axis=0) / gap for name in ("u", "v", "theta"))
        squared = du**2 + dv**2 + 1e-8
        theta = field["theta"]
        ri = 2.0 * GRAVITY * dtheta / (theta[1:] + theta[:-1]) / squared
        with np.errstate(invalid="ignore"):
            f = np.where(ri < 0.0, np.sqrt(1.0 - 16.0 * ri), 1.0 / (1.0 + 10.0 * ri))
        flow = DT * levels.mixing[1:, None] ** 2 * np.sqrt(squared) * f / gap
        below = np.concatenate([np.full((1, size), DT * EXCHANGE), flow]) / h
        above = np.concatenate([flow, np.zeros((1, size))]) / h
        for name in FIELDS:
            right = field[name].copy()
            right[0] += below[0] * ground[name]
            new = solved(below, above, right)
            rate[name], field[name] = (new - field[name]) / DT, new
        result["moisture"] = float(np.sum(h * field["q"]))
    return result | field | {f"{name}_rate": values for name, values in rate.items()}


def check(state: State, size: int, runs: int) -> None:
    """Temperatures near 300 are off by 6e-14 each. Their differences over 20 m, against a squared
    shear that may be as small as 1e-8, give diffusivities that are right to 1e-7 in still air; that
    hardly matters there, as nothing differs much. Ample: 1e-9 of a field's largest value a step.
    """
    actual, expected = outputs(state), reference(size, runs)
    for name in FIELDS:
        atol = 1e-9 * (1 + runs) * float(np.max(np.abs(expected[name])))
        for key, error in ((name, atol), (f"{name}_rate", atol / DT)):
            np.testing.assert_allclose(
                actual[key], expected[key], rtol=0.0, atol=error, err_msg=key
            )
    np.testing.assert_allclose(
        actual["moisture"], expected["moisture"], rtol=1e-9, err_msg="moisture"
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
    print(f"vertical_diffusion: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
