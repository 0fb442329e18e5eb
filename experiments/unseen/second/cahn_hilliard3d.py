"""Cahn and Hilliard's separation of two phases in a periodic box of three dimensions.

Source: J. Cahn, J. Hilliard, "Free Energy of a Nonuniform System" (1958), explicit in time with a
seven-point Laplacian. Neighbours by % n; the mean is kept to rounding, the free energy decreases.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 10, "default": 48, "large": 130}
STEPS, DT, GAMMA = 6, 0.02, 0.5


@pk.workunit
def potential(i, j, k, mu, c, n):
    lap = (
        c[(i + 1) % n][j][k]
        + c[(i + n - 1) % n][j][k]
        + c[i][(j + 1) % n][k]
        + c[i][(j + n - 1) % n][k]
        + c[i][j][(k + 1) % n]
        + c[i][j][(k + n - 1) % n]
        - 6.0 * c[i][j][k]
    )
    mu[i][j][k] = c[i][j][k] * c[i][j][k] * c[i][j][k] - c[i][j][k] - GAMMA * lap


@pk.workunit
def diffuse(i, j, k, new, c, mu, n, dt):
    lap = (
        mu[(i + 1) % n][j][k]
        + mu[(i - 1 + n) % n][j][k]
        + mu[i][(j + 1) % n][k]
        + mu[i][(j - 1 + n) % n][k]
        + mu[i][j][(k + 1) % n]
        + mu[i][j][(k - 1 + n) % n]
        - 6.0 * mu[i][j][k]
    )
    new[i][j][k] = c[i][j][k] + dt * lap


@pk.workunit
def bulk(i, j, k, acc, c):
    w = 1.0 - c[i][j][k] * c[i][j][k]
    acc += 0.25 * w * w


@pk.workunit
def interface(i, j, k, acc, c, n):
    x = c[(i + 1) % n][j][k] - c[i][j][k]
    y = c[i][(j + 1) % n][k] - c[i][j][k]
    z = c[i][j][(k + 1) % n] - c[i][j][k]
    acc += 0.5 * GAMMA * (x * x + y * y + z * z)


@dataclass
class State:
    n: int
    c: pk.View
    new: pk.View
    energy: list


def mixture(n: int) -> np.ndarray:
    return np.random.default_rng(33).uniform(-0.5, 0.5, (n, n, n))


def setup(size: int) -> State:
    c, new = pk.View([size] * 3, pk.double), pk.View([size] * 3, pk.double)
    c.data[:] = mixture(size)
    return State(size, c, new, [])


def run(state: State) -> None:
    n, box = state.n, pk.MDRangePolicy([0, 0, 0], [state.n] * 3)
    c, new, mu = state.c, state.new, pk.View([n, n, n], pk.double)
    for step in range(STEPS):
        pk.parallel_for("potential", box, potential, mu=mu, c=c, n=n)
        pk.parallel_for("diffuse", box, diffuse, new=new, c=c, mu=mu, n=n, dt=DT)
        c, new = new, c
        if step % 3 == 2:
            inside = pk.parallel_reduce("bulk", box, bulk, c=c)
            between = pk.parallel_reduce("interface", box, interface, c=c, n=n)
            state.energy.append(float(inside) + float(between))
    state.c, state.new = c, new


def outputs(state: State) -> dict[str, np.ndarray | float]:
    return {"c": np.array(state.c.data), "energy": np.array(state.energy)}


def check(state: State, size: int, runs: int) -> None:
    c, out = mixture(size), outputs(state)
    around = lambda x: sum(np.roll(x, s, a) for a in range(3) for s in (-1, 1)) - 6.0 * x
    for _ in range(STEPS * runs):
        c = c + DT * around(c**3 - c - GAMMA * around(c))
    np.testing.assert_allclose(out["c"], c, atol=1e-12 * STEPS * runs)
    assert all(np.diff(out["energy"]) < 0), out["energy"]


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
    print(f"cahn_hilliard3d: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
