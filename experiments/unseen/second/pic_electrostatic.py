"""Two streams of electrons in one dimension: particle-in-cell with linear weights.

Source: C. Birdsall, A. Langdon, "Plasma Physics via Computer Simulation" (1985). Charge is deposited in
fixed point (20 bits), so that atomic sums have one value; the field is a scan of the charge.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 60_000, "large": 1_000_000}
STEPS, EVERY, DT, UNIT = 6, 3, 0.1, 1048576


@pk.workunit
def clear(c, charge):
    charge[c] = 0


@pk.workunit
def deposit(p, charge, x, cells):
    left = int(x[p])
    part = int((x[p] - left) * UNIT)
    pk.atomic_add(charge, [left], UNIT - part)
    pk.atomic_add(charge, [left + 1 if left + 1 < cells else 0], part)


@pk.workunit
def density(c, rho, charge, mean):
    rho[c] = 1.0 - charge[c] / (mean * UNIT)


@pk.workunit
def integrate(c, acc, last_pass, field, rho):
    acc += rho[c]
    if last_pass:
        field[c] = acc


@pk.workunit
def sum_of(c, acc, v):
    acc += v[c]


@pk.workunit
def shift(c, field, total, cells):
    field[c] -= total / cells


@pk.workunit
def gather(p, force, field, x, cells):
    left = int(x[p])
    w = x[p] - left
    force[p] = -((1.0 - w) * field[left] + w * field[left + 1 if left + 1 < cells else 0])


@pk.workunit
def kick(p, v, force, dt):
    v[p] += dt * force[p]


@pk.workunit
def drift(p, x, v, dt, length):
    there = x[p] + dt * v[p]
    if there < 0.0:
        there += length
    if there >= length:
        there -= length
    x[p] = there


@pk.workunit
def squares(i, acc, v):
    acc += 0.5 * v[i] * v[i]


@dataclass
class State:
    n: int
    cells: int
    start: list
    x: pk.View
    v: pk.View
    energies: list


def streams(n: int, cells: int):
    rng = np.random.default_rng(77)
    x = cells * (np.arange(n) + 0.5) / n
    x += 0.3 * np.sin(2 * np.pi * x / cells)
    v = np.where(np.arange(n) % 2 == 0, 2.0, -2.0) + 0.1 * rng.normal(size=n)
    return x % cells, v


def setup(size: int) -> State:
    cells = max(64, size // 100)
    x, v = pk.View([size], pk.double), pk.View([size], pk.double)
    return State(size, cells, list(streams(size, cells)), x, v, [])


def run(state: State) -> None:
    n, cells, x, v = state.n, state.cells, state.x, state.v
    x.data[:], v.data[:] = state.start
    charge, force = pk.View([cells], pk.int64), pk.View([n], pk.double)
    rho, field = pk.View([cells], pk.double), pk.View([cells], pk.double)
    state.energies = []
    for step in range(1, STEPS + 1):
        pk.parallel_for(cells, clear, charge=charge)
        pk.parallel_for(n, deposit, charge=charge, x=x, cells=cells)
        pk.parallel_for(cells, density, rho=rho, charge=charge, mean=n / cells)
        pk.parallel_scan(cells, integrate, field=field, rho=rho)
        total = pk.parallel_reduce(cells, sum_of, v=field)
        pk.parallel_for(cells, shift, field=field, total=total, cells=cells)
        pk.parallel_for(n, gather, force=force, field=field, x=x, cells=cells)
        pk.parallel_for(n, kick, v=v, force=force, dt=DT)
        pk.parallel_for(n, drift, x=x, v=v, dt=DT, length=float(cells))
        if step % EVERY == 0:
            electric = pk.parallel_reduce(cells, squares, v=field)
            kinetic = pk.parallel_reduce(n, squares, v=v)
            state.energies.append(float(electric) * n / cells + float(kinetic))


def outputs(state: State) -> dict[str, np.ndarray | float]:
    views = {"x": np.array(state.x.data), "v": np.array(state.v.data)}
    return views | {"energies": np.array(state.energies)}


def check(state: State, size: int, runs: int) -> None:
    cells, out = state.cells, outputs(state)
    x, v = streams(size, cells)
    for _ in range(STEPS):
        left = x.astype(int)
        right, part = (left + 1) % cells, ((x - left) * UNIT).astype(int)
        charge = np.bincount(left, UNIT - part, cells) + np.bincount(right, part, cells)
        field = np.cumsum(1.0 - charge / (size / cells * UNIT))
        field -= field.mean()
        w = x - left
        v = v - DT * ((1.0 - w) * field[left] + w * field[right])
        x = (x + DT * v) % cells
    np.testing.assert_allclose(out["v"], v, atol=1e-8)
    apart = np.abs(out["x"] - x)
    assert np.max(np.minimum(apart, cells - apart)) < 1e-8
    np.testing.assert_allclose(out["energies"][-1], out["energies"][0], rtol=0.05)


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
    print(f"pic_electrostatic: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
