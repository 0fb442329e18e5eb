"""Loops that walk one array with two steps: what g++ 12.2 made no-ops of, without a word."""

from __future__ import annotations

import numpy as np
import pykokkos as pk
import pytest

import pyfuser


@pk.workunit
def back_to_front(i, x):
    x[2 + i] = x[110 - i]


@pk.workunit
def front_to_back(i, x):
    x[40 - i] = x[60 + i]


@pk.workunit
def slow_to_fast(i, x):
    x[2 + 2 * i] = x[60 + i]


@pk.workunit
def fast_to_slow(i, x):
    x[40 - i] = x[110 - 2 * i]


@pk.workunit
def there_and_back(i, x):
    x[2 + 3 * i] = x[110 - 3 * i]


@pk.workunit
def back_by_pairs(i, x):
    x[2 + 2 * i] = x[110 - 2 * i]


STEPS = {
    back_to_front: (2, 1, 110, -1),
    front_to_back: (40, -1, 60, 1),
    slow_to_fast: (2, 2, 60, 1),
    fast_to_slow: (40, -1, 110, -2),
    there_and_back: (2, 3, 110, -3),
    back_by_pairs: (2, 2, 110, -2),
}
N = 5


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "complex64", "complex128"])
def test_every_store_happens(dtype: str) -> None:
    values = np.arange(1, 131).astype(dtype)
    for workunit, (first, step, source, source_step) in STEPS.items():
        found, expected = values.copy(), values.copy()
        expected[[first + step * i for i in range(N)]] = values[
            [source + source_step * i for i in range(N)]
        ]
        pk.parallel_for(N, workunit, x=found)
        assert np.array_equal(found, expected), workunit.__name__


@pk.workunit
def fill_row(i: int, x: pk.View2D[pk.double], row: pk.View2D[pk.double]) -> None:
    for j in range(8):
        row[i][j] = 2 * x[i][j]


@pk.workunit
def fold_row(i: int, y: pk.View2D[pk.double], row: pk.View2D[pk.double]) -> None:
    for j in range(8):
        y[i][j] = row[i][j] - row[i][7 - j]


def test_local_arrays_count_too() -> None:
    """A contracted row is memory of the kernel's own."""
    x = np.arange(40.0).reshape(5, 8) ** 2
    y = np.zeros_like(x)
    with pyfuser.fusing():
        row = pk.View([5, 8], pk.double)
        pk.parallel_for(5, fill_row, x=x, row=row)
        pk.parallel_for(5, fold_row, y=y, row=row)
        del row
    assert len(pyfuser.explain().groups) == 1
    assert np.array_equal(y, 2 * x - 2 * x[:, ::-1])
