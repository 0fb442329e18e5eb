"""Trials of doubtful groups: by made-up times, on real programs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.engine import ahead, native
from pyfuser.plan.plan import Group, Plan, Rejection, Stage, Sweep
from pyfuser.runtime import autotune, building
from pyfuser.runtime.autotune import (
    APART,
    DOUBT,
    STEADY,
    Choice,
    best_cut,
    cut_plan,
    parsed,
    text_of,
)
from pyfuser.runtime.duel import FEWEST, MARGIN
from pyfuser.runtime.program import Program
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support import passes
from pyfuser.support.errors import KernelError
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.reason import SYNC
from pyfuser.tuning.thresholds import NOW
from tests.sessions import Awaited
from tests.vendors import tune

N = 200_000


@pk.workunit
def total(i, acc, x):
    acc += x[i]


@pk.workunit
def shift(i, y, a):
    y[i] = y[i] + a


@pk.workunit
def total_of_rows(i, j, acc, v):
    acc += v[i][j]


@pk.workunit
def shift_rows(i, j, u, a):
    u[i][j] = u[i][j] + a


@pk.workunit
def count(i, y, bins):
    y[i] = y[i] + 1.0
    pk.atomic_add(bins, [i % 4], 1)


class Loop:
    """A steady loop over two arrays that share no memory: its calls make one group, in doubt."""

    def __init__(self, n: int = N) -> None:
        self.n = n
        self.x, self.y = (pk.View([n], pk.double) for _ in range(2))
        self.x.data[:] = np.random.default_rng(3).uniform(-1.0, 1.0, n)
        self.y.data[:] = 0.0
        self.sums: list[float] = []

    def step(self) -> int:
        """One flush; gives its number of kernels."""
        with pyfuser.fusing():
            pk.parallel_for(self.n, shift, y=self.y, a=0.1)
            self.sums.append(pk.parallel_reduce(self.n, total, x=self.x))
        return pyfuser.explain().launches


class Clock:
    """Made-up seconds: for all calls in one launch, and for their parts together."""

    def __init__(self, fused: float, cut: float) -> None:
        self.fused, self.cut, self.asked = fused, cut, 0

    def __call__(self, program: Program) -> list[float]:
        self.asked += 1
        count = len(program.launches)
        return [self.fused] if count == 1 else [self.cut / count] * count


@pytest.fixture(autouse=True)
def arbitrating(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Trials begin as soon as a loop is steady; what they find is kept in a folder of the test."""
    settings = replace(autotune.SETTINGS, arbitrate=True, directory=tmp_path)
    monkeypatch.setattr(autotune, "SETTINGS", settings)
    tune(monkeypatch, long=0.0)
    tune(monkeypatch, soon=0.0)
    tune(monkeypatch, trial_kernel=0.0)
    TRACER.flush(SYNC)
    SESSION.programs.clear()
    SESSION.families.clear()
    SESSION.flushes.clear()
    yield
    SESSION.programs.clear()
    SESSION.families.clear()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float, float], Clock]:
    def make(fused: float, cut: float) -> Clock:
        made = Clock(fused, cut)
        monkeypatch.setattr(autotune, "latest", made)
        return made

    return make


def seem(seconds: float) -> None:
    """Let the latest launches seem to take so long."""
    for launch in SESSION.flushes[-1].program.launches:
        launch.timing.mean = seconds
        launch.timing.runs = max(launch.timing.runs, 2)  # the mean of one would not last


# --------------------------------------------------------------------------- before a trial


