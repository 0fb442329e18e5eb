# ruff: noqa: RET505
"""Removed returns compute what Python's own returns do."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Body
from pyfuser.ir.reference.interpret import interpret
from pyfuser.ir.verify import verify
from pyfuser.ir.visit import statements
from pyfuser.lower.lower import lower
from pyfuser.lower.returns import RETURN, without_returns
from pyfuser.lower.types import ViewType

VIEW = ViewType(DType.INT32, 1)


def guard(i, a, out):
    if a[0] == 0:
        return
    out[i] = 1


def both_branches(i, a, out):
    if a[0] == 0:
        out[i] = 1
        return
    elif a[1] == 0:
        out[i] = 2
    else:
        out[i] = 3
        return
    out[i] += 10


def partly(i, a, out):
    if a[0] == 0:
        if a[1] == 0:
            return
        out[i] = 1
    else:
        if a[2] == 0:
            out[i] = 5
            return
        out[i] = 7
    out[i] += 10
    if a[1] == 1:
        if a[2] == 1:
            return
        out[i] += 100
    out[i] += 1000


def in_loops(i, a, out):
    for j in range(3):
        for k in range(3):
            if a[j] == k:
                return
            if a[k] == 2:
                break
            out[i] += 1
        out[i] += 10
    out[i] += 100


def in_while(i, a, out):
    while True:
        out[i] += 1
        if a[0] == 1:
            if out[i] > 2:
                return
            continue
        if out[i] > 3:
            break
    if a[1] == 0:
        return
    out[i] += 100


def loop_then_branch(i, a, out):
    if a[0] == 1:
        for j in range(2):
            if a[j] == 2:
                return
            out[i] += 1
    out[i] += 10


def dead_code(i, a, out):
    out[i] = 1
    return
    out[i] = 2


FUNCTIONS = [guard, both_branches, partly, in_loops, in_while, loop_then_branch, dead_code]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_same_is_computed(function) -> None:
    workunit = lower(function, "for", 1, {"a": VIEW, "out": VIEW}).workunit
    verify(workunit)
    assert all(stmt is not RETURN for stmt in statements(workunit.body))
    for values in itertools.product(range(3), repeat=3):
        a = np.array(values, dtype=np.int32)
        expected, actual = np.zeros((2, 1), dtype=np.int32)
        function(0, a, expected)
        interpret(workunit, "for", (0,), (1,), [a, actual])
        assert actual == expected, values


def test_a_guard_becomes_an_else_branch(same) -> None:
    same(
        """
        if a[0] == 0:
            pass
        else:
            out[i] = 1
        """,
        guard,
        a=VIEW,
        out=VIEW,
    )


def test_a_body_without_returns_is_left_alone() -> None:
    body: Body = lower(in_loops, "for", 1, {"a": VIEW, "out": VIEW}).workunit.body
    assert without_returns(body) is body
