"""Programs whose sizes change all the time plan rarely, and compute the same."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

import pyfuser
from pyfuser import driver, patience
from pyfuser.counters import COUNTERS
from pyfuser.errors import KernelError
from pyfuser.frontends.embedded import pykokkos as pk


@pyfuser.fuse
@pk.workunit
def double(i, x, y):
    y[i] = 2.0 * x[i]


@pyfuser.fuse
@pk.workunit
def shift(i, x, y, first):
    y[first + i] += x[i] + 1.0


@pyfuser.fuse
@pk.workunit
def total(i, acc, y):
    acc += y[i]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    pyfuser.sync()
    monkeypatch.setattr(patience, "AT_ONCE", 3)
    for name in ("PROGRAMS", "WAITING"):
        monkeypatch.setattr(driver, name, OrderedDict())
    monkeypatch.setattr(patience, "FAMILIES", OrderedDict())


def step(n: int, first: int = 0) -> float:
    x, y = pk.View([n + 9]), pk.View([n + 9])
    x.fill(1.0)
    pk.parallel_for(n, double, x=x, y=y)
    pk.parallel_for(n, shift, x=x, y=y, first=first)
    return float(pk.parallel_reduce(n + 9, total, y=y))


def plans() -> int:
    return COUNTERS.plans


def test_sizes_that_change_are_planned_a_few_times(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(patience.Family, "pays", lambda self, launches: False)
    before = plans()
    for n in range(10, 60):
        for first in (0, n % 7):
            assert step(n, first) == 4.0 * n
    assert plans() - before == 3
    text = str(pyfuser.explain())
    assert "their sizes are new again" in text


def test_a_size_that_stays_is_planned_in_the_end():
    for n in range(10, 14):
        step(n)
    before, launches = plans(), COUNTERS.launches
    step(99)
    alone = COUNTERS.launches - launches
    waiting = len(driver.WAITING)
    family = next(iter(patience.FAMILIES.values()))
    family.seconds = 0.0
    assert step(99) == 4.0 * 99
    assert plans() == before + 1 and waiting - len(driver.WAITING) == 1
    launches = COUNTERS.launches
    assert step(99) == 4.0 * 99
    assert plans() == before + 1 and COUNTERS.launches - launches < alone


def test_sizes_that_come_back_need_no_patience():
    before = plans()
    for n in (10, 11, 12) * 9:
        assert step(n) == 4.0 * n
    assert plans() - before == 3 and not driver.WAITING


def test_futures_and_aliases_without_a_plan():
    for n in range(10, 20):
        x = np.arange(float(n))
        expected = 2.0 * x
        pk.parallel_for(n, double, x=x, y=x)
        norm = pk.parallel_reduce(n, total, y=x)
        pk.parallel_for(1, shift, x=x[1:], y=x, first=0)
        expected[0] += expected[1] + 1.0
        again = pk.parallel_reduce(n, total, y=x)
        assert norm == n * (n - 1) and again == expected.sum()
        assert np.array_equal(x, expected)


def test_tables_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(driver, "MAX_PROGRAMS", 5)
    monkeypatch.setattr(patience, "MAX_CALLS", 6)
    monkeypatch.setattr(patience, "ALONE", OrderedDict())
    for n in range(10, 40):
        assert step(n) == 4.0 * n
    assert len(driver.WAITING) <= 5 and len(patience.ALONE) <= 6


def test_a_kernel_that_the_compiler_rejects(monkeypatch: pytest.MonkeyPatch):
    for n in range(10, 14):
        step(n)

    def reject(kernels):
        raise KernelError("rejected")

    y = pk.View([7])
    with monkeypatch.context() as patched:
        patched.setattr(patience.native, "prepare", reject)
        pk.parallel_for(7, double, x=y, y=y)
        pk.parallel_for(5, shift, x=y, y=y, first=0)
        with pytest.raises(KernelError):
            float(pk.parallel_reduce(7, total, y=y))
    pyfuser.discard()
