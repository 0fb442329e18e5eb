"""Loop interchange and blocking: when it is legal, when it pays, and what it computes."""
# ruff: noqa: F821

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.kernel import spec_of
from pyfuser.nest.passes.loop_order import BLOCK, loop_order
from pyfuser.nest.spec import LoopOrder
from tests.codegen.build import case

ROWS = np.zeros((40, 60))
GIVEN = LoopOrder((0, 1))


def order_of(function: Any, *arguments: Any, **options: Any) -> LoopOrder:
    """The order over a space of the first array's shape, if no other is given."""
    extents = options.pop("extents", None) or next(
        list(a.shape) for a in arguments if isinstance(a, np.ndarray)
    )
    return loop_order(case(function, extents, lambda: list(arguments), **options).kernel)


def add_rows(i, j, x, y):
    y[i][j] += x[i][j]


def add_to_transpose(i, j, x, y):
    y[j][i] += x[i][j]


def turned(j, i, x, y):
    y[i][j] = x[i][j]


def turned_around(k, j, i, x, y):
    y[i][j][k] = x[i][j][k]


def corner(i, j, k, x, y):
    y[i][j][k] = x[k][j][i]


def outer_sum(i, j, x, y, z):
    z[i][j] = x[i] + y[j]


# --------------------------------------------------------------------------- the law


def test_the_axis_of_most_bytes_is_the_innermost() -> None:
    assert order_of(add_rows, ROWS, ROWS + 1) == GIVEN
    assert order_of(add_rows, ROWS.T, ROWS.T + 0) == LoopOrder((1, 0))
    assert order_of(turned, ROWS, ROWS + 1, extents=[60, 40]) == LoopOrder((1, 0))
    assert order_of(outer_sum, np.zeros(40), np.zeros(60), ROWS, extents=[40, 60]) == GIVEN


def test_the_other_axes_go_by_their_strides() -> None:
    x = np.zeros((30, 40, 50))
    assert order_of(turned_around, x, x + 1, extents=[50, 40, 30]) == LoopOrder((2, 1, 0))


def test_a_transpose_goes_block_by_block() -> None:
    assert order_of(add_rows, ROWS.T, np.zeros((60, 40))) == LoopOrder((0, 1), BLOCK)
    x = np.zeros((30, 30, 30))
    assert order_of(corner, x, x + 1) == LoopOrder((1, 0, 2), BLOCK)


def test_stores_weigh_more_than_loads() -> None:
    left = np.zeros((60, 40)).T
    assert order_of(turned, ROWS, left, extents=[60, 40]) == LoopOrder((0, 1), BLOCK)
    assert order_of(turned, left, ROWS, extents=[60, 40]) == LoopOrder((1, 0), BLOCK)


def test_equal_walks_count_once() -> None:
    """A stencil's neighbours come with the same lines."""

    def blur(i, j, x, y, z):
        z[i][j] = x[j][i] + x[j][i + 1] + x[j][i + 2] + y[i][j]

    x, y = np.zeros((60, 42)), np.zeros((40, 60))
    assert order_of(blur, x, y, y + 0, extents=[40, 60]) == LoopOrder((0, 1), BLOCK)


def test_a_short_axis_is_left_alone() -> None:
    """The lines of a (3, n) array are in cache when the next point comes."""
    points, planes = np.zeros((1000, 3)), np.zeros((3, 1000))
    assert order_of(add_rows, planes.T, points) == GIVEN


def test_lines_in_cache_are_no_vectors() -> None:
    """Along 16 channels, of which each has a row, nothing lies side by side."""

    def amplify(c, s, out, raw, gain):
        out[c][s] = raw[c][s] * gain[s]

    def of_points(i, c, out, x):
        out[c][i] = 2.0 * x[c][i]

    rows, raw = np.zeros((16, 400)), np.zeros((16, 400), "int16")
    assert order_of(amplify, rows, raw, np.zeros(400)) == GIVEN
    assert order_of(of_points, rows, rows + 1, extents=[400, 16]) == LoopOrder((1, 0))


def test_unknown_subscripts_do_not_matter() -> None:
    def gathered(i, j, index, x, y):
        y[i][j] = x[index[i]][j] + x[j][index[i]]

    index = np.zeros(40, "int32")
    assert order_of(gathered, index, np.zeros((60, 60)), ROWS, extents=[40, 60]) == GIVEN


# --------------------------------------------------------------------------- illegal twins


def atomic(i, j, x, y):
    y[i][j] = x[i][j]
    pk.atomic_add(y, [0, 0], 1.0)


def fetched(i, j, x, y):
    y[i][j] = pk.atomic_fetch_add(x, [i, j], 1.0)


def printed(i, j, x, y):
    y[i][j] = x[i][j]
    pk.printf("%d\n", i)


def waits(i, j, x, y):
    while y[0][0] < 1.0:
        y[0][1] = x[i][j]


@pytest.mark.parametrize("function", [atomic, fetched, printed, waits])
def test_no_interchange_where_the_order_shows(function: Callable[..., Any]) -> None:
    def plain(i, j, x, y):
        y[i][j] = x[i][j]

    assert order_of(plain, ROWS.T, ROWS.T + 0) != GIVEN
    assert order_of(function, ROWS.T, ROWS.T + 0) == GIVEN


def test_no_interchange_in_serial_spaces() -> None:
    assert order_of(add_rows, ROWS.T, ROWS.T + 0, execution="Serial") == GIVEN


def test_sums_keep_their_order_of_additions() -> None:
    def total(i, j, acc, x):
        acc += x[i][j]

    assert order_of(total, ROWS.T, pattern="reduce") == GIVEN


def test_a_checked_kernel_keeps_the_given_order() -> None:
    """Its first mistake is the first in the order of the program."""
    kernel = case(add_rows, [60, 40], lambda: [ROWS.T, ROWS.T + 0]).kernel
    assert spec_of(kernel).order == LoopOrder((1, 0))
    assert spec_of(kernel, kernel.workunit).order == GIVEN
