"""Divisors that the call itself writes: an iteration divides by its own element before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyfuser
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.frontends.embedded.decorators import WorkunitState
from pyfuser.support.errors import DivisionError


@pk.workunit
def in_place(i, k, q):
    k[i] = 7 // k[i]


@pk.workunit
def remainder(i, k, q):
    k[i] = q[i] % k[i]


@pk.workunit
def by_a_local(i, k, q):
    t = k[i]
    q[i] = 7 // t
    k[i] = 2


@pk.workunit
def written_on_some_way_later(i, k, q):
    q[i] = 7 // k[i]
    if q[i] > 3:
        k[i] = 2


@pk.workunit
def written_before(i, k, q):
    k[i] = 2
    q[i] = 7 // k[i]


@pk.workunit
def written_before_if_zero(i, k, q):
    if k[i] == 0:
        k[i] = 1
    k[i] = 7 // k[i]


@pk.workunit
def written_by_another(i, k, q):
    q[i] = 7 // k[i + 4]
    k[i] = 2


@pk.workunit
def guarded(i, k, q):
    if k[i] != 0:
        k[i] = 7 // k[i]


@pk.workunit
def in_a_loop(i, k, q):
    for j in range(2):
        k[i] = j + 1
        q[i] = 7 // k[i]


@pk.workunit
def of_both_axes(i, j, k, q):
    k[i] = 7 // k[i]


def launch(work: Any, k: Any, policy: Any = 4) -> None:
    work.__pyfuser__ = WorkunitState(work.__pyfuser__.function, {}, False)
    with pyfuser.unfused():
        pk.parallel_for(policy, work, k=k, q=np.zeros(8, dtype=np.int32))


@pytest.mark.parametrize("work", [in_place, remainder, by_a_local, written_on_some_way_later])
def test_a_zero_is_told_of_before_it_is_overwritten(work: Any) -> None:
    k = np.array([1, 2, 0, 4, 0, 0, 0, 0], dtype=np.int32)
    with pytest.raises(DivisionError, match=r"k\[2\], which is 0"):
        launch(work, k)
    assert list(k[:4]) == [1, 2, 0, 4]
    k[2] = 3
    launch(work, k)


@pytest.mark.parametrize("work", [written_before, written_before_if_zero, guarded, in_a_loop])
def test_nothing_is_said_where_it_is_written_first(work: Any) -> None:
    launch(work, np.zeros(8, dtype=np.int32))


@pytest.mark.filterwarnings("ignore")
def test_nothing_is_said_where_others_may_write_it_first() -> None:
    k = np.array([1, 1, 1, 1, 0, 0, 0, 0], dtype=np.int32)
    launch(written_by_another, k, 4)
    launch(of_both_axes, np.zeros(8, dtype=np.int32), pk.MDRangePolicy([0, 0], [4, 2]))
