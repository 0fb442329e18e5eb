"""What teams may not do is refused at its place; twins that are right are lowered."""

from __future__ import annotations

from typing import List  # noqa: UP035

import pytest

from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.printer import show
from pyfuser.ir.verify import verify
from pyfuser.ir.visit import statements
from pyfuser.lower.lower import ScalarType, ViewType, lower
from pyfuser.support.errors import WorkunitError

# isort: split
import pykokkos as pk

TYPES = {"v": ViewType(DType.FLOAT64, 1), "n": ScalarType(DType.INT32)}


def lowered(function, size: int = 1) -> nodes.Workunit:
    workunit = lower(function, "for", 1, TYPES, team_size=size).workunit
    verify(workunit)
    return workunit


# ----------------------------------------------------------------- what all threads do together


def barrier_for_one(team: pk.TeamMember, v, n):
    if team.team_rank() == 0:
        team.team_barrier()  # here


def barrier_for_some(team: pk.TeamMember, v, n):
    r: int = team.team_rank()
    half: bool = 2 * r < n
    if half:
        v[r] = 1.0
    else:
        team.team_barrier()  # here


def barrier_after_return(team: pk.TeamMember, v, n):
    if team.team_rank() > 0:
        return
    team.team_barrier()  # here


def barrier_in_own_loop(team: pk.TeamMember, v, n):
    for k in range(team.team_rank()):
        v[k] = 1.0
        team.team_barrier()  # here


def barrier_after_break(team: pk.TeamMember, v, n):
    for k in range(n):
        if k == team.team_rank():
            break
        team.team_barrier()  # here


def barrier_while_own(team: pk.TeamMember, v, n):
    k: int = team.team_rank()
    while k < n:
        team.team_barrier()  # here
        k += 1


def barrier_by_fetched(team: pk.TeamMember, v, n):
    old: float = pk.atomic_fetch_add(v, [0], 1.0)
    if old == 0.0:
        team.team_barrier()  # here


def barrier_in_shared_loop(team: pk.TeamMember, v, n):
    def inner(i: int):
        team.team_barrier()  # here

    pk.parallel_for(pk.TeamThreadRange(team, n), inner)


def sum_for_one(team: pk.TeamMember, v, n):
    def inner(i: int, acc: pk.Acc[float]):
        acc += v[i]

    if team.team_rank() == 0:
        v[0] = pk.parallel_reduce(pk.TeamThreadRange(team, n), inner)  # here


def loop_in_shared_loop(team: pk.TeamMember, v, n):
    def inner(i: int):
        v[i] = 1.0

    def outer(i: int):
        pk.parallel_for(pk.TeamThreadRange(team, n), inner)  # here

    pk.parallel_for(pk.TeamThreadRange(team, n), outer)


def scratch_for_one(team: pk.TeamMember, v, n):
    if team.team_rank() == 0:
        s: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), n)  # here
        s[0] = 1.0


def own_range(team: pk.TeamMember, v, n):
    def inner(i: int, acc: pk.Acc[float]):
        acc += v[i]

    v[0] = pk.parallel_reduce(pk.TeamThreadRange(team, team.team_rank()), inner)  # here


TOGETHER = [
    barrier_for_one, barrier_for_some, barrier_after_return, barrier_in_own_loop,
    barrier_after_break, barrier_while_own, barrier_by_fetched, barrier_in_shared_loop,
    sum_for_one, loop_in_shared_loop, scratch_for_one, own_range,
]  # fmt: skip


@pytest.mark.parametrize("function", TOGETHER, ids=lambda f: f.__name__)
def test_what_only_some_threads_may_reach(function) -> None:
    """Refused for several threads, at its line; one thread cannot disagree with itself."""
    with pytest.raises(WorkunitError, match="threads") as caught:
        lowered(function, 3)
    assert "# here" in str(caught.value)
    lowered(function, 1)


# ----------------------------------------------------------------- how it is written


def writes_around(team: pk.TeamMember, v, n):
    total: float = 0.0

    def inner(i: int):
        total += v[i]  # noqa: F823, F841

    pk.parallel_for(pk.TeamThreadRange(team, n), inner)


def writes_around_single(team: pk.TeamMember, v, n):
    total: float = 0.0

    def inner(i: int):
        def once():
            nonlocal total
            total = v[i]

        pk.single(pk.PerThread(team), once)

    pk.parallel_for(pk.TeamThreadRange(team, n), inner)


def stored_range(team: pk.TeamMember, v, n):
    where: int = pk.TeamThreadRange(team, n)
    v[0] = where


def unknown_range(team: pk.TeamMember, v, n):
    def inner(i: int):
        v[i] = 1.0

    pk.parallel_for(pk.RangePolicy(0, n), inner)


