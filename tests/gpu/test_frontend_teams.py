"""Programs of teams on a GPU (or its stand-in), fused and unfused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.runtime.session import SESSION
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import DeviceError
from tests.soundness.test_teams import (
    COLUMNS,
    LEAGUE,
    halve,
    reversed_rows,
    row_above,
    scale,
    squares,
    sums,
)


@pk.workunit
def normalise(team: pk.TeamMember, b, s, n):
    """Each element once, by whichever rank; a ThreadVectorRange alone is run by all of them."""
    j: int = team.league_rank()

    def inner(i: int):
        b[j][i] = b[j][i] / s[j]

    pk.parallel_for(pk.TeamThreadRange(team, n), inner)


def program(space: Any, size: Any) -> list[Any]:
    """Kernels that fuse, and some that read what other teams wrote; scratch memory in two."""
    team = pk.TeamPolicy(space, LEAGUE, size)
    a, b, c, d = (pk.View([LEAGUE, COLUMNS], pk.double) for _ in range(4))
    s, n = pk.View([LEAGUE], pk.double), COLUMNS
    a[:] = np.random.default_rng(5).integers(1, 9, (LEAGUE, COLUMNS))
    pk.parallel_for(team, scale, b=b, a=a, n=n)
    pk.parallel_for(team, sums, s=s, b=b, n=n)
    pk.parallel_for(pk.RangePolicy(space, 0, LEAGUE), halve, s=s, n=n)
    pk.parallel_for(team, normalise, b=b, s=s, n=n)
    pk.parallel_for(team, reversed_rows, b=c, a=b, n=n)
    pk.parallel_for(team, row_above, c=d, b=c, n=n)
    pk.parallel_for(team, reversed_rows, b=b, a=b, n=n)
    total = pk.parallel_reduce(team, squares, b=d, n=n)
    return [*(np.asarray(view).copy() for view in (b, c, d, s)), float(total)]


@pytest.mark.parametrize("size", [pk.AUTO, 1, 4, 32])
def test_fused_unfused_and_the_host(size: Any, cupy: Any) -> None:
    with pyfuser.unfused():
        host, unfused = program(pk.OpenMP, size), program(pk.Cuda, size)
    with pyfuser.fusing():
        fused = program(pk.Cuda, size)
    for a, b, c in zip(host, unfused, fused, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
        np.testing.assert_allclose(a, c, rtol=1e-13)


def launched() -> list[Any]:
    """The GPU's kernels of the last flush."""
    return [launch.launchable.kernel for launch in SESSION.flushes[-1].program.launches]


def test_fused_teams_are_blocks(cupy: Any) -> None:
    team = pk.TeamPolicy(LEAGUE, pk.AUTO)
    a, b = (pk.View([LEAGUE, COLUMNS], pk.double) for _ in range(2))
    s = pk.View([LEAGUE], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(team, scale, b=b, a=a, n=COLUMNS)
        pk.parallel_for(team, sums, s=s, b=b, n=COLUMNS)
        pk.parallel_for(pk.RangePolicy(0, LEAGUE), halve, s=s, n=COLUMNS)
    (kernel,) = launched()
    assert kernel.launch.rule == "team"


def test_scratch_memory_of_a_size_that_comes_with_the_call(cupy: Any) -> None:
    for n in (40, COLUMNS):
        a, b = (pk.View([LEAGUE, COLUMNS], pk.double) for _ in range(2))
        a[:] = np.arange(float(LEAGUE * COLUMNS)).reshape(LEAGUE, COLUMNS)
        pk.parallel_for(pk.TeamPolicy(LEAGUE, pk.AUTO), reversed_rows, b=b, a=a, n=n)
        np.testing.assert_array_equal(np.asarray(b)[:, :n], np.asarray(a)[:, :n][:, ::-1])


@pk.workunit
def as_long_as_a_row(team: pk.TeamMember, b, a):
    j: int = team.league_rank()
    row: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), a.extent(1))

    def fill(i: int):
        row[i] = a[j][i]

    def back(i: int):
        b[j][i] = row[a.extent(1) - 1 - i]

    pk.parallel_for(pk.TeamThreadRange(team, a.extent(1)), fill)
    team.team_barrier()
    pk.parallel_for(pk.TeamThreadRange(team, a.extent(1)), back)


@pytest.mark.parametrize("mode", [pyfuser.fusing, pyfuser.unfused])
def test_scratch_memory_of_the_size_of_a_view(mode: Any, cupy: Any) -> None:
    for n in (30, 5000):
        a, b = (pk.View([3, n], pk.double) for _ in range(2))
        a[:] = np.arange(3.0 * n).reshape(3, n)
        with mode():
            pk.parallel_for(pk.TeamPolicy(3, pk.AUTO), as_long_as_a_row, b=b, a=a)
        np.testing.assert_array_equal(np.asarray(b)[:, ::-1], np.asarray(a))


