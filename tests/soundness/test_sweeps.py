"""Programs whose loops sweep wherever that is legal compute what their calls compute one by one."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.engine.launchable import team
from pyfuser.plan import wavefront
from pyfuser.plan.rewrites.embed_boundary import Placed
from pyfuser.runtime import checked as checks
from pyfuser.runtime import flush as runtime_flush
from pyfuser.runtime import verify
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import BoundsError, VerificationError
from pyfuser.support.settings import SETTINGS
from pyfuser.trace import pool
from pyfuser.trace.memory import Region
from pyfuser.trace.reason import SYNC
from tests.fuzz.wavefront import forced
from tests.soundness.workunits import copy, total

pytestmark = pytest.mark.skipif(
    shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler"
)

Program = Callable[[int], list[Any]]


@pk.workunit
def smooth(i, x, y):
    y[i] = 0.25 * (x[i - 1] + 2.0 * x[i] + x[i + 1])


@pk.workunit
def tripled(i, x):
    x[i] *= 3.0


@pk.workunit
def smooth_rows(i, j, x, y):
    y[i][j] = 0.25 * (x[i - 1][j] + 2.0 * x[i][j] + x[i + 1][j - 1])


@pk.workunit
def double(i, x):
    x[i] *= 2.0


@pk.workunit
def count(i, x, n):
    x[i] = i % n


@pk.workunit
def total_of_rows(i, j, acc, x):
    acc += x[i][j]


@pk.workunit
def total_int(i, acc: pk.Acc[pk.int64], x):
    acc += x[i]


@pk.workunit
def any_of(i, acc: pk.Acc[bool], x):
    acc += x[i] > 1.0


@pk.workunit
def scale(i, x, a):
    x[i] = a * x[i]


@pk.workunit
def deposit(i, x, bins):
    pk.atomic_add(bins, [int(x[i]) % 7], 1)


@pytest.fixture(autouse=True)
def planned_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is planned here is forgotten."""
    TRACER.flush(SYNC)
    SESSION.programs.clear()
    SESSION.families.clear()
    yield
    TRACER.calls.clear()
    SESSION.programs.clear()
    SESSION.families.clear()