def float_range(team: pk.TeamMember, v, n):
    def inner(i: int):
        v[i] = 1.0

    pk.parallel_for(pk.TeamThreadRange(team, v[0]), inner)


def no_member(team: pk.TeamMember, v, n):
    def inner(i: int):
        v[i] = 1.0

    pk.parallel_for(pk.TeamThreadRange(n, n), inner)


def a_lambda(team: pk.TeamMember, v, n):
    pk.parallel_for(pk.TeamThreadRange(team, n), lambda i: v[i])


def too_many_parameters(team: pk.TeamMember, v, n):
    def inner(i: int, j: int):
        v[i] = j

    pk.parallel_for(pk.TeamThreadRange(team, n), inner)


def no_accumulator(team: pk.TeamMember, v, n):
    def inner(i: int):
        v[i] = 1.0

    v[0] = pk.parallel_reduce(pk.TeamThreadRange(team, n), inner)


def float_index(team: pk.TeamMember, v, n):
    def inner(i: float):
        v[0] = i

    pk.parallel_for(pk.TeamThreadRange(team, n), inner)


def scalar_accumulator(team: pk.TeamMember, v, n):
    def inner(i: int, acc: float):
        acc += v[i]

    v[0] = pk.parallel_reduce(pk.TeamThreadRange(team, n), inner)


def initial_value(team: pk.TeamMember, v, n):
    def inner(i: int, acc: pk.Acc[float]):
        acc += v[i]

    v[0] = pk.parallel_reduce(pk.TeamThreadRange(team, n), inner, 5)


def flat_box(team: pk.TeamMember, v, n):
    def inner(i: int):
        v[i] = 1.0

    pk.parallel_for(pk.TeamThreadMDRange(team, n), inner)


def runs_itself(team: pk.TeamMember, v, n):
    def inner(i: int):
        pk.parallel_for(pk.ThreadVectorRange(team, n), inner)

    pk.parallel_for(pk.TeamThreadRange(team, n), inner)


def returns_value(team: pk.TeamMember, v, n):
    def inner(i: int):
        return v[i]

    pk.parallel_for(pk.TeamThreadRange(team, n), inner)


def value_of_for(team: pk.TeamMember, v, n):
    def inner(i: int):
        v[i] = 1.0

    v[0] = pk.parallel_for(pk.TeamThreadRange(team, n), inner)


def plain_call(team: pk.TeamMember, v, n):
    def inner(i: int):
        v[i] = 1.0

    inner(3)


def member_as_number(team: pk.TeamMember, v, n):
    v[0] = team + 1


def function_as_number(team: pk.TeamMember, v, n):
    def inner(i: int):
        v[i] = 1.0

    v[0] = inner + 1


def assigned_member(team: pk.TeamMember, v, n):
    team = 3  # noqa: F841


def unknown_method(team: pk.TeamMember, v, n):
    v[0] = team.league_size()


def method_with_argument(team: pk.TeamMember, v, n):
    v[0] = team.league_rank(1)


def loose_scratch(team: pk.TeamMember, v, n):
    v[0] = team.team_scratch(0)


def nested_scratch(team: pk.TeamMember, v, n):
    def inner(i: int):
        s: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), 4)
        v[i] = s[0]

    pk.parallel_for(pk.TeamThreadRange(team, n), inner)


def scratch_rank(team: pk.TeamMember, v, n):
    s: pk.ScratchView2D[float] = pk.ScratchView2D(team.team_scratch(0), n)
    v[0] = s[0][0]


def scratch_kind(team: pk.TeamMember, v, n):
    s: pk.ScratchView2D[float] = pk.ScratchView1D(team.team_scratch(0), n, n)
    v[0] = s[0][0]


def scratch_extent(team: pk.TeamMember, v, n):
    s: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), v[0])
    v[0] = s[0]


def scratch_level(team: pk.TeamMember, v, n):
    s: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(7), n)
    v[0] = s[0]


def single_of_all(team: pk.TeamMember, v, n):
    def once():
        v[0] = 1.0

    pk.single(pk.PerLeague(team), once)


def single_with_index(team: pk.TeamMember, v, n):
    def once(i: int):
        v[0] = 1.0

    pk.single(pk.PerTeam(team), once)


