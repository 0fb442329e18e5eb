"""Kernels of teams, for each way of a block: with results that no order of additions changes."""
# ruff: noqa: F821, B023

from __future__ import annotations

from typing import Any

import numpy as np

from tests.codegen.build import Case, case
from tests.frontends.embedded import test_teams as frontend

LEAGUE, N, M = 5, 150, 37


def data(*shape: int, dtype: str = "float64") -> np.ndarray[Any, Any]:
    return (np.arange(np.prod(shape)) * 7 % 11 - 4).reshape(shape).astype(dtype)


# --------------------------------------------------------------------------- shared by a block


def row_sums(team: pk.TeamMember, s, a, n):
    j: int = team.league_rank()

    def add(i: int, acc: pk.Acc[float]):
        acc += a[j][i]

    s[j] = pk.parallel_reduce(pk.TeamThreadRange(team, n), add)


def times_vector(team: pk.TeamMember, y, a, x, n):
    """Matrix-vector product, from a column on, in single precision, with what was there."""
    j: int = team.league_rank()

    def add(i: int, acc: pk.Acc[pk.float]):
        acc += a[j][i] * x[i]

    total: pk.float = pk.parallel_reduce(pk.TeamThreadRange(team, 3, n), add)

    def once():
        y[j] += total

    pk.single(pk.PerTeam(team), once)


def whole_numbers(team: pk.TeamMember, acc: pk.Acc[pk.int64], s, a, n):
    j: int = team.league_rank()

    def add(i: int, total: pk.Acc[pk.int64]):
        if a[j][i] > 0:
            total += a[j][i]
        else:
            total -= 3

    total: pk.int64 = pk.parallel_reduce(pk.TeamThreadRange(team, n), add)
    s[j] = total
    acc += total


def two_passes(team: pk.TeamMember, b, a, n):
    """What one thread wrote another one reads."""
    j: int = team.league_rank()

    def one(i: int):
        b[j][i] = a[j][i] * 2.0

    def two(i: int):
        a[j][i] = b[j][n - 1 - i] + 1.0

    pk.parallel_for(pk.TeamThreadRange(team, n), one)
    team.team_barrier()
    pk.parallel_for(pk.TeamThreadRange(team, n), two)


def by_two_names(team: pk.TeamMember, c, b, a, n):
    """Two views of one memory."""
    j: int = team.league_rank()

    def one(i: int):
        b[j][i] = i * 2.0

    def two(i: int):
        c[j][i] = a[j][n - 1 - i] + 1.0

    pk.parallel_for(pk.TeamThreadRange(team, n), one)
    team.team_barrier()
    pk.parallel_for(pk.TeamThreadRange(team, n), two)


def around_a_store(team: pk.TeamMember, s, a, n):
    """Values that all threads read, before and after one of them writes."""
    j: int = team.league_rank()
    before: float = s[j]
    last: float = a[j][n - 1]
    s[j] = before + 2.0 * last

    def use(i: int):
        a[j][i] += before + s[j] - last

    pk.parallel_for(pk.TeamThreadRange(team, n), use)
    team.team_barrier()
    s[j] = 2.0 * s[j]
    if s[j] > 0.0:
        s[j] = s[j] - a[j][n - 1]
    else:
        s[j] = a[j][0]


def counted(team: pk.TeamMember, bins, a, n):
    j: int = team.league_rank()

    def count(i: int):
        pk.atomic_add(bins, [(i * 7 + j) % 5], a[j][i])

    pk.parallel_for(pk.TeamThreadRange(team, n), count)


def by_ticket(team: pk.TeamMember, tickets, a, n):
    """Each thread would draw a ticket of its own."""
    j: int = team.league_rank()
    ticket: float = pk.atomic_fetch_add(tickets, [j], 1.0)

    def use(i: int):
        a[j][i] += ticket

    pk.parallel_for(pk.TeamThreadRange(team, n), use)


def of_what_others_add(team: pk.TeamMember, total, a, n):
    j: int = team.league_rank()

    def add(i: int):
        pk.atomic_add(total, [j], a[j][i])

    pk.parallel_for(pk.TeamThreadRange(team, n), add)
    team.team_barrier()
    half: float = 0.5 * total[j]

    def use(i: int):
        a[j][i] = half

    pk.parallel_for(pk.TeamThreadRange(team, n), use)


def until_done(team: pk.TeamMember, left, a, n):
    j: int = team.league_rank()
    while left[j] > 0.0:

        def use(i: int):
            a[j][i] += left[j]

        pk.parallel_for(pk.TeamThreadRange(team, n), use)
        team.team_barrier()
        left[j] = left[j] - 1.0


