"""Team policies: every construct against Python threads over NumPy arrays, for any team size.

The data are small integers, so that sums are exact in whatever order they are added.
"""

from __future__ import annotations

from typing import List  # noqa: UP035

import numpy as np
import pytest

import pyfuser
from pyfuser.support.errors import ArgumentError, PyFuserError, WorkunitError
from tests import teams

# isort: split
import pykokkos as pk

LEAGUE = 7


@pk.workunit
def outer_sum(team_member, acc, cols, y, x, a):
    j: int = team_member.league_rank()

    def inner(i: int, inner_acc: pk.Acc[float]):
        inner_acc += a[j][i] * x[i]

    temp: float = pk.parallel_reduce(pk.TeamThreadRange(team_member, cols), inner)
    if team_member.team_rank() == 0:
        acc += y[j] * temp


@pk.workunit
def vectors(team: pk.TeamMember, acc: pk.Acc[pk.double], cols, y, x, a):
    j: int = team.league_rank()

    def by_thread(i: int, team_acc: pk.Acc[float]):
        def by_lane(k: int, vector_acc: pk.Acc[float]):
            vector_acc += a[j][k] * x[i]

        row: float = pk.parallel_reduce(pk.ThreadVectorRange(team, cols), by_lane)
        team_acc += row * x[i]

    total: float = pk.parallel_reduce(pk.TeamThreadRange(team, cols), by_thread)

    def once():
        nonlocal acc
        acc += total * y[j]

    pk.single(pk.PerTeam(team), once)


@pk.workunit
def scratch(team: pk.TeamMember, acc: pk.Acc[float], cols, y, x, a):
    j: int = team.league_rank()
    row: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), cols)
    products: pk.ScratchView2D[pk.double] = pk.ScratchView2D(team.team_scratch(0), cols, 3)

    def fill(i: int):
        row[i] = a[j][i]

    if team.team_rank() == 0:
        pk.parallel_for(pk.ThreadVectorRange(team, cols), fill)
    team.team_barrier()

    def multiply(i: int):
        for k in range(3):
            products[i][k] = row[cols - 1 - i] * k

    pk.parallel_for(pk.TeamThreadRange(team, cols), multiply)
    team.team_barrier()

    def add(i: int, total: pk.Acc[float]):
        total += products[i][1] + products[cols - 1 - i][2]

    both: float = pk.parallel_reduce(pk.TeamThreadRange(team, cols), add)
    acc += both
    y[j] = both


@pk.workunit
def own_locals(team: pk.TeamMember, acc: pk.Acc[float], cols, y, x, a):
    """What a thread knows goes through barriers with it, and decides what it adds."""
    j: int = team.league_rank()
    rank: int = team.team_rank()
    size: int = team.team_size()
    mine: float = rank * 2.0 + 1.0
    pair: List[float] = [1.0, 2.0]  # noqa: UP006
    pair[rank % 2] = mine
    shared: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(1), size)
    shared[rank] = mine
    team.team_barrier()
    mine += shared[(rank + 1) % size] * 10.0 + pair[0]
    team.team_barrier()
    shared[rank] = mine + pair[1]
    team.team_barrier()

    def add(i: int, total: pk.Acc[float]):
        total += a[j][i] + mine + shared[rank]

    s: float = pk.parallel_reduce(pk.TeamThreadRange(team, cols), add)
    acc += mine
    if rank == size - 1:
        y[j] = s + shared[0]


