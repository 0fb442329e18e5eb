"""Extents that workunits ask for, in calls whose sizes change: the code of one is not another's."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.support.counters import COUNTERS


@pk.workunit
def up_to_its_end(i, y, x, k):
    if i + k < x.extent(0):
        y[i] = x[i + k]


@pk.workunit
def backwards(i, y, x, k):
    y[i] += x[x.extent(0) - 1 - i] + k


@pk.workunit
def around(i, y, x, k):
    n: int = x.extent(0)
    y[i] += x[(i + k) % n]


@pk.workunit
def counted(i, y, x, k):
    for j in range(x.extent(0) - k):
        y[i] += x[j]


@pk.workunit
def taken(i, y, x, k):
    at: int = pk.atomic_fetch_add(k, [0], 1)
    if at < y.extent(0):
        y[at] = x[i]


@pk.workunit
def put(i, y, k):
    y[i] = i + k


@pk.workunit
def mirrored(i, z, y, x):
    z[i] = y[x.extent(0) - 1 - i]


UNITS = [up_to_its_end, backwards, around, counted]


def reference(unit, n: int, y: np.ndarray, x: np.ndarray, k: int) -> None:
    for i in range(n):
        if unit is up_to_its_end:
            if i + k < x.size:
                y[i] = x[i + k]
        elif unit is backwards:
            y[i] += x[x.size - 1 - i] + k
        elif unit is around:
            y[i] += x[(i + k) % x.size]
        else:
            y[i] += sum(x[: max(x.size - k, 0)].tolist())


@pytest.fixture(params=["unfused", "fused", "apart"])
def running(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param != "apart":
        monkeypatch.setattr("pyfuser.runtime.budget._applies", lambda calls: False)
    yield request.param


@pytest.mark.parametrize("seed", range(6))
def test_random_extents(running: str, seed: int) -> None:
    rng = random.Random(seed)
    sizes = rng.sample(range(6, 15), 4)
    for _ in range(40):
        size = rng.choice(sizes)
        x, y = pk.View([size], pk.int64), pk.View([14], pk.int64)
        x[:] = np.array([rng.randrange(1000) for _ in range(size)])
        y.fill(3)
        expected = np.full(14, 3)
        n = rng.randint(1, size)
        chosen = [rng.choice(UNITS) for _ in range(2)]
        ks = [rng.randrange(0, 5) for _ in chosen]
        with pyfuser.unfused() if running == "unfused" else pyfuser.fusing():
            for unit, k in zip(chosen, ks, strict=True):
                pk.parallel_for(n, unit, y=y, x=x, k=k)
        for unit, k in zip(chosen, ks, strict=True):
            reference(unit, n, expected, np.array(x), k)
        np.testing.assert_array_equal(y, expected)


def test_plans_are_of_these_extents(running: str) -> None:
    """Calls that share a loop where one reads far behind what the other writes, and not nearer."""
    y, z = pk.View([16], pk.int64), pk.View([8], pk.int64)
    for k, size in enumerate([16, 15, 16, 14, 9, 12, 10, 8, 16, 9, 11]):
        n = min(8, size) - k % 2
        y.fill(-1)
        x = pk.View([size], pk.int64)
        with pyfuser.unfused() if running == "unfused" else pyfuser.fusing():
            pk.parallel_for(n, put, y=y, k=k)
            pk.parallel_for(n, mirrored, z=z, y=y, x=x)
        filled = np.where(np.arange(16) < n, np.arange(16) + k, -1)
        np.testing.assert_array_equal(np.array(z)[:n], filled[size - n : size][::-1])


def test_lists_of_changing_length_that_end_at_an_extent(running: str) -> None:
    """Slots are taken by an atomic counter, and what finds none is left out."""
    for n, room in [(9, 20), (11, 20), (10, 4), (12, 4), (8, 20), (7, 3), (13, 20), (9, 4), (6, 9)]:
        x, y, count = pk.View([14], pk.int64), pk.View([room], pk.int64), pk.View([1], pk.int64)
        x[:] = np.arange(14) + 1
        with pyfuser.unfused() if running == "unfused" else pyfuser.fusing():
            pk.parallel_for(n, taken, y=y, x=x, k=count)
        assert count[0] == n
        found = np.array(y)
        assert np.count_nonzero(found) == min(n, room)
        assert set(found[found > 0]) <= set(range(1, n + 1))


def test_the_code_of_equal_extents_is_shared() -> None:
    x, y = pk.View([100], pk.double), pk.View([100], pk.double)
    x.fill(1.0)
    with pyfuser.unfused():
        before = COUNTERS.compilations + COUNTERS.cache_hits
        for n in range(20, 60):
            pk.parallel_for(n, up_to_its_end, y=y, x=x, k=n)
    assert COUNTERS.compilations + COUNTERS.cache_hits - before <= 3