def scratch_alone(team: pk.TeamMember, b, a, n):
    j: int = team.league_rank()
    row: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), n)
    row[0] = a[j][0]
    b[j][0] = row[0]


# --------------------------------------------------------------------------- shared by lanes


def rows_by_lanes(team: pk.TeamMember, acc, y, a, n, m):
    """Each group of lanes has a row; what lanes wrote others read."""
    j: int = team.league_rank()

    def row(i: int):
        def fill(k: int):
            a[j][i][k] = a[j][i][k] * 2.0

        def add(k: int, sum: pk.Acc[float]):
            sum += a[j][i][m - 1 - k] * k

        pk.parallel_for(pk.ThreadVectorRange(team, m), fill)
        total: float = pk.parallel_reduce(pk.ThreadVectorRange(team, m), add)

        def once():
            y[j][i] = total

        pk.single(pk.PerThread(team), once)

        def use(k: int):
            a[j][i][k] += y[j][i]

        pk.parallel_for(pk.ThreadVectorRange(team, m), use)

    pk.parallel_for(pk.TeamThreadRange(team, n), row)
    acc += a[j][n - 1][m - 1] + y[j][1]


def by_groups(team: pk.TeamMember, total, order, a, n, m):
    """What a thread does outside of its vectors is done once, and seen by all lanes."""
    j: int = team.league_rank()

    def row(i: int):
        def double(k: int):
            a[j][i][k] *= 2.0

        pk.parallel_for(pk.ThreadVectorRange(team, m), double)
        pk.atomic_add(total, [j], a[j][i][m - 1])
        old: float = pk.atomic_fetch_add(order, [j], 1.0)
        first: float = a[j][i][0]
        while a[j][i][0] < first + 3.0:

            def more(k: int):
                a[j][i][k] += 1.0 + 0.0 * old

            pk.parallel_for(pk.ThreadVectorRange(team, m), more)
        if a[j][i][1] > 0.0:
            a[j][i][1] = 1000.0

    pk.parallel_for(pk.TeamThreadRange(team, n), row)


def sums_of_sums(team: pk.TeamMember, s, a, n, m):
    j: int = team.league_rank()

    def row(i: int, outer: pk.Acc[float]):
        def add(k: int, inner: pk.Acc[float]):
            inner += a[j][i][k]

        part: float = pk.parallel_reduce(pk.ThreadVectorRange(team, m), add)
        if part > 0.0:
            outer += part * i

    s[j] = pk.parallel_reduce(pk.TeamThreadRange(team, n), row)


def box(team: pk.TeamMember, s, a, n, m):
    j: int = team.league_rank()

    def put(i: int, k: int):
        a[j][i][k] = a[j][i][k] + i * 100 + k

    def add(i: int, k: int, sum: pk.Acc[float]):
        sum += a[j][i][k]

    pk.parallel_for(pk.TeamThreadMDRange(team, n, m), put)
    team.team_barrier()
    s[j] = pk.parallel_reduce(pk.TeamThreadMDRange(team, n, m), add)


# --------------------------------------------------------------------------- scratch memory


def in_scratch(team: pk.TeamMember, b, a, n):
    j: int = team.league_rank()
    row: pk.ScratchView2D[float] = pk.ScratchView2D(team.team_scratch(0), 2, 150)
    few: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), 3)

    def fill(i: int):
        row[i % 2][i] = a[j][i]

    pk.parallel_for(pk.TeamThreadRange(team, n), fill)
    few[1] = few[2] + j  # the same by each rank of the team
    team.team_barrier()

    def back(i: int):
        b[j][i] = row[0][n - 1 - i] * 2.0 + row[1][n - 1 - i] + few[1] + few[0] * 9

    pk.parallel_for(pk.TeamThreadRange(team, n), back)


def as_long_as_a_row(team: pk.TeamMember, b, a):
    """Scratch memory in a loop, and of the size of a view."""
    j: int = team.league_rank()
    row: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), a.extent(1))
    for k in range(3):
        some: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), 20)

        def fill(i: int):
            row[i] = row[i] + i + k
            pk.atomic_add(some, [i % 20], a[j][i])

        pk.parallel_for(pk.TeamThreadRange(team, a.extent(1)), fill)
        team.team_barrier()
        b[j][k] = some[k] + row[a.extent(1) - 1]


