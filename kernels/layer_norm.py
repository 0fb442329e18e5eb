"""Layer normalisation of rows by teams, with gain, bias and a residual connection.

Source: J. Ba, J. Kiros and G. Hinton, "Layer Normalization" (2016); the block around it as in
R. Xiong et al., "On Layer Normalization in the Transformer Architecture" (2020). A team has a row,
as Kokkos programs treat rows whose sums are shared.

One run makes LAYERS times 5 launches. Unfused, a layer moves 12 doubles (96 bytes) a feature: mean
and deviation read 1 each, normalise and scale move 3 each, connect 4; fused, a row stays in cache
through all layers and is read and written once.
"""

import argparse
from dataclasses import dataclass
from math import sqrt
from time import perf_counter

import numpy as np
import pykokkos as pk

UPSTREAM = False  # upstream PyKokkos takes a TeamPolicy in workloads only
SIZES = {"small": 60, "default": 12_000, "large": 40_000, "gpu": 120_000}
FEATURES, LAYERS, EPSILON = 768, 3, 1e-5


@pk.workunit
def mean_of_row(
    team: pk.TeamMember, mean: pk.View1D[pk.double], x: pk.View2D[pk.double], n: int
) -> None:
    row: int = team.league_rank()

    def add(j: int, total: pk.Acc[pk.double]):
        total += x[row][j]

    total: float = pk.parallel_reduce(pk.TeamThreadRange(team, n), add)
    if team.team_rank() == 0:
        mean[row] = total / n


@pk.workunit
def deviation_of_row(
    team: pk.TeamMember,
    inverse: pk.View1D[pk.double],
    x: pk.View2D[pk.double],
    mean: pk.View1D[pk.double],
    n: int,
    epsilon: float,
) -> None:
    """One over the standard deviation."""
    row: int = team.league_rank()

    def add(j: int, total: pk.Acc[pk.double]):
        total += (x[row][j] - mean[row]) * (x[row][j] - mean[row])

    total: float = pk.parallel_reduce(pk.TeamThreadRange(team, n), add)
    if team.team_rank() == 0:
        inverse[row] = 1.0 / sqrt(total / n + epsilon)


@pk.workunit
def normalise(
    team: pk.TeamMember,
    y: pk.View2D[pk.double],
    x: pk.View2D[pk.double],
    mean: pk.View1D[pk.double],
    inverse: pk.View1D[pk.double],
    n: int,
) -> None:
    row: int = team.league_rank()

    def one(j: int):
        y[row][j] = (x[row][j] - mean[row]) * inverse[row]

    pk.parallel_for(pk.TeamThreadRange(team, n), one)


@pk.workunit
def scale(
    team: pk.TeamMember,
    y: pk.View2D[pk.double],
    gain: pk.View1D[pk.double],
    bias: pk.View1D[pk.double],
    n: int,
) -> None:
    row: int = team.league_rank()

    def one(j: int):
        y[row][j] = y[row][j] * gain[j] + bias[j]

    pk.parallel_for(pk.TeamThreadRange(team, n), one)


@pk.workunit
def connect(team: pk.TeamMember, x: pk.View2D[pk.double], y: pk.View2D[pk.double], n: int) -> None:
    """The residual connection."""
    row: int = team.league_rank()

    def one(j: int):
        x[row][j] = x[row][j] + y[row][j]

    pk.parallel_for(pk.TeamThreadRange(team, n), one)


@dataclass
class State:
    """Activations, and the gain and bias of each layer."""

    rows: int
    x: pk.View
    gain: list[pk.View]
    bias: list[pk.View]


def initial(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return activations, gains and biases."""
    rng = np.random.default_rng(17)
    gain = rng.uniform(0.5, 1.5, (LAYERS, FEATURES))
    return rng.normal(0.3, 2.0, (rows, FEATURES)), gain, rng.normal(0.0, 0.1, (LAYERS, FEATURES))


def setup(rows: int) -> State:
    """Make the activations and the parameters."""
    x = pk.View([rows, FEATURES], pk.double)
    gain, bias = ([pk.View([FEATURES], pk.double) for _ in range(LAYERS)] for _ in range(2))
    x.data[:], gains, biases = initial(rows)
    for views, values in ((gain, gains), (bias, biases)):
        for view, row in zip(views, values, strict=True):
            view.data[:] = row
    return State(rows, x, gain, bias)


def run(state: State) -> None:
    """Apply the layers; each run goes on from the activations of the last one."""
    rows, x, n = state.rows, state.x, FEATURES
    teams = pk.TeamPolicy(rows, 1)
    for gain, bias in zip(state.gain, state.bias, strict=True):
        y = pk.View([rows, n], pk.double)
        mean, inverse = (pk.View([rows], pk.double) for _ in range(2))
        pk.parallel_for(teams, mean_of_row, mean=mean, x=x, n=n)
        pk.parallel_for(
            teams, deviation_of_row, inverse=inverse, x=x, mean=mean, n=n, epsilon=EPSILON
        )
        pk.parallel_for(teams, normalise, y=y, x=x, mean=mean, inverse=inverse, n=n)
        pk.parallel_for(teams, scale, y=y, gain=gain, bias=bias, n=n)
        pk.parallel_for(teams, connect, x=x, y=y, n=n)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read the activations."""
    return {"x": np.array(state.x.data)}


def reference(rows: int, runs: int) -> dict[str, np.ndarray | float]:
    """NumPy by whole arrays."""
    x, gain, bias = initial(rows)
    for _ in range(runs):
        for layer in range(LAYERS):
            centred = x - x.mean(axis=1, keepdims=True)
            spread = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + EPSILON)
            x = x + centred / spread * gain[layer] + bias[layer]
    return {"x": x}


def check(state: State, size: int, runs: int) -> None:
    """Sums of FEATURES terms: that many eps at most, in each layer."""
    actual, expected = outputs(state), reference(size, runs)
    tolerance = 1e-12 * (1 + runs * LAYERS)
    np.testing.assert_allclose(
        actual["x"], expected["x"], rtol=tolerance, atol=tolerance, err_msg="x"
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
    print(f"layer_norm: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
