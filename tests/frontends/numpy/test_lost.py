"""Instructions whose traces never come again are not recorded for long."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy
import pytest

import pyfuser.numpy as np
from pyfuser.frontends.numpy.switches import LIMITS
from pyfuser.runtime import first_tier, no_gain
from pyfuser.runtime.session import TRACER
from pyfuser.support.counters import COUNTERS
from tests.vendors import tune

SIZE = 100


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "most", SIZE)
    tune(monkeypatch, lost_bytes=10 * 3 * SIZE * 8)
    tune(monkeypatch, planned_bytes=0)
    tune(monkeypatch, planned_call_bytes=5 * 3 * SIZE * 8)
    first_tier.SITES.clear()
    first_tier.SEEN.clear()


def added(x: Any, start: int) -> Any:
    return x[start : start + SIZE] + x[:SIZE]


def recorded(step: int, trips: int, dtype: Any = float, shape: tuple[int, ...] = ()) -> int:
    """How often a part of an array, which moves by `step`, is added to its beginning.

    shape: of each of its elements.
    """
    before = numpy.arange(4 * SIZE * prod(shape), dtype=dtype).reshape(-1, *shape)
    x, count = np.array(before), TRACER.recorded
    for trip in range(trips):
        start = trip * step
        y = added(x, start).reshape(-1)
        assert y[0] == (before[start] + before[0]).reshape(-1)[0]
    return TRACER.recorded - count


def test_what_moves_on_is_computed_at_once_in_the_end() -> None:
    assert 10 <= recorded(2, 40) < 20


def test_arrays_of_two_axes_that_the_kernel_has_as_one() -> None:
    assert recorded(2, 40, shape=(4,)) < 20


def test_what_comes_again_is_compiled_and_stays_recorded() -> None:
    assert recorded(0, 40) == 40
    assert recorded(2, 40) == 40  # the same instruction: a kernel was worth it


def test_what_comes_again_slowly_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, planned_call_bytes=60 * 3 * SIZE * 8)
    assert recorded(0, 60, int) == 60


def test_what_kernels_make_no_faster_is_computed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(no_gain, "CALL", 0.6e-6)
    launches = COUNTERS.launches
    assert recorded(0, 40, "i4") <= 10
    assert recorded(0, 40, "i4") == 0
    assert COUNTERS.launches == launches


def test_what_a_mask_leaves_out_is_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(no_gain, "CALL", 0.6e-6)
    launches, x = COUNTERS.launches, np.full(SIZE, 0.5)
    for n in range(20):
        np.add(x, 1, out=x, where=x > 0)
        assert x[0] == n + 1.5
    assert COUNTERS.launches >= launches + 5


def test_what_takes_numpy_longer_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(no_gain, "CALL", 0.6e-6)
    launches, x = COUNTERS.launches, np.full(SIZE, 0.25)
    for _ in range(20):
        assert np.sqrt(x + 2.0)[0] == 1.5
    assert COUNTERS.launches >= launches + 5


def halves(size: int) -> Any:
    """Of `size` elements: another range with each size."""
    x = np.full(size, 2.0)
    return float(((x + 1.0) * 0.5)[0])


def test_sizes_earn_a_kernel_together(monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, planned_call_bytes=4 * 2 * SIZE * 8)
    tune(monkeypatch, planned_again_bytes=0, resized_call_bytes=0)
    compiled = COUNTERS.launches
    for size in range(2 * SIZE, 2 * SIZE + 20):
        assert halves(size) == 1.5
    assert COUNTERS.launches >= compiled + 10


def test_sizes_that_earn_nothing_together_run_without(monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, planned_call_bytes=1 << 30, resized_call_bytes=0)
    compiled = COUNTERS.launches
    for size in range(3 * SIZE, 3 * SIZE + 20):
        assert halves(size) == 1.5
    assert COUNTERS.launches == compiled


def test_a_size_has_a_kernel_only_once_it_has_earned_that(monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, planned_call_bytes=10 * 6 * SIZE * 8)
    tune(monkeypatch, planned_again_bytes=1 << 30, resized_call_bytes=1 << 30)
    compiled = COUNTERS.launches
    for size in range(6 * SIZE, 6 * SIZE + 20):
        assert halves(size) == 1.5
    assert COUNTERS.launches == compiled + 1  # what they earned together


def test_what_is_pending_keeps_it_recorded() -> None:
    assert recorded(2, 40) < 20
    x = np.arange(4 * SIZE, dtype=float)
    before = TRACER.recorded
    added(x, 2)
    assert TRACER.recorded == before
    x += 1.0
    parts = [added(x, start) for start in (0, 2)]
    assert TRACER.recorded == before + 3
    assert [part[0] for part in parts] == [2.0, 4.0]


@pytest.mark.parametrize("rows, launched", [(10, False), (4000, True)])
def test_kernels_of_several_threads_gain_where_there_is_much(
    monkeypatch: pytest.MonkeyPatch, rows: int, launched: bool
) -> None:
    monkeypatch.setattr(no_gain, "CALL", 0.6e-6)
    tune(monkeypatch, planned_call_bytes=5 * 3 * rows * SIZE * 8, lost_bytes=1 << 30)
    x = np.array(numpy.zeros((rows, SIZE)))
    launches = COUNTERS.launches
    for _ in range(20):
        y = np.maximum(x[1:, 1:], x[:-1, :-1])
        assert y[0, 0] == 0.0
    assert (COUNTERS.launches > launches) == launched


@pytest.mark.parametrize("count, launched", [(1000, False), (400_000, True)])
def test_gathers_gain_where_there_are_many(
    monkeypatch: pytest.MonkeyPatch, count: int, launched: bool
) -> None:
    monkeypatch.setattr(no_gain, "CALL", 0.6e-6)
    tune(monkeypatch, planned_call_bytes=5 * 3 * count * 8, lost_bytes=1 << 40)
    x, places = np.array(numpy.ones(count)), np.array(numpy.arange(count) % 7)
    launches = COUNTERS.launches
    recorded = []
    for _ in range(20):
        y = x[places] + x
        assert y[0] == 2.0
        recorded.append(TRACER.recorded)
    assert (COUNTERS.launches > launches) == launched
    assert (recorded[-1] > recorded[-5]) == launched
