"""Steady loops run what they ran before; whatever changes between two rounds is noticed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.frontends.embedded.arguments import classify
from pyfuser.ir.dtypes import DType
from pyfuser.runtime import replay, roll
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.tuning.thresholds import NOW
from tests import sessions

N = 100
FACTOR = 2.0


@pk.workunit
def scale(i, y, x, a):
    y[i] = a * x[i]


@pk.workunit
def add(i, y, x):
    y[i] += x[i]


@pk.workunit
def move(i, y, x, k):
    y[i] = x[i + k]


@pk.workunit
def by_global(i, y):
    y[i] = y[i] * FACTOR


@pk.workunit
def total(i, acc, x):
    acc += x[i]


@pk.workunit
def divide(i, y, d):
    y[i] = y[i] // d[i]


@pk.workunit
def scale_none(i, y, x):
    y[i] = 1.0


@pk.workunit
def double_row(member: pk.TeamMember, y, width):
    row: int = member.league_rank()

    def one(j: int):
        y[row * width + j] *= 2.0

    pk.parallel_for(pk.TeamThreadRange(member, width), one)


@pytest.fixture(autouse=True)
def session() -> Iterator[None]:
    with sessions.fresh(), pyfuser.fusing():
        yield
    pyfuser.discard()


@contextlib.contextmanager
def counted(**expected: int) -> Iterator[None]:
    """Counts that the block adds."""
    before = pyfuser.stats()
    yield
    after = pyfuser.stats()
    assert {name: getattr(after, name) - getattr(before, name) for name in expected} == expected


def misses() -> dict[str, int]:
    return dict(pyfuser.stats().misses)


def view(values: np.ndarray) -> pk.View:
    made = pk.View([len(values)], pk.double)
    made[:] = values
    return made


def test_a_loop_that_swaps_changes_scalars_and_makes_temporaries_is_replayed() -> None:
    x, y = view(np.arange(N) * 1.0), view(np.ones(N))
    expected = np.arange(N) * 1.0, np.ones(N)

    def step(a: float) -> None:
        nonlocal x, y, expected
        t = pk.View([N], pk.double)
        pk.parallel_for(N, scale, y=t, x=x, a=a)
        pk.parallel_for(N, add, y=y, x=t)
        del t
        pyfuser.sync()
        expected = expected[1] + a * expected[0], expected[0]
        x, y = y, x

    step(0.5)
    with counted(replays=8, plans=0, flushes=8):
        for k in range(8):
            step(0.25 * k)
    assert np.array_equal(np.asarray(x), expected[0])
    assert np.array_equal(np.asarray(y), expected[1])


def test_calls_of_teams_are_replayed() -> None:
    """... whose policies are made anew for each call."""
    y = view(np.arange(float(N)))
    for round_ in range(6):
        with counted(replays=round_ > 0):
            for size in pk.AUTO, 1, 2:
                pk.parallel_for(pk.TeamPolicy(N // 10, size), double_row, y=y, width=10)
            pyfuser.sync()
    np.testing.assert_array_equal(y.data, np.arange(float(N)) * 2.0**18)


def test_runs_are_not_looked_for_in_traces_that_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    monkeypatch.setattr(roll, "runs_of", lambda calls, least: looked.append(len(calls)) or [])
    x, y = view(np.arange(float(N))), view(np.zeros(N))
    for _ in range(6):
        for _ in range(NOW.running.rolled_rounds):
            pk.parallel_for(N, scale, y=y, x=x, a=2.0)
        pyfuser.sync()
    assert looked == [NOW.running.rolled_rounds]


def test_other_leagues_and_teams_are_other_traces() -> None:
    y = view(np.ones(N))
    for round_, (league, size) in enumerate([(10, 2), (5, 2), (10, 4), (2, 10), (10, 2)]):
        with counted(replays=round_ == 4):
            pk.parallel_for(pk.TeamPolicy(league, size), double_row, y=y, width=10)
            pyfuser.sync()
    np.testing.assert_array_equal(y.data, [32.0] * 20 + [16.0] * 30 + [8.0] * 50)


def test_a_result_that_is_read_is_replayed() -> None:
    x = view(np.ones(N))
    found = []
    with counted(plans=1):
        for _ in range(8):
            pk.parallel_for(N, scale, y=x, x=x, a=2.0)
            found.append(float(pk.parallel_reduce(N, total, x=x)))
    assert found == [N * 2.0 ** (k + 1) for k in range(8)]
    assert pyfuser.stats().replays
    with counted(replays=1):
        pk.parallel_for(N, scale, y=x, x=x, a=2.0)
        float(pk.parallel_reduce(N, total, x=x))


def test_a_result_of_an_earlier_flush_is_a_number_as_any_other() -> None:
    x, y = view(np.full(N, 0.5)), view(np.zeros(N))
    before = pyfuser.stats().replays
    for k in range(20):
        s = pk.parallel_reduce(N, total, x=x)
        assert s == 0.5 * N
        pk.parallel_for(N, scale, y=y, x=x, a=s)
        pk.parallel_for(N, scale, y=y, x=y, a=2.0 if k % 2 else s)
        pyfuser.sync()
        assert np.all(np.asarray(y) == 0.25 * N * (2.0 if k % 2 else 0.5 * N))
    assert pyfuser.stats().replays - before > 30


def test_a_result_that_decides_what_is_touched_is_a_part_of_the_key() -> None:
    @pk.workunit
    def ones(i: int, acc: pk.Acc[int], n: int) -> None:
        if i < n:
            acc += 1

    x, y = view(np.arange(2.0 * N)), view(np.zeros(N))
    for n in (0, 3, 3, 0, 5, 3) * 4:
        k = pk.parallel_reduce(N, ones, n=n)
        assert k == n
        pk.parallel_for(N, move, y=y, x=x, k=k)
        pk.parallel_for(N, move, y=x, x=y, k=0)
        pyfuser.sync()
        assert np.array_equal(np.asarray(y), np.asarray(x)[:N])


def test_a_temporary_that_stays_alive_is_no_temporary() -> None:
    x, y = view(np.ones(N)), view(np.zeros(N))

    def step(keep: bool) -> pk.View | None:
        t = pk.View([N], pk.double)
        pk.parallel_for(N, scale, y=t, x=x, a=3.0)
        pk.parallel_for(N, add, y=y, x=t)
        kept = t if keep else None
        del t
        pyfuser.sync()
        return kept

    for _ in range(3):
        step(False)
    before = misses()
    kept = step(True)
    assert kept is not None and kept[N - 1] == 3.0
    assert misses().get(replay.MEMORY, 0) == before.get(replay.MEMORY, 0) + 1
    assert np.asarray(y).tolist() == [12.0] * N


def test_fresh_memory_is_not_memory_that_has_values() -> None:
    x = view(np.ones(N))

    def step(t: pk.View) -> list[float]:
        pk.parallel_for(N, add, y=t, x=x)
        pyfuser.sync()
        return np.asarray(t).tolist()

    for _ in range(3):
        assert step(pk.View([N], pk.double)) == [1.0] * N
    assert step(view(np.full(N, 5.0))) == [6.0] * N
    assert step(pk.View([N], pk.double)) == [1.0] * N


def test_what_moves_on_in_its_memory_is_replayed() -> None:
    """Rows of a View, of which there are more than traces that are kept, and of an array."""
    rows, width = 600, 8
    values = np.arange(float(rows * width)).reshape(rows, width)
    for table, expected in (
        (pk.View([rows, width], pk.double), values.copy()),
        (values.copy(), values.copy()),
    ):
        table[:] = values
        before = pyfuser.stats().replays
        for k in range(1, rows):
            pk.parallel_for(width, scale, y=table[k], x=table[k - 1], a=0.5)
            pk.parallel_for(width, add, y=table[k], x=table[k - 1])
            pyfuser.sync()
            expected[k] = 0.5 * expected[k - 1] + expected[k - 1]
        assert np.array_equal(np.asarray(table), expected)
        assert pyfuser.stats().replays - before > rows - 10


def test_what_moves_on_against_other_memory_is_another_trace() -> None:
    """The distance between two parts of one View is a part of the key."""
    values = np.arange(6.0 * N)
    table = view(values)
    for start in (3, 0, 2, 1, 3, 2):
        part = slice(start * N, (start + 1) * N)
        pk.parallel_for(N, scale, y=table[5 * N :], x=table[part], a=2.0)
        pk.parallel_for(N, add, y=table[4 * N : 5 * N], x=table[part])
        pyfuser.sync()
        values[5 * N :] = 2.0 * values[part]
        values[4 * N : 5 * N] += values[part]
        assert np.array_equal(np.asarray(table), values)


def test_parts_of_fresh_memory_are_told_apart_by_where_they_begin() -> None:
    """What a call does not write of it is zero."""
    for start in (0, N, 2 * N, 0, N, 0):
        table = pk.View([3 * N], pk.double)
        pk.parallel_for(N, add, y=table[start : start + N], x=view(np.ones(N)))
        pk.parallel_for(N, scale, y=table[start : start + N], x=table[start : start + N], a=3.0)
        pyfuser.sync()
        expected = np.zeros(3 * N)
        expected[start : start + N] = 3.0
        assert np.array_equal(np.asarray(table), expected)


def test_arrays_that_overlap_in_another_way_are_another_trace() -> None:
    base = np.arange(3.0 * N)

    def step(start: int) -> None:
        nonlocal base
        expected = base.copy()
        y, x = base[:N], base[start : start + N]
        pk.parallel_for(N, scale, y=y, x=x, a=2.0)
        pk.parallel_for(N, add, y=y, x=y)
        pyfuser.sync()
        expected[:N] = 4.0 * expected[start : start + N]
        if start >= N or start == 0:
            assert np.array_equal(base, expected)

    for start in (N, N, N, 0, 0, 2 * N, N):
        step(start)
    with counted(replays=3):
        for start in (N, 0, 2 * N):
            step(start)


def test_a_number_that_decides_what_is_touched_is_a_part_of_the_key() -> None:
    x, y = view(np.arange(2.0 * N)), view(np.zeros(N))
    before = misses().get(replay.NEW, 0)
    for k in (1, 1, 1, 2, 1, 3):
        pk.parallel_for(N, move, y=y, x=x, k=k)
        pk.parallel_for(N, scale, y=y, x=y, a=1.0)
        pyfuser.sync()
        assert y[0] == k
    assert misses().get(replay.NEW) == before + 3


def test_dtypes_strides_and_sizes_are_parts_of_the_key() -> None:
    y = view(np.zeros(N))
    for x in (
        np.full(N, 2.0), np.full(N, 3.0), np.full(N, 4.0, np.float32), np.full(2 * N, 5.0)[::2],
        np.full(N, 6, np.int64), np.full(N + 1, 7.0), np.full(N, 8.0),
    ):  # fmt: skip
        pk.parallel_for(N, scale, y=y, x=x, a=1.0)
        pyfuser.sync()
        assert set(np.asarray(y).tolist()) == {float(x[0])}
        with pk_exported(y):
            pass


@contextlib.contextmanager
def pk_exported(y: pk.View) -> Iterator[None]:
    """An array over a View's memory lives in the block."""
    array = np.asarray(y)
    yield
    del array


