"""Partitions that are taken over from traces of other sizes, and those that must not be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyfuser.plan import plan_cache
from pyfuser.plan.capabilities import ALL
from pyfuser.plan.partition import partition
from pyfuser.plan.plan_cache import plan_of
from pyfuser.support.caches import Table
from pyfuser.trace.shape import CallShape, TraceShape
from tests.analysis.build import call_on, region, trace
from tests.plan.test_family import ADD, COPY_FROM, PUT


@pytest.fixture(autouse=True)
def planned(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[TraceShape]]:
    """The traces that were partitioned."""
    found: list[TraceShape] = []

    def recorded(trace, graph, capabilities):
        found.append(trace)
        return partition(trace, graph, capabilities)

    monkeypatch.setattr("pyfuser.plan.partition.partition", recorded)
    monkeypatch.setattr(plan_cache, "_may_be_of_family", lambda _: False)
    monkeypatch.setattr(plan_cache, "ALIKE", Table("of a test", 99))
    yield found


def steps(n: int, k: int = 0, extent: int = 1000) -> list[CallShape]:
    """x = v; y[i] = x[i + k]; z += y; and so on."""
    x, y, z = (region(c, extent) for c in range(3))
    step = [call_on(PUT, n, x, 1.0), call_on(COPY_FROM, n, x, y, k), call_on(ADD, n, y, z)]
    return step * 12


def plan(calls: list[CallShape]):
    shape = trace(*calls)
    graph, found = plan_of(shape, ALL)
    assert found.groups == partition(shape, graph, ALL).groups
    return found


def test_other_sizes_take_a_partition_over(planned):
    first = plan(steps(600))
    assert plan(steps(700)) is first
    assert plan(steps(700, extent=900)) is first
    assert len(planned) == 1
    assert plan(steps(500)) is not first  # half as large: another may be better
    assert len(planned) == 2


def test_other_dependences_are_planned_anew(planned):
    """Shifted by more than there are iterations, a read meets no write: that is another graph."""
    near, far = plan(steps(100, k=65)), plan(steps(64 + 1, k=65))
    assert near.groups != far.groups
    assert len(planned) == 2


def test_other_neighbours_in_memory_are_planned_anew(planned):
    def through(*starts: int) -> list[CallShape]:
        views = [region(0, 100, offset=8 * start) for start in starts]
        return [call_on(PUT, 100, views[k % len(views)], 1.0) for k in range(36)]

    assert len(plan(through(1024, 1200)).groups) != len(plan(through(1024, 1100)).groups)
    assert len(planned) == 2


def test_other_equalities_are_planned_anew(planned):
    x, y = region(0, 1000), region(1, 1000)
    same = [call_on(PUT, 600, x, 1.0), call_on(PUT, 600, y, 1.0)] * 18
    other = [call_on(PUT, 600, x, 1.0), call_on(PUT, 601, y, 1.0)] * 18
    assert plan(same).groups != plan(other).groups
    assert len(planned) == 2


def test_short_traces_are_always_planned(planned):
    plan(steps(600)[:6])
    plan(steps(700)[:6])
    assert len(planned) == 2