def test_a_program_that_is_watched_is_found_by_its_key(
    monkeypatch: pytest.MonkeyPatch, clock: Callable[[float, float], Clock]
) -> None:
    """... until its launches may have taken long enough, when its referee is asked again."""
    tune(monkeypatch, soon=1.0)
    tune(monkeypatch, most_flushes=8)  # as the first are found by true times
    clock(1.0, 0.7)
    loop = Loop()
    for _ in range(STEADY):
        assert loop.step() == 1
    seem(0.01)  # so 1 second is reached in a hundred flushes less those that ran
    before = pyfuser.stats().replays
    assert loop.step() == 1  # by the ordinary way: what is kept had no times
    seem(0.01)
    loop.step()
    seem(0.01)
    replayed = pyfuser.stats().replays
    steps = 0
    while pyfuser.explain().launches == 1 and steps < 400:
        loop.step()
        seem(0.01)
        steps += 1
    assert steps < 120  # the trial began
    assert pyfuser.stats().replays - replayed >= steps // 2 > 20
    assert replayed >= before


def test_no_key_is_kept_while_a_trial_goes_on(clock: Callable[[float, float], Clock]) -> None:
    clock(1.0, 0.7)
    loop = Loop()
    for _ in range(STEADY):
        loop.step()
    before = pyfuser.stats().replays
    for _ in range(2 * FEWEST - 1):
        loop.step()
    assert pyfuser.stats().replays == before


def test_flushes_until_launches_have_taken_so_long() -> None:
    class Run:
        timing = type("T", (), {"runs": 4, "mean": 0.0625})

    launches: Any = (Run(), Run())
    assert autotune.flushes_until(1.0, launches) == 4
    assert autotune.flushes_until(0.5, launches) == autotune.flushes_until(0.1, launches) == 0
    assert autotune.flushes_until(1e9, launches) == NOW.running.most_flushes
    assert autotune.flushes_until(1.0, ()) == 0


def test_a_draw_stays_fused() -> None:
    assert not Choice(1, 1.0, 1.0).cuts
    assert not Choice(1, 1.0, MARGIN + 0.01).cuts
    assert Choice(1, 1.0, MARGIN - 0.01).cuts


# --------------------------------------------------------------------------- steady loops


def test_a_cut_that_is_faster_stays(clock: Callable[..., Clock]) -> None:
    clock(4.3e-3, 3.7e-3)
    loop = Loop()
    kernels = [loop.step() for _ in range(STEADY + 2 * FEWEST + 3)]
    assert kernels == [1] * STEADY + [2, 1] * FEWEST + [2] * 3
    assert {r.reason for r in pyfuser.explain().rejections} == {"measured"}
    assert len(set(loop.sums)) == 1, "the choice shows in a result"
    # Not sum(): since Python 3.12 it rounds once.
    assert float(loop.y[0]) == reduce(add, [0.1] * len(kernels))


def test_a_cut_that_is_slower_goes(clock: Callable[..., Clock]) -> None:
    clock(3.7e-3, 4.3e-3)
    loop = Loop()
    kernels = [loop.step() for _ in range(STEADY + 2 * FEWEST + 3)]
    assert kernels == [1] * STEADY + [2, 1] * FEWEST + [1] * 3
    assert pyfuser.explain().rejections == ()