@pytest.fixture(autouse=True)
def poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that need not be zero is not."""
    real = pool.allocate

    def allocate(size: int, zero: bool) -> Any:
        block = real(size, zero)
        return block if zero else np.full_like(block, 0xFF)

    monkeypatch.setattr(pool, "allocate", allocate)


def swept(program: Program, n: int, wave: int, shares: int = 0) -> list[Any]:
    """What a program computes in sweeps, of which there must be one."""
    SESSION.programs.clear()
    SESSION.families.clear()
    SESSION.flushes.clear()
    with forced(wave, shares), pyfuser.fusing():
        found = program(n)
        pyfuser.sync()
    assert any(flush.program.plan.sweeps for flush in SESSION.flushes), "nothing sweeps"
    return found


def bits(values: list[Any]) -> list[bytes]:
    return [np.asarray(v if np.ndim(v) else v + 0).tobytes() for v in values]


def check(
    program: Program,
    monkeypatch: pytest.MonkeyPatch,
    sizes: tuple[int, ...] = (7, 12, 40, 600),
    waves: tuple[int, ...] = (1, 3, 7),
    threads: tuple[int, ...] = (1, 2, 5),
    shares: int = 0,
) -> None:
    for n in sizes:
        monkeypatch.setattr(team, "count", 1)
        with pyfuser.unfused():
            expected = bits(program(n))
        for wave in waves:
            for count in threads:
                monkeypatch.setattr(team, "count", count)
                found = bits(swept(program, n, wave, shares))
                assert found == expected, f"n {n}, wave {wave}, threads {count}"


def line(n: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).normal(size=n) * 3.0


def inner(n: int, rim: int = 1) -> Any:
    return pk.RangePolicy(rim, n - rim)


# --------------------------------------------------------------------------- scans


@pk.workunit
def positive(i: int, kept: pk.View1D[pk.int32], x: pk.View1D[pk.double]) -> None:
    kept[i] = 0
    if x[i] > 0.0:
        kept[i] = 1


@pk.workunit
def numbered(
    i: int,
    acc: pk.Acc[pk.int32],
    last: bool,
    place: pk.View1D[pk.int32],
    kept: pk.View1D[pk.int32],
) -> None:
    acc += kept[i]
    if last:
        place[i] = acc


@pk.workunit
def packed(
    i: int,
    target: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    place: pk.View1D[pk.int32],
    kept: pk.View1D[pk.int32],
) -> None:
    if kept[i] == 1:
        target[place[i] - 1] = x[i]


@pk.workunit
def running(
    i: int, acc: pk.Acc[pk.double], last: bool, x: pk.View1D[pk.double], y: pk.View1D[pk.double]
) -> None:
    acc += x[i]
    if last:
        y[i] = acc


def compaction(n: int) -> list[Any]:
    """What is positive moves to the front, through temporaries that nobody sees."""
    x, target = line(n), np.zeros(n)
    kept, place = pk.View([n], pk.int32), pk.View([n], pk.int32)
    pk.parallel_for(n, positive, kept=kept, x=x)
    count = pk.parallel_scan(n, numbered, place=place, kept=kept)
    pk.parallel_for(n, packed, target=target, x=x, place=place, kept=kept)
    del kept, place
    return [target, count]


def integral(n: int) -> list[Any]:
    """Sums whose bits depend on the order of additions."""
    x, z = line(n), np.zeros(n)
    y = pk.View([n], pk.double)
    pk.parallel_for(n, copy, x=x, y=y)
    whole = pk.parallel_scan(n, running, x=y, y=x)
    pk.parallel_for(n, copy, x=x, y=z)
    return [x, y, z, whole]


@pytest.mark.parametrize("program", [compaction, integral])
def test_scans(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    check(program, monkeypatch, sizes=(1, 600, 4097, 30_000), waves=(1,))
    (sweep,) = SESSION.flushes[-1].program.plan.sweeps
    joined = program is compaction  # of which the last map stores where the scan said
    assert len(sweep.groups) == (2 if joined else 3)


# --------------------------------------------------------------------------- edges


@pk.workunit
def first_row(j, y):
    y[0][j] = y[1][j]


@pk.workunit
def outer_rows(j, n, y):
    y[0][j] = 0.5 * y[1][j]
    y[n - 1][j] = y[n - 2][j]


@pk.workunit
def around(j, n, y):
    y[0][j] = y[n - 2][j]


@pk.workunit
def first_column(i, y):
    y[i][0] = y[i][1]


def grid(n: int) -> list[Any]:
    """Steps back and forth, and the edges of what they wrote."""
    x = np.random.default_rng(3).normal(size=(n, 9))
    y = x.copy()
    box = pk.MDRangePolicy([1, 1], [n - 1, 8])
    for source, sink in ((x, y), (y, x), (x, y)):
        pk.parallel_for(box, smooth_rows, x=source, y=sink)
        pk.parallel_for(9, first_row, y=sink)
        pk.parallel_for(pk.RangePolicy(1, 8), outer_rows, n=n, y=sink)
        pk.parallel_for(n, first_column, y=sink)
    return [x, y]


def torus(n: int) -> list[Any]:
    """Steps, and a row that is far from its source."""
    x = np.random.default_rng(3).normal(size=(n, 9))
    y = x.copy()
    for source, sink in ((x, y), (y, x), (x, y)):
        pk.parallel_for(pk.MDRangePolicy([1, 1], [n - 1, 8]), smooth_rows, x=source, y=sink)
        pk.parallel_for(9, around, n=n, y=sink)
        pk.parallel_for(n, first_column, y=sink)
    return [x, y]


def test_edges_of_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    check(grid, monkeypatch)
    plan = SESSION.flushes[-1].program.plan
    assert [len(note.rows) for note in plan.of(Placed)] == [1, 2] * 3 and len(plan.sweeps) == 1


def test_periodic_copies_are_no_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    check(torus, monkeypatch, sizes=(40,))
    assert not SESSION.flushes[-1].program.plan.of(Placed)


# --------------------------------------------------------------------------- rings


@pk.workunit
def around_the_end(i, x, y, n):
    y[i] = 0.25 * (x[(i + n - 1) % n] + 2.0 * x[i] + x[(i + 1) % n])


@pk.workunit
def chosen(i, j, x, y, n):
    up: int = i - 1 if i > 0 else n - 1
    down: int = i + 2 if i < n - 2 else i + 2 - n
    y[i][j] = 0.25 * (x[up][j] + 2.0 * x[i][j] + x[down][(j + 1) % 9])


@pk.workunit
def half_around(i, x, y, n):
    y[i] = 0.5 * (x[i] + x[(i + 3) % n])


@pk.workunit
def from_the_middle(i, x, y, n):
    y[i] = 0.5 * (x[i] + x[(i + n // 2) % n])


def periodic(n: int, step: Any = around_the_end, steps: int = 3) -> list[Any]:
    x, y = line(n), line(n, 2)
    for _ in range(steps):
        pk.parallel_for(n, step, x=x, y=y, n=n)
        x, y = y, x
    return [x, y]


def periodic_sums(n: int) -> list[Any]:
    """Sums of whole numbers that follow the steps, and an update in place between them."""
    x, y = np.rint(line(n)), np.rint(line(n, 2))
    found = []
    for _ in range(2):
        pk.parallel_for(n, around_the_end, x=x, y=y, n=n)
        found.append(pk.parallel_reduce(n, total, x=y))
        pk.parallel_for(n, double, x=y)
        x, y = y, x
    return [x, y, *found]


def periodic_rows(n: int) -> list[Any]:
    x = np.random.default_rng(3).normal(size=(n, 9))
    y = x.copy()
    for source, sink in ((x, y), (y, x), (x, y), (y, x)):
        pk.parallel_for(pk.MDRangePolicy([0, 0], [n, 9]), chosen, x=source, y=sink, n=n)
    return [x, y, pk.parallel_reduce(pk.MDRangePolicy([0, 0], [n, 9]), total_of_rows, x=x)]


def rings() -> int:
    return sum(sweep.ring for flush in SESSION.flushes for sweep in flush.program.plan.sweeps)


@pytest.mark.parametrize("program", [periodic, periodic_sums, periodic_rows])
def test_what_is_periodic_is_a_ring(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    check(program, monkeypatch, sizes=(29, 40, 600), shares=2)
    assert rings() == 1


def test_a_ring_of_seven_steps_is_too_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two loops that are 3 + 3 steps apart need 13; 12 run apart, 13 around the ends."""
    for n, expected in ((12, 0), (13, 1)):
        with pyfuser.unfused():
            wanted = bits(periodic(n, half_around, 2))
        SESSION.flushes.clear()
        with forced(1, 2), pyfuser.fusing():
            found = periodic(n, half_around, 2)
        assert bits(found) == wanted and rings() == expected


