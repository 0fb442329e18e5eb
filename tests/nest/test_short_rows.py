"""Which strides are constants of the code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.kernel import spec_of
from pyfuser.nest.spec import UNIT
from tests.codegen.build import case


def dots(i, y, x):
    y[i] = x[i][0] * x[i][1]


def added(i, y, x):
    for k in range(3):
        y[i] += x[i][k]


def of_a_loop(i, y, x, m):
    for k in range(m):
        y[i] += x[i][k]


def gathered(i, y, x, m):
    y[i] = x[i][m]


def of_the_index(i, y, x):
    y[i] = x[i][i % 2]


def cells(i, j, y, x):
    y[i] = x[i][j]


def line(i, y, x):
    y[i] = x[i]


def pixels(i, j, y, x):
    y[i] = x[i][j][1]


def strides(function: Callable[..., Any], space: list[int], x: Any, *more: int) -> tuple[int, ...]:
    given = case(function, space, lambda: [np.zeros(99), x, *more])
    (view,) = [
        view
        for param, view in zip(
            given.kernel.workunit.params, spec_of(given.kernel).views, strict=True
        )
        if view is not None and param.sym is not given.kernel.workunit.params[0].sym
    ]
    return view.strides


@pytest.mark.parametrize(
    ("function", "shape", "expected"),
    [
        (dots, (9, 2), (-2, UNIT)),
        (dots, (9, 3), (-3, UNIT)),
        (dots, (9, 4), (-4, UNIT)),
        (dots, (9, 5), (0, UNIT)),
        (added, (9, 3), (-3, UNIT)),
        (of_the_index, (9, 3), (0, UNIT)),  # code for each length that a program has
        (pixels, (9, 5, 3), (0, -3, UNIT)),
        (cells, (9, 3), (0, UNIT)),
    ],
)
def test_rows(function: Callable[..., Any], shape: tuple[int, ...], expected: Any) -> None:
    space = [*shape[: len(shape) - 1]] if function is not cells else [*shape]
    assert strides(function, space, np.zeros(shape)) == expected


@pytest.mark.parametrize("function", [of_a_loop, gathered])
def test_rows_of_which_numbers_tell(function: Callable[..., Any]) -> None:
    assert strides(function, [9], np.zeros((9, 3)), 2) == (0, UNIT)


@pytest.mark.parametrize(("step", "expected"), [(1, -1), (2, -2), (4, -4), (5, 0), (-2, 0)])
def test_slices(step: int, expected: int) -> None:
    assert strides(line, [9], np.zeros(99)[::step]) == (expected,)


def test_columns_and_what_is_not_packed() -> None:
    assert strides(dots, [9], np.zeros((3, 9)).T) == (UNIT, 0)
    records = np.zeros(9, [("a", np.int8), ("b", np.float64, (3,))])["b"]
    assert strides(dots, [9], records) == (0, 1)
