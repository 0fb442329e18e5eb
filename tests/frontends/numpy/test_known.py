"""What the extension records without a line of Python, and when it leaves that alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import pyfuser
import pyfuser.numpy as np
from pyfuser.frontends.numpy import known, record
from pyfuser.frontends.numpy.record import SMALL_CALLS
from pyfuser.frontends.numpy.switches import LIMITS
from pyfuser.runtime import first_tier
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.extension import NUMPY
from pyfuser.trace.memory import Unmade
from pyfuser.tuning.thresholds import NOW
from tests.vendors import tune

pytestmark = pytest.mark.skipif(NUMPY is None, reason="needs the compiled extension")

SIZE = 1 << 16
"""As what is recorded the first time it comes."""


@pytest.fixture(autouse=True)
def nothing_pending() -> Iterator[None]:
    NUMPY.forget_plans()
    yield
    TRACER.discard()


def by_python(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The operations that Python is asked to record from now on."""
    asked: list[Any] = []
    original = record.record

    def noted(operation: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append(operation.name)
        return original(operation, *args, **kwargs)

    for module in [m for n, m in sys.modules.items() if n.startswith("pyfuser.frontends.numpy")]:
        if getattr(module, "record", None) is original:
            monkeypatch.setattr(module, "record", noted)
    return asked


def test_no_line_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = by_python(monkeypatch)
    values = numpy.random.default_rng(0).normal(size=(300, 300))
    x, y = np.array(values), np.array(values + 1.0)
    y[1:-1, 1:-1] = (x[:-2, 1:-1] - 2.0 * x[1:-1, 1:-1] + x[2:, 1:-1]) ** 2
    y += np.where(x < y, np.abs(x), -y)
    y[0] = np.float64(3.0) / (1 + y[1])
    y *= np.float64(0.25) <= x
    assert asked == [] and len(TRACER.calls) == 15
    expected = values + 1.0
    expected[1:-1, 1:-1] = (values[:-2, 1:-1] - 2.0 * values[1:-1, 1:-1] + values[2:, 1:-1]) ** 2
    expected += numpy.where(values < expected, numpy.abs(values), -expected)
    expected[0] = 3.0 / (1 + expected[1])
    expected *= values >= 0.25
    assert numpy.array_equal(numpy.asarray(y), expected)


def test_arrays_without_axes_are_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = by_python(monkeypatch)
    x, number = np.array(numpy.arange(float(SIZE))), numpy.array(2.0)
    y = number * x
    number[...] = 5.0  # too late
    assert asked == [] and len(TRACER.calls) == 1
    assert y[3] == 6.0 and (numpy.array(1, object) + x).dtype == object


def test_warnings_of_calls_that_are_recorded() -> None:
    x = np.array(numpy.zeros(SIZE))
    with pytest.warns(DeprecationWarning, match="positional"):
        np.maximum(x, x, x)
    np.maximum(x, x, out=x)
    assert TRACER.calls


def test_parts_of_what_has_no_memory() -> None:
    values = numpy.arange(float(4 * SIZE)).reshape(8, -1, 4)
    keys: tuple[Any, ...] = (
        1, -1, slice(None, None, -1), (..., 2), (slice(1, -1), None, slice(3)),
        (None, 2, ..., None), (slice(5, 1, -2), 7, slice(-3, None)), ..., (0, slice(9), 3),
    )  # fmt: skip
    for key in keys:
        x = np.array(values) * 2.0
        part, expected = x[key], (values * 2.0)[key]
        assert TRACER.calls, key
        assert part.shape == expected.shape and part.strides == expected.strides, key
        assert part.base is x and np.shares_memory(x, part)
        x[key] = 1.0
        whole = values * 2.0
        whole[key] = 1.0
        assert numpy.array_equal(numpy.asarray(x), whole)
        assert numpy.array_equal(numpy.asarray(part), whole[key])
    for wrong in (8, -9, (0, 0, 0, 0), (..., ...), (0, slice(None), 4)):
        x = np.array(values) * 2.0
        with pytest.raises(IndexError):
            x[wrong]
    assert x[7, 0, 3] == values[7, 0, 3] * 2.0 and x[3:3].shape == (0, *values.shape[1:])


def test_what_overlaps_the_result_is_copied_first() -> None:
    """Element for element, and with steps in between, nothing needs a copy; else something does."""
    values = numpy.arange(4.0 * SIZE)

    def calls(act: Any) -> int:
        x, expected = np.array(values), values.copy()
        act(x)
        act(expected)
        count = len(TRACER.calls)
        assert numpy.array_equal(numpy.asarray(x), expected)
        return count

    def assign(to: slice, of: slice) -> int:
        return calls(lambda a: a.__setitem__(to, a[of]))

    assert assign(slice(None), slice(None)) == 1
    assert assign(slice(SIZE), slice(SIZE, 2 * SIZE)) == 1  # beside each other
    assert assign(slice(0, None, 2), slice(1, None, 2)) == 1  # in between
    assert assign(slice(0, -1), slice(1, None)) == 2
    assert assign(slice(1, None), slice(0, -1)) == 2
    assert assign(slice(None), slice(None, None, -1)) == 2
    assert calls(lambda a: a.__iadd__(1.0)) == 1


def test_others_reach_the_memory() -> None:
    """Nothing is recorded on it, also where the same operation was before."""
    values = numpy.arange(float(SIZE))
    x = np.array(values)
    assert (x + 1.0)[5] == 6.0
    handed = numpy.asarray(x)
    y = x + 1.0
    assert not TRACER.calls
    handed[5] = 0.0
    x += 1.0
    assert not TRACER.calls and y[5] == 6.0 and handed[5] == 1.0
    foreign = np.asarray(values)
    z = foreign + 1.0
    values[5] = -1.0
    assert not TRACER.calls and z[5] == 6.0
    x.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        x += 1.0
    with pytest.raises(ValueError, match="read-only"):
        x[:] = x


def test_switches_are_looked_at() -> None:
    x = np.array(numpy.zeros(SIZE))
    x + 1.0
    with numpy.errstate(all="raise"), pytest.raises(FloatingPointError):
        1.0 / x
    LIMITS.eager = True
    try:
        before = TRACER.recorded
        x + 1.0
        assert TRACER.recorded == before
    finally:
        LIMITS.eager = False
    with pytest.raises(OverflowError):
        np.array(numpy.zeros(SIZE, numpy.int8)) + 1000
    assert (np.array(numpy.zeros(SIZE, numpy.float32)) + 0.1).dtype == numpy.float32


def test_numbers_are_those_of_the_call() -> None:
    """The entry is that of the first one's type."""
    values = numpy.arange(float(SIZE))
    x = np.array(values)
    for number in (1.0, float("nan"), 2.5, numpy.float64(3.5)):
        assert numpy.array_equal(numpy.asarray(x * number), values * number, equal_nan=True)
    for whole in (1, -7, 2**53, 2**53 + 1, 2**80):
        assert numpy.array_equal(numpy.asarray(x * whole), values * whole)
    many = np.array(numpy.arange(SIZE))
    for divisor in (3, -2, -1):
        assert numpy.array_equal(numpy.asarray(many // divisor), numpy.arange(SIZE) // divisor)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Operations are ripe after 20 MiB."""
    tune(monkeypatch, ripe_bytes=20 << 20)
    known.bind()
    first_tier.SITES.clear()
    yield
    monkeypatch.undo()
    known.bind()


def recorded_in_the_end(size: int, length: int) -> int:
    """How many calls of a chain on few elements are recorded after many trips."""
    values = numpy.arange(float(size))
    x, recorded = np.array(values), 0
    for _ in range(NOW.running.ripe_bytes // (16 * size) + 50):
        before, y = TRACER.recorded, x
        for _ in range(length):
            y = y + 1.0
        recorded = TRACER.recorded - before
        assert y[1] == values[1] + length
    return recorded


def test_what_comes_often_is_recorded(soon: None) -> None:
    assert recorded_in_the_end(SIZE // 2, 12) == 12


def test_what_comes_often_is_not_recorded_where_a_flush_takes_longer(soon: None) -> None:
    assert recorded_in_the_end(SIZE // 2, 1) == 0


def test_what_stays_pending_with_a_few_elements_is_compiled(soon: None) -> None:
    """A flush takes longer than NumPy, but these calls are flushed in any case."""
    x, launches = np.array(numpy.zeros(SIZE)), pyfuser.stats().launches
    for trip in range(NOW.running.ripe_bytes // (8 * SIZE) + 2 * first_tier.TRIES):
        x += 1.0
        y = x[: SIZE // 2] + 1.0
        assert len(TRACER.calls) == 2 and y[1] == trip + 2
    assert launches < pyfuser.stats().launches


def middling(x: Any) -> int:
    """How many of three calls are recorded, one of them of another kind."""
    before = TRACER.recorded
    y = (x + 1.0) * 2.0
    z = x[1:] - 3.0
    assert (y[0], z[0]) == (4.0, -2.0)
    return TRACER.recorded - before


def test_functions_ripen_as_a_whole(soon: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "sure", 4 * SIZE)
    x = np.ones(2 * SIZE)
    moved = 3 * 16 * 2 * SIZE
    trips = NOW.running.ripe_bytes // moved
    assert sum(middling(x) for _ in range(trips)) == 0
    middling(x)
    assert [middling(x) for _ in range(3)] == [3, 3, 3]


def test_what_is_large_is_recorded_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "sure", 2 * SIZE)
    before = TRACER.recorded
    np.ones(2 * SIZE) + 1.0
    assert TRACER.recorded == before + 2
    np.ones(2 * SIZE - 1) + 1.0
    assert TRACER.recorded == before + 2


def test_each_kind_of_operands_is_asked_for_once_it_came_often(
    soon: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a loop over parts of an array that shrink."""
    monkeypatch.setattr(LIMITS, "sure", 4 * SIZE)
    tune(monkeypatch, ripe_bytes=1 << 30)
    asked: list[int] = []
    plan = known.plan
    monkeypatch.setattr(known, "plan", lambda *args: asked.append(1) or plan(*args))
    known.bind()
    x = np.ones(2 * SIZE)
    for trip in range(2 * NOW.running.ripe_bytes // (32 * SIZE)):
        assert (x[: 2 * SIZE - trip] + 1.0)[0] == 2.0
    assert asked == []
    for _ in range(known.KINDS):
        assert (x + 1.0)[0] == 2.0
    assert asked == [1]


def test_moved_maps_and_gathers_wait_too(soon: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "sure", 8 * SIZE)
    x, places = np.arange(float(2 * SIZE)), np.arange(2 * SIZE)

    def calls() -> int:
        before = TRACER.recorded
        found = np.roll(x, 1), x[places], np.concatenate((x, x))[0]
        assert (found[0][0], found[1][5], found[2]) == (2.0 * SIZE - 1, 5.0, 0.0)
        return TRACER.recorded - before

    assert calls() == 0
    for _ in range(NOW.running.ripe_bytes // (16 * 2 * SIZE)):
        calls()
    assert calls() == 4


def test_few_elements_are_never_recorded(soon: None) -> None:
    assert recorded_in_the_end(known.MIDDLE - 1, 12) == 0


def columns(count: int, lines: int) -> tuple[int, list[int]]:
    """Of a recurrence along rows of some lines of 16 numbers that runs until it is known, how many
    calls were recorded of its last 12 trips, and the lengths of the traces that ended meanwhile.
    """
    length = 16 * lines
    values = numpy.random.default_rng(0).normal(size=(count, length))
    x, recorded, traces = np.array(values), 0, []
    for _ in range(3 + NOW.running.ripe_bytes // (count * length * 8)):
        x[:] = values
        for k in range(2, length):
            if k == length - 12:
                recorded = TRACER.recorded
            x[:, k] = 0.5 * x[:, k - 1] + x[:, k] * 0.25 - x[:, k - 2] + 1.0
        recorded = TRACER.recorded - recorded
        traces = [len(f.program.given.calls) for f in SESSION.flushes[-2:]]
        expected = values.copy()
        for k in range(2, length):
            now, last, before = (expected[:, k - back] for back in range(3))
            expected[:, k] = 0.5 * last + now * 0.25 - before + 1.0
        assert numpy.array_equal(numpy.asarray(x), expected)
    return recorded, traces


def test_columns_are_recorded_sooner_and_several_in_a_trace(
    soon: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of their elements lies in a cache line of its own."""
    monkeypatch.setattr(LIMITS, "sure", 1 << 20)
    recorded, traces = columns(known.MIDDLE // 4, 2)
    assert recorded == 12 * 6
    assert traces == [6 * record.TRIPS_STRIDED] * 2


def test_traces_of_columns_have_whole_trips(soon: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a trip has so many calls that no second one has room."""
    monkeypatch.setattr(LIMITS, "sure", 1 << 20)
    values = numpy.random.default_rng(0).normal(size=(known.MIDDLE // 4, 24))
    x, lengths = np.array(values), list[int]()
    for _ in range(4):
        lengths.clear()
        for k in range(1, 24):
            a = x[:, k - 1]
            b = a * 0.5 + a * 0.0 + a * 0.0 + a * 0.0 + a * 0.0 + a * 0.0 + a * 0.0
            x[:, k] = b + a * 0.0 + a * 0.0 + a * 0.0 + a * 0.0 + a * 0.0 + a * 0.0
            lengths.append(len(TRACER.calls))
    assert lengths == [26] * 23
    assert numpy.array_equal(numpy.asarray(x)[:, 23], values[:, 0] * 0.5**23)


def test_few_columns_are_not_recorded(soon: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "sure", 1 << 20)
    assert columns(known.MIDDLE // 4 - 1, 2)[0] == 0


def test_numbers_of_numpys_on_the_left_are_as_any_other(
    soon: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LIMITS, "sure", 1 << 20)
    values = numpy.arange(float(SIZE // 2))
    x, recorded = np.array(values), 0
    for _ in range(NOW.running.ripe_bytes // (4 * SIZE)):
        before = TRACER.recorded
        y = numpy.float64(0.5) * x
        for _ in range(11):
            y = numpy.float64(0.5) * y
        recorded = TRACER.recorded - before
        assert y[3] == 3.0 * 0.5**12
    assert recorded == 12


def test_products_of_rows_that_move_on_make_the_same_trace() -> None:
    """As in eliminations: rows and columns of the matrix that the result is stored into."""
    values = numpy.random.default_rng(0).normal(size=(300, 300))
    x, expected = np.array(values), values.copy()
    seen = set()
    for k in range(4):
        x[:] = np.minimum(x[:], np.add.outer(x[:, k], x[k, :]))
        x -= np.outer(x[k], x[:, k]) * 0.5
        seen.add(tuple(call.workunit for call in TRACER.calls))
        assert len(TRACER.calls) == 3  # what was before ran, as rows of it were copied
        expected[:] = numpy.minimum(expected[:], numpy.add.outer(expected[:, k], expected[k, :]))
        expected -= numpy.outer(expected[k], expected[:, k]) * 0.5
    assert len(seen) == 1 and numpy.array_equal(numpy.asarray(x), expected)
    whole = np.array(values[0]) + 1.0
    product = np.outer(whole, whole)
    assert TRACER.calls  # no copy of what is no part of anything
    assert numpy.array_equal(numpy.asarray(product), numpy.outer(values[0] + 1, values[0] + 1))


@pytest.mark.parametrize("shapes", [((3,), (4,)), ((2, 2), (3,)), ((0,), (3,)), ((), (3,))])
def test_products_of_few_elements(shapes: tuple[Any, Any]) -> None:
    one, other = (numpy.arange(float(numpy.prod(shape))).reshape(shape) for shape in shapes)
    for name in ("outer", "add.outer"):
        expected, found = [
            eval(f"m.{name}(m.array(one), m.array(other))", {"m": m, "one": one, "other": other})
            for m in (numpy, np)
        ]
        assert type(found) is np.ndarray and numpy.array_equal(numpy.asarray(found), expected)
        assert found.shape == expected.shape and found.dtype == expected.dtype


def test_few_small_calls_follow_what_is_pending() -> None:
    x, y = np.array(numpy.zeros(SIZE)), np.array(numpy.zeros(10))
    x += 1.0
    for n in range(SMALL_CALLS):
        y[:] = x[:10]
        assert len(TRACER.calls) == n + 2
    y[:] = x[10:20]
    assert not TRACER.calls and (y == 1.0).all()


def test_a_buffer_without_memory_has_no_finaliser() -> None:
    x = np.array(numpy.zeros(SIZE))
    y = x + 1.0
    buffer = y._region.buffer
    assert type(buffer) is Unmade and not hasattr(buffer, "__del__")
    assert y[0] == 1.0 and type(buffer).__name__ == "Allocation"


def test_what_is_known_can_be_forgotten() -> None:
    x = np.array(numpy.zeros(SIZE))
    assert NUMPY.plans() == 0
    y = x + 1.0
    assert NUMPY.plans() == 1
    NUMPY.forget_plans()
    y = y + 1.0
    assert NUMPY.plans() == 1 and y[3] == 2.0
