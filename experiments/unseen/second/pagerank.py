"""PageRank by power iteration on a graph in CSR form, tested for convergence every few iterations.

Source: L. Page et al., "The PageRank Citation Ranking" (1999). Rows of the graph are the links that
point to a page; pages without links give their rank to all. The weight that they hold, a
reduction, is the next kernel's argument; the change is read every CHECK iterations.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 30_000, "large": 150_000}
DAMPING, CHECK, MOST, GOAL = 0.85, 4, 24, 1e-9


@pk.workunit
def uniform(i, rank, n):
    rank[i] = 1.0 / n


@pk.workunit
def shares(
    i: int, share: pk.View1D[pk.double], rank: pk.View1D[pk.double], degree: pk.View1D[pk.int32]
):
    if degree[i] > 0:
        share[i] = rank[i] / degree[i]
    else:
        share[i] = 0.0


@pk.workunit
def lost(i: int, acc: pk.Acc[pk.double], rank: pk.View1D[pk.double], degree: pk.View1D[pk.int32]):
    if degree[i] == 0:
        acc += rank[i]


@pk.workunit
def gather(i, new, share, first, source, dangling, n):
    total: float = 0.0
    for e in range(first[i], first[i + 1]):
        total += share[source[e]]
    new[i] = (1.0 - DAMPING) / n + DAMPING * (total + dangling / n)


@pk.workunit
def change(i, acc, new, rank):
    acc += abs(new[i] - rank[i])


@pk.workunit
def mass(i, acc, rank):
    acc += rank[i]


@dataclass
class State:
    n: int
    first: pk.View
    source: pk.View
    degree: pk.View
    rank: pk.View
    spare: pk.View
    iterations: int = 0
    change: float = 0.0
    mass: float = 0.0


def graph(n: int):
    """A random graph with popular pages: sources are uniform, degrees of rows are skewed."""
    rng = np.random.default_rng(7)
    links = np.minimum(rng.geometric(0.15, n), 60)
    first = np.concatenate([[0], np.cumsum(links)])
    source = (n * rng.random(first[-1]) ** 1.5).astype(np.int64)
    return first, source, np.bincount(source, minlength=n)


def setup(size: int) -> State:
    views = []
    for values in graph(size):
        view = pk.View([len(values)], pk.int32)
        view.data[:] = values
        views.append(view)
    return State(size, *views, pk.View([size], pk.double), pk.View([size], pk.double))


def run(state: State) -> None:
    n, rank, new, degree = state.n, state.rank, state.spare, state.degree
    pk.parallel_for(n, uniform, rank=rank, n=n)
    share = pk.View([n], pk.double)
    for state.iterations in range(1, MOST + 1):
        pk.parallel_for(n, shares, share=share, rank=rank, degree=degree)
        dangling = pk.parallel_reduce(n, lost, rank=rank, degree=degree)
        pk.parallel_for(
            n,
            gather,
            new=new,
            share=share,
            first=state.first,
            source=state.source,
            dangling=dangling,
            n=n,
        )
        rank, new = new, rank
        if state.iterations % CHECK == 0:
            moved = pk.parallel_reduce(n, change, new=rank, rank=new)
            total = pk.parallel_reduce(n, mass, rank=rank)
            state.change, state.mass = float(moved), float(total)
            if state.change < GOAL * state.mass:
                break
    state.rank, state.spare = rank, new


def outputs(state: State) -> dict[str, np.ndarray | float]:
    return {"rank": np.array(state.rank.data), "change": state.change, "mass": state.mass}


def check(state: State, size: int, runs: int) -> None:
    first, source, degree = graph(size)
    rank, row = np.full(size, 1.0 / size), np.repeat(np.arange(size), np.diff(first))
    for _ in range(state.iterations):
        share = np.where(degree > 0, rank / np.maximum(degree, 1), 0.0)
        got = np.bincount(row, weights=share[source], minlength=size)
        rank = (1 - DAMPING) / size + DAMPING * (got + rank[degree == 0].sum() / size)
    np.testing.assert_allclose(outputs(state)["rank"], rank, rtol=1e-9)
    np.testing.assert_allclose(state.mass, 1.0, rtol=1e-9)


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
    print(f"pagerank: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
