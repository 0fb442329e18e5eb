"""Teams in a trace: what is fused gives the same bits; what is not, is not for the right reason."""

from __future__ import annotations

import numpy as np
import pytest

import pyfuser
from tests.soundness.plans import groups, reasons

# isort: split
import pykokkos as pk

LEAGUE, COLUMNS = 23, 70


@pk.workunit
def scale(team: pk.TeamMember, b, a, n):
    j: int = team.league_rank()

    def inner(i: int):
        b[j][i] = 0.1 * a[j][i] + 3.0

    pk.parallel_for(pk.TeamThreadRange(team, n), inner)


@pk.workunit
def sums(team: pk.TeamMember, s, b, n):
    j: int = team.league_rank()

    def inner(i: int, acc: pk.Acc[float]):
        acc += b[j][i]

    s[j] = pk.parallel_reduce(pk.TeamThreadRange(team, n), inner)


@pk.workunit
def normalise(team: pk.TeamMember, b, s, n):
    j: int = team.league_rank()

    def inner(i: int):
        b[j][i] = b[j][i] / s[j]

    pk.parallel_for(pk.ThreadVectorRange(team, n), inner)


@pk.workunit
def squares(team: pk.TeamMember, acc, b, n):
    j: int = team.league_rank()

    def inner(i: int, row: pk.Acc[float]):
        row += b[j][i] * b[j][i]

    total: float = pk.parallel_reduce(pk.TeamThreadRange(team, n), inner)

    def once():
        nonlocal acc
        acc += total

    pk.single(pk.PerTeam(team), once)


@pk.workunit
def reversed_rows(team: pk.TeamMember, b, a, n):
    """In scratch memory, so that it may be done in place."""
    j: int = team.league_rank()
    row: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), n)

    def fill(i: int):
        row[i] = a[j][i]

    def back(i: int):
        b[j][i] = row[n - 1 - i]

    pk.parallel_for(pk.TeamThreadRange(team, n), fill)
    team.team_barrier()
    pk.parallel_for(pk.TeamThreadRange(team, n), back)


@pk.workunit
def row_above(team: pk.TeamMember, c, b, n):
    j: int = team.league_rank()

    def inner(i: int):
        if j > 0:
            c[j][i] = b[j - 1][i]

    pk.parallel_for(pk.TeamThreadRange(team, n), inner)


@pk.workunit
def transposed(team: pk.TeamMember, c, b, n):
    j: int = team.league_rank()

    def inner(i: int):
        c[j][i] = b[i][j]

    pk.parallel_for(pk.TeamThreadRange(team, n), inner)


@pk.workunit
def halve(j: int, s, n):
    s[j] = s[j] / n


@pk.workunit
def until_large(team: pk.TeamMember, acc, b, n):
    j: int = team.league_rank()

    def inner(i: int, count: pk.Acc[float]):
        for k in range(n):
            if b[j][k] > b[j][i]:
                break
            count += 0.1

    total: float = pk.parallel_reduce(pk.TeamThreadRange(team, n), inner)
    acc += total


def rows() -> np.ndarray:
    return np.random.default_rng(5).normal(size=(LEAGUE, COLUMNS)) + 4.0


def both(run):
    """The results of a program unfused and fused, for each."""
    with pyfuser.unfused():
        unfused = run()
    with pyfuser.fusing():
        fused = run()
    pyfuser.sync()
    return unfused, fused


