"""Random loops that read sums one after another, disturbed in between, against NumPy.

`python -m tests.test_following_random 0 100` tries these seeds. All values are integers.
"""

from __future__ import annotations

import random
import sys
from contextlib import nullcontext
from typing import Any

import pytest

import pyfuser
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.runtime.session import SESSION
from pyfuser.support.counters import COUNTERS
from pyfuser.tuning.thresholds import tuned
from tests.sessions import compiled_late, fresh
from tests.test_postpone_random import CREDITS, DISTURBANCES, N, World, at_once, plan_of


@pk.workunit
def shifted(i, acc: pk.Acc[pk.int64], x, k: int):
    acc += x[i] + k


@pk.workunit
def shared(i, acc: pk.Acc[pk.int64], x, z):
    acc += x[i] & z[i]


@pk.workunit
def inside_total(i, acc: pk.Acc[pk.int64], x, k: int):
    if i < k:
        acc += x[i]


@pk.workunit
def taken(i, y, x):
    y[i] = x[i]


class Sums(World):
    """A world whose steps end with sums, each of which is read before the next one is called."""

    def sums(self, plan: list[tuple[str, int, int, int]], a: int, disturbed: float) -> None:
        for what, y, x, k in plan:
            mine, other = self.arrays[y], self.arrays[x]
            to, source = self.values[y], self.values[x]
            found: Any = None
            if what in ("parts", "fresh"):
                self._parts(what, y, a, k, disturbed / 4)
            if what == "shifted":
                found = pk.parallel_reduce(N, shifted, x=mine, k=k), int(to.sum()) + N * k
            elif what == "step":
                found = pk.parallel_reduce(N, shifted, x=mine, k=a), int(to.sum()) + N * a
            elif what == "shared":
                found = pk.parallel_reduce(N, shared, x=mine, z=other), int((to & source).sum())
            elif what == "first":
                found = (
                    pk.parallel_reduce(N - 2, inside_total, x=mine[2:], k=k),
                    int(to[2 : 2 + k].sum()),
                )
            elif what == "some" and a % 4:  # not each time
                found = (
                    pk.parallel_reduce(pk.RangePolicy(0, k), shifted, x=mine, k=1),
                    int(to[:k].sum()) + k,
                )
            if found is not None:
                assert int(found[0]) == found[1], (what, y, x, k)
            if self.rng.random() < disturbed:
                self.disturb()

    def _parts(self, what: str, y: int, a: int, k: int, disturbed: float) -> None:
        """Sums of parts that move on, of an array or of a new one, now and then of another size."""
        size = N - 3 * (what == "fresh" and a == 5)
        mine, values = pk.View([size], pk.int64), self.values[y].copy()
        pk.parallel_for(size, taken, y=mine, x=self.arrays[y])
        for n in range(0, size - 2, k):
            if what == "parts":
                mine, values = self.arrays[y], self.values[y]
            found = int(pk.parallel_reduce(2, shifted, x=mine[n : n + 2], k=1))
            assert found == 2 + sum(values[n : n + 2].tolist()), (what, y, k, n)
            if self.rng.random() < disturbed:
                self.disturb()


KINDS = ("shifted", "shifted", "step", "shared", "shared", "first", "some", "parts", "fresh")


def run(seed: int) -> int:
    """Run a random program; how many sums had run early. Raises AssertionError if it is wrong."""
    rng = random.Random(seed)
    before = COUNTERS.early
    compiling = compiled_late(random.Random(seed)) if seed % 3 else nullcontext()
    credits = tuned(long=0.0, trial_kernel=0.0, **CREDITS)
    with compiling, at_once() if seed % 2 else fresh(), credits:
        SESSION.budget.forget()
        world = Sums(rng)
        count = len(world.arrays)
        plan = plan_of(rng, count)
        sums = [
            (rng.choice(KINDS), rng.randrange(count), rng.randrange(count), rng.randint(1, 5))
            for _ in range(rng.randint(2, 7))
        ]
        disturbed = rng.choice([0.0, 0.03, 0.1])
        for n in range(rng.randint(12, 30)):
            with pyfuser.fusing():
                world.step(plan, n % 8)
                world.sums(sums, n % 8, disturbed)
            if rng.random() < 0.05:
                rng.choice(DISTURBANCES)(world, 0, 1)
        world.check()
        pyfuser.sync()
    SESSION.budget.forget()
    return COUNTERS.early - before


@pytest.mark.parametrize("seed", range(12))
def test_random_sums(seed: int) -> None:
    run(seed)


if __name__ == "__main__":
    first, last = map(int, sys.argv[1:])
    early = 0
    for number in range(first, last):
        try:
            early += run(number)
        except Exception:
            print(f"seed {number}", flush=True)
            raise
    print(f"{last - first} programs, {early} sums had run early; none is wrong")