def test_a_global_that_changes_is_taken_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    x = view(np.ones(N))
    expected = 1.0
    for factor in (2.0, 2.0, 3.0, 2.0, 3.0):
        monkeypatch.setitem(by_global.__globals__, "FACTOR", factor)
        pk.parallel_for(N, by_global, y=x)
        pyfuser.sync()
        expected *= factor
        assert x[1] == expected


def test_numbers_of_every_kind_reach_replayed_kernels() -> None:
    x, y = view(np.ones(N)), view(np.zeros(N))
    for a in (1.5, 2.5, 3, 4, np.float64(5.5), np.int32(6), True, np.float32(7.5), 2**40):
        for _ in range(2):
            pk.parallel_for(N, scale, y=y, x=x, a=a)
            pyfuser.sync()
            assert y[3] == float(a)


def test_a_division_by_zero_in_a_replay_drops_what_comes_after() -> None:
    y, d, z = pk.View([N], pk.int64), pk.View([N], pk.int64), view(np.ones(N))

    def step(divisor: int, *, fails: bool) -> None:
        y.fill(8)
        d.fill(divisor)
        pyfuser.sync()
        pk.parallel_for(N, divide, y=y, d=d)
        pk.parallel_for(N, scale, y=z, x=z, a=2.0)
        result = pk.parallel_reduce(N, total, x=z)
        with pytest.raises(pyfuser.DivisionError) if fails else contextlib.nullcontext():
            pyfuser.sync()
        assert not pyfuser.pending()
        with pytest.raises(pyfuser.DivisionError) if fails else contextlib.nullcontext():
            float(result)

    for _ in range(3):
        step(2, fails=False)
    step(0, fails=True)
    with counted(replays=1):
        step(2, fails=False)
    assert y[5] == 4


