"""Interrupts and signal handlers at any place of a step, while stores of work arrays wait."""

from __future__ import annotations

from typing import Any

import pytest

import pyfuser
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.runtime import execute, flush, owed, postpone, turns
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.trace import tracer
from tests.faults.test_handlers import Handled
from tests.test_postpone import N, advance, at_once, slope, total

__all__ = ["at_once"]  # a fixture

SOME = 3  # every third place: a test takes seconds

_WATCHED = {module.__file__ for module in (execute, flush, owed, postpone, tracer)}


class Loop:
    """A step of two kernels, each with a work array: k, which makes y, and q, which makes z."""

    def __init__(self) -> None:
        self.x, self.y, self.k, self.q, self.z = (pk.View([N], pk.double) for _ in range(5))
        self.x.fill(1.0)
        self.y[0] = self.z[0] = 0.0  # which the host has seen, so they are stored

    def recorded(self, a: float) -> Any:
        pk.parallel_for(N, slope, k=self.k, x=self.x, a=a)
        pk.parallel_for(N, advance, y=self.y, x=self.x, k=self.k)
        s = pk.parallel_reduce(N, total, y=self.y)
        pk.parallel_for(N, slope, k=self.q, x=self.x, a=s)
        pk.parallel_for(N, advance, y=self.z, x=self.x, k=self.q)
        return pk.parallel_reduce(N, total, y=self.z)

    def step(self, a: float) -> float:
        with pyfuser.fusing():
            return float(self.recorded(a))

    def found(self) -> dict[str, float]:
        found = {}
        for name in "kyqz":
            values = set(getattr(self, name))
            assert len(values) == 1
            found[name] = values.pop()
        return found


def meant(a: float) -> dict[str, float]:
    y = a + 1.0
    return {"k": a, "y": y, "q": N * y, "z": N * y + 1.0}


def _warm() -> Loop:
    """A loop whose latest step left both work arrays."""
    loop = Loop()
    for n in range(40):
        loop.step(7.0)
        if TRACER.postponed == 2:
            break
        if n == 20:
            SESSION.clear()  # of the arrays too many were read
    assert TRACER.postponed == 2
    assert len(SESSION.flushes[-1].program.launches) == 2
    return loop


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are recorded however tiny and steady the loop is."""
    monkeypatch.setattr(turns, "left_out", lambda name: name == "turns")


class _Interrupted(KeyboardInterrupt):
    pass


def _interrupt() -> None:
    raise _Interrupted


@pytest.mark.parametrize("after", ["drop", "go on", "step"])
def test_an_interrupt_at_any_place(after: str) -> None:
    place = len(after) % SOME
    while True:
        loop, dropped = _warm(), ""
        with pyfuser.fusing():
            handled = Handled(place, _interrupt, _WATCHED, raises=True)
            result = loop.recorded(9.0)
            try:
                with handled:
                    float(result)
            except _Interrupted:
                if after == "drop":
                    dropped = " ".join(pyfuser.discard())
                elif after == "step":
                    assert loop.step(11.0) == meant(11.0)["z"] * N
            if not handled.happened:
                break
        where = f"interrupted at place {place}, dropped {dropped}"
        last = {"drop": 9.0, "go on": 9.0, "step": 11.0}[after]
        expected = meant(last)
        for names, count in (("qz", 1), ("ky", 2)):
            if dropped.count("slope") >= count:
                expected.update((name, meant(7.0)[name]) for name in names)
        assert loop.found() == expected, where
        assert not TRACER.calls and not TRACER.raw, where
        place += SOME
    assert place > 60


def _drops(loop: Loop) -> str:
    return " ".join(pyfuser.discard())


def _steps(loop: Loop) -> str:
    assert loop.step(20.0) == meant(20.0)["z"] * N
    return ""


def _reads(loop: Loop) -> str:
    assert loop.k[3] in (7.0, 9.0)
    assert loop.q[3] in (meant(7.0)["q"], meant(9.0)["q"])
    return ""


def _sums(loop: Loop) -> str:
    with pyfuser.fusing():
        assert float(pk.parallel_reduce(N, total, y=loop.x)) == N
    return ""


@pytest.mark.parametrize("does", [_drops, _steps, _reads, _sums])
def test_a_handler_at_any_place(does: Any) -> None:
    place = len(does.__name__) % SOME
    while True:
        loop, told = _warm(), [""]

        def handler(loop: Loop = loop, told: list[str] = told) -> None:
            told.append(does(loop))

        handled = Handled(place, handler, _WATCHED, raises=True)
        with pyfuser.fusing():
            result = loop.recorded(9.0)
            try:
                with handled:
                    float(result)
            except pyfuser.PyFuserError:
                assert does is _drops
        if not handled.happened:
            break
        where = f"handled at place {place}: {told[-1]}"
        expected = [meant(9.0), *([meant(20.0)] if does is _steps else [])]
        for names, count in (("qz", 1), ("ky", 2)):
            if told[-1].count("slope") >= count:
                expected[0].update((name, meant(7.0)[name]) for name in names)
        assert loop.found() in expected, where
        pyfuser.sync()
        assert not TRACER.calls and not TRACER.raw and not TRACER.postponed, where
        buffers = [getattr(loop, name)._region.buffer for name in "xykqz"]
        assert not any(buffer.pending for buffer in buffers), where
        place += SOME
    assert place > 60
