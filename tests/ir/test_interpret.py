"""The interpreter computes what C++ computes."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyfuser.ir import nodes
from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Accumulator,
    Assign,
    Binary,
    Cast,
    Compare,
    Const,
    Declare,
    Expr,
    For,
    If,
    Load,
    Param,
    Read,
    Scratch,
    Select,
    Stmt,
    Store,
    Update,
    Workunit,
)
from pyfuser.ir.reference.interpret import UndefinedBehaviour, interpret
from pyfuser.ir.verify import verify
from tests.races import RaceDetector

INDEX = fresh("i", DType.INT32)
HERE = (Read(INDEX),)
NEXT = (Binary("+", Read(INDEX), Const(1, DType.INT32)),)
INT32 = st.integers(-(2**31), 2**31 - 1)


def evaluate(op: str, dtype: DType, left: Any, right: Any) -> Any:
    """`left op right` through a workunit of two scalars and a view of one element."""
    a, b, out = fresh("a", dtype), fresh("b", dtype), fresh("out", dtype)
    body = (Store(out, HERE, Binary(op, Read(a), Read(b))),)
    workunit = Workunit("w", (INDEX,), (Param(a), Param(b), Param(out, 1)), body)
    verify(workunit)
    result = np.zeros(1, dtype.numpy)
    interpret(workunit, "for", (0,), (1,), (left, right, result))
    return result[0]


def convert(value: Any, source: DType, target: DType) -> Any:
    a, out = fresh("a", source), fresh("out", target)
    body = (Store(out, HERE, Cast(Read(a), target)),)
    result = np.zeros(1, target.numpy)
    workunit = Workunit("w", (INDEX,), (Param(a), Param(out, 1)), body)
    interpret(workunit, "for", (0,), (1,), (value, result))
    return result[0]


def run(body: tuple[Stmt, ...], params: tuple[Param, ...], *args: Any, n: int = 4) -> None:
    workunit = Workunit("w", (INDEX,), params, body)
    verify(workunit)
    interpret(workunit, "for", (0,), (n,), args, order=3)


@given(INT32, INT32, st.sampled_from("+-*"))
def test_int32_wraps(a: int, b: int, op: str) -> None:
    exact = {"+": a + b, "-": a - b, "*": a * b}[op]
    assert evaluate(op, DType.INT32, a, b) == ctypes.c_int32(exact).value


@given(INT32, INT32.filter(bool))
def test_division_truncates_and_the_remainder_has_the_dividends_sign(a: int, b: int) -> None:
    quotient, remainder = evaluate("/", DType.INT64, a, b), evaluate("%", DType.INT64, a, b)
    assert quotient == math.trunc(a / b) and remainder == math.fmod(a, b)


@given(st.floats(width=32), st.floats(width=32), st.sampled_from("+-*/"))
def test_float32_arithmetic_is_numpys(a: float, b: float, op: str) -> None:
    with np.errstate(all="ignore"):
        function = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[op]
        expected = function(np.float32(a), np.float32(b))
    found = evaluate(op, DType.FLOAT32, a, b)
    assert found.tobytes() == expected.tobytes() or (np.isnan(found) and np.isnan(expected))


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_become_float32_with_one_rounding(value: int) -> None:
    assert convert(value, DType.INT64, DType.FLOAT32) == np.int64(value).astype(np.float32)


def test_conversions() -> None:
    assert convert(-1.9, DType.FLOAT64, DType.INT32) == -1
    assert convert(300, DType.INT32, DType.UINT8) == 44
    assert convert(-1, DType.INT32, DType.UINT64) == 2**64 - 1
    assert convert(0.5, DType.FLOAT64, DType.BOOL)
    assert convert(1e300, DType.FLOAT64, DType.FLOAT32) == np.inf


@pytest.mark.parametrize(
    "undefined",
    [
        lambda: convert(1e10, DType.FLOAT64, DType.INT32),
        lambda: convert(math.nan, DType.FLOAT64, DType.INT64),
        lambda: evaluate("/", DType.INT32, 1, 0),
        lambda: evaluate("<<", DType.INT32, 1, 32),
    ],
)
def test_what_cpp_leaves_undefined_is_an_error(undefined: Any) -> None:
    with pytest.raises(UndefinedBehaviour):
        undefined()


def test_indices_outside_a_view_are_errors_at_both_ends() -> None:
    x = fresh("x", DType.FLOAT64)
    before = (Binary("-", Read(INDEX), Const(1, DType.INT32)),)
    for indices in (NEXT, before):
        with pytest.raises(UndefinedBehaviour, match="outside a view of shape"):
            run((Store(x, HERE, Load(x, indices)),), (Param(x, 1),), np.zeros(4))


def test_an_update_computes_in_the_common_type_and_rounds_once() -> None:
    x = fresh("x", DType.FLOAT32)
    array = np.ones(1, np.float32)
    tenth: Expr = Const(0.1, DType.FLOAT64)
    run((Update("+", x, HERE, tenth),), (Param(x, 1),), array, n=1)
    assert array[0] == np.float32(1.0 + 0.1)


def test_continue_steps_and_the_bound_is_tested_every_time() -> None:
    k, n, out = fresh("k", DType.INT32), fresh("n", DType.INT32), fresh("out", DType.INT32)
    two, one = Const(2, DType.INT32), Const(1, DType.INT32)
    body: tuple[Stmt, ...] = (
        Declare(n, Const(10, DType.INT32)),
        For(
            k,
            Const(0, DType.INT32),
            Read(n),
            two,
            (
                If(Compare("==", Read(k), two), (nodes.Continue(),)),
                Assign(n, Binary("-", Read(n), one)),
                Update("+", out, HERE, Read(k)),
            ),
        ),
    )
    array = np.zeros(1, np.int32)
    run(body, (Param(out, 1),), array, n=1)
    expected = total = 0
    bound = 10
    while expected < bound:  # C's loop, by hand
        if expected != 2:
            bound -= 1
            total += expected
        expected += 2
    assert array[0] == total


def test_scratch_memory_is_each_iterations_own() -> None:
    """Zeroed every time, bounds checked, and empty where an extent is negative."""
    x, s, i = fresh("x", DType.FLOAT64), fresh("s", DType.INT32), fresh("i", DType.INT32)
    k, one = fresh("k", DType.INT32), Const(1, DType.INT32)

    def body(*extents: int) -> tuple[Stmt, ...]:
        shape = tuple(Const(extent, DType.INT32) for extent in extents)
        indices = (Read(k),) * len(shape)
        return (
            Scratch(s, shape),
            Update("+", s, indices, Read(i)),
            Update("+", s, indices, one),
            Store(x, (Read(i),), Cast(Load(s, indices), DType.FLOAT64)),
        )

    def result(place: int, *extents: int) -> list[float]:
        workunit = Workunit("w", (i,), (Param(x, 1), Param(k)), body(*extents))
        verify(workunit)
        found = np.zeros(3)
        interpret(workunit, "for", (0,), (3,), (found, place), order=1)
        return list(found)

    assert result(1, 2) == [1, 2, 3]
    assert result(1, 2, 2) == [1, 2, 3]
    for place, extents in [(2, (2,)), (-1, (2,)), (1, (2, 1)), (0, (-4,))]:
        with pytest.raises(UndefinedBehaviour, match="outside"):
            result(place, *extents)


def test_only_the_chosen_side_of_a_select_is_evaluated() -> None:
    x = fresh("x", DType.FLOAT64)
    inside = Compare("<", NEXT[0], Const(4, DType.INT32))
    value = Select(inside, Load(x, NEXT), Const(-1.0, DType.FLOAT64))
    array = np.arange(8.0)[::2]
    workunit = Workunit("w", (INDEX,), (Param(x, 1),), (Store(x, HERE, value),))
    interpret(workunit, "for", (0,), (4,), (array,))
    assert array.tolist() == [2, 4, 6, -1]


def test_reductions_and_scans() -> None:
    x, acc, last = fresh("x", DType.FLOAT64), fresh("acc", DType.FLOAT64), fresh("l", DType.BOOL)
    add = Update("+", acc, (), Load(x, HERE))
    workunit = Workunit("w", (INDEX,), (Param(x, 1),), (add,), (Accumulator(acc),))
    array = np.arange(5.0)
    assert interpret(workunit, "reduce", (0,), (5,), (array,), order=1) == (10.0,)
    assert interpret(workunit, "reduce", (3,), (3,), (array,)) == (0.0,)
    body = (add, If(Read(last), (Store(x, HERE, Read(acc)),)))
    scan = Workunit("s", (INDEX,), (Param(x, 1),), body, (Accumulator(acc, last),))
    assert interpret(scan, "scan", (0,), (5,), (array,), order=1) == (10.0,)
    assert array.tolist() == [0, 1, 3, 6, 10]


def test_arguments_that_do_not_fit_are_refused() -> None:
    x = fresh("x", DType.FLOAT64)
    for wrong in (np.zeros(4, np.float32), np.zeros((2, 2)), 1.0):
        with pytest.raises(TypeError):
            run((), (Param(x, 1),), wrong)


# --------------------------------------------------------------------------- races

X, Y = fresh("x", DType.FLOAT64), fresh("y", DType.FLOAT32)
ONE = Const(1.0, DType.FLOAT64)
MEMORY = np.zeros(12)


def found(x: Any, y: Any, *body: Stmt) -> int:
    workunit = Workunit("w", (INDEX,), (Param(X, 1), Param(Y, 1)), body)
    races = RaceDetector()
    interpret(workunit, "for", (0,), (4,), (x, y), 5, races)
    return races.found


def test_races() -> None:
    half = (Binary("/", Read(INDEX), Const(2, DType.INT32)),)
    other = np.zeros(12, np.float32)
    shifted = Store(X, HERE, Load(X, NEXT))
    assert found(MEMORY, other, shifted)
    assert found(MEMORY, other, Store(X, half, ONE))
    assert found(MEMORY, other, Update("+", X, half, ONE))
    assert found(MEMORY, other, Update("+", X, half, ONE, True), Store(X, HERE, ONE))
    assert found(MEMORY, other, Update("+", X, half, ONE, True), Update("max", X, half, ONE, True))
    # A float32 view of the same bytes: element 2k and 2k+1 share a cell with float64 element k.
    assert found(
        MEMORY, MEMORY.view(np.float32), Store(X, HERE, Cast(Load(Y, HERE), DType.FLOAT64))
    )


def test_no_races() -> None:
    half = (Binary("/", Read(INDEX), Const(2, DType.INT32)),)
    other = np.zeros(12, np.float32)
    assert not found(MEMORY, other, Store(X, HERE, Load(X, HERE)))
    assert not found(MEMORY, other, Update("+", X, half, ONE, True))
    assert not found(MEMORY, other, Store(Y, HERE, Cast(Load(X, half), DType.FLOAT32)))
    even, odd = MEMORY[::2], MEMORY.view(np.float32)[2::4]
    assert not found(even, odd, Store(Y, HERE, Cast(Load(X, NEXT), DType.FLOAT32)))
