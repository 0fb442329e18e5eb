"""Loops that do something in a few iterations only run without it in between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.engine import native
from tests.codegen.build import Case, case


def ends(i, x, y, low, high):
    y[i] = 0.5 * (x[i - 1] + x[i + 1])
    if i == low:
        y[i - 1] = y[i]
    if i == high:
        y[i + 1] = y[i]


def alone(i, x, y, low, high):
    if i == low:
        for k in range(3):
            y[k] = x[k] + i
    if i == high:
        y[i] += x[i]
    if i == low:
        y[0] *= 2.0


def otherwise(i, x, y, low, high):
    if i == low:
        y[i] = x[i]
    else:
        y[i] = x[i] + high


def moving(i, x, y, low, high):
    i = i + 1
    if i == low:
        y[i] = x[i] + high


def made(function: Any, n: int, low: int, high: int, **options: Any) -> Case:
    def arguments() -> list[Any]:
        return [np.arange(n, dtype=float) ** 1.5, np.zeros(n), low, high]

    return case(function, [n - 1], arguments, begin=[1], **options)


def assert_right(kernel: Case) -> None:
    (launchable,) = native.prepare([kernel.kernel])
    for left, right in zip(kernel.interpreted()[0], kernel.run(launchable)[0], strict=True):
        np.testing.assert_array_equal(left, right)


ROWS = [(1, 48), (48, 1), (7, 7), (3, 4), (0, 60), (-5, 48), (1, 1)]


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("function", [ends, alone])
@pytest.mark.parametrize("execution", ["OpenMP", "Serial"])
def test_each_iteration_runs_once(function, rows, execution):
    kernel = made(function, 50, *rows, execution=execution)
    text = emit(spec_of(kernel.kernel))
    assert "pf_at_rows(" in text and ("pf_plain(" in text) == (function is ends)
    assert_right(kernel)


@pytest.mark.parametrize("threads", [1, 3])
def test_shares_of_threads(threads, monkeypatch):
    monkeypatch.setattr(native.team, "count", threads)
    n = 300_000
    for rows in ((1, n - 2), (n // 3, n // 3 + 1), (n - 2, 100_000)):
        assert_right(made(ends, n, *rows))


@pytest.mark.parametrize("function", [otherwise, moving])
def test_what_more_iterations_may_do_is_in_all_of_them(function):
    kernel = made(function, 50, 4, 9)
    assert "pf_at_rows(" not in emit(spec_of(kernel.kernel))
    assert_right(kernel)