def test_all_cuts_are_tried_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """... and each is judged by itself."""

    def latest(program: Program) -> list[float]:
        seconds = {(0, 1): 1.0, (2, 3): 1.0, (0,): 0.3, (1,): 0.3, (2,): 0.6, (3,): 0.6}
        return [seconds[launch.calls] for launch in program.launches]

    monkeypatch.setattr(autotune, "latest", latest)
    monkeypatch.setattr(passes, "SETTINGS", replace(SETTINGS, without=frozenset({"wavefront"})))
    loop = Loop()
    u, v = (pk.View([N // 8, 8], pk.double) for _ in range(2))
    u.data[:] = 0.0
    v.data[:] = loop.x.data.reshape(-1, 8)
    policy = pk.MDRangePolicy([0, 0], [N // 8, 8])

    def step() -> int:
        with pyfuser.fusing():
            pk.parallel_for(loop.n, shift, y=loop.y, a=0.1)
            first = pk.parallel_reduce(loop.n, total, x=loop.x)
            pk.parallel_for(policy, shift_rows, u=u, a=0.1)
            second = pk.parallel_reduce(policy, total_of_rows, v=v)
        loop.sums.append(float(first))
        others.append(float(second))
        return pyfuser.explain().launches

    others: list[float] = []

    kernels = [step() for _ in range(STEADY + 2 * FEWEST + 3)]
    assert kernels == [2] * STEADY + [4, 2] * FEWEST + [3] * 3
    assert len(set(loop.sums)) == len(set(others)) == 1
    expected = reduce(add, [0.1] * len(kernels))
    assert float(loop.y[0]) == float(u[0, 0]) == expected
    SESSION.programs.clear()  # as another process
    SESSION.families.clear()
    assert step() == 3


def test_a_loop_goes_on_while_a_cut_is_compiled(
    clock: Callable[..., Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, awaited = clock(4.3e-3, 3.7e-3), Awaited()
    monkeypatch.setattr(ahead, "left_out", lambda name: False)
    monkeypatch.setattr(native, "begin", lambda _: awaited)
    loop = Loop()
    assert {loop.step() for _ in range(3 * STEADY)} == {1}
    assert not made.asked
    awaited.is_done = True
    deadline = time.monotonic() + 60.0
    while loop.step() == 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [loop.step() for _ in range(2 * FEWEST + 1)] == [1, 2] * (FEWEST - 1) + [1, 2, 2]
    assert made.asked == 2 * FEWEST and len(set(loop.sums)) == 1


def test_the_steady_state_asks_nobody(
    clock: Callable[..., Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = clock(1.0, 1.0)
    loop = Loop()
    for _ in range(STEADY + 2 * FEWEST):
        loop.step()
    assert made.asked == 2 * FEWEST
    monkeypatch.setattr(autotune.Referee, "after", None)  # a call of it would raise
    loop.step()


def test_a_short_loop_is_never_tried(
    clock: Callable[..., Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    tune(monkeypatch, soon=1e6)
    made = clock(1.0, 0.5)
    loop = Loop()
    assert {loop.step() for _ in range(3 * STEADY)} == {1}
    assert not made.asked


def test_a_cut_waits_until_what_it_compiles_pays(
    clock: Callable[..., Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = clock(1.0, 0.5)
    tune(monkeypatch, trial_kernel=0.5)
    monkeypatch.setattr(autotune, "missing_kernels", lambda trace, parts: len(parts))

    def seem_in_all(seconds: float) -> None:
        for launch in SESSION.flushes[-1].program.launches:
            launch.timing.mean = seconds / max(launch.timing.runs, 1)

    loop = Loop()
    for _ in range(3 * STEADY):
        loop.step()
        seem_in_all(0.9)  # the next run adds next to nothing
    assert not made.asked
    seem_in_all(1.5)
    assert any(loop.step() == 2 for _ in range(20)) and made.asked


def test_no_trial_where_the_model_is_sure(
    clock: Callable[..., Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = clock(1.0, 0.5)
    x = pk.View([N], pk.double)

    def step() -> None:
        with pyfuser.fusing():
            pk.parallel_for(N, shift, y=x, a=1.0)
            pk.parallel_reduce(N, total, x=x)

    tune(monkeypatch, soon=-math.inf)
    for _ in range(2 * STEADY):
        step()
        seem(-1e3)
    trace = SESSION.flushes[-1].program.trace
    assert best_cut(trace, (0, 1))[1] > DOUBT
    assert not made.asked and not SESSION.programs[trace].referee.open


@pytest.mark.parametrize("dtype, trial", [(pk.double, False), (pk.int64, True)])
def test_no_trial_where_an_order_shows(
    dtype: Any, trial: bool, clock: Callable[..., Clock]
) -> None:
    """Atomics of floats: which of two calls comes first can show in rounding."""
    clock(1.0, 0.7)
    x, y, bins = pk.View([N], pk.double), pk.View([N], pk.double), pk.View([4], dtype)
    for _ in range(STEADY - 1):
        with pyfuser.fusing():
            pk.parallel_for(N, count, y=y, bins=bins)
            pk.parallel_for(N, shift, y=x, a=1.0)
        assert pyfuser.explain().launches == 1
    assert (SESSION.flushes[-1].program.referee is None) is not trial


@pytest.mark.parametrize("field", ["arbitrate", "verify"])
def test_settings(field: str, clock: Callable[..., Clock], monkeypatch: pytest.MonkeyPatch) -> None:
    changed: dict[str, Any] = {field: field == "verify"}
    monkeypatch.setattr(autotune, "SETTINGS", replace(autotune.SETTINGS, **changed))
    made = clock(1.0, 0.5)
    loop = Loop()
    assert {loop.step() for _ in range(2 * STEADY)} == {1}
    assert not made.asked


def test_a_cut_that_does_not_compile_is_no_cut(
    clock: Callable[..., Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = clock(1.0, 0.5)
    loop = Loop()
    loop.step()

    def fails(*_: Any) -> Any:
        raise KernelError("no")

    monkeypatch.setattr(building, "group_shapes", fails)
    assert {loop.step() for _ in range(2 * STEADY)} == {1}
    assert not made.asked


@pk.workunit
def smooth(i, v, u):
    v[i] = 0.5 * (u[i - 1] + u[i + 1])


class Sure:
    """A steady loop whose two calls share their data: fused, or a sweep, the model says."""

    def __init__(self, stencil: bool, n: int = 8 * N) -> None:
        self.n, self.stencil = n, stencil
        self.x, self.y = (pk.View([n], pk.double) for _ in range(2))
        self.x.data[:] = self.y.data[:] = 0.0

    def step(self) -> int:
        with pyfuser.fusing():
            pk.parallel_for(self.n, shift, y=self.x, a=0.1)
            if self.stencil:
                pk.parallel_for(pk.RangePolicy(1, self.n - 1), smooth, v=self.y, u=self.x)
            else:
                pk.parallel_for(self.n, shift, y=self.x, a=0.2)
        return pyfuser.explain().launches


@pytest.mark.parametrize("stencil", [False, True])
@pytest.mark.parametrize(("apart", "stays"), [(0.7, 2), (0.99, 1)])
def test_what_takes_longer_than_its_parts_should_is_tried_against_them(
    stencil: bool,
    apart: float,
    stays: int,
    clock: Callable[..., Clock],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock(1.0, apart)
    tune(monkeypatch, trial_kernel=1.95e3)
    monkeypatch.setattr(autotune, "missing_kernels", lambda trace, parts: len(parts))
    loop = Sure(stencil)
    for _ in range(STEADY):
        assert loop.step() == 1
        seem(1e3)
    assert bool(SESSION.flushes[-1].program.plan.sweeps) == stencil
    kernels = [loop.step() for _ in range(2 * FEWEST + 2)]
    assert kernels == [1] + [2, 1] * FEWEST + [stays]
    if stays == 2:
        assert "measured" in {r.reason for r in pyfuser.explain().rejections}
    SESSION.programs.clear()  # as another process
    SESSION.families.clear()
    assert Sure(stencil).step() == stays


def test_what_takes_no_longer_than_it_should_is_not_tried(
    clock: Callable[..., Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = clock(1.0, 0.5)
    tune(monkeypatch, soon=-math.inf)
    loop = Sure(True)
    for _ in range(2 * STEADY):
        assert loop.step() == 1
        seem(-1e3)
    assert not made.asked and not SESSION.flushes[-1].program.referee.open


# --------------------------------------------------------------------------- memory


def settled_loop(clock: Callable[..., Clock], cut: float, n: int = N) -> None:
    clock(1.0, cut)
    loop = Loop(n)
    for _ in range(STEADY + 2 * FEWEST):
        loop.step()
    SESSION.programs.clear()  # as another process
    SESSION.families.clear()


@pytest.mark.parametrize(("cut", "kernels"), [(0.5, 2), (2.0, 1)])
def test_a_choice_is_remembered(
    cut: float, kernels: int, clock: Callable[..., Clock], tmp_path: Path
) -> None:
    settled_loop(clock, cut)
    assert len(list((tmp_path / "choices").iterdir())) == 1
    made = clock(1.0, 1.0 / cut)
    loop = Loop()
    assert {loop.step() for _ in range(3 * STEADY)} == {kernels}
    assert not made.asked


def test_a_size_of_another_power_is_another_choice(
    clock: Callable[..., Clock], tmp_path: Path
) -> None:
    settled_loop(clock, 0.5)
    assert Loop(N + 1).step() == 2
    assert Loop(4 * N).step() == 1
    settled_loop(clock, 0.5, 4 * N)
    assert len(list((tmp_path / "choices").iterdir())) == 2


@pytest.mark.parametrize(
    "damage", ["", "(2, 1, 2.0", "(2, 7, 2.0, 1.0)", "(1, 1, 2.0, 1.0)", "(2, -1, 2.0, 1.0)", "\0"]
)
def test_a_broken_file_is_no_choice(
    damage: str, clock: Callable[..., Clock], tmp_path: Path
) -> None:
    settled_loop(clock, 0.5)
    (file,) = (tmp_path / "choices").iterdir()
    whole = file.read_text()
    file.write_text(damage)
    assert Loop().step() == 1
    SESSION.programs.clear()
    SESSION.families.clear()
    settled_loop(clock, 0.5)
    assert file.read_text() == whole


def test_a_file_that_others_can_write_is_no_choice(
    clock: Callable[..., Clock], tmp_path: Path
) -> None:
    settled_loop(clock, 0.5)
    (file,) = (tmp_path / "choices").iterdir()
    file.chmod(0o666)
    assert Loop().step() == 1


def test_a_choice_that_cannot_be_kept_holds_for_this_process(
    clock: Callable[..., Clock], tmp_path: Path
) -> None:
    (tmp_path / "choices").write_text("in the way")
    clock(1.0, 0.7)
    loop = Loop()
    assert [loop.step() for _ in range(STEADY + 2 * FEWEST + 1)][-1] == 2


def test_files_are_read_back() -> None:
    choice = Choice(2, 4.3e-3, 3.7e-3)
    assert parsed(text_of(choice).encode(), 3) == choice
    assert parsed(text_of(choice).encode(), 2) is None
    apart = choice._replace(place=APART)
    assert parsed(text_of(apart).encode(), 3) == apart
    assert parsed(text_of(choice._replace(place=-1)).encode(), 3) is None
    for broken in (
        choice._replace(place=2.0),  # type: ignore[arg-type]
        choice._replace(fused="x"),  # type: ignore[arg-type]
        choice._replace(fused=0.0),
        choice._replace(cut=0.0),
        choice._replace(cut=-1.0),
    ):
        assert parsed(text_of(broken).encode(), 3) is None
    schema, values = text_of(choice).split(",", 1)
    assert parsed(f"{schema}0,{values}".encode(), 3) is None


# --------------------------------------------------------------------------- plans


def test_what_follows_a_cut_group_moves_on() -> None:
    stage = Stage(0, 0)
    groups = tuple(Group(calls) for calls in ((0, 3), (1, 2, 5), (4,), (6,), (7,)))
    sweep = Sweep((2, 3), (stage, stage), 8)
    plan = Plan(groups, (), (sweep,))
    cut = cut_plan(plan, (1, 2, 5), 2)
    assert [group.calls for group in cut.groups] == [(0, 3), (1, 2), (5,), (4,), (6,), (7,)]
    assert cut.rejections == (Rejection(2, 5, "measured"),)
    assert cut.sweeps[0].groups == (3, 4)
    assert cut.launches() == ((0,), (1,), (2,), (3, 4), (5,))
    apart = cut_plan(plan, (1, 2, 5), APART)
    assert [group.calls for group in apart.groups][1:5] == [(1,), (2,), (5,), (4,)]
    assert apart.sweeps[0].groups == (4, 5)
    loops = cut_plan(plan, (4, 6), APART)
    assert loops.groups == plan.groups and not loops.sweeps
    assert loops.rejections == (Rejection(4, 6, "measured"),)
