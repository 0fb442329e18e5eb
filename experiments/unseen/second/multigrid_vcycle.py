"""Poisson's equation on a square by multigrid V-cycles with damped Jacobi smoothing.

Source: W. Briggs, V. Henson, S. McCormick, "A Multigrid Tutorial" (2000). Each level has half the points
of the one before; the residual of the finest is read after each cycle and may end the run.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 32, "default": 256, "large": 1_024}
CYCLES, OMEGA, COARSEST = 3, 0.8, 4


@pk.workunit
def smooth(i, j, new, u, f, h2):
    around = u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]
    new[i][j] = (1.0 - OMEGA) * u[i][j] + OMEGA * 0.25 * (around + h2 * f[i][j])


@pk.workunit
def residual(i, j, r, u, f, h2):
    around = u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]
    r[i][j] = f[i][j] - (4.0 * u[i][j] - around) / h2


@pk.workunit
def restrict(i, j, coarse, r):
    a = 2 * i
    b = 2 * j
    sides = r[a - 1][b] + r[a + 1][b] + r[a][b - 1] + r[a][b + 1]
    corners = r[a - 1][b - 1] + r[a - 1][b + 1] + r[a + 1][b - 1] + r[a + 1][b + 1]
    coarse[i][j] = 0.25 * r[a][b] + 0.125 * sides + 0.0625 * corners


@pk.workunit
def prolong(i, j, u, e):
    a = i // 2
    b = j // 2
    u[i][j] += 0.25 * (e[a][b] + e[a][b + j % 2] + e[a + i % 2][b] + e[a + i % 2][b + j % 2])


@pk.workunit
def zero(i, j, u):
    u[i][j] = 0.0


@pk.workunit
def square(i, j, acc, r):
    acc += r[i][j] * r[i][j]


@dataclass
class Level:
    m: int
    u: pk.View
    new: pk.View
    f: pk.View
    r: pk.View


@dataclass
class State:
    levels: list
    norms: list


def source(m: int) -> np.ndarray:
    y, x = np.mgrid[0 : m + 1, 0 : m + 1] / m
    return np.where((x - 0.3) ** 2 + (y - 0.6) ** 2 < 0.04, 50.0, 0.0) - 20.0 * x * y


def setup(size: int) -> State:
    levels, m = [], size
    while m >= COARSEST:
        levels.append(Level(m, *(pk.View([m + 1, m + 1], pk.double) for _ in range(4))))
        m //= 2
    levels[0].f.data[:] = source(size)
    return State(levels, [])


def relax(level: Level, sweeps: int) -> None:
    inner = pk.MDRangePolicy([1, 1], [level.m, level.m])
    for _ in range(sweeps):
        pk.parallel_for(inner, smooth, new=level.new, u=level.u, f=level.f, h2=level.m**-2)
        level.u, level.new = level.new, level.u


def cycle(levels: list) -> None:
    fine = levels[0]
    inner = pk.MDRangePolicy([1, 1], [fine.m, fine.m])
    if len(levels) == 1:
        relax(fine, 16)
        return
    coarse = levels[1]
    relax(fine, 2)
    pk.parallel_for(inner, residual, r=fine.r, u=fine.u, f=fine.f, h2=fine.m**-2)
    pk.parallel_for(
        pk.MDRangePolicy([1, 1], [coarse.m, coarse.m]), restrict, coarse=coarse.f, r=fine.r
    )
    pk.parallel_for(pk.MDRangePolicy([0, 0], [coarse.m + 1] * 2), zero, u=coarse.u)
    cycle(levels[1:])
    pk.parallel_for(inner, prolong, u=fine.u, e=coarse.u)
    relax(fine, 2)


def run(state: State) -> None:
    fine = state.levels[0]
    inner = pk.MDRangePolicy([1, 1], [fine.m, fine.m])
    pk.parallel_for(pk.MDRangePolicy([0, 0], [fine.m + 1] * 2), zero, u=fine.u)
    state.norms = [float(np.sum(source(fine.m)[1:-1, 1:-1] ** 2))]
    for _ in range(CYCLES):
        cycle(state.levels)
        pk.parallel_for(inner, residual, r=fine.r, u=fine.u, f=fine.f, h2=fine.m**-2)
        norm = pk.parallel_reduce(inner, square, r=fine.r)
        state.norms.append(float(norm))
        if state.norms[-1] < 1e-12 * state.norms[0]:
            break


def outputs(state: State) -> dict[str, np.ndarray | float]:
    return {"u": np.array(state.levels[0].u.data), "norms": np.array(state.norms)}


def check(state: State, size: int, runs: int) -> None:
    """Each cycle makes the residual smaller by at least 4, and it is what NumPy finds."""
    out, f = outputs(state), source(size)
    u = out["u"]
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    r = f[1:-1, 1:-1] - (4.0 * u[1:-1, 1:-1] - around) * size**2
    np.testing.assert_allclose(out["norms"][-1], np.sum(r**2), rtol=1e-6)
    assert np.all(out["norms"][1:] < out["norms"][:-1] / 16), out["norms"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=lambda text: SIZES.get(text) or int(text), default="small")
    parser.add_argument("--runs", type=int, default=1)
    args = parser.parse_args()
    state, start = setup(args.size), perf_counter()
    for _ in range(args.runs):
        run(state)
    seconds = perf_counter() - start
    check(state, args.size, args.runs)
    print(f"multigrid_vcycle: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