@pk.workunit
def control(team: pk.TeamMember, acc: pk.Acc[float], cols, y, x, a):
    """Barriers in loops and branches that all threads take alike."""
    j: int = team.league_rank()
    s: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), cols)
    step: int = 1
    n: int = 0

    def start(i: int):
        s[i] = a[j][i]

    pk.parallel_for(pk.TeamThreadRange(team, cols), start)
    team.team_barrier()
    while step < cols:
        if a[j][0] > 4.0:

            def shift(i: int):
                if i % (2 * step) == 0 and i + step < cols:  # noqa: B023 - run at once
                    s[i] += s[i + step]  # noqa: B023

            pk.parallel_for(pk.TeamThreadRange(team, cols), shift)
            team.team_barrier()
        elif step > 4:
            break
        step = step * 2
        n += 1
    for _ in range(2):

        def again(i: int):
            s[i] = s[i] + x[i]

        pk.parallel_for(pk.TeamThreadRange(team, cols), again)
        team.team_barrier()
    acc += s[0] * n
    y[j] = s[cols - 1]


@pk.workunit
def every_thread(team: pk.TeamMember, acc: pk.Acc[float], cols, y, x, a):
    """What is not shared, every thread does."""
    j: int = team.league_rank()

    def lane(i: int):
        pk.atomic_add(y, [j], x[i])

    def one():
        pk.atomic_add(y, [j], 100.0)

    def of_all(i: int):
        def inner():
            pk.atomic_add(y, [j], a[j][i])

        pk.single(pk.PerThread(team), inner)

    pk.parallel_for(pk.ThreadVectorRange(team, cols), lane)
    pk.single(pk.PerThread(team), one)
    pk.parallel_for(pk.TeamThreadRange(team, cols), of_all)
    for _ in range(team.team_rank()):
        acc += a[j][0]
    acc += 1.0


@pk.workunit
def boxes(team: pk.TeamMember, acc: pk.Acc[float], cols, y, x, a):
    j: int = team.league_rank()
    t: pk.ScratchView2D[float] = pk.ScratchView2D(team.team_scratch(0), cols, 2)

    def put(i: int, k: int):
        t[i][k] = a[j][i] * (k + 1)

    pk.parallel_for(pk.TeamThreadMDRange(team, cols, 2), put)
    team.team_barrier()

    def add(i: int, k: int, total: pk.Acc[float]):
        total += t[i][k]

    total: float = pk.parallel_reduce(pk.TeamThreadMDRange(team, cols, 2), add)
    if team.team_rank() == 0:
        y[j] = total
        acc += total