def test_explain_tells_of_a_replay_what_it_tells_of_the_first_run() -> None:
    x, y = view(np.ones(N)), view(np.zeros(N))
    told = []
    for _ in range(4):
        pk.parallel_for(N, scale, y=y, x=x, a=2.0)
        pk.parallel_for("mine", N, add, y=y, x=x)
        pyfuser.sync()
        told.append([c.name for g in pyfuser.explain().groups for c in g.calls])
        asked = pyfuser.explain().asked
        assert asked[0].line == asked_line() and asked[0].file == __file__
    assert told == [["scale", "mine"]] * 4


def asked_line() -> int:
    code = test_explain_tells_of_a_replay_what_it_tells_of_the_first_run.__code__
    return code.co_firstlineno + 6


def test_what_is_forgotten_is_learnt_anew() -> None:
    x = view(np.ones(N))

    def step() -> None:
        pk.parallel_for(N, scale, y=x, x=x, a=1.0)
        pyfuser.sync()

    step()
    with counted(replays=1):
        step()
    SESSION.clear()
    with counted(replays=0, plans=1):
        step()
    with counted(replays=1):
        step()


def test_the_table_keeps_alive_what_its_keys_name() -> None:
    x = view(np.ones(N))
    pk.parallel_for(N, scale, y=x, x=x, a=1.0)
    call = TRACER.calls[-1]
    workunit, space = call.workunit, call.space
    pyfuser.sync()
    (known,) = SESSION.replays.values()
    (kept,) = known.values()
    assert kept.held == ((workunit, space),)


