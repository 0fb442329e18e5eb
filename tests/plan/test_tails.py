"""Which maps run in the last pass of the scan before them: each legal case with its twin."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Assign, Call, Const, If, Read, Store, Update
from pyfuser.plan.cost_model import CostModel
from pyfuser.plan.fuse_into_scan import join_tails
from pyfuser.plan.plan import Group, Plan, Rejection
from pyfuser.plan.wavefront import sweeps
from pyfuser.trace.shape import CallShape
from pyfuser.transform.fuse import fuse
from pyfuser.transform.group import GroupShape
from tests.analysis.build import S, View, call, trace, workunit
from tests.plan.test_scans import PLACES, packed, scan
from tests.plan.test_sweeps import COPY, INNER, MACHINE, W, X, Y, Z


def plan_of(*calls: CallShape, order: tuple[int, ...] | None = None, fits: bool = True) -> Plan:
    """The plan of calls that are a loop each, in the trace's order or another one."""
    shape = trace(*calls)
    groups = tuple(Group((n,)) for n in order or range(len(calls)))
    found = sweeps(shape, groups, CostModel(shape, MACHINE))
    assert [sweep.groups for sweep in found] == [tuple(range(len(calls)))]
    return join_tails(shape, Plan(groups, (), found), lambda _: fits)


def shared(plan: Plan) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    for sweep in plan.sweeps:
        assert len(sweep.stages) == len(sweep.groups)
    return [group.calls for group in plan.groups], [sweep.groups for sweep in plan.sweeps]


SUMS, PACK = scan(X, Y), packed(X, Z)


def test_a_map_that_stores_to_loaded_places_joins_the_scan():
    assert shared(plan_of(SUMS, PACK)) == ([(0, 1)], [])
    assert shared(plan_of(COPY(W, X), SUMS, PACK)) == ([(0,), (1, 2)], [(0, 1)])
    assert shared(plan_of(SUMS, PACK, COPY(Y, W))) == ([(0, 1), (2,)], [(0, 1)])


def test_other_maps_keep_their_vectors():
    assert shared(plan_of(SUMS, COPY(Y, Z))) == ([(0,), (1,)], [(0, 1)])
    both = plan_of(SUMS, COPY(Y, W), PACK)
    assert shared(both) == ([(0,), (1,), (2,)], [(0, 1, 2)])


def test_kernels_do_not_grow_too_large():
    assert shared(plan_of(SUMS, PACK, fits=False)) == ([(0,), (1,)], [(0, 1)])


def test_what_comes_before_the_scan_in_the_program_stays_apart():
    assert shared(plan_of(PACK, SUMS, order=(1, 0))) == ([(1,), (0,)], [(0, 1)])


def scattering(value, update: bool = False):
    """`y[k[i]] = value(x[i])`, or `+=`, atomically."""
    i, x, y, k = S("i"), View("x"), View("y"), View("k", dtype=DType.INT32)
    if update:
        body = [Update("+", y.sym, (k[i].node,), x[i].node, True)]
    else:
        body = [Store(y.sym, (k[i].node,), value(x[i].node))]
    return call(workunit("scatter", [i], [x, y, k], body), INNER, X, Z, PLACES)


def test_maths_and_atomics_keep_maps_apart():
    assert shared(plan_of(SUMS, scattering(lambda x: x)))[0] == [(0, 1)]
    root = scattering(lambda x: Call("sqrt", (x,), DType.FLOAT64))
    assert shared(plan_of(SUMS, root))[0] == [(0,), (1,)]
    assert shared(plan_of(SUMS, scattering(None, update=True)))[0] == [(0,), (1,)]


def test_a_scan_that_forgets_which_pass_it_is_stays_alone():
    unit = SUMS.workunit
    flag = unit.accumulators[0].last_pass
    assert flag is not None
    forgets = Assign(flag, Const(False, DType.BOOL))
    changed = SUMS._replace(workunit=replace(unit, body=(*unit.body, forgets)))
    assert shared(plan_of(changed, PACK))[0] == [(0,), (1,)]
    silent = replace(unit.accumulators[0], last_pass=None)
    summing = replace(unit, accumulators=(silent,), body=unit.body[:1])
    assert shared(plan_of(SUMS._replace(workunit=summing), PACK))[0] == [(0,), (1,)]


def test_reasons_are_those_of_the_groups_that_are_left():
    calls = COPY(W, X), SUMS, PACK
    shape = trace(*calls)
    groups = tuple(Group((n,)) for n in range(3))
    found = sweeps(shape, groups, CostModel(shape, MACHINE))
    reasons = Rejection(0, 1, "pattern"), Rejection(1, 2, "pattern")
    plan = join_tails(shape, Plan(groups, reasons, found), lambda _: True)
    assert plan.rejections == reasons[:1]


@pytest.mark.parametrize("kept", [True, False])
def test_the_map_runs_in_the_last_pass_alone(kept):
    """Beside what the scan keeps, or after its sum."""
    first = SUMS
    if not kept:
        more = replace(SUMS.workunit, body=(*SUMS.workunit.body[::-1],))
        first = SUMS._replace(workunit=more)
    kernel = fuse(GroupShape((first, PACK)))
    (accumulator,) = kernel.workunit.accumulators
    assert kernel.pattern == "scan" and kernel.results == (0,)
    last = kernel.workunit.body[-1]
    assert isinstance(last, If) and last.condition == Read(accumulator.last_pass)
    assert not last.orelse and len(last.then) == 1 + kept
    assert len(kernel.workunit.body) == (2 if kept else 3)
