"""FDTD: an antenna radiates in a 2-D room with a lens of glass and walls of foam.

Source: K. Yee's scheme (1966), see A. Taflove and S. Hagness, "Computational Electrodynamics", ch.
3: E_z stands at the nodes of a grid, H_x and H_y on the edges between, and the electric and the
magnetic field take turns. In a layer along the rim every step damps all fields a little, so that
hardly anything comes back from the conductor behind it, where E_z is zero. Upstream PyKokkos
(November 2025) takes an MDRangePolicy in workloads only, not with standalone workunits, hence
UPSTREAM = False; its Debug space and PyFuser's engine run this program.

One run makes STEPS steps of 7 launches, the antenna's of one iteration, and at the end 1 reduction.
The grid has n x n nodes, n x (n - 1) edges for H_x and (n - 1) x n for H_y, and E_z changes inside
only: four boxes. Unfused, a step moves 17 doubles (136 bytes) a node. In one sweep over all steps,
which keeps some rows in cache, a run moves 7 in all: three fields in and out, and the rates.
"""

import argparse
from dataclasses import dataclass
from math import sin
from time import perf_counter

import numpy as np
import pykokkos as pk

UPSTREAM = False
SIZES = {"small": 64, "default": 2500, "large": 5000, "gpu": 8000}
STEPS = 6
COURANT, LENS, LAYER, ABSORBED, OMEGA = 0.5, 2.25, 16, 0.05, 0.1


@pk.workunit
def update_hx(
    i: int, j: int, hx: pk.View2D[pk.double], ez: pk.View2D[pk.double], courant: float
) -> None:
    hx[i][j] -= courant * (ez[i][j + 1] - ez[i][j])


@pk.workunit
def update_hy(
    i: int, j: int, hy: pk.View2D[pk.double], ez: pk.View2D[pk.double], courant: float
) -> None:
    hy[i][j] += courant * (ez[i + 1][j] - ez[i][j])


@pk.workunit
def update_ez(
    i: int,
    j: int,
    ez: pk.View2D[pk.double],
    hx: pk.View2D[pk.double],
    hy: pk.View2D[pk.double],
    rate: pk.View2D[pk.double],
) -> None:
    ez[i][j] += rate[i][j] * (hy[i][j] - hy[i - 1][j] - hx[i][j] + hx[i][j - 1])


@pk.workunit
def damp(i: int, j: int, field: pk.View2D[pk.double], keep: pk.View1D[pk.double]) -> None:
    field[i][j] *= keep[i] * keep[j]


@pk.workunit
def radiate(i: int, ez: pk.View2D[pk.double], row: int, column: int, current: float) -> None:
    """A soft source: waves pass through it."""
    ez[row][column] += current


@pk.workunit
def energy(
    i: int,
    j: int,
    acc: pk.Acc[pk.double],
    ez: pk.View2D[pk.double],
    hx: pk.View2D[pk.double],
    hy: pk.View2D[pk.double],
    rate: pk.View2D[pk.double],
    courant: float,
) -> None:
    electric: float = courant / rate[i][j] * ez[i][j] * ez[i][j]
    acc += 0.5 * (electric + hx[i][j] * hx[i][j] + hy[i][j] * hy[i][j])


@dataclass
class State:
    """The fields, the Courant number over the permittivity, and what the layer leaves of fields."""

    size: int
    ez: pk.View
    hx: pk.View
    hy: pk.View
    rate: pk.View
    keep: pk.View
    time: int = 0
    energy: float = 0.0