@pk.workunit
def scans(team: pk.TeamMember, acc: pk.Acc[float], cols, y, x, a):
    j: int = team.league_rank()
    sums: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), cols)

    def scan(i: int, partial: pk.Acc[float], last: bool):
        partial += a[j][i]
        if last:
            sums[i] = float(partial)

    total: float = pk.parallel_scan(pk.ThreadVectorRange(team, cols), scan)
    team.team_barrier()
    if team.team_rank() == 0:
        y[j] = sums[cols // 2] + total
        acc += sums[0]


@pk.workunit
def early_return(team: pk.TeamMember, acc: pk.Acc[float], cols, y, x, a):
    j: int = team.league_rank()
    if j == 3:
        return

    def add(i: int, total: pk.Acc[float]):
        if i % 2 == 0:
            return
        total += a[j][i]

    y[j] = pk.parallel_reduce(pk.TeamThreadRange(team, cols), add)
    acc += y[j]


WORKUNITS = [
    outer_sum, vectors, scratch, own_locals, control, every_thread, boxes, scans, early_return,
]  # fmt: skip


def data(cols: int) -> dict:
    rng = np.random.default_rng(cols)
    return {
        "cols": cols,
        "y": rng.integers(1, 9, LEAGUE).astype(float),
        "x": rng.integers(1, 9, cols).astype(float),
        "a": rng.integers(1, 9, (LEAGUE, cols)).astype(float),
    }


@pytest.mark.parametrize(("size", "cols"), [(1, 1), (1, 5), (3, 2), (3, 40)])
@pytest.mark.parametrize("workunit", WORKUNITS, ids=lambda w: w.__name__)
def test_against_threads(workunit, size, cols):
    want, got = data(cols), data(cols)
    total = teams.run(workunit, LEAGUE, size, True, **want)
    result = pk.parallel_reduce(pk.TeamPolicy(LEAGUE, size), workunit, **got)
    np.testing.assert_array_equal(got["y"], want["y"])
    assert result == total


@pytest.mark.parametrize("space", [pk.Serial, pk.OpenMP, pk.Debug])
@pytest.mark.parametrize(
    "workunit", [outer_sum, vectors, scratch, every_thread], ids=lambda w: w.__name__
)
def test_spaces_and_auto(workunit, space):
    want, got = data(5), data(5)
    total = teams.run(workunit, LEAGUE, 1, True, **want)
    policy = pk.TeamPolicy(space, LEAGUE, pk.AUTO, 32)
    assert pk.parallel_reduce(policy, workunit, **got) == total
    np.testing.assert_array_equal(got["y"], want["y"])


def test_no_teams():
    got = data(5)
    before = got["y"].copy()
    assert pk.parallel_reduce(pk.TeamPolicy(0, 2), vectors, **got) == 0.0
    np.testing.assert_array_equal(got["y"], before)


def test_scratch_sizes():
    assert pk.ScratchView1D[float].shmem_size(10) == 80
    assert pk.ScratchView1D[int].shmem_size(3) == 16
    assert pk.ScratchView2D[pk.double].shmem_size(3, 4) == 96
    policy = pk.TeamPolicy(4, "auto", 32)
    assert policy.set_scratch_size(0, pk.PerTeam(80)) is policy
    with pytest.raises(ArgumentError, match="level"):
        policy.set_scratch_size(2, pk.PerTeam(80))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((4, 0), "team_size 0"), ((4, 5000), "team_size 5000"), ((-1, 1), "league of -1")],
)
def test_policies_that_make_no_sense(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        pk.TeamPolicy(*arguments)


def test_a_scan_of_teams():
    with pytest.raises(PyFuserError, match="parallel_scan over a TeamPolicy"):
        pk.parallel_scan(pk.TeamPolicy(4, 1), scans, **data(4))


def test_the_same_workunit_for_teams_of_several_sizes():
    """Team sizes are part of the code: no kernel of another size is used."""
    y = np.zeros(3)
    for size in (1, 4, 2, 4):
        y[:] = 0
        pk.parallel_for(pk.TeamPolicy(3, size), sizes, y=y)
        np.testing.assert_array_equal(y, [size * size] * 3)


@pk.workunit
def sizes(team: pk.TeamMember, y):
    j: int = team.league_rank()
    y[j] += team.team_size()


@pk.workunit
def member_of_nothing(team: pk.TeamMember, y):
    y[0] = 1.0


def test_policies_and_workunits_that_do_not_fit():
    with pytest.raises(WorkunitError, match="needs a pk"):
        pk.parallel_for(4, member_of_nothing, y=np.zeros(4))


@pk.functor
class RowSums:
    def __init__(self, a, y):
        self.a: pk.View2D[pk.double] = a
        self.y: pk.View1D[pk.double] = y
        self.cols: int = a.shape[1]

    @pk.workunit
    def add(self, team_member: pk.TeamMember, acc: pk.Acc[pk.double]) -> None:
        j: int = team_member.league_rank()
        row: pk.ScratchView1D[float] = pk.ScratchView1D(team_member.team_scratch(0), self.cols)

        def fill(i: int):
            row[i] = self.a[j][i]

        def inner(i: int, total: pk.Acc[pk.double]):
            total += row[i]

        pk.parallel_for(pk.TeamThreadRange(team_member, self.cols), fill)
        team_member.team_barrier()
        total: float = pk.parallel_reduce(pk.TeamThreadRange(team_member, self.cols), inner)
        if team_member.team_rank() == 0:
            self.y[j] = total
            acc += total


@pytest.mark.parametrize("size", [1, 4])
def test_methods_of_functors(size):
    a, y = data(9)["a"], np.zeros(LEAGUE)
    assert pk.parallel_reduce(pk.TeamPolicy(LEAGUE, size), RowSums(a, y).add) == a.sum()
    np.testing.assert_array_equal(y, a.sum(axis=1))


@pk.workunit
def draws(team: pk.TeamMember, y: pk.View1D[pk.double], pool: pk.RandomPool):
    y[team.league_rank()] = pk.rand(float)


def test_random_numbers_are_for_teams_of_one():
    y, pool = np.zeros(LEAGUE), pk.RandomPool(5, 64)
    pk.parallel_for(pk.TeamPolicy(LEAGUE, pk.AUTO), draws, y=y, pool=pool)
    assert len(set(y)) == LEAGUE
    with pytest.raises(WorkunitError, match="teams of one thread"):
        pk.parallel_for(pk.TeamPolicy(LEAGUE, 2), draws, y=y, pool=pool)


@pk.workunit
def scratch_of_no_extent(team: pk.TeamMember, y):
    s: pk.ScratchView2D[float] = pk.ScratchView2D(team.team_scratch(0))
    y[team.league_rank()] = s.extent(0) + 10 * s.extent(1)


def test_extents_that_are_not_given_are_0():
    y = pk.View([2])
    pk.parallel_for(pk.TeamPolicy(2, 2), scratch_of_no_extent, y=y)
    assert list(y) == [0.0, 0.0]


@pk.workunit
def scratch_extents(team: pk.TeamMember, y, n):
    m: int = n + team.league_rank()
    s: pk.ScratchView2D[float] = pk.ScratchView2D(team.team_scratch(0), m, 4)
    m = 0
    for k in range(s.extent(0)):
        s[k][3] = 2.0
    t: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), s.extent(1))
    y[team.league_rank()] = s.extent(0) + 10 * t.extent(0) + m


