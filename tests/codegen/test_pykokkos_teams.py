"""Emitted source of kernels of teams: read as it should be, and the same ir when lowered again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pyfuser
from pyfuser.codegen.pykokkos.unit import emit
from pyfuser.ir.canonical import canonical
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import For, Workunit
from pyfuser.ir.reference.interpret import interpret
from pyfuser.ir.visit import map_body
from pyfuser.lower.lower import ScalarType, ViewType, lower
from pyfuser.runtime.session import SESSION
from tests.codegen.test_pykokkos import body_of, lowered_again
from tests.frontends.embedded import test_teams as teams
from tests.soundness import test_teams as fused

# isort: split
import pykokkos as pk

TYPES = {
    "cols": ScalarType(DType.INT32),
    "y": ViewType(DType.FLOAT64, 1),
    "x": ViewType(DType.FLOAT64, 1),
    "a": ViewType(DType.FLOAT64, 2),
}


def lowered(workunit, size: int) -> Workunit:
    return lower(workunit, "reduce", 1, TYPES, team_size=size).workunit


def test_what_it_looks_like() -> None:
    assert body_of(lowered(teams.vectors, 1)).splitlines() == [
        "j: int = team_member.league_rank()",
        "def team_acc_terms(i: int, team_acc_1: pk.Acc[pk.double]):",
        "    def vector_acc_terms(k: int, vector_acc_1: pk.Acc[pk.double]):",
        "        vector_acc_1 += a[j][k] * x[i]",
        "    vector_acc: pk.double = pk.parallel_reduce("
        "pk.ThreadVectorRange(team_member, cols), vector_acc_terms)",
        "    team_acc_1 += vector_acc * x[i]",
        "team_acc: pk.double = pk.parallel_reduce("
        "pk.TeamThreadRange(team_member, cols), team_acc_terms)",
        "acc += team_acc * y[j]",
    ]


def test_scratch_memory() -> None:
    lines = body_of(lowered(teams.scratch, 1)).splitlines()
    assert lines[1:3] == [
        "row: pk.ScratchView1D[pk.double] = pk.ScratchView1D(team_member.team_scratch(0), cols)",
        "products: pk.ScratchView2D[pk.double] = "
        "pk.ScratchView2D(team_member.team_scratch(0), cols, 3)",
    ]


def plain(workunit: Workunit) -> Workunit:
    """With loops for what a team's threads share, as the source shows all but sums."""
    body = map_body(
        workunit.body, None, lambda s: replace(s, shared=False) if isinstance(s, For) else s
    )
    return canonical(replace(workunit, body=body))


@pytest.mark.parametrize("workunit", teams.WORKUNITS, ids=lambda w: w.__name__)
def test_there_and_back(workunit) -> None:
    original = lowered(workunit, 1)
    assert plain(lowered_again(original, "reduce")) == plain(original), emit(original)


@pytest.mark.parametrize("workunit", teams.WORKUNITS, ids=lambda w: w.__name__)
def test_teams_of_three(workunit) -> None:
    """What threads do in turns is no team's any more, but computes the same."""
    results = []
    original = lowered(workunit, 3)
    for each in (original, lowered_again(original, "reduce")):
        arguments = teams.data(5)
        total = interpret(each, "reduce", (0,), (teams.LEAGUE,), list(arguments.values()))
        results.append((total, arguments["y"].tobytes()))
    assert results[0] == results[1]


def test_fused_kernels() -> None:
    policy = pk.TeamPolicy(fused.LEAGUE, 1)
    n, shape = fused.COLUMNS, (fused.LEAGUE, fused.COLUMNS)
    arguments = {"a": fused.rows(), "b": np.zeros(shape), "s": np.zeros(fused.LEAGUE)}
    with pyfuser.fusing():
        pk.parallel_for(policy, fused.scale, b=arguments["b"], a=arguments["a"], n=n)
        pk.parallel_for(policy, fused.sums, s=arguments["s"], b=arguments["b"], n=n)
        pk.parallel_for(policy, fused.normalise, b=arguments["b"], s=arguments["s"], n=n)
    (kernel,) = SESSION.flushes[-1].program.kernels
    assert plain(lowered_again(kernel.workunit)) == plain(kernel.workunit)
