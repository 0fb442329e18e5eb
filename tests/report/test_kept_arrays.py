"""Why arrays stayed in memory: a name held them, or another kernel reads them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pyfuser
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.report.model import Kept
from tests.vendors import tune

N = 1000


@pk.workunit
def scale(i, y, x):
    y[i] = 2.0 * x[i]


@pk.workunit
def costly(i, y, x):
    """Nothing that one would compute twice."""
    y[i] = math.tan(math.exp(math.tan(math.exp(math.tan(x[i])))))


@pk.workunit
def shift(i, z, y):
    z[i] = y[i] + 1.0


@pk.workunit
def summed(i, acc, y):
    acc += y[i]


@pk.workunit
def weighted(i, z, y, a):
    z[i] = a * y[i]


@pk.workunit
def turned(i, z, y):
    z[i] = y[999 - i] + 1.0


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, told_bytes=8 * N)


@pytest.fixture
def views() -> tuple[Any, Any]:
    """Two Views that hold values."""
    x, z = pk.View([N], pk.double), pk.View([N], pk.double)
    x.fill(1.5)
    z.fill(0.0)
    pyfuser.sync()
    assert np.asarray(z).sum() == 0.0
    return x, z


def kept() -> list[Kept]:
    return [array for group in pyfuser.explain().groups for array in group.kept]


def test_a_name_that_still_holds_it(views: tuple[Any, Any]) -> None:
    x, z = views
    y = pk.View([N], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(N, scale, y=y, x=x)
        pk.parallel_for(N, shift, z=z, y=y)
    assert kept() == [Kept("y", 8 * N)]
    assert "kept in memory: y (7.812 KiB)" in str(pyfuser.explain())


def test_a_view_that_was_filled_has_the_programs_name() -> None:
    """Not that of the parameter of what filled it."""
    large = 1 << 20  # smaller Views are filled at once
    with pyfuser.fusing():
        mine = pk.ones([large])
        total = pk.parallel_reduce(large, summed, y=mine)
    assert float(total) == large
    assert [found.name for found in kept()] == ["mine"]


def test_without_the_name_it_needs_none(views: tuple[Any, Any]) -> None:
    x, z = views

    def inner() -> None:
        y = pk.View([N], pk.double)
        pk.parallel_for(N, scale, y=y, x=x)
        pk.parallel_for(N, shift, z=z, y=y)

    with pyfuser.fusing():
        inner()
    assert kept() == []
    (group,) = pyfuser.explain().groups
    assert (group.contracted, group.bytes_avoided) == (("y",), 8 * N)


def test_small_arrays_are_not_worth_a_word(
    views: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    tune(monkeypatch, told_bytes=8 * N + 1)
    x, z = views
    y = pk.View([N], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(N, scale, y=y, x=x)
        pk.parallel_for(N, shift, z=z, y=y)
    assert kept() == []


def test_an_array_of_an_earlier_flush_may_carry_values(views: tuple[Any, Any]) -> None:
    x, z = views
    y = pk.View([N], pk.double)
    y.fill(0.0)
    pyfuser.sync()
    with pyfuser.fusing():
        pk.parallel_for(N, scale, y=y, x=x)
        pk.parallel_for(N, shift, z=z, y=y)
    assert kept() == []


def test_what_is_read_at_other_elements_is_needed(views: tuple[Any, Any]) -> None:
    """No name would have to go for that: its loop cannot do without the array."""
    x, z = views
    y = pk.View([N], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(N, scale, y=y, x=x)
        pk.parallel_for(N, turned, z=z, y=y)
    assert len(pyfuser.explain().groups) == 2
    assert kept() == []


@pytest.mark.parametrize("known", [True, False])
def test_another_kernel_that_reads_it(views: tuple[Any, Any], known: bool) -> None:
    """A loop that takes the sum of another as a number has to wait for it."""
    x, z = views

    def inner() -> None:
        y = pk.View([N], pk.double)
        pk.parallel_for(N, costly, y=y, x=x)
        total = pk.parallel_reduce(N, summed, y=y)
        pk.parallel_for(N, weighted, z=z, y=y, a=2.0 if known else total)

    with pyfuser.fusing():
        inner()
    found = kept()
    if known:
        assert found == []
    else:
        assert [(array.name, array.size) for array in found] == [("y", 8 * N)]
        assert found[0].reader is not None and found[0].reader.name == "weighted"


@pk.workunit
def gathered(i, z, y, order):
    t = 0.0
    for _ in range(order[i] % 2 + 1):  # so that nobody computes it again where it is read
        t = y[order[i]] + 1.0
    z[i] = t


@pytest.mark.parametrize("held", [None, 3, 0])
def test_arrays_at_once(monkeypatch: pytest.MonkeyPatch, held: int | None) -> None:
    """Seven steps need two or three arrays, as they do unfused, with one that somebody holds."""
    tune(monkeypatch, told_bytes=8 * N)
    x, order = pk.View([N], pk.double), pk.View([N], pk.int64)
    x[:], order[:] = 0.0, 0
    with pyfuser.fusing():
        u, kept = x, []
        for step in range(7):
            new = pk.View([N], pk.double)
            pk.parallel_for(N, gathered, z=new, y=u, order=order)
            u = new
            kept += [u] * (step == held)
        del new
        pyfuser.sync()
    report = pyfuser.explain()
    arrays = 2 if held is None else 3
    assert (report.bytes_at_once, report.bytes_at_once_unfused) == (arrays * 8 * N,) * 2
    assert "at once" not in str(report)


def test_arrays_that_are_never_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, told_bytes=8 * N)
    x = pk.View([N], pk.double)
    with pyfuser.fusing():
        t = pk.View([N], pk.double)
        pk.parallel_for(N, scale, y=t, x=x)
        pk.parallel_for(N, shift, z=x, y=t)
        del t
        pyfuser.sync()
    report = pyfuser.explain()
    assert (report.bytes_at_once, report.bytes_at_once_unfused) == (8 * N, 2 * 8 * N)  # x is new
    assert "new arrays take 7.812 KiB at once, unfused 15.62 KiB" in str(report)