def other_rows(n: int) -> list[Any]:
    """A loop over fewer steps has no place in a ring."""
    x, y = periodic(n, steps=2)
    pk.parallel_for(inner(n), smooth, x=x, y=y)
    return [x, y]


def from_far(n: int) -> list[Any]:
    return periodic(n, from_the_middle, 2)


def serially(n: int) -> list[Any]:
    x, y = line(n), line(n, 2)
    for source, sink in ((x, y), (y, x)):
        policy = pk.RangePolicy(pk.Serial, 0, n)
        pk.parallel_for(policy, around_the_end, x=source, y=sink, n=n)
    return [x, y]


@pytest.mark.parametrize(("program", "expected"), [(other_rows, 1), (from_far, 0), (serially, 0)])
def test_what_no_ring_may_hold(program: Program, expected: int) -> None:
    with pyfuser.unfused():
        wanted = bits(program(40))
    SESSION.flushes.clear()
    with forced(3, 2), pyfuser.fusing():
        found = program(40)
    assert bits(found) == wanted and rings() == expected
    assert len(SESSION.flushes[-1].program.plan.launches()) == 2


# --------------------------------------------------------------------------- memory


def temporaries(n: int) -> list[Any]:
    """A chain through Views that nobody sees: they need no memory."""
    x, w = line(n), np.zeros(n)
    y, z = pk.View([n], pk.double), pk.View([n], pk.double)
    pk.parallel_for(inner(n), smooth, x=x, y=y)
    pk.parallel_for(inner(n, 2), smooth, x=y, y=z)
    first = pk.parallel_reduce(inner(n, 2), total, x=y)
    pk.parallel_for(inner(n, 3), smooth, x=z, y=w)
    del y, z
    return [w, first]


