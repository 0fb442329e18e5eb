"""Tiny calls of steady loops take turns: recorded, or at once; either way with the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.engine.store.store import Store
from pyfuser.frontends.embedded.dispatch import watched_for
from pyfuser.frontends.modes import SWITCHES
from pyfuser.runtime import turns
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.counters import COUNTERS
from pyfuser.support.extension import HOT
from pyfuser.trace.future import Future
from pyfuser.trace.reason import SYNC

N = 50
TRIPS = 40  # of two calls: more than are made until it is asked what is known


@pk.workunit
def scale(i, y, x, a):
    y[i] = a * x[i]


@pk.workunit
def total(i, acc, y):
    acc += y[i]


@pk.workunit
def tally(i, y, count):
    pk.atomic_add(count, [0], y[i])


class Told:
    """Answers in place of `Turns`; kept: what was decided."""

    def __init__(self, ready: int = turns.NEVER, known: bool = False) -> None:
        self.answers = ready, known
        self.decided: list[bool] = []

    def bind(self) -> Told:
        """Answer from now on."""
        HOT.bind_turns(lambda _: self.answers[0], lambda _: self.answers[1], self.decided.append)
        return self


@pytest.fixture(autouse=True)
def off_again() -> Iterator[None]:
    if HOT is None:
        pytest.skip("the extension is not built")
    TRACER.flush(SYNC)
    SESSION.clear()
    yield
    TRACER.flush(SYNC)
    SESSION.clear()
    HOT.bind_turns(None, None, None)


def views(n: int = N) -> tuple[pk.View, pk.View]:
    x, y = pk.View([n], pk.double), pk.View([n], pk.double)
    x.data[:] = np.random.default_rng(1).random(n)
    return x, y


def loop(trips: int, x: pk.View, y: pk.View) -> tuple[list[float], list[int]]:
    """The sums of trips, and how many kernels each launched."""
    sums, launches = [], []
    n = x.shape[0]
    with pyfuser.fusing():
        for k in range(trips):
            before = COUNTERS.launches
            pk.parallel_for(n, scale, y=y, x=x, a=float(k))
            result = pk.parallel_reduce(n, total, y=y)
            assert type(result) is Future
            sums.append(float(result))
            launches.append(COUNTERS.launches - before)
    return sums, launches


def test_what_was_found_better_alone_runs_at_once_with_the_same_bits() -> None:
    x, y = views()
    expected, fused = loop(TRIPS, x, y)
    assert fused[-1] == 1
    HOT.bind_turns(None, None, None)
    Told(known=True).bind()
    found, launches = loop(TRIPS, x, y)
    assert found == expected
    assert launches[-1] == 2
    assert not TRACER.calls


@pytest.mark.parametrize("known", [True, False])
def test_programs_that_know_nothing_of_us_take_turns(
    monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    x, y = views()  # before: such a program may keep what `data` gave it
    monkeypatch.setattr(SWITCHES, "careful", True)
    monkeypatch.setattr(SWITCHES, "everywhere", True)
    Told(known=known).bind()
    for k in range(2 * TRIPS):
        watched_for(N, scale, y=y, x=x, a=float(k))
        pending = len(TRACER.calls)
        number = pk.parallel_reduce(N, total, y=y)
        assert type(number) is float
    assert pending == (0 if known else 1)


def test_what_was_not_found_better_stays_recorded() -> None:
    Told(known=False).bind()
    assert loop(TRIPS, *views())[1][-1] == 1


def test_large_calls_are_recorded() -> None:
    Told(known=True).bind()
    assert loop(TRIPS, *views(40_000))[1][-1] == 2
    assert loop(TRIPS, *views(1 << 18))[1][-1] == 2
    assert loop(TRIPS, *views((1 << 18) + 1))[1][-1] == 1


def test_turns_of_larger_calls_are_shorter() -> None:
    """A call of 100,000 iterations counts as 25: a turn of 512 is ten trips."""
    Told(ready=0).bind()
    _, launches = loop(600, *views(100_000))
    _, *kinds, _ = [len(list(same)) for _, same in groupby(launches)]
    assert len(kinds) >= 3  # at least four pairs, of which two turns of one kind are neighbours
    assert max(kinds) <= 24


@pytest.mark.parametrize(("dtype", "recorded"), [(pk.double, True), (pk.int32, False)])
def test_calls_whose_order_shows_are_recorded(dtype: object, recorded: bool) -> None:
    """Sums of floats by atomics have other last bits in another order: no clock may decide."""
    Told(known=True).bind()
    x, y = views()
    count = pk.View([1], dtype)
    with pyfuser.fusing():
        for k in range(TRIPS):
            pk.parallel_for(N, scale, y=y, x=x, a=float(k))
            pk.parallel_for(N, tally, y=y, count=count)
            last = [call.name for call in TRACER.calls]
            pyfuser.sync()
    assert last == (["tally"] if recorded else [])


def test_a_call_of_a_new_kind_begins_anew() -> None:
    told = Told(known=True).bind()
    x, y = views()
    assert loop(TRIPS, x, y)[1][-1] == 2
    told.answers = turns.NEVER, False
    with pyfuser.fusing():
        for _ in range(2):  # the extension knows it from its second call on
            pk.parallel_for(N, scale, y=y, x=x, a=1)  # an integer: another kind
            pyfuser.sync()
    assert loop(TRIPS, x, y)[1][-1] == 1


def test_both_ways_are_measured() -> None:
    told = Told(ready=0).bind()
    x, y = views()
    expected = [0.0] * 4
    for k in range(4):
        expected[k] = float(np.sum(np.array(x.data) * k))
    trips = 7_000 + 2 * turns.KERNEL
    sums, launches = loop(trips, x, y)
    assert len(told.decided) >= 1
    assert {1, 2} <= set(launches)  # fused, and one by one
    assert sums[1] == pytest.approx(expected[1])
    assert sums[3] == pytest.approx(expected[3])
    assert sums[4096] == 4096 * sums[1]  # exact, whatever ran which
    assert launches[-1] == (2 if told.decided[-1] else 1)


def test_kernels_that_are_missing_are_waited_for_and_choices_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "plans")
    store.off = False
    monkeypatch.setattr("pyfuser.engine.store.store.STORE", store)
    real = turns.Turns()
    x, y = views()
    with pyfuser.unfused():
        loop(1, x, y)
    loop(3, x, y)
    assert real.ready(None) == 2 * turns.KERNEL  # neither has run alone
    assert real.ready(None) == 0  # that was waited for
    assert not real.known(None)
    real.decided(True)
    assert real.known(None)
    assert "scale" in str(pyfuser.explain())
    real.decided(False)
    assert not real.known(None)
    for _ in range(turns.WINDOW):  # other traces are the latest when it is decided
        loop(1, *views(N + 1))
    real.decided(True)
    loop(turns.WINDOW, x, y)
    assert turns.Turns().known(None)
