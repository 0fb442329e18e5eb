"""What the report finds in the nests of kernels."""
# ruff: noqa: F821

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyfuser.report.loops import passes_of
from tests.codegen.build import Case, case


def along_columns(i, x, y, m):
    for j in range(m):
        y[i] += x[j][i]


def summed(i, acc, x, y, m):
    for j in range(m):
        acc += x[j][i] * x[j][i]


def scanned(i, acc, last_pass, x, y, m):
    for j in range(m):
        acc += x[j][i]
    if last_pass:
        y[i] = acc


def largest(i, acc, x, y, m):
    for j in range(m):
        acc = fmax(acc, x[j][i])


def guarded(i, x, y, m):
    if i > 0 and i < m:
        y[i] = x[0][i - 1] + x[0][i + 1]


def windows(i, x, y, m):
    total: float = 0.0
    for j in range(m):
        total += x[j][0] * x[0][i + j]
    y[i] = total


def apart(i, x, y, m):
    total: float = 0.0
    for j in range(m):
        total += x[j][0] * x[0][2 * i + j]
    y[i] = total


def counted(i, x, y, m):
    total: int = 0
    for j in range(m):
        total += j * int(x[0][i + j])
    y[i] = total


def of(work: Callable[..., None], pattern: str = "for") -> Case:
    return case(work, [50], lambda: [np.ones((30, 51)), np.zeros(51), 20], pattern)


@pytest.mark.parametrize(
    ("work", "pattern", "expected"),
    [
        (along_columns, "for", ("strip-mine",)),
        (summed, "reduce", ("strip-mine",)),
        (scanned, "scan", ()),
        (largest, "reduce", ()),
        (guarded, "for", ("split-conditions",)),
        (windows, "for", ("strip-mine",)),
        (apart, "for", ("unroll-and-jam",)),  # no vectors: lanes would fetch one by one
        (counted, "for", ("strip-mine",)),
    ],
)
def test_what_was_done_to_loops(work: Any, pattern: str, expected: tuple[str, ...]) -> None:
    assert passes_of(of(work, pattern).kernel) == expected