def arrays() -> list[np.ndarray]:
    """Of every type, and in every way in which an array may lie."""
    made = [np.ones(4, dtype.numpy) for dtype in DType]
    base = np.arange(48.0).reshape(4, 3, 4)
    made += [base[::2], base[:, ::-1], base.T, base[:, :1], base[:0], base[1, 2], base[1, 2, 3:]]
    made += [np.broadcast_to(np.ones(4), (3, 4)), np.asfortranarray(base), np.float64(3.0) * base]
    record = np.zeros(6, np.dtype([("a", np.int16), ("x", np.float64)], align=False))
    made += [record["x"], record["a"], np.ones(4, np.longlong), np.ones((2, 1, 3), np.float32)]
    made.append(base.view())
    made[-1].flags.writeable = False
    return made


@pytest.mark.parametrize("place", range(len(arrays())))
def test_the_extension_sees_arrays_as_python_does(place: int) -> None:
    """Region, buffer and code of an array that is read."""
    array = arrays()[place]
    code, expected = classify("x", array)
    y = pk.View([4], pk.double)
    for _ in range(2):  # the first call of a kind is Python's
        pk.parallel_for(4, scale_none, y=y, x=array)
        region = TRACER.calls[-1].arguments[1]
        assert tuple(region)[1:] == tuple(expected)[1:]
        assert type(region) is type(expected) and type(region.buffer) is type(expected.buffer)
        for name in ("address", "external", "lent", "nbytes", "image", "_exports", "_handle"):
            assert getattr(region.buffer, name) == getattr(expected.buffer, name), name
    assert ("for", 1, "y", y._code, "x", code) in scale_none.__pyfuser__.bindings
