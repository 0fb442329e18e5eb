"""Long loops are cut into traces after whole rounds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.runtime.session import TRACER
from pyfuser.trace.period import period_of, room_for
from pyfuser.trace.tracer import MAX_CALLS
from tests import sessions


def calls(text: str) -> Any:
    kinds = {letter: object() for letter in set(text)}
    return [SimpleNamespace(workunit=kinds[letter], space=None) for letter in text]


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("a" * 20, 1),
        ("ab" * 10, 2),
        ("aab" * 10, 3),
        ("xyz" + "aab" * 10 + "a", 3),
        ("abcdefghijklmnopqrst", 0),
        ("aab" * 10 + "x", 0),
        ("", 0),
    ],
)
def test_the_period_is_that_of_the_later_half(text: str, period: int) -> None:
    assert period_of(calls(text)) == period


@pytest.mark.parametrize(("period", "room"), [(1, 512), (3, 510), (5, 510), (100, 400), (0, 512)])
def test_there_is_room_for_whole_rounds(period: int, room: int) -> None:
    kinds = [object() for _ in range(period or 600)]
    loop = [SimpleNamespace(workunit=kinds[n % len(kinds)], space=None) for n in range(512)]
    assert room_for(loop, 512) == room  # type: ignore[arg-type]


@pk.workunit
def add(i, y, x):
    y[i] += x[i]


@pk.workunit
def put(i, y, x):
    y[i] = x[i]


@pk.workunit
def half(i, y):
    y[i] *= 0.5


def test_a_long_loop_is_planned_for_two_traces() -> None:
    """Seven calls a round: seven phases without this."""
    with sessions.fresh(), pyfuser.fusing():
        x, y = pk.View([8], pk.double), pk.View([8], pk.double)
        x.fill(1.0)
        pyfuser.sync()
        try:
            before = pyfuser.stats().plans
            for _ in range(700):
                for _ in range(2):
                    pk.parallel_for(8, put, y=y, x=x)
                    pk.parallel_for(8, add, y=x, x=y)
                    pk.parallel_for(8, half, y=x)
                pk.parallel_for(8, add, y=y, x=x)
            assert pyfuser.stats().plans - before == 2
            assert TRACER.limit == 504
            pyfuser.sync()
            assert np.all(np.asarray(x) == 1.0) and np.all(np.asarray(y) == 2.0)
        finally:
            TRACER.limit = MAX_CALLS
