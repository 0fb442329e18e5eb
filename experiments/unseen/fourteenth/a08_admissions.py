"""Admissions by deferred acceptance (Gale and Shapley): all who have no place apply at once.

An applicant has a short list of schools, a school keeps the best by an atomic minimum, and the host
reads after each round how many must apply again.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 400, "default": 12_000, "large": 1_200_000}
WISHES, NOBODY = 8, 2_000_000_000


@pk.workunit
def empty_school(c: int, best: pk.View1D[pk.int32], nobody: int):
    best[c] = nobody


@pk.workunit
def first_wish(a: int, wish: pk.View1D[pk.int32], held: pk.View1D[pk.uint8]):
    wish[a] = 0
    held[a] = 0


@pk.workunit
def apply_now(
    a: int,
    best: pk.View1D[pk.int32],
    held: pk.View1D[pk.uint8],
    wish: pk.View1D[pk.int32],
    school: pk.View2D[pk.int32],
    mark: pk.View2D[pk.int32],
    wishes: int,
):
    if held[a] == 0 and wish[a] < wishes:
        pk.atomic_min(best, [school[a][wish[a]]], mark[a][wish[a]])


@pk.workunit
def answer(
    a: int,
    held: pk.View1D[pk.uint8],
    best: pk.View1D[pk.int32],
    wish: pk.View1D[pk.int32],
    school: pk.View2D[pk.int32],
    mark: pk.View2D[pk.int32],
    wishes: int,
):
    held[a] = 0
    if wish[a] < wishes:
        if best[school[a][wish[a]]] == mark[a][wish[a]]:
            held[a] = 1


@pk.workunit
def next_wish(a: int, wish: pk.View1D[pk.int32], held: pk.View1D[pk.uint8], wishes: int):
    if held[a] == 0 and wish[a] < wishes:
        wish[a] += 1


@pk.workunit
def waiting(
    a: int,
    acc: pk.Acc[pk.int64],
    held: pk.View1D[pk.uint8],
    wish: pk.View1D[pk.int32],
    wishes: int,
):
    if held[a] == 0 and wish[a] < wishes:
        acc += 1


@pk.workunit
def admit(
    a: int,
    place: pk.View1D[pk.int32],
    held: pk.View1D[pk.uint8],
    wish: pk.View1D[pk.int32],
    school: pk.View2D[pk.int32],
):
    place[a] = -1
    if held[a] == 1:
        place[a] = school[a][wish[a]]


@pk.workunit
def clear(k: int, tally: pk.View1D[pk.int64]):
    tally[k] = 0


@pk.workunit
def count_wish(a: int, tally: pk.View1D[pk.int64], wish: pk.View1D[pk.int32]):
    pk.atomic_add(tally, [wish[a]], 1)


@dataclass
class State:
    n: int
    school: pk.View
    mark: pk.View
    place: pk.View
    tally: pk.View
    queue: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(1408)
    school, mark = pk.View([n, WISHES], pk.int32), pk.View([n, WISHES], pk.int32)
    place, tally = pk.View([n], pk.int32), pk.View([WISHES + 1], pk.int64)
    steps = np.cumsum(rng.integers(1, 90, (n, WISHES), np.int32), 1)
    school.data[:] = (np.arange(n)[:, None] + rng.permuted(steps, axis=1)) % n
    mark.data[:] = rng.permutation(n * WISHES).reshape(n, WISHES)
    return State(n, school, mark, place, tally)


def run(s: State) -> None:
    n, lists = s.n, {"school": s.school, "mark": s.mark, "wishes": WISHES}
    best, wish, held = pk.View([n], pk.int32), pk.View([n], pk.int32), pk.View([n], pk.uint8)
    pk.parallel_for(n, empty_school, best=best, nobody=NOBODY)
    pk.parallel_for(n, first_wish, wish=wish, held=held)
    s.queue = []
    left = n
    while left > 0 and len(s.queue) < 200:
        pk.parallel_for(n, apply_now, best=best, held=held, wish=wish, **lists)
        pk.parallel_for(n, answer, held=held, best=best, wish=wish, **lists)
        pk.parallel_for(n, next_wish, wish=wish, held=held, wishes=WISHES)
        left = int(pk.parallel_reduce(n, waiting, held=held, wish=wish, wishes=WISHES))
        s.queue.append(left)
    pk.parallel_for(n, admit, place=s.place, held=held, wish=wish, school=s.school)
    pk.parallel_for(WISHES + 1, clear, tally=s.tally)
    pk.parallel_for(n, count_wish, tally=s.tally, wish=wish)


def outputs(s: State) -> dict:
    return {
        "place": np.array(s.place.data),
        "tally": np.array(s.tally.data),
        "queue": np.array(s.queue),
    }


def check(s: State, n: int) -> None:
    school, mark = np.array(s.school.data), np.array(s.mark.data)
    holder, place, wish, free = {}, np.full(n, -1), np.zeros(n, int), list(range(n))
    while free:
        a = free.pop()
        if wish[a] == WISHES:
            continue
        c, m = school[a][wish[a]], mark[a][wish[a]]
        if c not in holder or m < holder[c][0]:
            if c in holder:
                loser = holder[c][1]
                place[loser] = -1
                wish[loser] += 1
                free.append(loser)
            holder[c] = (m, a)
            place[a] = c
        else:
            wish[a] += 1
            free.append(a)
    np.testing.assert_array_equal(s.place.data, place)
    np.testing.assert_array_equal(s.tally.data, np.bincount(wish, minlength=WISHES + 1))
    assert s.queue[-1] == 0


if __name__ == "__main__":
    main(globals())