def tiles(team: pk.TeamMember, acc, b, a, n, width):
    """Tiles of a row, in scratch memory of a size that is known when it runs, one by one."""
    j: int = team.league_rank()
    tile: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), width + 1)
    sums: pk.ScratchView2D[pk.float] = pk.ScratchView2D(team.team_scratch(0), width, 2)
    first: int = 0
    while first < n:

        def load(i: int):
            if first + i < n:
                tile[i] = a[j][first + i]
            else:
                tile[i] = 0.0

        pk.parallel_for(pk.TeamThreadRange(team, width), load)
        team.team_barrier()

        def store(i: int):
            sums[i][1] += tile[width - 1 - i]
            if first + i < n:
                b[j][first + i] = tile[width - 1 - i] + tile[width]

        pk.parallel_for(pk.TeamThreadRange(team, width), store)
        team.team_barrier()
        first += width

    def add(i: int, total: pk.Acc[float]):
        total += sums[i][1] + sums[i][0]

    total: float = pk.parallel_reduce(pk.TeamThreadRange(team, width), add)
    acc += total


def team(function: Any, arguments: Any, pattern: str = "for", size: int = 1, **more: Any) -> Case:
    return case(function, [more.pop("league", LEAGUE)], arguments, pattern, team_size=size, **more)


def overlapping() -> list[Any]:
    """Rows of one array, and the same rows one element further on."""
    whole = data(LEAGUE, N + 1)
    return [np.zeros((LEAGUE, N)), whole[:, 1:], whole[:, :-1], N]


TEAMS: dict[str, Case] = {
    "sums of rows": team(row_sums, lambda: [np.zeros(LEAGUE), data(LEAGUE, N), N]),
    "sums of no rows": team(row_sums, lambda: [np.ones(LEAGUE), data(LEAGUE, N), 0]),
    "some of a league": team(
        row_sums, lambda: [np.zeros(LEAGUE), data(LEAGUE, N), N], begin=[2]
    ),
    "times a vector": team(
        times_vector,
        lambda: [data(LEAGUE, dtype="float32"), data(LEAGUE, N, dtype="float32"),
                 data(N, dtype="float32"), N],
    ),
    "whole numbers": team(
        whole_numbers,
        lambda: [np.zeros(LEAGUE, "int64"), data(LEAGUE, N, dtype="int32"), N],
        "reduce",
    ),
    "two passes": team(two_passes, lambda: [np.zeros((LEAGUE, N)), data(LEAGUE, N), N]),
    "by two names": team(by_two_names, overlapping),
    "around a store": team(around_a_store, lambda: [data(LEAGUE), data(LEAGUE, N), N]),
    "atomics": team(counted, lambda: [np.zeros(5), data(LEAGUE, N), N]),
    "tickets": team(by_ticket, lambda: [data(LEAGUE), data(LEAGUE, N), N]),
    "atomically updated": team(
        of_what_others_add, lambda: [data(LEAGUE), data(LEAGUE, N), N]
    ),
    "until done": team(until_done, lambda: [data(LEAGUE), data(LEAGUE, N), N]),
    "scratch alone": team(
        scratch_alone, lambda: [np.zeros((LEAGUE, N)), data(LEAGUE, N), N]
    ),
    "by groups": team(
        by_groups, lambda: [np.zeros(LEAGUE), np.zeros(LEAGUE), data(LEAGUE, 9, M), 9, M]
    ),
    "rows by lanes": team(
        rows_by_lanes, lambda: [np.zeros((LEAGUE, 8)), data(LEAGUE, 8, M), 8, M], "reduce"
    ),
    "sums of sums": team(
        sums_of_sums, lambda: [np.zeros(LEAGUE), data(LEAGUE, 9, M), 9, M]
    ),
    "a box": team(box, lambda: [np.zeros(LEAGUE), data(LEAGUE, 9, M), 9, M]),
    "scratch of a team": team(
        in_scratch, lambda: [np.zeros((LEAGUE, N)), data(LEAGUE, N), N]
    ),
    "as long as a row": team(
        as_long_as_a_row, lambda: [np.zeros((LEAGUE, 3)), data(LEAGUE, N)]
    ),
    "tiles": team(
        tiles, lambda: [np.zeros((LEAGUE, N)), data(LEAGUE, N), N, 41], "reduce"
    ),
    "a large league": team(
        tiles, lambda: [np.zeros((1100, 30)), data(1100, 30), 30, 17], "reduce", league=1100
    ),
    "sums of rows by 200": team(
        row_sums, lambda: [np.zeros(LEAGUE), data(LEAGUE, N), N], size=200
    ),
    "whole numbers by 1000": team(
        whole_numbers,
        lambda: [np.zeros(LEAGUE, "int64"), data(LEAGUE, N, dtype="int32"), N],
        "reduce",
        1000,
    ),
    "sums of sums by 300": team(
        sums_of_sums, lambda: [np.zeros(LEAGUE), data(LEAGUE, 9, M), 9, M], size=300
    ),
    "scratch of a team by 129": team(
        in_scratch, lambda: [np.zeros((LEAGUE, N)), data(LEAGUE, N), N], size=129
    ),
}  # fmt: skip

