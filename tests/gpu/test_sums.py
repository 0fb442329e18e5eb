"""Sums over several axes: their bits do not depend on what shares their loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser

N, M = 300, 170


@pk.workunit
def scaled(i, j, y, x):
    y[i][j] = x[i][j] * 1.1


@pk.workunit
def total(i, j, acc, y):
    acc += y[i][j]


@pk.workunit
def both(i, j, acc, x, y):
    acc += x[i][j] * y[i][j]


def box() -> Any:
    return pk.MDRangePolicy([0, 0], [N, M])


@pytest.fixture
def rows(cupy: Any) -> Any:
    """An array whose rows are contiguous; Views on a GPU have contiguous columns."""
    return cupy.asarray(np.random.default_rng(1).uniform(-1.0, 1.0, (N, M)))


@pytest.mark.parametrize("kept", [True, False])
def test_a_sum_beside_a_map_of_another_layout(rows: Any, kept: bool) -> None:
    """Fused, the sum takes the values from the map, and loads nothing of its own."""
    sums, launches = [], []
    for mode in (pyfuser.unfused, pyfuser.fusing):
        with mode():
            y = pk.View([N, M], pk.double)
            pk.parallel_for(box(), scaled, y=y, x=rows)
            result = pk.parallel_reduce(box(), total, y=y)
            if not kept:
                del y
        sums.append(float(result))
        launches.append(pyfuser.explain().launches)
    assert sums[0] == sums[1]
    assert launches[1] == 1


def test_sums_along_different_axes_share_no_loop(rows: Any) -> None:
    y = pk.View([N, M], pk.double)
    y[:, :] = np.random.default_rng(2).uniform(-1.0, 1.0, (N, M))
    sums = []
    for mode in (pyfuser.unfused, pyfuser.fusing):
        with mode():
            results = [pk.parallel_reduce(box(), total, y=v) for v in (y, rows)]
        sums.append([float(result) for result in results])
    assert sums[0] == sums[1]
    report = pyfuser.explain()
    assert report.launches == 2 and report.rejections[0].reason == "order"


def test_sums_along_one_axis_share_their_loop(rows: Any) -> None:
    sums = []
    for mode in (pyfuser.unfused, pyfuser.fusing):
        with mode():
            results = [
                pk.parallel_reduce(box(), total, y=rows),
                pk.parallel_reduce(box(), both, x=rows, y=rows),
            ]
        sums.append([float(result) for result in results])
    assert sums[0] == sums[1]
    assert pyfuser.explain().launches == 1
