"""Conway's Game of Life on a torus of bytes, with the age of each cell and how it dies out.

Source: M. Gardner, "Mathematical Games" (1970). Neighbours are found by % n. Every few generations
the population and the number of changes are read; a world that stands still ends the run.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 32, "default": 700, "large": 1_400}
GENERATIONS, EVERY = 12, 4


@pk.workunit
def neighbours(i: int, j: int, count: pk.View2D[pk.uint8], cell: pk.View2D[pk.uint8], n: int):
    up: int = (i + n - 1) % n
    down: int = (i + 1) % n
    left: int = (j + n - 1) % n
    right: int = (j + 1) % n
    count[i][j] = (
        cell[up][left]
        + cell[up][j]
        + cell[up][right]
        + cell[i][left]
        + cell[i][right]
        + cell[down][left]
        + cell[down][j]
        + cell[down][right]
    )


@pk.workunit
def rule(
    i: int, j: int, new: pk.View2D[pk.uint8], cell: pk.View2D[pk.uint8], count: pk.View2D[pk.uint8]
):
    new[i][j] = 1 if count[i][j] == 3 or (cell[i][j] == 1 and count[i][j] == 2) else 0


@pk.workunit
def grow(i: int, j: int, age: pk.View2D[pk.uint8], new: pk.View2D[pk.uint8]):
    if new[i][j] == 0:
        age[i][j] = 0
    elif age[i][j] < 255:
        age[i][j] += 1


@pk.workunit
def alive(i: int, j: int, acc: pk.Acc[pk.int64], cell: pk.View2D[pk.uint8]):
    acc += cell[i][j]


@pk.workunit
def changed(
    i: int, j: int, acc: pk.Acc[pk.int64], new: pk.View2D[pk.uint8], cell: pk.View2D[pk.uint8]
):
    if new[i][j] != cell[i][j]:
        acc += 1


@dataclass
class State:
    n: int
    cell: pk.View
    new: pk.View
    age: pk.View
    history: list


def world(n: int) -> np.ndarray:
    return (np.random.default_rng(70).random((n, n)) < 0.35).astype(np.uint8)


def setup(size: int) -> State:
    cell, new, age = (pk.View([size, size], pk.uint8) for _ in range(3))
    cell.data[:] = world(size)
    return State(size, cell, new, age, [])


def run(state: State) -> None:
    n, cell, new = state.n, state.cell, state.new
    torus = pk.MDRangePolicy([0, 0], [n, n])
    count = pk.View([n, n], pk.uint8)
    for generation in range(1, GENERATIONS + 1):
        pk.parallel_for(torus, neighbours, count=count, cell=cell, n=n)
        pk.parallel_for(torus, rule, new=new, cell=cell, count=count)
        pk.parallel_for(torus, grow, age=state.age, new=new)
        cell, new = new, cell
        if generation % EVERY == 0:
            population = pk.parallel_reduce(torus, alive, cell=cell)
            moves = pk.parallel_reduce(torus, changed, new=cell, cell=new)
            state.history.append((int(population), int(moves)))
            if state.history[-1][1] == 0:
                break
    state.cell, state.new = cell, new


def outputs(state: State) -> dict[str, np.ndarray | float]:
    views = {"cell": state.cell, "age": state.age}
    return {k: np.array(v.data) for k, v in views.items()} | {"history": np.array(state.history)}


def check(state: State, size: int, runs: int) -> None:
    cell, age = world(size), np.zeros((size, size), int)
    for _ in range(GENERATIONS * runs):
        shifts = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b]
        count = sum(np.roll(cell, s, (0, 1)) for s in shifts)
        cell = ((count == 3) | ((cell == 1) & (count == 2))).astype(np.uint8)
        age = np.where(cell == 1, np.minimum(age + 1, 255), 0)
    out = outputs(state)
    np.testing.assert_array_equal(out["cell"], cell)
    np.testing.assert_array_equal(out["age"], age)
    assert out["history"][-1][0] == cell.sum(dtype=np.int64)


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
    print(f"life_torus: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