BLOCKS = {
    "sums of rows by 200": 256,
    "whole numbers by 1000": 1024,
    "sums of sums by 300": 512,
    "scratch of a team by 129": 256,
}
"""Threads of the blocks of large teams."""

for _size in (1, 3, 33):
    for _workunit in frontend.WORKUNITS:
        if _size > 1 or _workunit.__name__ not in ("scans", "every_thread"):
            _function = _workunit.__pyfuser__.function
            TEAMS[f"{_function.__name__} by {_size}"] = team(
                _function,
                lambda: [frontend.data(37)[name] for name in ("cols", "y", "x", "a")],
                "reduce",
                _size,
                league=frontend.LEAGUE,
            )

# --------------------------------------------------------------------------- by one thread


def running_sums(team: pk.TeamMember, b, a, n):
    """A scan has an order."""
    j: int = team.league_rank()

    def prefix(i: int, acc: pk.Acc[float], last: bool):
        acc += a[j][i]
        if last:
            b[j][i] = float(acc)

    def use(i: int):
        a[j][i] += b[j][i]

    pk.parallel_scan(pk.TeamThreadRange(team, n), prefix)
    pk.parallel_for(pk.TeamThreadRange(team, n), use)


def large_rows(team: pk.TeamMember, b, a, n):
    j: int = team.league_rank()
    row: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), 6200)

    def fill(i: int):
        row[i] = a[j][i]

    def back(i: int):
        b[j][i] = row[n - 1 - i]

    pk.parallel_for(pk.TeamThreadRange(team, n), fill)
    team.team_barrier()
    pk.parallel_for(pk.TeamThreadRange(team, n), back)


def in_order(team: pk.TeamMember, b, a, n):
    """A loop of the user's, which each thread of the team would run."""
    j: int = team.league_rank()

    def double(i: int):
        a[j][i] *= 2.0

    pk.parallel_for(pk.TeamThreadRange(team, n), double)
    for k in range(1, n):
        b[j][k] = b[j][k - 1] + a[j][k]


def until_five(team: pk.TeamMember, s, a, n):
    """What is added depends on the sum."""
    j: int = team.league_rank()

    def add(i: int, acc: pk.Acc[float]):
        if float(acc) < 5.0:
            acc += a[j][i]

    s[j] = pk.parallel_reduce(pk.TeamThreadRange(team, n), add)


ONE_THREAD: dict[str, tuple[str, Case]] = {
    "a scan": (
        "cannot share", team(running_sums, lambda: [np.zeros((LEAGUE, N)), data(LEAGUE, N), N])
    ),
    "large rows": (
        "49152 bytes", team(large_rows, lambda: [np.zeros((LEAGUE, N)), data(LEAGUE, N), N])
    ),
    "in order": (
        "cannot share", team(in_order, lambda: [np.zeros((LEAGUE, N)), data(LEAGUE, N), N])
    ),
    "until five": ("could share", team(until_five, lambda: [data(LEAGUE), data(LEAGUE, N), N])),
}  # fmt: skip
"""Kernels of teams that stay one thread a team, with the reason."""


def scratch_by_rank(team: pk.TeamMember, b, a, n):
    j: int = team.league_rank()
    row: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), n + j)

    def fill(i: int):
        row[i] = a[j][i]

    pk.parallel_for(pk.TeamThreadRange(team, n), fill)
    b[j][0] = row[0]


def scratch_in_a_branch(team: pk.TeamMember, b, a, n):
    j: int = team.league_rank()
    if j > 2:
        row: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), n)

        def fill(i: int):
            row[i] = a[j][i]

        pk.parallel_for(pk.TeamThreadRange(team, n), fill)
        b[j][0] = row[0]


NO_KERNEL: dict[str, tuple[str, Case]] = {
    "scratch by rank": (
        "depends on more than arguments",
        team(scratch_by_rank, lambda: [np.zeros((LEAGUE, N)), data(LEAGUE, N), N]),
    ),
    "scratch in a branch": (
        "in a branch",
        team(scratch_in_a_branch, lambda: [np.zeros((LEAGUE, N)), data(LEAGUE, N), N]),
    ),
}
"""Kernels that no GPU runs, with the reason."""
