"""Calls over `[0, n * m)` that run over rows and columns on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.plan.rewrites.delinearize import Delinearized
from pyfuser.runtime.session import SESSION

N, M = 70, 65


@pk.workunit
def scaled(k, m, y, x):
    y[k // m][k % m] = x[k // m][k % m] * 1.1


@pk.workunit
def shifted(k, m, z, y):
    if k % m < m - 1:
        z[k // m][k % m] = y[k // m][k % m] + 0.5


@pk.workunit
def total(k, acc, m, z):
    acc += z[k // m][k % m] * 0.3


@pk.workunit
def of_pairs(i, j, y, x):
    y[i][j] += x[i][j]


@pytest.fixture
def values() -> Any:
    return np.random.default_rng(4).uniform(-1.0, 1.0, (N, M))


def views(values: Any, by_rows: bool, cupy: Any) -> list[Any]:
    """x with the values and two others; rows or columns are contiguous."""
    layout = pk.LayoutRight if by_rows else pk.LayoutLeft
    made = [pk.View([N, M], pk.double, layout=layout) for _ in range(3)]
    made[0][:, :] = values
    return made


@pytest.mark.parametrize("by_rows", [True, False])
def test_rows_and_columns(cupy: Any, values: Any, by_rows: bool) -> None:
    found = []
    for mode in (pyfuser.unfused, pyfuser.fusing):
        x, y, z = views(values, by_rows, cupy)
        pyfuser.sync()
        with mode():
            pk.parallel_for(N * M, scaled, m=M, y=y, x=x)
            pk.parallel_for(N * M, shifted, m=M, z=z, y=y)
            pk.parallel_for(pk.MDRangePolicy([0, 0], [N, M]), of_pairs, y=x, x=z)
            result = pk.parallel_reduce(N * M, total, m=M, z=x)
        found.append((float(result), *(np.array(view).tobytes() for view in (x, y, z))))
    assert found[0] == found[1], "sums have the bits of one axis"
    report = pyfuser.explain()
    assert report.launches == 1, "calls over pairs share the loop"
    (program,) = (p for p in SESSION.programs.values() if p.plan is report_plan())
    assert [note.call for note in program.plan.of(Delinearized)] == [0, 1, 3]
    source = program.launches[0].launchable.source
    assert "pf_walk<2>" in source, "the sum numbers iterations as one axis does"
    assert "/ m" not in source


def report_plan() -> Any:
    return SESSION.flushes[-1].program.plan


@pytest.mark.parametrize("by_rows", [True, False])
def test_neighbouring_threads_touch_neighbouring_memory(
    cupy: Any, values: Any, by_rows: bool
) -> None:
    x, y, z = views(values, by_rows, cupy)
    with pyfuser.fusing():
        pk.parallel_for(N * M, scaled, m=M, y=y, x=x)
        pk.parallel_for(N * M, shifted, m=M, z=z, y=y)
    (launch,) = SESSION.flushes[-1].program.launches
    assert launch.launchable.kernel.launch.order == ((0, 1) if by_rows else (1, 0))
    y_expected = values * 1.1
    assert np.array_equal(np.array(y), y_expected)
    assert np.array_equal(np.array(z)[:, : M - 1], y_expected[:, : M - 1] + 0.5)
    assert not np.array(z)[:, M - 1].any()


def test_narrow_tables_stay_flat(cupy: Any) -> None:
    """Blocks are boxes: most threads of a warp would have nothing to do."""
    x, y = (pk.View([N, 3], pk.double) for _ in range(2))
    x.fill(2.0)
    with pyfuser.fusing():
        pk.parallel_for(N * 3, scaled, m=3, y=y, x=x)
    assert not report_plan().of(Delinearized)
    assert np.array_equal(np.array(y), np.full((N, 3), 2.2))


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_sums_have_the_bits_of_one_axis(cupy: Any, seed: int) -> None:
    """Along the columns, which are contiguous, these sums would have others."""
    found = []
    for mode in (pyfuser.unfused, pyfuser.fusing):
        x, y, _ = views(np.random.default_rng(seed).uniform(-1.0, 1.0, (N, M)), False, cupy)
        pyfuser.sync()
        with mode():
            pk.parallel_for(N * M, scaled, m=M, y=y, x=x)
            result = pk.parallel_reduce(N * M, total, m=M, z=y)
        found.append(float(result))
    assert [note.call for note in report_plan().of(Delinearized)] == [0, 1]
    assert found[0] == found[1]