@pytest.mark.parametrize("size", [1, 3])
def test_scratch_knows_its_extents(size):
    y = pk.View([3])
    pk.parallel_for(pk.TeamPolicy(3, size), scratch_extents, y=y, n=5)
    assert list(y) == [45.0, 46.0, 47.0]


@pk.workunit
def seen_in_scratch(team: pk.TeamMember, y: pk.View2D[pk.double], m: int, step: int):
    """What scratch memory is at first, then what was written there; its two ends lie apart."""
    e: int = team.league_rank()
    row: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), m)
    few: pk.ScratchView2D[pk.int8] = pk.ScratchView2D(team.team_scratch(0), 3, 5)
    large: pk.ScratchView1D[pk.double] = pk.ScratchView1D(team.team_scratch(1), 2000)
    for k in range(0, m, step):
        y[e][0] += row[k] + few[2][4] + large[1999]
        row[k] = 1.0 + e
    few[2][4] = 1
    large[1999] = 1.0
    for k in range(0, m, step):
        y[e][1] += row[k] + few[2][4] + large[1999]


@pytest.mark.parametrize("m", [1, 8, 1023, 1024, 1025, 3000, 200_000])
@pytest.mark.parametrize("fused", [False, True])
def test_scratch_memory_of_any_size_is_zero_in_each_iteration(m, fused):
    """On the stack and beyond: sizes known to the compiler and not, above and below the limit."""
    step = max(1, m // 3)
    y = pk.View([9, 2], pk.double)
    with pyfuser.fusing() if fused else pyfuser.unfused():
        pk.parallel_for(pk.TeamPolicy(9, pk.AUTO), seen_in_scratch, y=y, m=m, step=step)
        pk.parallel_for(pk.TeamPolicy(9, pk.AUTO), seen_in_scratch, y=y, m=m, step=step)
    trips = len(range(0, m, step))
    assert (y.data[:, 0] == 0).all()
    assert y.data[:, 1].tolist() == [2 * trips * (3 + e) for e in range(9)]
