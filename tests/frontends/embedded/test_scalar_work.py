"""Arithmetic on results outside of captured steps: recorded where much is pending, else read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.frontends import scalar_work
from pyfuser.trace.future import Future

LARGE = scalar_work.LARGE // 8  # doubles
SMALL = LARGE // 64


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]):
    acc += x[i]


@pk.workunit
def product(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double], y: pk.View1D[pk.double]):
    acc += x[i] * y[i]


@pk.workunit
def count(i: int, acc: pk.Acc[pk.int64], x: pk.View1D[pk.double]):
    if x[i] > 0.5:
        acc += 1


@pk.workunit
def centre(i: int, y: pk.View1D[pk.double], x: pk.View1D[pk.double], mean: float):
    y[i] = x[i] - mean


def numbers(n: int) -> Any:
    return np.random.default_rng(n).random(n)


def moments(n: int, x: Any, y: Any) -> tuple[Any, ...]:
    mean = pk.parallel_reduce(n, total, x=x) / n
    pk.parallel_for(n, centre, y=y, x=x, mean=mean)
    variance = pk.parallel_reduce(n, product, x=y, y=y) / (n - 1)
    both = 2.0 * pk.parallel_reduce(n, product, x=x, y=y) / n - mean
    return mean, variance, both, -both + variance / mean


@pytest.mark.parametrize("n", [SMALL, LARGE])
def test_recorded_values_are_those_of_python(n: int) -> None:
    x, y, z = numbers(n), np.zeros(n), np.zeros(n)
    with pyfuser.unfused():
        wanted = moments(n, x, y)
    with pyfuser.fusing():
        found = moments(n, x, z)
        kinds = {type(each) for each in found}
    assert kinds == ({Future} if n == LARGE else {float})
    assert [float(each) for each in found] == [float(each) for each in wanted]
    assert np.array_equal(y, z)


def test_sums_that_are_divided_share_a_kernel() -> None:
    x, y = numbers(LARGE), numbers(LARGE)
    with pyfuser.fusing():
        pairs = [(x, x), (x, y), (y, y)]
        before = pyfuser.stats().flushes
        found = [pk.parallel_reduce(LARGE, product, x=a, y=b) / LARGE for a, b in pairs]
        assert pyfuser.stats().flushes == before
        values = [float(each) for each in found]
        assert pyfuser.stats().flushes == before + 1
    np.testing.assert_allclose(values, [a @ b / LARGE for a, b in pairs], rtol=1e-12)


@pytest.mark.parametrize(
    "operation",
    [lambda f: f**0.5, math.sqrt, lambda f: f > 1.0, lambda f: f // 2.0, lambda f: f + 2j],
)
def test_what_c_may_compute_otherwise_is_read(operation: Any) -> None:
    x = numbers(LARGE)
    with pyfuser.fusing():
        found = operation(pk.parallel_reduce(LARGE, total, x=x))
        assert type(found) in (float, bool, complex)
        assert type(pk.parallel_reduce(LARGE, count, x=x) / 2) is float


def test_a_division_by_zero_raises() -> None:
    x = np.zeros(LARGE)
    with pyfuser.fusing():
        with pytest.raises(ZeroDivisionError):
            pk.parallel_reduce(LARGE, total, x=x) / 0.0
        late = 1.0 / pk.parallel_reduce(LARGE, total, x=x)
        with pytest.raises(ZeroDivisionError):
            float(late)