@pytest.mark.parametrize("mode", [pyfuser.fusing, pyfuser.unfused])
def test_more_scratch_memory_than_a_block_has(mode: Any, cupy: Any) -> None:
    n = 7000
    a, b = (pk.View([2, n], pk.double) for _ in range(2))
    with pytest.raises(DeviceError, match=r"reversed_rows.*56000 bytes.*pk\.OpenMP"), mode():
        pk.parallel_for(pk.TeamPolicy(2, pk.AUTO), reversed_rows, b=b, a=a, n=n)
        pyfuser.sync()
    pyfuser.discard()
    a[:] = 3.0
    pk.parallel_for(pk.TeamPolicy(pk.OpenMP, 2, pk.AUTO), reversed_rows, b=b, a=a, n=n)
    assert b[1, 5] == 3.0


@pytest.mark.parametrize(("n", "launches"), [(2000, 1), (4000, 2)])
def test_what_only_together_needs_too_much_runs_alone(n: int, launches: int, cupy: Any) -> None:
    """Each has room for its row; two rows of 4000 are too much for a block."""
    a, b = (pk.View([2, n], pk.double) for _ in range(2))
    a[:] = np.arange(2.0 * n).reshape(2, n)
    with pyfuser.fusing():
        pk.parallel_for(pk.TeamPolicy(2, pk.AUTO), reversed_rows, b=b, a=a, n=n)
        pk.parallel_for(pk.TeamPolicy(2, pk.AUTO), reversed_rows, b=a, a=b, n=n)
        before = COUNTERS.launches
        pyfuser.sync()
    assert COUNTERS.launches == before + launches
    np.testing.assert_array_equal(np.asarray(b)[:, ::-1], np.asarray(a))
    np.testing.assert_array_equal(np.asarray(a), np.arange(2.0 * n).reshape(2, n))


@pk.workunit
def alternating(j, acc, b):
    """No parts of it could be joined."""
    acc = b[j][1] - acc


def test_what_only_together_no_block_can_have_runs_alone(cupy: Any) -> None:
    a, b = (pk.View([LEAGUE, COLUMNS], pk.double) for _ in range(2))
    a[:] = np.arange(float(LEAGUE * COLUMNS)).reshape(LEAGUE, COLUMNS)
    expected = 0.0
    for row in np.asarray(a):
        expected = row[-2] - expected
    with pyfuser.fusing():
        pk.parallel_for(pk.TeamPolicy(LEAGUE, pk.AUTO), reversed_rows, b=b, a=a, n=COLUMNS)
        result = pk.parallel_reduce(LEAGUE, alternating, b=b)
        before = COUNTERS.launches
        pyfuser.sync()
    assert COUNTERS.launches == before + 2
    np.testing.assert_array_equal(np.asarray(b)[:, ::-1], np.asarray(a))
    assert result == expected


@pk.workunit
def scratch_by_rank(team: pk.TeamMember, b, a, n):
    j: int = team.league_rank()
    row: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), n + j)
    row[j] = a[j][0]
    b[j][0] = row[j]


def test_what_no_block_can_have_is_said(cupy: Any) -> None:
    a, b = (pk.View([LEAGUE, COLUMNS], pk.double) for _ in range(2))
    with pytest.raises(DeviceError, match=r"scratch_by_rank.*depends on more than arguments"):
        pk.parallel_for(pk.TeamPolicy(LEAGUE, pk.AUTO), scratch_by_rank, b=b, a=a, n=COLUMNS)
        pyfuser.sync()
    pyfuser.discard()


def test_blocks_as_large_as_teams(cupy: Any) -> None:
    """Teams of other blocks would add up in another order, so they share none."""
    a, b = (pk.View([LEAGUE, COLUMNS], pk.double) for _ in range(2))
    s, t = (pk.View([LEAGUE], pk.double) for _ in range(2))
    values = np.random.default_rng(6).uniform(-1.0, 1.0, (LEAGUE, COLUMNS))
    found = []
    for mode in (pyfuser.unfused, pyfuser.fusing):
        a[:] = values
        with mode():
            for size, result in ((pk.AUTO, s), (500, t)):
                team = pk.TeamPolicy(LEAGUE, size)
                pk.parallel_for(team, scale, b=b, a=a, n=COLUMNS)
                pk.parallel_for(team, sums, s=result, b=b, n=COLUMNS)
        pyfuser.sync()
        found.append([np.array(view).tobytes() for view in (b, s, t)])
    assert [kernel.launch.threads for kernel in launched() if kernel.launch.rule == "team"] == [
        128,
        512,
    ]
    assert "threads" in {rejection.reason for rejection in pyfuser.explain().rejections}
    assert found[0] == found[1]
