"""Calls that run alone and differ in integers share their code; mistakes are found in each."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.runtime import eager
from pyfuser.runtime.session import SESSION


@pk.workunit
def shifted(i, y, x, k):
    y[i] = x[i + k]


@pk.workunit
def update(i, j, a, k):
    a[i][j] -= a[i][k] * a[k][j]


@pk.workunit
def short(i, y, x, k):
    for j in range(k):
        y[i] += x[i + j]


@pk.workunit
def wide(i, y, x, k):
    y[i] = i + k + x[k % 4]


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the workunits whose code was looked for."""
    SESSION.clear()
    looked: list[str] = []
    prepare = eager.prepare_one

    def noted(kernel):
        looked.append(kernel.workunit.name)
        return prepare(kernel)

    monkeypatch.setattr(eager, "prepare_one", noted)
    yield looked
    SESSION.clear()


def test_ranges_and_subscripts_that_change_share_code(counted: list[str]) -> None:
    n = 60
    x, y = pk.View([2 * n], pk.double), pk.View([n], pk.double)
    x.data[:] = np.arange(2.0 * n)
    with pyfuser.unfused():
        for k in range(n):
            pk.parallel_for(pk.RangePolicy(k // 2, n), shifted, y=y, x=x, k=k)
            np.testing.assert_array_equal(y.data[k // 2 :], x.data[k + k // 2 : k + n])
    assert counted == ["shifted"]


def test_boxes_that_shrink_share_code_for_sizes_that_are_alike(counted: list[str]) -> None:
    n = 40
    given = 0.1 * np.random.default_rng(4).random((n, n))
    a, expected = pk.View([n, n], pk.double), given.copy()
    a.data[:] = given
    with pyfuser.unfused():
        for k in range(n - 1):
            pk.parallel_for(pk.MDRangePolicy([k + 1, k + 1], [n, n]), update, a=a, k=k)
            expected[k + 1 :, k + 1 :] -= np.outer(expected[k + 1 :, k], expected[k, k + 1 :])
    np.testing.assert_array_equal(a.data, expected)
    assert len(counted) == (n - 1).bit_length()


@pytest.mark.parametrize("overlapping", [False, True])
def test_other_memory_has_other_code(overlapping: bool, counted: list[str]) -> None:
    """Strides and overlaps are a part of the key."""
    n = 20
    x = np.arange(100.0)
    with pyfuser.unfused():
        pk.parallel_for(n, shifted, y=np.zeros(n), x=x, k=0)
        y = x[10 : 10 + n] if overlapping else x[60 : 60 + 2 * n : 2]
        pk.parallel_for(pk.RangePolicy(0, n), shifted, y=y, x=x[: 2 * n], k=15)
    assert len(counted) == 2
    if not overlapping:
        np.testing.assert_array_equal(x[60:100:2], np.arange(15.0, 35.0))


def test_loops_that_are_written_out_have_code_of_their_own(counted: list[str]) -> None:
    n = 30
    x = pk.View([2 * n], pk.double)
    x.data[:] = np.arange(2.0 * n)
    with pyfuser.unfused():
        for k in (2, 3, 40):
            y = pk.View([n], pk.double)
            pk.parallel_for(10, short, y=y, x=x, k=k)
            np.testing.assert_array_equal(y.data[:10], [sum(range(i, i + k)) for i in range(10)])
    assert len(counted) == 3


def test_an_index_that_leaves_its_view_is_an_error_however_late() -> None:
    n = 50
    x, y = pk.View([n], pk.double), pk.View([n], pk.double)
    with pyfuser.unfused():
        for k in range(40):
            pk.parallel_for(10, shifted, y=y, x=x, k=k)
        with pytest.raises(IndexError, match="runs from 41 to 50"):
            pk.parallel_for(10, shifted, y=y, x=x, k=41)


def warned(first: int, count: int) -> list[str]:
    x, y = pk.View([4], pk.int64), pk.View([4], pk.int64)
    with pyfuser.unfused(), warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for k in range(first, first + count):
            pk.parallel_for(4, wide, y=y, x=x, k=k)
        pk.parallel_for(4, wide, y=y, x=x, k=2**31 - 2)
    return [str(w.message) for w in found]


def test_warnings_are_of_the_first_shapes() -> None:
    """Of integers that overflow; where values never end, the later ones are not looked at."""
    assert warned(1, 3)
    SESSION.clear()
    assert not warned(1, eager.WARNED)
