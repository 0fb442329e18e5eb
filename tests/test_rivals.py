"""Plans that the search takes by guesses run in turns with those it finds without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.plan.capabilities import ALL
from pyfuser.plan.rewrites.coarsen import Coarsened
from pyfuser.plan.rewrites.recompute import Recomputed
from pyfuser.runtime import autotune, autotune_apart, rivals
from pyfuser.runtime.autotune_apart import STEADY, Apart
from pyfuser.runtime.duel import ROUNDS
from pyfuser.runtime.program import Program
from pyfuser.runtime.rivals import NAMES, Rivals, less, parsed
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.errors import PyFuserError
from pyfuser.trace.reason import SYNC
from tests.vendors import tune

N, C = 65_000, 8  # too little for stores to wait (`runtime.postpone`)
TRIED = 2 * STEADY + 2 * (4 * ROUNDS) + 4  # of two trials that end close


@pk.workunit
def score(i, c, s, x):
    s[i][c] = x[i] * (c + 1.5)


@pk.workunit
def largest(i, best, s):
    v: float = s[i][0]
    for c in range(1, C):
        v = s[i][c] if s[i][c] > v else v  # noqa: FURB136
    best[i] = v


@pk.workunit
def smooth(i, y, x):
    y[i] = x[i - 1] + x[i + 1]


@pk.workunit
def counted(i, y, x, total):
    y[i] = x[i - 1] + x[i + 1]
    pk.atomic_add(total, [0], x[i])


class Rows:
    """A call over pairs and one over rows: loops of a sweep, or one loop over rows."""

    def __init__(self) -> None:
        self.x, self.best = pk.View([N], pk.double), pk.View([N], pk.double)
        self.s = pk.View([N, C], pk.double)
        self.x.data[:] = np.random.default_rng(5).uniform(-1.0, 1.0, N)

    def step(self) -> Program:
        """One flush, and what ran."""
        self.best.data[:] = 0.0
        with pyfuser.fusing():
            pk.parallel_for(pk.MDRangePolicy([0, 0], [N, C]), score, s=self.s, x=self.x)
            pk.parallel_for(N, largest, best=self.best, s=self.s)
        s = self.x.data[:, None] * (np.arange(C) + 1.5)
        np.testing.assert_array_equal(self.best.data, s.max(axis=1))
        return SESSION.flushes[-1].program


class Twice:
    """Two stencils: the second computes the first again, or has a launch of its own."""

    def __init__(self, atomics: bool = False) -> None:
        self.x, self.total = pk.View([3000], pk.double), pk.View([1], pk.double)
        self.x.data[:] = np.arange(3000)
        self.y = pk.View([3000], pk.double)
        self.atomics = atomics

    def step(self) -> Program:
        x, y = self.x, self.y
        y.data[:] = 0.0
        with pyfuser.fusing():
            t = pk.View([3000], pk.double)
            pk.parallel_for(pk.RangePolicy(1, 2999), smooth, y=t, x=x)
            inner = pk.RangePolicy(2, 2998)
            if self.atomics:
                pk.parallel_for(inner, counted, y=y, x=t, total=self.total)
            else:
                pk.parallel_for(inner, smooth, y=y, x=t)
            del t
        np.testing.assert_array_equal(y.data[2:-2], 4.0 * np.arange(2, 2998))
        return SESSION.flushes[-1].program


@pytest.fixture(autouse=True)
def arbitrating(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    settings = replace(autotune.SETTINGS, arbitrate=True, directory=tmp_path)
    monkeypatch.setattr(autotune_apart, "SETTINGS", settings)
    monkeypatch.setattr(Apart, "after", lambda _, program: program)
    tune(monkeypatch, soon=0.0, trial_kernel=0.0, briefest=0.0, sunk_rows=1 << 30)
    TRACER.flush(SYNC)
    forget()
    yield
    forget()


def forget() -> None:
    """As in another process."""
    for table in (SESSION.programs, SESSION.families, SESSION.flushes):
        table.clear()


def clock(monkeypatch: pytest.MonkeyPatch, first: Callable[[Program], bool], second: float) -> None:
    """Let programs take a second that are as planned first, and others so many."""

    def seconds(program: Program) -> list[float]:
        launches = program.launches
        return [(1.0 if first(program) else second) / len(launches)] * len(launches)

    monkeypatch.setattr(rivals, "_seconds", seconds)


def sweeps(program: Program) -> bool:
    return bool(program.plan.sweeps)


def recomputes(program: Program) -> bool:
    return bool(program.plan.of(Recomputed))


def steps(loop: Rows | Twice, count: int = TRIED) -> Program:
    for _ in range(count):
        program = loop.step()
    return program


@pytest.mark.parametrize(("make", "first"), [(Rows, sweeps), (Twice, recomputes)])
@pytest.mark.parametrize(("second", "wins"), [(0.5, True), (0.97, False), (3.0, False)])
def test_the_faster_plan_stays(
    make: Callable[[], Rows | Twice],
    first: Callable[[Program], bool],
    second: float,
    wins: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock(monkeypatch, first, second)
    loop = make()
    assert first(loop.step())
    seen = {first(loop.step()) for _ in range(TRIED)}
    program = loop.step()
    assert seen == {True, False}
    assert first(program) != wins
    together = any(len(launch.calls) > 1 for launch in program.launches)
    assert isinstance(program.referee, Apart) == together  # others try what won
    forget()
    again = make()
    assert first(steps(again, 2)) != wins  # the first has fresh memory: another trace
    assert not isinstance(again.step().referee, Rivals)


def test_what_the_search_finds_without_a_sweep_is_more_than_its_loops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock(monkeypatch, sweeps, 0.5)
    program = steps(Rows())
    assert program.plan.of(Coarsened) and len(program.launches) == 1


def test_the_next_trial_is_against_the_winner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the sweep rows are coarsened; without that, too, there are two launches."""

    def seconds(program: Program) -> list[float]:
        if sweeps(program):
            return [3.0]
        return [2.0] if program.plan.of(Coarsened) else [0.5] * len(program.launches)

    monkeypatch.setattr(rivals, "_seconds", seconds)
    loop = Rows()
    program = steps(loop)
    assert len(program.launches) == 2 and not program.plan.of(Coarsened)
    forget()
    assert len(steps(Rows(), 2).launches) == 2


