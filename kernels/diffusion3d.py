"""Diffusion in 3-D: heat in a ceramic block that conducts better where it is hot.

Source: the forward-time centred-space scheme in conservative form, with a conductivity that grows
linearly with temperature, see H. Carslaw and J. Jaeger, "Conduction of Heat in Solids", ch. 1; at a
face acts the mean of two cells' conductivities. The block's surface keeps its temperature. Upstream
PyKokkos (November 2025) takes an MDRangePolicy in workloads only, not with standalone workunits,
hence UPSTREAM = False; its Debug space and PyFuser's engine run this program.

One run makes STEPS steps of 3 launches, and 1 reduction. Unfused, a step moves 8 doubles (64 bytes)
a cell: conductivity 2, flow 3, advance 3. Fused, each cell's flow computes the seven conductivities
that it reads, and a step moves 2 doubles: the temperatures now and next.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

UPSTREAM = False
SIZES = {"small": 20, "default": 200, "large": 320, "gpu": 512}
STEPS = 4
DT, BASE, GROWTH = 0.1, 1.0, 0.5


@pk.workunit
def conductivity(
    i: int,
    j: int,
    k: int,
    c: pk.View3D[pk.double],
    u: pk.View3D[pk.double],
    base: float,
    growth: float,
) -> None:
    c[i][j][k] = base * (1.0 + growth * u[i][j][k])


@pk.workunit
def flow(
    i: int,
    j: int,
    k: int,
    rate: pk.View3D[pk.double],
    c: pk.View3D[pk.double],
    u: pk.View3D[pk.double],
) -> None:
    """What flows into a cell through its six faces."""
    here: float = u[i][j][k]
    own: float = c[i][j][k]
    x: float = (own + c[i - 1][j][k]) * (u[i - 1][j][k] - here) + (own + c[i + 1][j][k]) * (
        u[i + 1][j][k] - here
    )
    y: float = (own + c[i][j - 1][k]) * (u[i][j - 1][k] - here) + (own + c[i][j + 1][k]) * (
        u[i][j + 1][k] - here
    )
    z: float = (own + c[i][j][k - 1]) * (u[i][j][k - 1] - here) + (own + c[i][j][k + 1]) * (
        u[i][j][k + 1] - here
    )
    rate[i][j][k] = 0.5 * (x + y + z)


@pk.workunit
def advance(
    i: int,
    j: int,
    k: int,
    after: pk.View3D[pk.double],
    u: pk.View3D[pk.double],
    rate: pk.View3D[pk.double],
    dt: float,
) -> None:
    after[i][j][k] = u[i][j][k] + dt * rate[i][j][k]


@pk.workunit
def content(i: int, j: int, k: int, acc: pk.Acc[pk.double], u: pk.View3D[pk.double]) -> None:
    acc += u[i][j][k]


@dataclass
class State:
    """Temperatures now and next, and the heat inside the surface."""

    size: int
    u: pk.View
    new: pk.View
    heat: float = 0.0


def initial(size: int) -> np.ndarray:
    """Return the starting temperatures: a hot ball under noise."""
    place = np.linspace(-0.5, 0.5, size)
    square = place * place
    ball = square[:, None, None] + square[:, None] + square < 0.1
    return 0.9 * ball + np.random.default_rng(17).uniform(0.0, 0.1, ball.shape)


def setup(size: int) -> State:
    """Start both blocks from the same temperatures: the surface is never written again."""
    u, new = (pk.View([size, size, size], pk.double) for _ in range(2))
    u.data[:] = initial(size)
    new.data[:] = u.data
    return State(size, u, new)


def run(state: State) -> None:
    """Advance STEPS steps and sum the heat; conductivities and rates live only here."""
    n = state.size
    cells = pk.MDRangePolicy([0, 0, 0], [n, n, n])
    inner = pk.MDRangePolicy([1, 1, 1], [n - 1, n - 1, n - 1])
    c, rate = (pk.View([n, n, n], pk.double) for _ in range(2))
    for _ in range(STEPS):
        u, new = state.u, state.new
        pk.parallel_for(cells, conductivity, c=c, u=u, base=BASE, growth=GROWTH)
        pk.parallel_for(inner, flow, rate=rate, c=c, u=u)
        pk.parallel_for(inner, advance, after=new, u=u, rate=rate, dt=DT)
        state.u, state.new = new, u
    state.heat = pk.parallel_reduce(inner, content, u=state.u)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read the temperatures and the heat."""
    return {"u": np.array(state.u.data), "heat": float(state.heat)}


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """The same fluxes face by face, from Kirchhoff's potential: its slope is the conductivity.

    With v = u + GROWTH u^2 / 2, the mean conductivity of two cells times the difference of their
    temperatures is BASE times the difference of v, exactly.
    """
    u = initial(size)
    inner = slice(1, -1)
    for _ in range(runs * STEPS):
        v = BASE * (u + 0.5 * GROWTH * u * u)
        rate = -6.0 * v[inner, inner, inner]
        for axis in range(3):
            for side in (slice(None, -2), slice(2, None)):
                place = [inner] * 3
                place[axis] = side
                rate += v[tuple(place)]
        u[inner, inner, inner] += DT * rate
    return {"u": u, "heat": float(np.sum(u[inner, inner, inner])) if runs else 0.0}


def check(state: State, size: int, runs: int) -> None:
    """The scheme is monotone (6 DT times 1.5 < 1): a step adds some 30 eps of numbers up to 2."""
    actual, expected = outputs(state), reference(size, runs)
    atol = 1e-14 * (1 + runs * STEPS)
    np.testing.assert_allclose(actual["u"], expected["u"], rtol=0, atol=atol, err_msg="u")
    np.testing.assert_allclose(actual["heat"], expected["heat"], rtol=1e-11, err_msg="heat")


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
    print(f"diffusion3d: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
