"""Loops split where the guards of their bodies begin and end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen import kernel as spec_module
from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.engine import native
from pyfuser.nest.build import nest_of
from pyfuser.nest.spec import LoopOrder
from pyfuser.pipeline import run_nest_passes
from tests.codegen.build import Case, case


def line(i, x, y, z, low, high, start, stop):
    t: float = 2.0 * x[i]
    if i >= low and i < high:
        y[i] = t + x[i]
    z[i] = t * t
    if i >= start and i < stop:
        z[i] += y[i]


def in_front(i, x, y, z, low, high, start, stop):
    z[i] = 2.0 * x[i]
    if i < high:
        y[i] = z[i] + start
    if i >= low:
        y[i] += stop


def plane(i, j, x, y, z, low, high, start, stop):
    z[i][j] = 2.0 * x[i][j]
    if i >= low and i < high and j >= start and j < stop:
        y[i][j] = z[i][j] + x[i][j]


def columns(i, j, x, y, z, low, high, start, stop):
    z[i][j] = 2.0 * x[i][j]
    if j >= start and j < stop:
        y[i][j] = z[i][j] + x[i][j]
    if j < high:
        y[i][j] += low


def solid(i, j, k, x, y, z, low, high, start, stop):
    z[i][j][k] = 2.0 * x[i][j][k]
    if i >= low and j >= start and j < stop and k >= low and k < high:
        y[i][j][k] = z[i][j][k] + x[i][j][k]


def made(
    function: Any,
    extents: Sequence[int],
    limits: tuple[int, int, int, int],
    begin: Sequence[int] | None = None,
    **options: Any,
) -> Case:
    def arguments() -> list[Any]:
        count = int(np.prod(extents))
        arrays = [np.arange(count, dtype=float).reshape(extents) + k for k in range(3)]
        return [*arrays, *limits]

    return case(function, extents, arguments, begin=begin, **options)


def assert_right(kernel: Case) -> None:
    (launchable,) = native.prepare([kernel.kernel])
    for left, right in zip(kernel.interpreted()[0], kernel.run(launchable)[0], strict=True):
        np.testing.assert_array_equal(left, right)


LIMITS = [
    (1, 99, 2, 98),
    (0, 100, 0, 100),
    (16, 80, 32, 96),
    (-5, 200, 17, 50),
    (0, 10, 90, 100),
    (50, 50, 3, 70),
    (60, 40, 3, 70),
    (100, 120, -9, -3),
    (98, 99, 0, 1),
]


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("function", [line, in_front])
@pytest.mark.parametrize("begin", [0, 7])
def test_one_axis(function, limits, begin):
    kernel = made(function, [100], limits, [begin])
    assert "pf_middle(" in emit(spec_of(kernel.kernel))
    assert_right(kernel)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 33])
def test_short_ranges(n):
    assert_right(made(line, [n], (1, n - 1, 0, n)))


@pytest.mark.parametrize("threads", [1, 3])
def test_shares_of_threads(threads, monkeypatch):
    monkeypatch.setattr(native.team, "count", threads)
    n = 300_000
    assert_right(made(line, [n], (1, n - 1, n // 2, n)))
    assert_right(made(line, [n], (n // 3, n // 3 + 9, 0, n)))
    assert_right(made(plane, [n // 500, 500], (1, 599, 1, 499)))


@pytest.mark.parametrize(
    "limits", [(1, 39, 1, 49), (0, 40, 5, 6), (39, 40, 0, 50), (9, 3, 0, 50), (0, 40, 49, 60)]
)
@pytest.mark.parametrize("function", [plane, columns])
@pytest.mark.parametrize("begin", [(0, 0), (3, 11)])
def test_two_axes(function, limits, begin):
    assert_right(made(function, [40, 50], limits, begin))


@pytest.mark.parametrize("order", [LoopOrder((1, 0)), LoopOrder((0, 1), 4), LoopOrder((1, 0), 3)])
def test_any_order_of_loops(order, monkeypatch):
    monkeypatch.setattr(spec_module, "loop_order", lambda kernel: order)
    assert_right(made(plane, [40, 50], (1, 39, 2, 48), (0, 1)))


@pytest.mark.parametrize("limits", [(1, 9, 1, 11), (3, 12, 0, 12), (5, 4, 0, 12)])
def test_three_axes(limits):
    assert_right(made(solid, [10, 12, 40], limits))
    assert_right(made(solid, [10, 12, 40], limits, (2, 3, 5)))


def order_shows(i, x, y, z, low, high, start, stop):
    if i >= low and i < high:
        x[i] = x[i - 1] + y[i]


def order_of_rows_shows(i, j, x, y, z, low, high, start, stop):
    if j >= low and j < high:
        x[i][j] = x[i - 1][j + 1] + y[i][j]


def test_serial_iterations_keep_their_order():
    """One axis is split in order; slabs of several would come out of turn."""
    one = made(order_shows, [100], (1, 60, 0, 0), execution="Serial")
    assert "pf_middle(" in emit(spec_of(one.kernel))
    two = made(order_of_rows_shows, [40, 50], (1, 49, 0, 0), (1, 0), execution="Serial")
    assert "pf_middle(" not in emit(spec_of(two.kernel))
    for kernel in (one, two):
        (launchable,) = native.prepare([kernel.kernel])
        x = kernel.run(launchable)[0][0]
        expected = kernel.arguments()
        if kernel is one:
            for i in range(1, 60):
                expected[0][i] = expected[0][i - 1] + expected[1][i]
        else:
            for i in range(1, 40):
                for j in range(1, 49):
                    expected[0][i, j] = expected[0][i - 1, j + 1] + expected[1][i, j]
        np.testing.assert_array_equal(x, expected[0])


def moved(i, x, y, z, low, high, start, stop):
    i += start + 1
    if i >= low and i < high:
        y[i] = x[i]


def otherwise(i, x, y, z, low, high, start, stop):
    if i >= low and i < high:
        y[i] = x[i]
    else:
        y[i] = z[i]


def of_data(i, x, y, z, low, high, start, stop):
    if i >= low and x[i] < 50.0:
        y[i] = x[i]


def either(i, x, y, z, low, high, start, stop):
    if i >= low or i < high:
        y[i] = x[i]


@pytest.mark.parametrize("function", [moved, otherwise, of_data, either])
def test_what_is_no_guard(function):
    kernel = made(function, [100], (20, 60, 0, 0))
    assert "split-guards" not in run_nest_passes(nest_of(spec_of(kernel.kernel))).passes
    assert_right(kernel)


def test_sums_are_not_split():
    def total(i, acc, x, y, z, low, high, start, stop):
        if i >= low and i < high:
            acc += x[i]

    kernel = made(total, [100], (20, 60, 0, 0), pattern="reduce")
    assert "split-guards" not in run_nest_passes(nest_of(spec_of(kernel.kernel))).passes
    assert kernel.run(native.prepare([kernel.kernel])[0])[1] == kernel.interpreted()[1]


def test_the_middle_is_the_body_alone():
    """Its loop is the one of a body that never had guards."""

    def plain(i, x, y, z, low, high, start, stop):
        t: float = 2.0 * x[i]
        y[i] = t + x[i]
        z[i] = t * t
        z[i] += y[i]

    guarded, free = (made(f, [100], (1, 99, 2, 98)) for f in (line, plain))
    source, other = emit(spec_of(guarded.kernel)), emit(spec_of(free.kernel))
    assert _loop(source, "pf_middle") == _loop(other, "pf_loop")
    assert "if (" in _loop(source, "pf_around") and "if (" not in _loop(source, "pf_middle")


def _loop(source: str, name: str) -> str:
    start = source.index(f" void {name}(")
    return source[source.index("for (", start) : source.index("\n}\n", start)]


def test_equal_code_for_other_bounds():
    first, second = (made(line, [100], limits) for limits in LIMITS[:2])
    assert spec_of(first.kernel) == spec_of(replace(second.kernel, shapes=first.kernel.shapes))
    assert spec_of(first.kernel) == spec_of(second.kernel)