@pytest.mark.usefixtures("nothing_recomputed")
def test_temporaries_are_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    check(temporaries, monkeypatch)
    (program,) = [flush.program for flush in SESSION.flushes]
    (sweep,) = program.plan.sweeps
    assert len(sweep.rolling) == 2


def updated(n: int) -> list[Any]:
    """A temporary that is changed between two loops that read it."""
    x, w = line(n), np.zeros(n)
    y, z = pk.View([n], pk.double), pk.View([n], pk.double)
    pk.parallel_for(inner(n), smooth, x=x, y=y)
    pk.parallel_for(inner(n, 2), smooth, x=y, y=z)
    pk.parallel_for(inner(n, 2), tripled, x=y)
    pk.parallel_for(inner(n, 3), smooth, x=y, y=w)
    last = pk.parallel_reduce(inner(n, 2), total, x=z)
    del y, z
    return [w, last]


@pytest.mark.usefixtures("nothing_recomputed")
def test_updated_temporaries_are_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    check(updated, monkeypatch)
    (sweep,) = SESSION.flushes[-1].program.plan.sweeps
    assert any(view.oldest == -4 for view in sweep.rolling)


def overwritten(n: int) -> list[Any]:
    """A temporary that a loop makes first, and one behind it makes anew before anybody reads."""
    x, z, w = line(n), np.zeros(n), np.zeros(n)
    y = pk.View([n], pk.double)
    pk.parallel_for(inner(n), copy, x=x, y=z)
    pk.parallel_for(inner(n), copy, x=x, y=y)
    pk.parallel_for(inner(n), smooth, x=z, y=y)
    pk.parallel_for(inner(n, 2), smooth, x=y, y=w)
    del y
    return [z, w]