def index_for_teams(i: int, v, n):
    v[i] = 1.0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (writes_around, "'total' belongs to the code around"),
        (writes_around_single, "'total' belongs to the code around"),
        (stored_range, "'TeamThreadRange' is not supported"),
        (unknown_range, "nested parallelism needs a range written here"),
        (float_range, "needs integers, not float64"),
        (no_member, "'n' is no team's member"),
        (a_lambda, "a function that is defined in the workunit"),
        (too_many_parameters, "'inner' must take 1 index"),
        (no_accumulator, "'inner' must take 1 index and an accumulator"),
        (float_index, "the index 'i' must be annotated int"),
        (scalar_accumulator, r"annotate it pk.Acc\[pk.double\]"),
        (initial_value, "starts at 0"),
        (flat_box, "two or more extents"),
        (runs_itself, "inner runs itself"),
        (returns_value, "returns no value"),
        (value_of_for, "parallel_for returns nothing"),
        (plain_call, "'inner' is not supported"),
        (member_as_number, "'team' is a team's member"),
        (function_as_number, "'inner' is a function"),
        (assigned_member, "'team' cannot be assigned to"),
        (unknown_method, "has no league_size"),
        (method_with_argument, "league_rank takes no argument"),
        (loose_scratch, "team_scratch belongs into a declaration"),
        (nested_scratch, "not in a nested function"),
        (scratch_rank, r"2 extent\(s\)"),
        (scratch_kind, "made by pk.ScratchView2D"),
        (scratch_extent, "an extent is an integer"),
        (scratch_level, "the level, 0 or 1"),
        (single_of_all, r"pk.PerTeam\(team\) or pk.PerThread\(team\)"),
        (single_with_index, "'once' must take no parameters"),
        (index_for_teams, "annotate it pk.TeamMember"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_written_wrong(function, message: str) -> None:
    for size in (1, 2):
        with pytest.raises(WorkunitError, match=message) as caught:
            lowered(function, size)
        assert caught.value.location.file == __file__


def test_a_member_where_there_is_no_team() -> None:
    with pytest.raises(WorkunitError, match="needs a pk"):
        lower(barrier_for_one, "for", 1, TYPES)


# ----------------------------------------------------------------- the ir


@pk.function
def half_of(team: pk.TeamMember, s: pk.View1D[pk.double], n: int) -> float:
    def add(i: int, acc: pk.Acc[float]):
        acc += s[i]

    total: float = pk.parallel_reduce(pk.ThreadVectorRange(team, n), add)
    return 0.5 * total


def calls_a_function(team: pk.TeamMember, v, n):
    j: int = team.league_rank()
    s: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), n)
    s[0] = v[j]
    v[j] = half_of(team, s, n)


def test_a_function_that_takes_the_member() -> None:
    assert show(lowered(calls_a_function)).splitlines()[1:] == [
        "    let j: int32 = league_rank",
        "    scratch s: float64[n]",
        "    s[0] = v[j]",
        "    let n.1: int32 = n",
        "    let acc: float64 = 0.0",
        "    for i: int32 in range(0, n.1, 1) shared:",
        "        acc += s[i]",
        "    let half_of: float64 = 0.5 * acc",
        "    v[j] = half_of",
    ]


def two_regions(team: pk.TeamMember, v, n):
    mine: float = team.team_rank() * 2.0
    pair: List[float] = [mine, 1.0]  # noqa: UP006
    same: float = n * 2.0
    v[team.team_rank()] = pair[0]
    team.team_barrier()
    if team.team_rank() == 0:
        v[2] = mine + same + pair[1]


def test_locals_of_several_regions() -> None:
    """Only what differs between threads becomes an array, and one thread's branch needs no loop."""
    assert show(lowered(two_regions, 2)).splitlines()[1:] == [
        "    let mine: float64[2] = [0.0, ...]",
        "    let pair: float64[4] = [0.0, ...]",
        "    for team_rank: int32 in range(0, 2, 1) shared:",
        "        mine[team_rank] = (float64)team_rank * 2.0",
        "        pair[(team_rank * 2) + 0] = mine[team_rank]",
        "        pair[(team_rank * 2) + 1] = 1.0",
        "    let same: float64 = (float64)n * 2.0",
        "    for team_rank.1: int32 in range(0, 2, 1) shared:",
        "        v[team_rank.1] = pair[(team_rank.1 * 2) + 0]",
        "    v[2] = (mine[0] + same) + pair[(0 * 2) + 1]",
    ]


def ranges_are_fixed(team: pk.TeamMember, v, n):
    count: int = n

    def shrink(i: int):
        v[i] = count

    pk.parallel_for(pk.TeamThreadRange(team, count), shrink)
    count = 0
    pk.parallel_for(pk.TeamThreadRange(team, count), shrink)


def test_a_range_is_fixed_when_it_starts() -> None:
    loops = [s for s in statements(lowered(ranges_are_fixed).body) if isinstance(s, nodes.For)]
    assert [isinstance(loop.stop, nodes.Read) for loop in loops] == [True, True]
    assert loops[0].stop.sym.name == "count" and loops[0].stop != loops[1].stop
