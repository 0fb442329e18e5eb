"""What the report finds in the nests of kernels."""
# ruff: noqa: F821

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.nest.nodes import Nest
from pyfuser.report import explanation, loops, since
from pyfuser.report.loops import loops_of
from pyfuser.runtime.session import SESSION
from pyfuser.transform.kernel import Kernel
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


@pk.workunit
def doubled(i: int, x: pk.View1D[pk.double], y: pk.View1D[pk.double]) -> None:
    y[i] = 2.0 * x[i]


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
    assert loops_of(of(work, pattern).kernel).passes == expected


def test_equal_kernels_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of a program have the same kernels, and to lower one takes as long as to print it."""
    lowered: list[Kernel] = []

    def noted(kernel: Kernel) -> Nest:
        lowered.append(kernel)
        return loops_of(kernel)

    monkeypatch.setattr(loops, "loops_of", noted)
    x, y = (pk.View([1000], pk.double) for _ in range(2))
    before = SESSION.flushes[-1:]
    with pyfuser.fusing():
        for _ in range(5):
            pk.parallel_for(1000, doubled, x=x, y=y)
            pyfuser.sync()
    report = explanation(since(before))
    assert len(report.groups) == 5
    assert {group.vectors for group in report.groups} == {report.groups[0].vectors}
    assert len(lowered) <= 2  # at the first, the views are new