@pytest.mark.usefixtures("nothing_recomputed")
def test_overwritten_temporaries_are_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The window is that of the first store, which the kernels do not have."""
    check(overwritten, monkeypatch)
    (program,) = [flush.program for flush in SESSION.flushes]
    (sweep,) = program.plan.sweeps
    assert [tuple(view)[2:] for view in sweep.rolling] == [(-3, 0, 0, 3)]


def rows(n: int) -> list[Any]:
    u = np.random.default_rng(2).normal(size=(n, 11))
    a, b, out = (pk.View([n, 11], pk.double) for _ in range(3))
    for rim, (x, y) in enumerate(((u, a), (a, b), (b, out)), 1):
        space = pk.MDRangePolicy([rim, rim], [n - rim, 11 - rim])
        pk.parallel_for(space, smooth_rows, x=x, y=y)
    del a, b
    return [out, pk.parallel_reduce(pk.MDRangePolicy([0, 0], [n, 11]), total_of_rows, x=out)]


def test_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    check(rows, monkeypatch, sizes=(7, 8, 40))


def fresh(n: int) -> list[Any]:
    """New memory that an early loop reads as zeros, and a later one overwrites."""
    y, z = pk.View([n], pk.double), pk.View([n], pk.double)
    x = line(n)
    before = pk.parallel_reduce(inner(n), total, x=y)  # zeros
    pk.parallel_for(inner(n), smooth, x=y, y=z)
    pk.parallel_for(n, copy, x=x, y=y)
    after = pk.parallel_reduce(n, total, x=y)
    return [y, z, before, after]


def rims(n: int) -> list[Any]:
    """New memory that is overwritten inside, and read at its rim."""
    x, y, z = line(n), pk.View([n], pk.double), pk.View([n], pk.double)
    pk.parallel_for(inner(n, 2), smooth, x=x, y=y)
    pk.parallel_for(inner(n), smooth, x=y, y=z)
    return [y, z, pk.parallel_reduce(n, total, x=z)]


def parts_of_fresh(n: int) -> list[Any]:
    """Two loops overwrite parts of new memory, and both parts and the rest are read."""
    x, y, z = line(n), pk.View([n], pk.double), pk.View([n], pk.double)
    pk.parallel_for(pk.RangePolicy(1, n // 2), smooth, x=x, y=y)
    pk.parallel_for(pk.RangePolicy(n // 2 - 1, n - 2), copy, x=x, y=y)
    pk.parallel_for(inner(n), smooth, x=y, y=z)
    return [y, z]


@pytest.mark.parametrize("program", [fresh, rims, parts_of_fresh])
def test_fresh_memory_is_zero(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    check(program, monkeypatch)


def ping_pong(n: int) -> list[Any]:
    x, y = pk.View([n], pk.double), pk.View([n], pk.double)
    x[:] = line(n)
    for _ in range(4):
        pk.parallel_for(inner(n), smooth, x=x, y=y)
        x, y = y, x
    return [x, y]


def in_place(n: int) -> list[Any]:
    """What a stencil reads is then written: an anti dependence."""
    x, y = line(n), np.zeros(n)
    pk.parallel_for(inner(n), smooth, x=x, y=y)
    pk.parallel_for(n, double, x=x)
    pk.parallel_for(inner(n), smooth, x=x, y=y)
    return [x, y]


def slices(n: int) -> list[Any]:
    """Views of one array that are shifted, reversed and strided."""
    base = line(3 * n)
    pk.parallel_for(n, copy, x=base[:n], y=base[n : 2 * n])
    pk.parallel_for(inner(n), smooth, x=base[n + 1 :], y=base[n - 3 :])
    pk.parallel_for(n, double, x=base[: 2 * n : 2])
    pk.parallel_for(n, copy, x=base[::-1], y=base[2 * n :])
    return [base]


def atomics(n: int) -> list[Any]:
    """Loops that count into the same bins, at once."""
    x, y, bins = np.abs(line(n)), np.zeros(n), np.zeros(7, np.int64)
    pk.parallel_for(n, deposit, x=x, bins=bins)
    pk.parallel_for(inner(n), smooth, x=x, y=y)
    pk.parallel_for(inner(n), deposit, x=y, bins=bins)
    return [bins, y]


@pytest.mark.parametrize("program", [ping_pong, in_place, slices, atomics])
def test_dependences_of_all_kinds(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    check(program, monkeypatch)


# --------------------------------------------------------------------------- results


def several_sums(n: int) -> list[Any]:
    """Sums of several types share a loop, and one of bool and a scan run beside them."""
    x, y, k = line(n), np.zeros(n), np.zeros(n, np.int64)
    pk.parallel_for(n, count, x=k, n=5)
    pk.parallel_for(inner(n), smooth, x=x, y=y)
    found = [
        pk.parallel_reduce(inner(n, 2), total, x=y),
        pk.parallel_reduce(inner(n, 2), total_int, x=k),
        pk.parallel_reduce(inner(n, 2), total, x=x),
        pk.parallel_reduce(inner(n, 2), any_of, x=y),
    ]
    pk.parallel_for(inner(n, 2), smooth, x=y, y=x)
    return [x, y, *found]


def results_as_arguments(n: int) -> list[Any]:
    """A loop that takes a sum cannot be in its sweep."""
    x, y, z = line(n), np.zeros(n), np.zeros(n)
    pk.parallel_for(inner(n), smooth, x=x, y=y)
    first = pk.parallel_reduce(inner(n), total, x=y)
    pk.parallel_for(n, scale, x=y, a=first)
    pk.parallel_for(inner(n), smooth, x=y, y=z)
    return [y, z, first, pk.parallel_reduce(n, total, x=z)]


@pytest.mark.parametrize("program", [several_sums, results_as_arguments])
def test_results(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    check(program, monkeypatch)


def test_a_replay_compiles_and_plans_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "count", 3)
    expected = bits(swept(temporaries, 100, 5))
    plans = COUNTERS.plans
    for _ in range(3):
        with forced(5), pyfuser.fusing():
            found = temporaries(100)
        assert bits(found) == expected
    assert COUNTERS.plans == plans
    assert len(SESSION.flushes[-1].program.launches) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_sweeps_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has none of its parent's OpenMP threads."""
    monkeypatch.setattr(team, "count", 3)
    expected = bits(swept(temporaries, 100, 5))
    child = os.fork()
    if not child:
        same = False
        try:
            same = bits(swept(temporaries, 100, 5)) == expected and team.count == 1
        finally:
            os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert bits(swept(temporaries, 100, 5)) == expected


