"""Launches that arithmetic decides on are tried against their calls, as these were given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.plan.rewrites.coarsen import Coarsened
from pyfuser.runtime import autotune, autotune_apart, rivals
from pyfuser.runtime.autotune_apart import STEADY, parsed
from pyfuser.runtime.duel import FEWEST, ROUNDS
from pyfuser.runtime.program import Program
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.trace.reason import SYNC
from tests.vendors import tune

N, C = 3000, 4
TRIED = STEADY + 2 * ROUNDS + 2


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
def double(i, y):
    y[i] = 2.0 * y[i]


@pk.workunit
def shift(i, y, a):
    y[i] = y[i] + a


class Loop:
    """Two launches: a coarsened call and a row's, and two maps over another space."""

    def __init__(self) -> None:
        self.x, self.best = pk.View([N], pk.double), pk.View([N], pk.double)
        self.s, self.y = pk.View([N, C], pk.double), pk.View([N + 7], pk.double)
        self.x.data[:] = np.random.default_rng(5).uniform(-1.0, 1.0, N)

    def step(self) -> Program:
        """One flush, and what ran."""
        with pyfuser.fusing():
            pk.parallel_for(pk.MDRangePolicy([0, 0], [N, C]), score, s=self.s, x=self.x)
            pk.parallel_for(N, largest, best=self.best, s=self.s)
            pk.parallel_for(N + 7, shift, y=self.y, a=0.5)
            pk.parallel_for(N + 7, double, y=self.y)
        return SESSION.flushes[-1].program

    def check(self, steps: int) -> None:
        s = self.x.data[:, None] * (np.arange(C) + 1.5)
        np.testing.assert_array_equal(self.best.data, s.max(axis=1))
        y = 0.0
        for _ in range(steps):
            y = 2.0 * (y + 0.5)
        np.testing.assert_array_equal(self.y.data, y)