def test_one_quiet_run_of_many_is_enough_for_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine may be busy with something else whenever it runs."""
    runs = iter([*(ROUNDS + 1) * [2.0], 1.0, *ROUNDS * [2.0]])
    monkeypatch.setattr(
        rivals, "_seconds", lambda program: [next(runs)] if recomputes(program) else [0.5, 0.5]
    )
    loop = Twice()
    seen = [recomputes(loop.step()) for _ in range(TRIED)]
    assert not all(seen) and seen[-1]


@pytest.mark.parametrize("field", ["arbitrate", "verify"])
def test_settings(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = replace(autotune_apart.SETTINGS, **{field: field == "verify"})
    monkeypatch.setattr(autotune_apart, "SETTINGS", changed)
    assert not isinstance(Twice().step().referee, Rivals)


def test_sums_of_floats_in_any_order_are_not_tried() -> None:
    program = Twice(atomics=True).step()
    assert recomputes(program)
    assert not isinstance(program.referee, Rivals)
    forget()
    assert isinstance(Twice().step().referee, Rivals)


@pytest.mark.parametrize("numbers", [{"trial_kernel": 1e12}, {"briefest": 1e12}, {"soon": 1e12}])
def test_what_does_not_pay_is_not_tried(
    numbers: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    tune(monkeypatch, **numbers)
    clock(monkeypatch, recomputes, 0.5)
    loop = Twice()
    assert all(recomputes(loop.step()) for _ in range(TRIED))


@pytest.mark.parametrize(
    ("few", "seconds", "tried"), [(2, 0.0, True), (1, 0.0, True), (1, 1e12, False)]
)
def test_long_traces_run_first_for_as_long_as_planning_takes(
    few: int, seconds: float, tried: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rivals, "FEW", few)
    monkeypatch.setattr(rivals, "planning", lambda _: seconds)
    clock(monkeypatch, recomputes, 0.5)
    loop = Twice()
    assert all(recomputes(loop.step()) for _ in range(TRIED)) is not tried


def test_what_cannot_be_made_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fails:
        def __call__(self, *_: Any) -> Program:
            raise PyFuserError("no")

        begin = __call__

    clock(monkeypatch, recomputes, 0.5)
    loop = Twice()
    loop.step()
    for program in list(SESSION.programs.values()):
        assert isinstance(program.referee, Rivals)
        monkeypatch.setattr(program.referee, "_make", Fails())
    assert all(recomputes(loop.step()) for _ in range(3))


def test_plans_that_the_model_gives_much_more_are_not_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """But of little data, which stays in cache, all are."""
    clock(monkeypatch, sweeps, 0.5)
    monkeypatch.setattr(rivals, "LIKELY", 1e-6)
    loop = Rows()
    assert all(sweeps(loop.step()) for _ in range(TRIED))
    forget()
    monkeypatch.setattr(rivals, "BEYOND", 1e6)
    loop = Rows()
    loop.x.data[:] = 1.5  # nothing was written: the trial is found on disk
    monkeypatch.setattr(rivals, "read_own", lambda _: b"")
    assert not sweeps(steps(loop))


def test_what_is_around_launches_counts() -> None:
    program = Twice().step()
    (launch,) = program.launches
    assert 0.0 < launch.timing.latest < SESSION.took
    assert rivals._seconds(program) == [SESSION.took]
    SESSION.took = 0.0  # the extension ran it
    assert rivals._seconds(program) == [launch.timing.latest]


def test_less() -> None:
    assert less(ALL, ()) == ALL
    assert not less(ALL, ("wavefront",)).sweeps
    assert less(ALL, ("wavefront", "coarsen")).without == {"coarsen"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (b"(1, ())", ()),
        (b"(1, ('wavefront', 'recompute'))", ("wavefront", "recompute")),
        (repr((1, NAMES)).encode(), NAMES),
        (b"(1, ('wave',))", None),
        (b"(1, (1,))", None),
        (b"(1, ['wavefront'])", None),
        (b"(1, [[]])", None),
        (b"(1, ([],))", None),
        (b"(0, ())", None),
        (b"(1,)", None),
        (b"", None),
        (b"\xff", None),
    ],
)
def test_a_broken_file_is_none(text: bytes, names: tuple[str, ...] | None) -> None:
    assert parsed(text) == names