def same(unfused, fused) -> None:
    for a, b in zip(unfused, fused, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("size", [1, 2, 5])
def test_row_by_row_is_one_kernel(size):
    policy = pk.TeamPolicy(LEAGUE, size)

    def run():
        a, b, s = rows(), np.zeros((LEAGUE, COLUMNS)), np.zeros(LEAGUE)
        pk.parallel_for(policy, scale, b=b, a=a, n=COLUMNS)
        pk.parallel_for(policy, sums, s=s, b=b, n=COLUMNS)
        pk.parallel_for(LEAGUE, halve, s=s, n=2.0)
        pk.parallel_for(policy, normalise, b=b, s=s, n=COLUMNS)
        total = pk.parallel_reduce(policy, squares, b=b, n=COLUMNS)
        return b, s, float(total)

    unfused, fused = both(run)
    same(unfused, fused)
    if size == 1:  # a league of teams and a range of indices are one space
        assert groups() == ["scale+sums+halve+normalise+squares"]
    b = 0.1 * rows() + 3.0
    s = b.sum(axis=1) / 2
    np.testing.assert_allclose(fused[1], s, rtol=1e-13)
    # Each of several threads divides: `ThreadVectorRange` is not shared by the team.
    np.testing.assert_allclose(fused[0], b / s[:, None] ** size, rtol=1e-12)


def test_a_row_that_only_one_kernel_uses_needs_no_memory():
    def run():
        a, s = rows(), np.zeros(LEAGUE)
        b = pk.View([LEAGUE, COLUMNS], pk.double)
        pk.parallel_for(pk.TeamPolicy(LEAGUE, 1), scale, b=b, a=a, n=COLUMNS)
        pk.parallel_for(pk.TeamPolicy(LEAGUE, 1), reversed_rows, b=a, a=b, n=COLUMNS)
        pk.parallel_for(pk.TeamPolicy(LEAGUE, 1), sums, s=s, b=a, n=COLUMNS)
        return a, s

    unfused, fused = both(run)
    same(unfused, fused)
    assert groups() == ["scale+reversed_rows+sums"]
    assert "no memory needed: b" in str(pyfuser.explain())
    np.testing.assert_array_equal(fused[0], (0.1 * rows() + 3.0)[:, ::-1])


@pytest.mark.parametrize("reader", [row_above, transposed], ids=lambda w: w.__name__)
def test_other_rows_have_to_be_finished(reader):
    """The twins of the above: a team reads what another one wrote."""
    policy, n = pk.TeamPolicy(LEAGUE, 1), LEAGUE

    def run():
        a, b, c = rows()[:, :n].copy(), np.zeros((LEAGUE, n)), np.zeros((LEAGUE, n))
        pk.parallel_for(policy, scale, b=b, a=a, n=n)
        pk.parallel_for(policy, reader, c=c, b=b, n=n)
        return b, c

    unfused, fused = both(run)
    same(unfused, fused)
    assert groups() == ["scale", reader.__name__]
    assert reasons()[f"scale|{reader.__name__}"] == "flow"
    b = 0.1 * rows()[:, :n] + 3.0
    above = np.vstack([np.zeros(n), b[:-1]])
    np.testing.assert_array_equal(fused[1], above if reader is row_above else b.T)


def test_leagues_of_different_sizes_stay_apart():
    a, b = rows(), np.zeros((LEAGUE, COLUMNS))
    s = np.zeros(LEAGUE)
    with pyfuser.fusing():
        pk.parallel_for(pk.TeamPolicy(LEAGUE, 1), scale, b=b, a=a, n=COLUMNS)
        pk.parallel_for(pk.TeamPolicy(LEAGUE - 1, 1), sums, s=s, b=b, n=COLUMNS)
    want = (0.1 * rows() + 3.0).sum(axis=1)
    np.testing.assert_allclose(s[:-1], want[:-1], rtol=1e-13)
    assert s[-1] == 0.0


@pytest.mark.parametrize("n", [1, 23, 24, 70])
def test_sums_of_joined_loops(n):
    """A sum keeps its order beside one whose loop holds a jump, which is summed in another way."""
    policy = pk.TeamPolicy(LEAGUE, 1)

    def run():
        b = rows()
        first = pk.parallel_reduce(policy, squares, b=b, n=n)
        second = pk.parallel_reduce(policy, until_large, b=b, n=n)
        third = pk.parallel_reduce(policy, squares, b=b, n=n)
        return float(first), float(second), float(third)

    unfused, fused = both(run)
    same(unfused, fused)
    assert fused[0] == fused[2]
    np.testing.assert_allclose(fused[0], (rows()[:, :n] ** 2).sum(), rtol=1e-13)


@pk.workunit
def unused_sums(team: pk.TeamMember, counts, b, n):
    j: int = team.league_rank()
    last: float = 0.0

    def inner(i: int, acc: pk.Acc[float]):
        acc += b[j][i]

    def counted(i: int, acc: pk.Acc[float]):
        acc += pk.atomic_fetch_add(counts, [0], 1)

    s: float = pk.parallel_reduce(pk.TeamThreadRange(team, n), inner)  # noqa: F841
    t: float = pk.parallel_reduce(pk.TeamThreadRange(team, n), counted)  # noqa: F841
    last = pk.atomic_fetch_add(counts, [1], 1)  # noqa: F841


def test_sums_that_nobody_uses():
    """They go, and what else was done for them stays."""
    counts, b = np.zeros(2, np.int64), np.zeros((LEAGUE, COLUMNS))
    with pyfuser.fusing():
        pk.parallel_for(pk.TeamPolicy(LEAGUE, 1), scale, b=b, a=rows(), n=COLUMNS)
        pk.parallel_for(pk.TeamPolicy(LEAGUE, 1), unused_sums, counts=counts, b=b, n=COLUMNS)
    assert groups() == ["scale+unused_sums"]
    assert list(counts) == [LEAGUE * COLUMNS, LEAGUE]


def test_overlapping_rows():
    """Teams over views of one buffer: what overlaps is found in memory."""
    memory = np.zeros((LEAGUE + 1, COLUMNS))
    memory[:] = np.arange(LEAGUE + 1)[:, None]
    with pyfuser.fusing():
        pk.parallel_for(pk.TeamPolicy(LEAGUE, 1), scale, b=memory[1:], a=rows(), n=COLUMNS)
        s = np.zeros(LEAGUE)
        pk.parallel_for(pk.TeamPolicy(LEAGUE, 1), sums, s=s, b=memory[:-1], n=COLUMNS)
    assert groups() == ["scale", "sums"]
    want = np.vstack([np.zeros(COLUMNS), 0.1 * rows() + 3.0])[:-1].sum(axis=1)
    np.testing.assert_allclose(s, want, rtol=1e-13)


def test_replays_and_threads(monkeypatch):
    from pyfuser.engine.launchable import team

    policy = pk.TeamPolicy(LEAGUE, pk.AUTO)
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(team, "count", threads)
        for _ in range(2):
            a, b = rows(), np.zeros((LEAGUE, COLUMNS))
            with pyfuser.fusing():
                pk.parallel_for(policy, scale, b=b, a=a, n=COLUMNS)
                total = pk.parallel_reduce(policy, squares, b=b, n=COLUMNS)
            found.append((float(total), b.tobytes()))
    assert len(set(found)) == 1