@pytest.fixture(autouse=True)
def arbitrating(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    settings = replace(autotune.SETTINGS, arbitrate=True, directory=tmp_path)
    monkeypatch.setattr(autotune_apart, "SETTINGS", settings)
    monkeypatch.setattr(rivals, "NAMES", ())  # they have a file of their own: test_rivals
    tune(monkeypatch, long=0.0)
    tune(monkeypatch, soon=0.0)
    tune(monkeypatch, trial_kernel=0.0)
    TRACER.flush(SYNC)
    SESSION.programs.clear()
    SESSION.families.clear()
    SESSION.flushes.clear()
    tune(monkeypatch, sunk_rows=1 << 30)  # so that rows are coarsened for the sake of others
    yield
    SESSION.programs.clear()
    SESSION.families.clear()


def clock(
    monkeypatch: pytest.MonkeyPatch, fused: dict[int, float], slow: frozenset[int] = frozenset()
) -> None:
    """Let each call take a second apart, and the launch that begins with call n fused[n].

    slow: the launches, by their first calls, that seem to lose before they are tried.
    """

    def seconds(program: Program) -> list[float]:
        return [
            float(len(la.calls)) if len(la.calls) == 1 else fused[la.calls[0]]
            for la in program.launches
        ]

    suspects = autotune_apart.suspects

    def chosen(program: Program) -> list[tuple[int, ...]]:
        for launch in program.launches:
            launch.timing.mean = 1e9 if launch.calls[0] in slow else 0.0
        return suspects(program)

    monkeypatch.setattr(autotune_apart, "latest", seconds)
    monkeypatch.setattr(autotune_apart, "suspects", chosen)


def launches(program: Program) -> list[tuple[int, ...]]:
    return [launch.calls for launch in program.launches]


def steps(loop: Loop, count: int) -> Program:
    for _ in range(count):
        program = loop.step()
    return program


FUSED, APART = [(0, 1), (2, 3)], [(0,), (1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("fused", "slow", "expected"),
    [
        ({0: 5.0, 2: 5.0}, {0, 2}, APART),
        ({0: 5.0, 2: 1.0}, {0, 2}, [(0,), (1,), (2, 3)]),
        ({0: 1.0, 2: 5.0}, {0, 2}, [(0, 1), (2,), (3,)]),
        ({0: 1.0, 2: 1.0}, {0, 2}, FUSED),
        ({0: 5.0, 2: 5.0}, {0}, [(0,), (1,), (2, 3)]),
        ({0: 5.0, 2: 5.0}, set(), FUSED),
        ({0: 1.95, 2: 1.95}, {0, 2}, FUSED),  # not by enough
    ],
)
def test_what_loses_is_taken_apart(
    fused: dict[int, float],
    slow: set[int],
    expected: list[tuple[int, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock(monkeypatch, fused, frozenset(slow))
    loop = Loop()
    first = loop.step()
    assert launches(first) == FUSED and first.plan.of(Coarsened)
    program = steps(loop, TRIED)
    assert launches(program) == expected
    assert bool(program.plan.of(Coarsened)) == ((0, 1) in expected)
    loop.check(TRIED + 1)
    SESSION.programs.clear()  # as in another process
    SESSION.families.clear()
    again = Loop()
    assert launches(steps(again, 2)) == expected  # the first has fresh memory: another trace
    again.check(2)


def test_that_nothing_loses_is_asked_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trial of another process may have been disturbed."""
    for fused, again, expected in ((1.0, 2.0, FUSED), (5.0, 1e12, FUSED), (5.0, 2.0, APART)):
        SESSION.programs.clear()
        SESSION.families.clear()
        clock(monkeypatch, {0: fused, 2: fused}, frozenset({0, 2}))
        tune(monkeypatch, again=again)
        assert launches(steps(Loop(), TRIED)) == expected


def test_both_ways_give_the_same_while_they_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    clock(monkeypatch, {0: 5.0, 2: 5.0}, frozenset({0, 2}))
    loop = Loop()
    seen = set()
    for step in range(TRIED):
        seen.add(tuple(launches(loop.step())))
        loop.check(step + 1)
    assert seen == {tuple(FUSED), tuple(APART)}


def test_a_hopeless_trial_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    clock(monkeypatch, {0: 0.1, 2: 0.1}, frozenset({0, 2}))
    loop = Loop()
    apart = [launches(loop.step()) for _ in range(TRIED)].count(APART)
    assert apart == FEWEST


@pytest.mark.parametrize("field", ["arbitrate", "verify"])
def test_settings(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = replace(autotune_apart.SETTINGS, **{field: field == "verify"})
    monkeypatch.setattr(autotune_apart, "SETTINGS", changed)
    clock(monkeypatch, {0: 5.0, 2: 5.0}, frozenset({0, 2}))
    assert launches(steps(Loop(), TRIED)) == FUSED


def test_compiling_waits_until_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, trial_kernel=1e12)
    monkeypatch.setattr(autotune_apart, "missing_kernels", lambda *_: 1)
    clock(monkeypatch, {0: 5.0, 2: 5.0}, frozenset({0, 2}))
    assert launches(steps(Loop(), TRIED)) == FUSED


@pk.workunit
def smooth(i, y, x):
    y[i] = x[i - 1] + x[i + 1]


def test_rewrites_for_the_sake_of_others_are_taken_back_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call that vanished, as others compute again what it does, has to be there again."""
    x = pk.View([N], pk.double)
    x.data[:] = np.arange(N)

    def step() -> tuple[Program, np.ndarray]:
        y = pk.View([N], pk.double)
        with pyfuser.fusing():
            t = pk.View([N], pk.double)
            pk.parallel_for(pk.RangePolicy(1, N - 1), smooth, y=t, x=x)
            pk.parallel_for(pk.RangePolicy(2, N - 2), smooth, y=y, x=t)
            del t
        return SESSION.flushes[-1].program, np.array(y.data)

    program, expected = step()
    if all(note.alone for note in program.plan.notes):
        pytest.skip("nothing is computed again here")
    monkeypatch.setattr(
        autotune_apart, "latest", lambda p: [2.0 / len(p.launches) ** 2] * len(p.launches)
    )
    clocked = autotune_apart.suspects
    monkeypatch.setattr(autotune_apart, "unfused_cost", lambda *_: 0.0)
    assert clocked(program) == [la.calls for la in program.launches]
    for _ in range(TRIED):
        program, found = step()
        np.testing.assert_array_equal(found, expected)
    assert launches(program) == [(0,), (1,)]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (b"(2, [(0, [0, 1]), (2, [1])])", [(0, [0, 1]), (2, [1])]),
        (b"(2, [])", []),
        (b"(2, [(3, [0])])", None),
        (b"(2, [(-1, [0])])", None),
        (b"(2, [(True, [0])])", None),
        (b"(2, [(0, [2])])", None),
        (b"(2, [(0, [-1])])", None),
        (b"(2, [(0, [True])])", None),
        (b"(2, [(0, 1)])", None),
        (b"(2, [0])", None),
        (b"(2, ((0, [0]),))", None),
        (b"(1, [(0, [0])])", None),
        (b"(2, [], 2)", None),
        (b"", None),
        (b"\xff", None),
    ],
)
def test_a_broken_file_is_none(text: bytes, places: list[Any] | None) -> None:
    assert parsed(text, [2, 1, 2]) == places


def test_a_launch_that_takes_nearly_as_long_as_its_calls_is_suspect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = Loop().step()
    monkeypatch.setattr(autotune_apart, "unfused_cost", lambda _, calls: 1.0)
    for part, expected in ((0.31, FUSED), (0.29, [])):
        for launch in program.launches:
            launch.timing.mean = part
        assert autotune_apart.suspects(program) == expected


def test_what_the_model_takes_for_short_may_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arithmetic that it does not know may take all of the time."""
    tune(monkeypatch, long=2e-4)
    program = Loop().step()
    assert autotune_apart.unfused_cost(program.given, range(4)) < 1e-4
    assert autotune_apart.doubted(program)
    for mean, expected in ((1e-4, []), (3e-4, FUSED)):
        for launch in program.launches:
            launch.timing.mean = mean
        assert autotune_apart.suspects(program) == expected


# --------------------------------------------------------------------------- in part


class Chain:
    """A launch of four maps, or a wavefront of two loops, of two maps and a stencil."""

    def __init__(self, stencil: bool = False) -> None:
        self.n = 1_600_000 if stencil else N
        self.stencil = stencil
        self.y, self.z = (pk.View([self.n], pk.double) for _ in range(2))
        self.y.data[:] = self.z.data[:] = 0.0

    def step(self) -> Program:
        n, y, z = self.n, self.y, self.z
        with pyfuser.fusing():
            pk.parallel_for(n, shift, y=y, a=0.5)
            pk.parallel_for(n, double, y=y)
            if self.stencil:
                pk.parallel_for(pk.RangePolicy(1, n - 1), smooth, y=z, x=y)
            else:
                pk.parallel_for(n, shift, y=z, a=0.25)
                pk.parallel_for(n, double, y=z)
        return SESSION.flushes[-1].program

    def check(self, steps: int) -> None:
        y = z = 0.0
        for _ in range(steps):
            y, z = 2.0 * (y + 0.5), 2.0 * (z + 0.25)
        np.testing.assert_array_equal(self.y.data, y)
        np.testing.assert_array_equal(self.z.data[1:-1], 2.0 * y if self.stencil else z)


def times(monkeypatch: pytest.MonkeyPatch, seconds: dict[tuple[int, ...], float]) -> None:
    """What launches of these calls take; else a second, or more if there are several."""

    def latest(program: Program) -> list[float]:
        return [seconds.get(la.calls, 7.0 ** (len(la.calls) > 1)) for la in program.launches]

    def several(program: Program) -> list[tuple[int, ...]]:
        return [la.calls for la in program.launches if len(la.calls) > 1]

    monkeypatch.setattr(autotune_apart, "latest", latest)
    monkeypatch.setattr(autotune_apart, "suspects", several)


ALL = (0, 1, 2, 3)
IN_PART = [(0,), (1, 2, 3)]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ({ALL: 10.0, (0,): 4.0, (1, 2, 3): 1.5}, IN_PART),
        ({ALL: 10.0, (0,): 4.0, (1, 2, 3): 3.0}, IN_PART),  # as long: it moves less memory
        ({ALL: 10.0, (0,): 4.0, (1, 2, 3): 3.1}, APART),
        ({ALL: 10.0, (0,): 4.0, (1, 2, 3): 9.0}, APART),
        ({ALL: 7.0, (0,): 4.0, (1, 2, 3): 1.5}, IN_PART),  # where it nearly lost, too
        ({ALL: 7.0, (0,): 4.0, (1, 2, 3): 2.9}, [ALL]),  # not by enough
        ({ALL: 6.0, (0,): 4.0, (1, 2, 3): 1.5}, [ALL]),  # it was better than its calls
        ({ALL: 10.0, (0,): 4.0, (3,): 3.0, (1, 2, 3): 4.0, (1, 2): 0.5}, [(0,), (1, 2), (3,)]),
        ({ALL: 10.0, (0,): 4.0, (3,): 3.0, (1, 2, 3): 4.0, (1, 2): 1.5}, IN_PART),
    ],
)
def test_the_call_that_takes_long_is_split_off(
    seconds: dict[tuple[int, ...], float],
    expected: list[tuple[int, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times(monkeypatch, seconds)
    count = STEADY + 6 * 2 * ROUNDS
    loop = Chain()
    for step in range(count):
        program = loop.step()
        loop.check(step + 1)
    assert launches(program) == expected
    SESSION.programs.clear()  # as in another process
    SESSION.families.clear()
    assert launches(Chain().step()) == expected


def test_no_part_is_tried_before_it_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    times(monkeypatch, {ALL: 10.0, (0,): 4.0, (1, 2, 3): 1.5})
    tune(monkeypatch, later=2)
    paid = False
    monkeypatch.setattr(SESSION.budget, "pays_trial", lambda *_: paid)
    loop = Chain()
    count = STEADY + 4 * ROUNDS
    seen = [launches(loop.step()) for _ in range(count)]
    assert IN_PART not in seen and seen[-1] == APART
    assert SESSION.flushes[-1].program.referee.idle  # so stores may wait (`runtime.postpone`)
    paid = True
    assert not steps(loop, 5).referee.idle
    assert launches(steps(loop, 4 * ROUNDS)) == IN_PART
    loop.check(count + 4 * ROUNDS + 5)


@pytest.mark.parametrize(("loops", "expected"), [(2.0, [(0, 1), (2,)]), (8.0, [(0,), (1,), (2,)])])
def test_a_wavefront_becomes_its_loops(
    loops: float, expected: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    times(monkeypatch, {(0, 1, 2): 10.0, (0, 1): loops, (0,): 2.0})
    loop = Chain(stencil=True)
    program = loop.step()
    assert launches(program) == [(0, 1, 2)] and program.plan.sweeps
    count = STEADY + 4 * ROUNDS
    assert launches(steps(loop, count)) == expected
    loop.check(count + 1)
