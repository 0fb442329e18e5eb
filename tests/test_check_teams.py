"""PYFUSER_CHECK on kernels of teams: indices outside views and scratch memory, races of teams."""

from __future__ import annotations

import numpy as np
import pytest

import pyfuser
from pyfuser.support.errors import BoundsError, RaceError
from tests import teams
from tests.frontends.embedded.test_teams import LEAGUE, WORKUNITS, data
from tests.test_check import check  # noqa: F401 - a fixture

pk = pytest.importorskip("pykokkos")


@pk.workunit
def past_a_view(team: pk.TeamMember, a, y, n):
    j: int = team.league_rank()

    def add(i: int, total: pk.Acc[float]):
        total += a[j][i + n]  # past the end

    y[j] = pk.parallel_reduce(pk.TeamThreadRange(team, 4), add)


@pk.workunit
def past_scratch(team: pk.TeamMember, y, n):
    j: int = team.league_rank()
    s: pk.ScratchView2D[float] = pk.ScratchView2D(team.team_scratch(0), 2, 3)

    def put(i: int):
        s[1][i + n] = 1.0  # past the row

    pk.parallel_for(pk.TeamThreadRange(team, 3), put)
    team.team_barrier()
    y[j] = s[1][0]


@pk.workunit
def neighbours(team: pk.TeamMember, y, n):
    j: int = team.league_rank()

    def put(i: int):
        y[j + i] = 1.0

    pk.parallel_for(pk.TeamThreadRange(team, n), put)


@pytest.mark.parametrize("size", [1, 2])
def test_an_index_past_a_view(check, size):  # noqa: F811
    check("bounds")
    arguments = {"a": np.ones((3, 4)), "y": np.zeros(3)}
    pk.parallel_for(pk.TeamPolicy(3, size), past_a_view, n=0, **arguments)
    np.testing.assert_array_equal(arguments["y"], [4, 4, 4])
    with pytest.raises(BoundsError, match=r"(?s)\ba\b.*past the end"):
        pk.parallel_for(pk.TeamPolicy(3, size), past_a_view, n=1, **arguments)


@pytest.mark.parametrize("size", [1, 2])
def test_an_index_past_scratch_memory(check, size):  # noqa: F811
    check("bounds")
    y = np.zeros(3)
    pk.parallel_for(pk.TeamPolicy(3, size), past_scratch, y=y, n=0)
    np.testing.assert_array_equal(y, [1, 1, 1])
    with pytest.raises(BoundsError, match=r"(?s)\bs\b.*past the row"):
        pk.parallel_for(pk.TeamPolicy(3, size), past_scratch, y=y, n=1)


@pytest.mark.parametrize("size", [1, 2])
def test_teams_that_write_one_element(check, size):  # noqa: F811
    check("races")
    y = np.zeros(5)
    pk.parallel_for(pk.TeamPolicy(4, size), neighbours, y=y, n=1)
    with pytest.raises(RaceError, match="neighbours"):
        pk.parallel_for(pk.TeamPolicy(4, size), neighbours, y=y, n=2)


@pytest.mark.parametrize("name", ["bounds", "races"])
@pytest.mark.parametrize("workunit", WORKUNITS, ids=lambda w: w.__name__)
def test_programs_without_mistakes(check, name, workunit):  # noqa: F811
    check(name)
    with pyfuser.unfused():
        for size in (1, 3):
            want, got = data(5), data(5)
            total = teams.run(workunit, LEAGUE, size, True, **want)
            assert pk.parallel_reduce(pk.TeamPolicy(LEAGUE, size), workunit, **got) == total
            np.testing.assert_array_equal(got["y"], want["y"])
