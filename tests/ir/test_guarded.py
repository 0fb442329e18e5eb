"""Workunits over a larger box, guarded by their own: what they compute, and how they are known."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.ir.guarded import Side, bounds_of, guarded, unguarded, upper_limits
from pyfuser.ir.nodes import Cast, Compare, If, Logical, Workunit
from pyfuser.ir.reference.interpret import interpret
from pyfuser.ir.verify import verify
from tests.analysis.build import S, View, assign, both, when, workunit

I, J, LOW, HIGH, X = S("i"), S("j"), S("low"), S("high"), View("x", 2)
ADD = workunit("add", [I, J], [X], [X[I, J].update("+", 1.0)])
SHAPE = (5, 6)


def touched(
    unit: Workunit, begin: Sequence[int], end: Sequence[int], *bounds: int
) -> list[tuple[int, ...]]:
    x = np.zeros(SHAPE)
    interpret(unit, "for", begin, end, [x, *bounds])
    assert set(np.unique(x)) <= {0.0, 1.0}
    return [tuple(map(int, point)) for point in np.argwhere(x)]


SIDES: list[Side] = [(0, False), (0, True), (1, False), (1, True)]


@pytest.mark.parametrize("begin", [(0, 0), (1, 2), (4, 5), (-3, 0)])
@pytest.mark.parametrize("end", [(5, 6), (3, 5), (1, 9), (0, 0)])
def test_iterations_of_the_box_alone(begin, end):
    unit = guarded(ADD, SIDES)
    verify(unit)
    bounds = (begin[0], end[0], begin[1], end[1])
    axes = [range(max(b, 0), min(e, s)) for b, e, s in zip(begin, end, SHAPE, strict=True)]
    assert touched(unit, (0, 0), SHAPE, *bounds) == list(product(*axes))


@pytest.mark.parametrize("side", range(4))
def test_one_side(side):
    unit = guarded(ADD, [SIDES[side]])
    axis, upper = SIDES[side]
    inside = [p for p in product(range(5), range(6)) if (p[axis] < 3) is upper]
    assert touched(unit, (0, 0), SHAPE, 3) == inside


def test_no_side_is_no_guard():
    assert guarded(ADD, []) is ADD


def test_equal_workunits_stay_equal():
    assert guarded(ADD, SIDES) == guarded(ADD, SIDES)
    assert guarded(ADD, SIDES) != guarded(ADD, SIDES[1:])


def test_a_guard_is_known_again():
    unit = guarded(ADD, SIDES)
    found = unguarded(unit)
    assert found is not None and found.body == ADD.body
    limits = [param.sym for param in unit.params[1:]]
    assert [(b.sym, b.upper, b.limit) for b in found.bounds] == [
        (ADD.indices[axis], upper, limit)
        for (axis, upper), limit in zip(SIDES, limits, strict=True)
    ]


STORE = X[I, J] << 1.0
INSIDE = both(I.compare(">=", LOW), I < HIGH)


@pytest.mark.parametrize(
    ("stmt", "known"),
    [
        (when(INSIDE, [STORE]), True),
        (when(I < HIGH, [STORE]), True),
        (when(INSIDE, [STORE], [STORE]), False),
        (when(I > LOW, [STORE]), False),
        (when(I <= HIGH, [STORE]), False),
        (when(LOW.compare(">=", I), [STORE]), False),
        (when(LOW < HIGH, [STORE]), False),
        (when(I < J, [STORE]), False),
        (when(I < 7, [STORE]), False),
        (when(both(I < HIGH, X[I, J] < 1.0), [STORE]), False),
        (when(both(X[I, J] < 1.0, I < HIGH), [STORE]), False),
        (If(Logical("||", *2 * ((I < HIGH).node,)), (STORE,)), False),
        (STORE, False),
    ],
)
def test_what_is_a_guard(stmt, known):
    unit = workunit("w", [I, J], [X, LOW, HIGH], [stmt])
    assert (unguarded(unit) is not None) is known


def test_what_changes_is_no_bound():
    guard = when(I < HIGH, [STORE])
    for changed in (I, HIGH):
        unit = workunit("w", [I, J], [X, HIGH], [assign(changed, 3), guard])
        assert unguarded(unit) is None
    unit = workunit("w", [I, J], [X, HIGH], [assign(J, 3), guard])
    assert unguarded(unit) is not None


def test_an_index_that_was_widened():
    wide, limit = S("i", DType.INT64), S("limit")
    test = Compare("<", Cast(wide.node, DType.INT32), limit.node)
    assert [b.sym for b in bounds_of(test, {wide.sym}, {limit.sym})] == [wide.sym]
    short = Compare("<", Cast(wide.node, DType.INT16), limit.node)
    assert not bounds_of(short, {wide.sym}, {limit.sym})


def test_numbers_that_do_nothing_but_end_guards():
    unit = guarded(ADD, SIDES)
    names = [unit.params[n].sym.name for n in sorted(upper_limits(unit))]
    assert names == ["i_end", "j_end"]
    for body, known in (
        ([when(INSIDE, [STORE])], {2}),
        ([when(INSIDE, [STORE]), when(J < HIGH, [STORE])], {2}),
        ([when(INSIDE, [X[I, HIGH] << 1.0])], set()),
        ([when(INSIDE, [STORE], [STORE])], set()),
        ([when(HIGH < I, [STORE])], set()),
        ([assign(HIGH, 3), when(INSIDE, [STORE])], set()),
    ):
        assert upper_limits(workunit("w", [I, J], [X, LOW, HIGH], body)) == known
