"""Sizes that change from step to step: a plan holds for the sizes it was proved for."""

from __future__ import annotations

import itertools

import numpy as np
import pykokkos as pk
import pytest
from numpy.testing import assert_array_equal

import pyfuser
from pyfuser.support.counters import COUNTERS
from tests.soundness.plans import groups

GROWING = (0, 1, 2, 7, 8, 9, 10, 15)
ORDERS = {"growing": GROWING, "shrinking": GROWING[::-1], "mixed": (9, 8, 0, 10, 1, 8, 9)}


@pk.workunit
def put(i, x, v):
    x[i] = v + i


@pk.workunit
def copy(i, x, y):
    y[i] = 2.0 * x[i]


@pk.workunit
def copy_from(i, x, y, k):
    y[i] = x[i + k]


@pk.workunit
def put_row(i, x, v):
    for j in range(x.extent(1)):
        x[i][j] = v + i + j


@pk.workunit
def add_rows(i, x, y, m):
    for j in range(m):
        y[i] += x[i][j]


@pytest.mark.parametrize("sizes", ORDERS.values(), ids=ORDERS)
def test_a_range_that_grows_into_what_is_read(sizes):
    for n in sizes:
        x, y = np.zeros(32), np.zeros(32)
        with pyfuser.fusing():
            pk.parallel_for(n, put, x=x, v=1.0)
            pk.parallel_for(n, copy_from, x=x, y=y, k=8)
        together = groups() == ["put+copy_from"]
        assert together if 0 < n <= 8 else not (together and n), n
        expected = np.zeros(32)
        expected[:n] = 1.0 + np.arange(n)
        assert_array_equal(x, expected)
        assert_array_equal(y[:n], expected[8 : 8 + n])
        assert not y[n:].any()


@pytest.mark.parametrize("sizes", ORDERS.values(), ids=ORDERS)
def test_slices_that_grow_into_each_other(sizes):
    for n in sizes:
        base, y = np.zeros(32), np.zeros(32)
        low, high = base[0:n], base[8 : 8 + n]
        with pyfuser.fusing():
            pk.parallel_for(n, put, x=low, v=1.0)
            pk.parallel_for(n, put, x=high, v=100.0)
            pk.parallel_for(n, copy, x=low, y=y)
        if n:
            assert ("put+put+copy" in groups()) == (n <= 8), (n, groups())
        expected = np.zeros(32)
        expected[:n] = 1.0 + np.arange(n)
        expected[8 : 8 + n] = 100.0 + np.arange(n)
        assert_array_equal(base, expected)
        assert_array_equal(y[:n], 2.0 * expected[:n])


@pytest.mark.parametrize("sizes", ORDERS.values(), ids=ORDERS)
def test_a_temporary_that_is_not_covered_any_more(sizes):
    for n, m in itertools.product(sizes, (4, 9)):
        y = np.full(16, -1.0)
        with pyfuser.fusing():
            t = pk.View([16], pk.double)
            pk.parallel_for(n, put, x=t, v=1.0)
            pk.parallel_for(m, copy, x=t, y=y)
            del t
        assert_array_equal(y[:m], [2.0 * (1 + i) if i < n else 0.0 for i in range(m)])
        assert (y[m:] == -1).all()


@pytest.mark.parametrize("sizes", [(3, 4, 5), (5, 4, 3), (1, 20, 0, 3)])
def test_rows_of_changing_length(sizes):
    n = 6
    for m in sizes:
        y = np.zeros(n)
        with pyfuser.fusing():
            t = pk.View([n, m], pk.double)
            pk.parallel_for(n, put_row, x=t, v=1.0)
            pk.parallel_for(n, add_rows, x=t, y=y, m=m)
            del t
        i, j = np.arange(n)[:, None], np.arange(m)[None, :]
        assert_array_equal(y, (1.0 + i + j).sum(axis=1))


def test_new_sizes_compile_nothing():
    def step(n: int) -> None:
        x, y = np.zeros(n), np.zeros(n)
        with pyfuser.fusing():
            pk.parallel_for(n, put, x=x, v=3.0)
            pk.parallel_for(n, copy, x=x, y=y)
        assert_array_equal(y, 2.0 * (3.0 + np.arange(n)))

    step(10)
    step(11)
    compiled, hits = COUNTERS.compilations, COUNTERS.cache_hits
    for n in (1, 12, 1000, 70_000):
        step(n)
    assert (COUNTERS.compilations, COUNTERS.cache_hits) == (compiled, hits)
