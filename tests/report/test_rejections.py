"""Calls that do not share a loop: why, and what the program could do."""

from __future__ import annotations

from typing import Any

import pytest

import pyfuser
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.plan import plan
from pyfuser.report.model import RejectionReport
from pyfuser.report.words import DEPENDENCES, REMEDIES, WHY

N = 1000


@pk.workunit
def near(i, y, x):
    y[i] = x[i - 1] + x[i + 1]


@pk.workunit
def halve(i, x):
    x[i] = 0.5 * x[i]


@pk.workunit
def ends(i, x):
    x[i * 999] = 0.0


@pk.workunit
def picked(i, y, x, p):
    y[i] = x[p[i]]


@pk.workunit
def copied(i, y, x):
    y[i] = x[i]


@pytest.fixture
def x() -> Any:
    return pk.View([N], pk.double)


@pytest.fixture
def y() -> Any:
    return pk.View([N], pk.double)


def only() -> RejectionReport:
    (found,) = pyfuser.explain().rejections
    return found


INNER = pk.RangePolicy(1, N - 1)


def test_a_flow_dependence_cannot_be_helped(x: Any, y: Any) -> None:
    with pyfuser.fusing():
        pk.parallel_for(INNER, halve, x=x)
        pk.parallel_for(INNER, near, y=y, x=x)
    found = only()
    assert found.message == (
        "near reads elements of x (line 20) that other iterations of halve write (line 25): "
        "a flow dependence"
    )
    assert found.remedy == ""


def test_a_second_array_helps_against_an_anti_dependence(x: Any, y: Any) -> None:
    with pyfuser.fusing():
        pk.parallel_for(INNER, near, y=y, x=x)
        pk.parallel_for(INNER, halve, x=x)
    found = only()
    assert found.message == (
        "halve writes elements of x (line 25) that other iterations of near read (line 20): "
        "an anti dependence"
    )
    assert found.remedy == "write to a second array in place of x, and swap the two afterwards"
    with pyfuser.fusing():
        pk.parallel_for(INNER, near, y=y, x=x)
        pk.parallel_for(INNER, copied, y=pk.View([N], pk.double), x=x)
    assert pyfuser.explain().rejections == (), "so it does"


def test_no_second_array_for_what_is_changed_in_part(x: Any, y: Any) -> None:
    with pyfuser.fusing():
        pk.parallel_for(pk.RangePolicy(1, 3), near, y=y, x=x)
        pk.parallel_for(pk.RangePolicy(0, 2), ends, x=x)
    assert only().remedy == ""


def test_an_index_that_is_loaded(x: Any, y: Any) -> None:
    p = pk.View([N], pk.int32)
    with pyfuser.fusing():
        pk.parallel_for(N, halve, x=x)
        pk.parallel_for(N, picked, y=y, x=x, p=p)
    found = only()
    assert found.message == (
        "it is not known which elements of x halve writes (line 25) and picked reads (line 35)"
    )
    assert "with + - *" in found.remedy


@pytest.mark.parametrize(("end", "helps"), [(N - 1, True), (N // 4, False)])
def test_ranges_that_differ(x: Any, y: Any, end: int, helps: bool) -> None:
    with pyfuser.fusing():
        pk.parallel_for(N, halve, x=x)
        pk.parallel_for(end, halve, x=y)
    found = only()
    assert found.message == f"they run over different ranges: [0, 1,000) and [0, {end:,})"
    assert bool(found.remedy) == helps


def test_every_reason_has_a_sentence() -> None:
    """Those that the plan lists, and no others have one."""
    assert {*plan.REASONS} == WHY.keys() | DEPENDENCES.keys()
    assert REMEDIES.keys() <= {*plan.REASONS}