def initial(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a wave that stands in the room, the rate of E_z with the lens, and the layer."""
    place = np.linspace(0.0, 1.0, size)
    wave = np.sin(5.0 * np.pi * place)
    wave[[0, -1]] = 0.0
    glass = (place[:, None] - 0.5) ** 2 + (place - 0.6) ** 2 < 0.04
    depth = LAYER - np.minimum(np.arange(size), np.arange(size)[::-1])
    keep = 1.0 - ABSORBED * (np.maximum(depth, 0) / LAYER) ** 2
    return np.outer(wave, wave), COURANT / np.where(glass, LENS, 1.0), keep


def setup(size: int) -> State:
    """Build the room."""
    ez, rate = (pk.View([size, size], pk.double) for _ in range(2))
    hx, hy = pk.View([size, size - 1], pk.double), pk.View([size - 1, size], pk.double)
    keep = pk.View([size], pk.double)
    ez.data[:], rate.data[:], keep.data[:] = initial(size)
    return State(size, ez, hx, hy, rate, keep)


def current(time: int) -> float:
    """Return what the antenna adds to E_z: a wave that is switched on slowly."""
    return min(1.0, time / 100.0) * sin(OMEGA * time)


def step(state: State) -> None:
    """Advance the magnetic field half a step beyond the electric one, then that."""
    n, ez, hx, hy, keep = state.size, state.ez, state.hx, state.hy, state.keep
    nodes = pk.MDRangePolicy([1, 1], [n - 1, n - 1])
    along_x, along_y = pk.MDRangePolicy([0, 0], [n, n - 1]), pk.MDRangePolicy([0, 0], [n - 1, n])
    pk.parallel_for(along_x, update_hx, hx=hx, ez=ez, courant=COURANT)
    pk.parallel_for(along_y, update_hy, hy=hy, ez=ez, courant=COURANT)
    pk.parallel_for(along_x, damp, field=hx, keep=keep)
    pk.parallel_for(along_y, damp, field=hy, keep=keep)
    pk.parallel_for(nodes, update_ez, ez=ez, hx=hx, hy=hy, rate=state.rate)
    pk.parallel_for(nodes, damp, field=ez, keep=keep)
    state.time += 1
    pk.parallel_for(1, radiate, ez=ez, row=n // 4, column=n // 3, current=current(state.time))


def run(state: State) -> None:
    """Advance STEPS steps and measure the energy."""
    for _ in range(STEPS):
        step(state)
    inside = pk.MDRangePolicy([1, 1], [state.size - 1, state.size - 1])
    state.energy = pk.parallel_reduce(
        inside, energy, ez=state.ez, hx=state.hx, hy=state.hy, rate=state.rate, courant=COURANT
    )


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read the fields and the energy."""
    fields = {"ez": state.ez, "hx": state.hx, "hy": state.hy}
    values = {name: np.array(view.data) for name, view in fields.items()}
    return {**values, "energy": float(state.energy)}


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """The same scheme by differences of whole arrays, with H scaled to be added alike."""
    ez, rate, keep = initial(size)
    hx, hy = np.zeros((size, size - 1)), np.zeros((size - 1, size))
    left = np.outer(keep, keep)
    for time in range(1, runs * STEPS + 1):
        hx = left[:, :-1] * (hx - COURANT * np.diff(ez, axis=1))
        hy = left[:-1] * (hy + COURANT * np.diff(ez, axis=0))
        curl = np.diff(hy, axis=0)[:, 1:-1] - np.diff(hx, axis=1)[1:-1]
        ez[1:-1, 1:-1] = (ez[1:-1, 1:-1] + rate[1:-1, 1:-1] * curl) * left[1:-1, 1:-1]
        ez[size // 4, size // 3] += current(time)
    inner = slice(1, -1), slice(1, -1)
    parts = (COURANT / rate * ez * ez)[inner], hx[1:-1, 1:] ** 2, hy[1:, 1:-1] ** 2
    total = 0.5 * sum(float(np.sum(part)) for part in parts)
    return {"ez": ez, "hx": hx, "hy": hy, "energy": total if runs else 0.0}


def check(state: State, size: int, runs: int) -> None:
    """Energy never grows but by the antenna: a step adds some eps of fields below 10."""
    actual, expected = outputs(state), reference(size, runs)
    atol = 1e-14 * (1 + runs * STEPS)
    for name in ("ez", "hx", "hy"):
        np.testing.assert_allclose(actual[name], expected[name], rtol=0, atol=atol, err_msg=name)
    np.testing.assert_allclose(actual["energy"], expected["energy"], rtol=1e-9, err_msg="energy")


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
    print(f"fdtd: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
