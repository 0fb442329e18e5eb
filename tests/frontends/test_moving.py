"""Calls on one View after the other part of it: what runs for one part runs for all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

from pyfuser.support.extension import HOT

ROWS, COLUMNS = 40, 7


@pk.workunit
def halve(i, x, y):
    y[i] = 0.5 * x[i] + y[i]


def python_calls(run: Callable[[], Any]) -> list[str]:
    """The functions of the package's launching modules that are called meanwhile."""
    seen: list[str] = []

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and "runtime" in frame.f_code.co_filename:
            seen.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.skipif(HOT is None, reason="needs the extension")
def test_unfused_calls_on_moving_rows_run_without_python() -> None:
    a = pk.View([ROWS, COLUMNS], pk.double)
    a[0][:] = np.arange(COLUMNS)

    def sweep(first: int, last: int) -> None:
        for k in range(first, last):
            pk.parallel_for(COLUMNS, halve, x=a[k - 1], y=a[k])

    sweep(1, 5)
    assert python_calls(lambda: sweep(5, ROWS)) == []
    expected = np.arange(COLUMNS) * 0.5 ** np.arange(ROWS)[:, None]
    assert np.array_equal(np.asarray(a), expected)


@pytest.mark.skipif(HOT is None, reason="needs the extension")
def test_parts_that_overlap_in_another_way_are_not_taken_for_the_same() -> None:
    """The code depends on which elements of the arguments meet."""
    n = COLUMNS
    a = pk.View([10 * n], pk.double)
    a[:] = np.arange(10.0 * n)

    def run(place: int, distance: int) -> list[str]:
        x, y = a[place : place + n], a[place + distance : place + distance + n]
        return python_calls(lambda: pk.parallel_for(n, halve, x=x, y=y))

    for place in range(4):
        known = run(place, 2 * n)
    assert known == []
    assert run(5, 0) != []  # every element is both
    assert run(6, 2 * n) == []
    expected = np.arange(10.0 * n)
    for place, distance in ((0, 2 * n), (1, 2 * n), (2, 2 * n), (3, 2 * n), (5, 0), (6, 2 * n)):
        x = expected[place : place + n]
        y = expected[place + distance : place + distance + n]
        y[:] = 0.5 * x + y
    assert np.array_equal(np.asarray(a), expected)


@pk.workunit
def shifted(i, y, x, k):
    y[i] = x[i + k]


@pytest.mark.skipif(HOT is None, reason="needs the extension")
def test_unfused_calls_whose_numbers_move_run_without_python() -> None:
    """... but for a look at the first of each power of two."""
    n = 300
    x, y = pk.View([n], pk.double), pk.View([10], pk.double)
    x[:] = np.arange(float(n))

    def run(numbers: Sequence[int]) -> None:
        for k in numbers:
            pk.parallel_for(10, shifted, y=y, x=x, k=k)

    run(range(48))
    assert python_calls(lambda: run(range(48, 64))) == []
    seen = python_calls(lambda: run(range(64, 291)))
    assert (seen.count("look_at"), seen.count("served")) == (3, 3)
    for numbers in (range(40, 291), range(290, -1, -1)):
        assert python_calls(lambda numbers=numbers: run(numbers)) == []
        assert np.array_equal(np.asarray(y), np.arange(10.0) + numbers[-1])
    for k in (291, -1):
        with pytest.raises(IndexError):
            run([k])
        assert python_calls(lambda: run([290, 0])) == []
