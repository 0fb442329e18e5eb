"""Sums over rows and columns of what was one axis: the very bits of sums over the axis."""
# ruff: noqa: F821

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyfuser.engine.launchable import team
from pyfuser.engine.native import prepare
from pyfuser.ir.nodes import Workunit
from pyfuser.lower.lower import ScalarType, ViewType, lower
from pyfuser.plan.rewrites.coarse_body import boxed
from pyfuser.support.settings import SETTINGS
from tests.codegen.build import bound, case, dtype_of
from tests.codegen.test_sweep import Loop, Sweep, check, numbers, smooth_grid

pytestmark = pytest.mark.skipif(
    shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler"
)

#: Rows and columns: tiles of a part of a row, of rows that do not fit, and of those that do.
SHAPES = ((2, 2), (3, 5), (2, 9), (9, 2), (40, 9), (9, 70), (64, 8), (700, 5), (2, 5000))
LONG = ((520, 521), (130, 2100), (64, 4096), (256, 1024), (31, 8500), (2, 140_001))


def cells(i, acc, x, m):
    acc += x[i // m][i % m]


def cells_float32(i, acc: pk.Acc[pk.float], x, m):
    acc += x[i // m][i % m]


def cells_complex(i, acc: pk.Acc[pk.complex128], x, m):
    acc += x[i // m][i % m]


def guarded(i, acc, x, m):
    r: int = i // m
    c: int = i % m
    if r > 0 and c < m - 1:
        acc += x[r][c] * x[r - 1][c + 1] - i


def by_line(i, acc, x, m):
    acc += x[i // m][i % m]
    acc += 0.5 * i


def lowered(function: Callable[..., Any], x: np.ndarray) -> Workunit:
    types = {"x": ViewType(dtype_of(x), 2), "m": ScalarType(dtype_of(1))}
    return lower(function, "reduce", 1, types).workunit


def sums(function: Callable[..., Any], x: np.ndarray) -> tuple[bytes, bytes]:
    """The sum over one axis, and over two."""
    rows, columns = x.shape
    unit = lowered(function, x)
    two = boxed(unit, columns, rows * columns, {unit.params[1].sym: columns})
    found = []
    for workunit, extents in ((unit, (rows * columns,)), (two, (rows, columns))):
        kernel = case(workunit, extents, lambda: [x, columns], "reduce").kernel
        (launchable,) = prepare([kernel])
        (value,) = launchable.run(kernel.space, bound([x, columns]))
        found.append(np.asarray(value).tobytes())
    return found[0], found[1]


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (cells, "float64"),
        (cells_float32, "float32"),
        (cells_complex, "complex128"),
        (guarded, "float64"),
        (by_line, "float64"),
    ],
)
@pytest.mark.parametrize("threads", [1, 3])
def test_bits(function, dtype, threads, monkeypatch):
    monkeypatch.setattr(team, "count", threads)
    for shape in SHAPES:
        one, two = sums(function, numbers(shape, dtype))
        assert one == two, shape


@pytest.mark.parametrize("shape", LONG)
def test_bits_of_long_sums(shape):
    one, two = sums(cells, numbers(shape))
    assert one == two


def test_a_sum_over_two_axes_has_other_tiles():
    """The test of the tests: what `flat` is for."""
    x = numbers((520, 521))
    unit = lowered(cells, x)
    two = boxed(unit, 521, x.size, {unit.params[1].sym: 521})
    (accumulator,) = two.accumulators
    found = []
    for flat in (True, False):
        workunit = replace(two, accumulators=(replace(accumulator, flat=flat),))
        kernel = case(workunit, x.shape, lambda: [x, 521], "reduce").kernel
        found.append(prepare([kernel])[0].run(kernel.space, bound([x, 521])))
    assert found[0] != found[1]


def total_grid(i, j, acc, x):
    acc += x[i][j]


@pytest.mark.parametrize(
    "shape", [(5, 5), (9, 6), (40, 9), (9, 70), (700, 5), (61, 257), (600, 451)]
)
def test_in_sweeps(shape, monkeypatch):
    """A tile that begins and ends inside rows, and lies across threads' shares."""
    unit = lower(total_grid, "reduce", 2, {"x": ViewType(dtype_of(numbers(2)), 2)}).workunit
    (accumulator,) = unit.accumulators
    total: Any = replace(unit, accumulators=(replace(accumulator, flat=True),))
    loops = [
        Loop(total, "x", pattern="reduce"),
        Loop(smooth_grid, "x y", rim=1),
        Loop(total, "y", pattern="reduce", rim=1),
        Loop(smooth_grid, "y z", 1, 1, rim=2),
        Loop(total, "z", 1, 1, pattern="reduce"),
    ]
    arrays = {name: numbers(shape, seed=n) for n, name in enumerate("xyz")}
    check(Sweep(loops, arrays), monkeypatch, waves=(1, 3), threads=(1, 2, 3))
