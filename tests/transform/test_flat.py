"""Rows of one-dimensional temporaries, and subscripts that do not stay in a row."""

from __future__ import annotations

import numpy as np
import pytest

from pyfuser.ir.nodes import DeclareArray
from pyfuser.ir.visit import statements
from tests.transform.build import Program, Temporary

ROWS, C = 5, 4


def fill(i, t, a, c):
    for k in range(c):
        t[i * c + k] = 2.0 * a[i * c + k]


def fill_backwards(i, t, a, c):
    for k in range(c):
        t[i * c + c - 1 - k] = 2.0 * a[i * c + k]


def fill_some(i, t, a, c):
    for k in range(c):
        if a[i * c + k] > 0.0:
            t[i * c + k] = 2.0 * a[i * c + k]


def fill_all_but_one(i, t, a, c):
    for k in range(1, c):
        t[i * c + k] = 2.0 * a[i * c + k]


def total(i, b, t, c):
    b[i] = 0.0
    for k in range(c):
        b[i] += t[i * c + k]


def best(i, b, t, c):
    place: int = 0
    for k in range(1, c):
        if t[i * c + k] > t[i * c + place]:
            place = k
    b[i] = t[i * c + place] + place


def counted(i, b, t, c):
    place: int = 0
    for k in range(1, c):
        if t[i * c + k] > 0.0:
            place = place + 1
    b[i] = t[i * c + place]


def rows_of(*steps, kept: bool = False) -> int:
    """How many local arrays the calls' kernel has, which computes what the calls do."""
    a = np.random.default_rng(3).integers(-5, 9, ROWS * C).astype(float)
    b = np.zeros(ROWS)
    program = Program(ROWS)
    t = np.zeros(ROWS * C) if kept else Temporary(ROWS * C)
    for step in steps:
        views = {"t": t, "a": a} if step.__name__.startswith("fill") else {"b": b, "t": t}
        program.call(step, **views, c=C)
    kernel = program.check()
    return sum(isinstance(s, DeclareArray) for s in statements(kernel.workunit.body))


@pytest.mark.parametrize("first", [fill, fill_backwards])
@pytest.mark.parametrize("second", [total, best])
def test_rows_become_local_arrays(first, second):
    assert rows_of(first, second) == 1


def test_not_if_they_are_read_afterwards():
    assert rows_of(fill, total, kept=True) == 0


@pytest.mark.parametrize("first", [fill_some, fill_all_but_one])
def test_not_if_an_element_may_be_missing(first):
    assert rows_of(first, total) == 0


def test_not_if_the_place_may_be_outside_of_the_row():
    assert rows_of(fill, best) == 1
    assert rows_of(fill, counted) == 0


def second_but_for_the_first(i, b, t, c):
    b[i] = 0.0
    for k in range(c):
        later: bool = k
        b[i] += t[i * c + later]


def test_a_truth_value_is_not_the_number_it_was_made_of():
    assert rows_of(fill, second_but_for_the_first) == 1
