"""Jones and Plassmann's colouring of a graph: rounds until everyone has a colour, and a histogram."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk

from common import main
from in10 import graph

SIZES = {"small": 5000, "default": 800_000, "large": 4_000_000}


@pk.workunit
def forget(i, colour: pk.View1D[pk.int32]):
    colour[i] = -1


@pk.workunit
def wins(i, win: pk.View1D[pk.int32], colour, priority, start, to):
    """Local maxima among those without colour."""
    win[i] = 0
    if colour[i] < 0:
        ok: int = 1
        for k in range(start[i], start[i + 1]):
            j: int = to[k]
            if colour[j] < 0 and (
                priority[j] > priority[i] or (priority[j] == priority[i] and j > i)
            ):
                ok = 0
        win[i] = ok


@pk.workunit
def choose(i, pick: pk.View1D[pk.int32], win, colour, start, to):
    pick[i] = colour[i]
    if win[i] == 1:
        used: int = 0
        for k in range(start[i], start[i + 1]):
            c: int = colour[to[k]]
            if c >= 0:
                used = used | (1 << c)
        free: int = 0
        while (used >> free) & 1 == 1:
            free += 1
        pick[i] = free


@pk.workunit
def commit(i, colour, pick):
    colour[i] = pick[i]


@pk.workunit
def waiting(i, acc: pk.Acc[pk.int64], colour):
    if colour[i] < 0:
        acc += 1


@pk.workunit
def members(i, acc: pk.Acc[pk.int64], colour, c: int):
    if colour[i] == c:
        acc += 1


@dataclass
class State:
    n: int
    start: pk.View
    to: pk.View
    priority: pk.View
    colour: pk.View
    rounds: int = 0
    histogram: list = None


def setup(n):
    start, to, priority = graph(n)
    views = [pk.View([len(a)], pk.int32) for a in (start, to, priority)]
    for view, a in zip(views, (start, to, priority)):
        view.data[:] = a
    return State(n, *views, pk.View([n], pk.int32))


def run(s):
    n = s.n
    win, pick = pk.View([n], pk.int32), pk.View([n], pk.int32)
    pk.parallel_for(n, forget, colour=s.colour)
    s.rounds, left = 0, n
    while left > 0:
        pk.parallel_for(
            n, wins, win=win, colour=s.colour, priority=s.priority, start=s.start, to=s.to
        )
        pk.parallel_for(n, choose, pick=pick, win=win, colour=s.colour, start=s.start, to=s.to)
        pk.parallel_for(n, commit, colour=s.colour, pick=pick)
        left = int(pk.parallel_reduce(n, waiting, colour=s.colour))
        s.rounds += 1
    sums = [pk.parallel_reduce(n, members, colour=s.colour, c=c) for c in range(8)]
    s.histogram = [int(v) for v in sums]


def outputs(s):
    return {
        "colour": np.array(s.colour.data),
        "h": np.array(s.histogram),
        "rounds": float(s.rounds),
    }


def check(s, size, runs):
    colour, start, to = s.colour.data, s.start.data, s.to.data
    assert not np.any(np.repeat(colour, np.diff(start)) == colour[to])


if __name__ == "__main__":
    main(globals())