# --------------------------------------------------------------------------- faults, checks


def test_without_memory_for_a_view_the_other_calls_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What needs it stays pending, and runs when there is memory."""
    n = 50
    x, out = line(n), []
    before = x.copy()
    real = Region.allocate

    def scarce(region: Region, overwritten: Any = None) -> None:
        if region.shape == (n + 1,):
            raise MemoryError("no memory for a View")
        real(region, overwritten)

    with forced(3), pyfuser.fusing():
        y, z = pk.View([n], pk.double), pk.View([n + 1], pk.double)
        pk.parallel_for(inner(n), smooth, x=x, y=y)
        pk.parallel_for(n, double, x=x)
        pk.parallel_for(inner(n), smooth, x=y, y=z)
        with monkeypatch.context() as patch:
            patch.setattr(Region, "allocate", scarce)
            with pytest.raises(MemoryError, match=r"(?s)no memory for a View.*called as 'smooth'"):
                pyfuser.sync()
        assert (x == 2.0 * before).all() and len(TRACER.calls) == 1
        pyfuser.sync()
        out = [np.array(y), np.array(z)]
    expected = before[:-2] + 2.0 * before[1:-1] + before[2:]
    assert (out[0][1:-1] == 0.25 * expected).all() and out[0][0] == out[0][-1] == 0.0
    assert (x == 2.0 * before).all()


@pytest.fixture
def verifying(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("PYFUSER_VERIFY", "1")
    monkeypatch.setattr(verify, "SETTINGS", dataclasses.replace(SETTINGS, verify=True))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "program", [temporaries, rows, fresh, rims, in_place, several_sums, results_as_arguments]
)
def test_verified_sweeps_are_right(
    program: Program, verifying: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(team, "count", 3)
    swept(program, 40, 3)


@pytest.mark.parametrize("program", [in_place, fresh])
def test_an_illegal_sweep_is_found(
    program: Program, verifying: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wavefront, "call_distance", lambda *_: None)
    with pytest.raises(VerificationError):
        swept(program, 40, 3)


def test_checks_run_calls_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = dataclasses.replace(SETTINGS, check=frozenset({"bounds", "races"}))
    for module in (runtime_flush, checks):
        monkeypatch.setattr(module, "SETTINGS", changed)
    monkeypatch.setattr(SESSION, "run", checks.run)
    expected = bits(in_place(20))
    SESSION.flushes.clear()
    with forced(3), pyfuser.fusing():
        found = in_place(20)
    assert bits(found) == expected and not SESSION.flushes
    x = line(20)
    with forced(3), pytest.raises(BoundsError, match="smooth"), pyfuser.fusing():
        pk.parallel_for(inner(20), smooth, x=x, y=np.zeros(20))
        pk.parallel_for(20, smooth, x=x, y=np.zeros(20))
