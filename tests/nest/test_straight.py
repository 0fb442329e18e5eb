"""Bodies whose branches g++ would rearrange, and the headers that keep it from that."""

from __future__ import annotations

from collections.abc import Callable
from math import floor
from typing import Any

import numpy as np
import pytest

from pyfuser.nest.cost.straight import kept_straight
from tests.codegen.build import case

N = 300


def wrapped(i, x, y, t):
    a: float = x[i] + 0.5
    if a >= 4.0:
        a = 0.0
    y[i] = a - floor(a)


def wrapped_at_once(i, x, y, t):
    a: float = 0.0 if x[i] >= 4.0 else x[i]
    y[i] = a * a


def within_an_expression(i, x, y, t):
    y[i] = x[i] * (1.0 if x[i] > 0.0 else y[i])


def chosen_place(i, x, y, t):
    k: int = i
    if x[i] > 1.0:
        k = 0
    y[i] = x[k]


def clamped(i, x, y, t):
    left: int = i - 1 if i >= 1 else 0
    y[i] = x[left] + t[left]


def clamped_by_branches(i, x, y, t):
    left: int = i - 1
    if i == 0:
        left = 0
    y[i] = x[left] + t[left]


def wrapped_place(i, x, y, t):
    k: int = int(x[i])
    if k >= 200:
        k = 0
    y[i] = t[k]


def assigned_again_inside(i, x, y, t):
    a: float = x[i]
    if a > 0.0:
        a = 1.0
    if y[i] > 0.0:
        y[i] = a + y[i]


def only_stored(i, x, y, t):
    a: float = x[i] + 0.5
    if a >= 4.0:
        a = 0.0
    y[i] = a


def only_compared(i, x, y, t):
    a: float = x[i]
    if a >= 4.0:
        a = 0.0
    y[i] = 2.0 if a > y[i] else 3.0


def clamped_values(i, x, y, t):
    y[i] = min(max(x[i], y[i]), t[i])


def clamped_once(i, x, y, t):
    y[i] = max(x[i], t[i])


def clamped_inside(i, x, y, t):
    if x[i] > 0.5:
        y[i] = min(max(x[i], y[i]), t[i])


def clamped_numbers(i, x, y, t):
    k: int = int(x[i])
    m: int = int(y[i])
    y[i] = t[min(max(k, m), k + m)]


def of_no_constant(i, x, y, t):
    a: float = x[i]
    if a >= 4.0:
        a = a - 4.0
    y[i] = a * a


def computed_before(i, x, y, t):
    a: float = x[i]
    b: float = a * a
    if a >= 4.0:
        a = 0.0
    y[i] = a
    t[i] = b


def no_branch(i, x, y, t):
    a: float = 0.0
    y[i] = a + x[i]


@pytest.mark.parametrize(
    ("work", "headers"),
    [
        (wrapped, ("choices",)),
        (wrapped_at_once, ("choices",)),
        (within_an_expression, ("choices",)),
        (chosen_place, ("choices",)),
        (wrapped_place, ("choices",)),
        (clamped, ()),
        (clamped_by_branches, ()),
        (assigned_again_inside, ("straight", "choices")),
        (only_stored, ()),
        (only_compared, ()),
        (clamped_values, ("straight",)),
        (clamped_once, ()),
        (clamped_inside, ()),
        (clamped_numbers, ()),
        (of_no_constant, ()),
        (computed_before, ()),
        (no_branch, ()),
    ],
)
def test_what_g_plus_plus_is_kept_from(work: Callable[..., None], headers: tuple[str, ...]) -> None:
    def arguments() -> list[Any]:
        return [np.ones(N), np.ones(N), np.ones(N)]

    given = case(work, [N], arguments)
    assert kept_straight(given.kernel.workunit.body) == headers
