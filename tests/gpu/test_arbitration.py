"""Trials of doubtful groups on a GPU, by made-up times of its clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pykokkos as pk
import pytest

import pyfuser
from pyfuser.engine.gpu import timing
from pyfuser.runtime import autotune, autotune_gpu
from pyfuser.runtime.autotune import ROUNDS, STEADY
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.counters import COUNTERS
from pyfuser.trace.reason import SYNC

N = 20_000


@pk.workunit
def shift(i, y, a):
    y[i] = y[i] + a


@pk.workunit
def total(i, acc, x):
    acc += x[i]


@pk.workunit
def rows(team, y):
    def add(j):
        y[team.league_rank() * 32 + j] += 1.0

    pk.parallel_for(pk.TeamThreadRange(team, 32), add)


@pytest.fixture(autouse=True)
def arbitrating(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cupy: Any) -> None:
    settings = replace(autotune.SETTINGS, arbitrate=True, cache_dir=tmp_path)
    monkeypatch.setattr(autotune, "SETTINGS", settings)
    monkeypatch.setattr(autotune, "LONG", 0.0)
    monkeypatch.setattr(autotune, "DOUBT", 100.0)
    monkeypatch.setattr(autotune_gpu, "WORTH", 0.0)
    TRACER.flush(SYNC)
    SESSION.programs.clear()
    SESSION.flushes.clear()


class Loop:
    """A steady loop of two calls that make one group. `sums` are not read."""

    def __init__(self) -> None:
        self.x, self.y = (pk.View([N], pk.double) for _ in range(2))
        self.x.fill(0.5)
        self.y.fill(0.0)
        pyfuser.sync()
        self.sums: list[Any] = []

    def step(self) -> int:
        """One flush; gives its number of kernels."""
        with pyfuser.fusing():
            pk.parallel_for(N, shift, y=self.y, a=0.25)
            self.sums.append(pk.parallel_reduce(N, total, x=self.x))
        return pyfuser.explain().launches


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float, float], None]:
    """Sets seconds: of the group in one launch, and of each of its parts."""

    def make(fused: float, part: float) -> None:
        def seconds(self: Any, group: Any) -> float:
            return sum(fused if calls == group else part for calls, _ in self._marks)

        monkeypatch.setattr(autotune_gpu.Measure, "seconds", seconds)

    return make


@pytest.mark.parametrize(("part", "kernels"), [(0.3, 2), (0.6, 1)])
def test_the_faster_side_stays(clock: Any, fake: Any, part: float, kernels: int) -> None:
    clock(1.0, part)
    loop = Loop()
    ran = []
    for _ in range(STEADY + 2 * ROUNDS + 5):
        ran.append(loop.step())
        pyfuser.sync()  # so a flush knows what all before it took
    assert ran[: STEADY + 1] == [1] * (STEADY + 1)
    assert ran[STEADY + 1 :][: 2 * ROUNDS] == [2, 1] * ROUNDS
    assert ran[-3:] == [kernels] * 3
    assert [float(s) for s in loop.sums] == [N / 2] * len(ran)
    assert loop.y[N - 1] == 0.25 * len(ran)
    (found,) = (autotune.SETTINGS.cache_dir / "choices").iterdir()
    assert found.exists()
    SESSION.programs.clear()
    assert loop.step() == kernels, "it is remembered"


def test_nobody_waits_for_the_device(clock: Any, fake: Any) -> None:
    """What has not run yet has no time: the loop goes on fused, and is queued without end."""
    clock(1.0, 0.3)
    loop = Loop()
    ran = [loop.step() for _ in range(STEADY + 2)]
    assert ran == [1] * len(ran), "the first time is not known"
    pyfuser.sync()
    ran = [loop.step() for _ in range(2 * ROUNDS + 6)]
    assert ran == [1] + [2, 1] * ROUNDS + [1] * 5, "the times of the trial are not known"
    pyfuser.sync()
    assert [loop.step() for _ in range(3)] == [1, 2, 2]
    assert loop.y[5] == 0.25 * len(loop.sums)


def test_times_are_the_devices(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spans: list[timing.Span] = []

    class Kept(timing.Span):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            spans.append(self)

    monkeypatch.setattr(timing, "Span", Kept)
    monkeypatch.setattr(autotune_gpu, "WORTH", 1e9)
    loop = Loop()
    for _ in range(STEADY + 3):
        loop.step()
        pyfuser.sync()
    (span,) = spans
    assert span.done and span.seconds >= 0.0


def test_what_is_long_steady_but_not_worth_it_is_replayed(
    clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One flush is timed; graphs go on."""
    clock(1e-9, 1e-9)
    monkeypatch.setattr(autotune_gpu, "WORTH", 1.0)
    loop, z = Loop(), pk.View([N // 2], pk.double)
    before = COUNTERS.graph_launches
    for _ in range(STEADY + 8):
        with pyfuser.fusing():
            pk.parallel_for(N, shift, y=loop.y, a=0.25)
            result = pk.parallel_reduce(N, total, x=loop.x)
            pk.parallel_for(N // 2, shift, y=z, a=1.0)
        assert float(result) == N / 2
    assert COUNTERS.graph_launches - before >= 6


def test_teams_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their sums may have other bits in another kernel."""
    y, z = pk.View([N], pk.double), pk.View([N], pk.double)
    for _ in range(STEADY + 4):
        with pyfuser.fusing():
            pk.parallel_for(pk.TeamPolicy(N // 32, 32), rows, y=y)
            pk.parallel_for(pk.TeamPolicy(N // 32, 32), rows, y=z)
        assert pyfuser.explain().launches == 1
    program = list(SESSION.programs.values())[-1]  # the first one made the memory
    assert autotune.doubts(program) and not autotune_gpu.device_doubts(program)
    assert program.referee is None
