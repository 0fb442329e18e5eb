"""One thread or all: whichever takes less time runs a launch that comes again and again."""

from __future__ import annotations

import ctypes
import itertools
import struct
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.runtime import prepared
from pyfuser.runtime.session import TRACER
from pyfuser.support.extension import HOT
from pyfuser.trace.gate import Ran

pytestmark = pytest.mark.skipif(HOT is None, reason="it is the extension's")

ALL = 4
BEGIN, TRIAL, SOON, AGAIN = 12, 8, 64, 1024
SHORT, LONG = 0.0, 0.004


def launches(count: int, seconds: Callable[[int, int], float], either: bool = True) -> list[int]:
    """How many threads each launch had. seconds: what one takes, by its number and its threads."""
    had: list[int] = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int64))
    def kernel(slots: Any) -> int:
        had.append(int(slots[0]))
        time.sleep(seconds(len(had) - 1, had[-1]))
        return 0

    address = ctypes.cast(kernel, ctypes.c_void_p).value
    patches = ((0, 0, 0, 0, 0, None, -1, 0),)  # the number of threads, in the first slot
    step = address, struct.pack("q", 0), patches, (), None
    steps, gate = HOT.Prepared((step,), (), either), TRACER.gate
    TRACER.gate = [True]
    try:
        for _ in range(count):
            steps.run(TRACER, [], Ran(TRACER.gate), ALL)
    finally:
        TRACER.gate = gate
    return had


def test_all_threads_run_what_they_run_faster() -> None:
    had = launches(40, lambda number, threads: LONG if threads == 1 else SHORT)
    assert had[:BEGIN] == [ALL] * BEGIN
    assert had[BEGIN : BEGIN + 4] == [ALL, 1, ALL, 1]
    assert had[BEGIN + 4 :] == [ALL] * (40 - BEGIN - 4)  # it was clear after two pairs


def test_one_thread_runs_what_all_wait_for() -> None:
    had = launches(40, lambda number, threads: SHORT if threads == 1 else LONG)
    assert had[BEGIN : BEGIN + TRIAL] == [ALL, 1] * (TRIAL // 2)
    assert had[BEGIN + TRIAL :] == [1] * (40 - BEGIN - TRIAL)


def test_all_threads_run_what_takes_as_long() -> None:
    had = launches(40, lambda number, threads: LONG)
    assert had[BEGIN + TRIAL :] == [ALL] * (40 - BEGIN - TRIAL)


def test_one_launch_that_was_held_up_decides_nothing() -> None:
    had = launches(40, lambda number, threads: 10 * LONG if number == BEGIN else LONG)
    assert had[BEGIN + TRIAL :] == [ALL] * (40 - BEGIN - TRIAL)


def test_it_is_tried_again_as_others_may_be_gone() -> None:
    first = BEGIN + TRIAL + SOON

    def seconds(number: int, threads: int) -> float:
        if number < BEGIN or BEGIN + TRIAL <= number < first:
            return 0.0
        return LONG if (threads == 1) == (number >= first) else SHORT

    had = launches(first + 20, seconds)
    assert had[first - 1] == 1
    assert had[first : first + 4] == [ALL, 1, ALL, 1]
    assert had[-1] == ALL


def test_as_long_as_others_stay_it_is_tried_less_and_less_often() -> None:
    had = launches(2500, lambda number, threads: SHORT if threads == 1 else LONG / 4)
    tried = [
        number for number, threads in enumerate(had) if threads == ALL and number >= BEGIN + TRIAL
    ]
    gaps = [later - sooner for sooner, later in itertools.pairwise(tried)]
    assert tried[0] == BEGIN + TRIAL + SOON
    assert [gap - 2 for gap in gaps] == [128, 256, 512, 1024]  # a pair each: it was hopeless
    assert had[-1] == 1


def test_is_not_tried_where_the_order_of_threads_matters() -> None:
    had = launches(40, lambda number, threads: SHORT if threads == 1 else LONG, either=False)
    assert had == [ALL] * 40


@pk.workunit
def scale(i, x, y):
    x[i] = 2.0 * y[i] + 1.0


@pk.workunit
def shift(i, x, y):
    y[i] = x[i] - 0.5


@pk.workunit
def count(i, counts, places):
    pk.atomic_add(counts, [places[i]], 1)


@pk.workunit
def weigh(i, sums, places, x):
    pk.atomic_add(sums, [places[i]], x[i])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each program that was prepared may have either number of threads."""
    found: list[bool] = []
    make = HOT.Prepared

    def note(steps: Any, bands: Any = (), either: bool = False) -> Any:
        found.append(either)
        return make(steps, bands, either)

    monkeypatch.setattr(prepared, "HOT", SimpleNamespace(Prepared=note))
    return found


def run(*units: Any) -> None:
    arrays = {name: numpy.ones(64) for name in ("x", "y", "sums")}
    arrays |= {"counts": numpy.zeros(64, int), "places": numpy.arange(64)}  # type: ignore[dict-item]
    views = {name: pk.array(array) for name, array in arrays.items()}
    with pyfuser.fusing():
        for _ in range(40):
            for unit in units:
                named = unit.__code__.co_varnames[1 : unit.__code__.co_argcount]
                pk.parallel_for(64, unit, **{name: views[name] for name in named})
            pyfuser.sync()


def test_maps_may_have_either(asked: list[bool]) -> None:
    run(scale, shift)
    assert asked and all(asked)


def test_tallies_of_integers_may(asked: list[bool]) -> None:
    run(scale, count)
    assert asked and all(asked)


def test_atomic_sums_of_floats_may_not(asked: list[bool]) -> None:
    run(scale, weigh)
    assert asked and not any(asked)


def test_it_can_be_left_out(asked: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "left_out", lambda name: name == "team-turns")
    run(shift, scale)
    assert asked and not any(asked)
