"""Kernels that PyKokkos' language cannot say: `explain` says so, and shows all others."""

from __future__ import annotations

from dataclasses import replace

import pytest

import pyfuser
from pyfuser import report
from pyfuser.codegen.pykokkos import unit as printer
from pyfuser.codegen.pykokkos.unit import emit, shown, without_source
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Sym, Workunit
from pyfuser.runtime.program import Flush
from pyfuser.runtime.session import SESSION
from pyfuser.support.errors import PyFuserError


@pk.workunit
def rows(team: pk.TeamMember, a, y, k: int):
    r: int = team.league_rank()

    def inner(c: int, acc: pk.Acc[pk.double]):
        acc += a[r, c]

    total: float = pk.parallel_reduce(pk.TeamThreadRange(team, k), inner)
    y[r] = total


@pk.workunit
def cells(i, j, a):
    a[i, j] = 1.0


def flushed() -> Flush:
    a, y = pk.View([8, 4], pk.double), pk.View([8], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(pk.TeamPolicy(8, 1), rows, a=a, y=y, k=4)
    return SESSION.flushes[-1]


def boxed(workunit: Workunit) -> Workunit:
    """As the planner has it where a league stands for the cells of a box."""
    second = Sym("j", 1_000_000, DType.INT64)
    return replace(workunit, indices=(*workunit.indices, second))


def test_sums_within_iterations_of_two_indices(monkeypatch: pytest.MonkeyPatch) -> None:
    flush = flushed()
    (kernel,) = flush.program.kernels
    changed = replace(kernel, workunit=boxed(kernel.workunit))
    with pytest.raises(
        PyFuserError, match=r"rows: this kernel has no PyKokkos source: .*2 indices"
    ):
        emit(changed)
    monkeypatch.setattr(printer, "without_source", lambda _: without_source(changed.workunit))
    text = str(report.explanation([flush], source=True))
    assert "# this kernel has no PyKokkos source" in text and "def rows" not in text


def test_what_can_be_said_is_shown() -> None:
    """The twin: a team of one index, and two indices without a team."""
    (kernel,) = flushed().program.kernels
    assert "team_member.league_rank()" in shown(kernel.workunit) == emit(kernel)
    with pyfuser.fusing():
        a = pk.View([8, 4], pk.double)
        pk.parallel_for(pk.MDRangePolicy([0, 0], [8, 4]), cells, a=a)
    (kernel,) = SESSION.flushes[-1].program.kernels
    assert "def cells(i: int, j: int" in shown(kernel.workunit)
