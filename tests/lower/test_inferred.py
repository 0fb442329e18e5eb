# ruff: noqa: F823, F841, RET504, RET505, SIM108
"""Locals without annotation have the type of their first value, as C++'s auto has."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyfuser
from pyfuser.ir.dtypes import DType
from pyfuser.lower.lower import lower
from pyfuser.lower.types import ScalarType, ViewType
from pyfuser.support.errors import WorkunitError
from pyfuser.support.settings import SETTINGS

pk = pytest.importorskip("pykokkos")

VIEW = ViewType(DType.FLOAT64, 1)
TYPES = {
    "v": VIEW,
    "s": ViewType(DType.FLOAT32, 1),
    "b": ViewType(DType.UINT8, 1),
    "n": ScalarType(DType.INT64),
}

t = 7.5  # which no workunit here may see


def test_the_first_value_decides() -> None:
    def w(i, v, s, b, n):
        a = 1
        c = 2.5
        d = s[i]
        e = b[i]
        f = n
        g = d * 2.0
        h = e + e
        k = i
        m = v[i] > 0
        o = a / 2
        p = a // 2
        d = v[i]
        a = n
        v[i] = a + c + d + e + f + g + h + k + m + o + p

    found = {
        s.sym.name: s.sym.dtype.value
        for s in lower(w, "for", 1, TYPES).workunit.body
        if type(s).__name__ == "Declare"
    }
    assert found == {
        "a": "int32",
        "c": "float64",
        "d": "float32",
        "e": "uint8",
        "f": "int64",
        "g": "float64",
        "h": "int32",
        "k": "int32",
        "m": "bool",
        "o": "float64",
        "p": "int32",
    }


def test_both_branches_make_one_variable_of_the_first_ones_type(same) -> None:
    def w(i, v, s):
        if i > 3:
            t = s[i]
        elif i > 2:
            t = v[i]
        else:
            t = 1
        v[i] = t

    same(
        """
        let t: float32
        if i > 3:
            t = s[i]
        else:
            if i > 2:
                t = (float32)v[i]
            else:
                t = (float32)1
        v[i] = (float64)t
        """,
        w,
        v=VIEW,
        s=TYPES["s"],
    )


def test_a_branch_that_goes_nowhere_need_not_assign(text) -> None:
    def first(i, v):
        if i > 3:
            return
        else:
            t = v[i]
        v[i] = t

    def second(i, v):
        for k in range(3):
            if k < i:
                t = v[i]
            else:
                continue
            v[i] = 2 * t

    for function in (first, second):
        assert "let t: float64\n" in text(function, v=VIEW)


def test_loops_and_branches_in_the_other_branch(same) -> None:
    def w(i, v):
        if i > 3:
            t = 1.0
        else:
            for k in range(i):
                t = v[k]
                v[k] = t
            if i > 2:
                t = 2
            else:
                t = 3
        v[i] = t

    same(
        """
        let t: float64
        if i > 3:
            t = 1.0
        else:
            for k: int32 in range(0, i, 1):
                t = v[k]
                v[k] = t
            if i > 2:
                t = (float64)2
            else:
                t = (float64)3
        v[i] = t
        """,
        w,
        v=VIEW,
    )


def test_blocks_of_their_own_have_variables_of_their_own(same) -> None:
    def w(i, v):
        if i > 3:
            t = 1
            v[i] = t
        if i < 3:
            t = 2.5
            v[i] = t

    same(
        """
        if i > 3:
            let t: int32 = 1
            v[i] = (float64)t
        if i < 3:
            let t.1: float64 = 2.5
            v[i] = t.1
        """,
        w,
        v=VIEW,
    )


def early(i, v):
    v[i] = t
    t = 1.0


def one_branch(i, v):
    if i > 3:
        t = 1.0
    v[i] = t


def annotated_in_the_other(i, v):
    if i > 3:
        t = 1.0
    else:
        t: float = 2.0
    v[i] = t


def annotated_in_a_block(i, v):
    if i > 3:
        t: float = 1.0
    v[i] = t


def in_a_loop(i, v):
    for k in range(i):
        t = v[k]
    v[i] = t


def in_a_while(i, v):
    k = 0
    while k < i:
        t = v[k]
        k += 1
    v[i] = t


def of_the_last_trip(i, v):
    for k in range(3):
        if k > 0:
            v[i] += t
        t = v[k]


def in_the_other_branch_too_early(i, v):
    if i > 3:
        t = 1.0
    else:
        v[i] = t
        t = 2.0
    v[i] = t


def hidden_in_the_other_branch(i, v):
    if i > 3:
        t = 1.0
    else:
        t: float = 2.0
        t = 3.0
    v[i] = t


def after_a_loop_of_the_other_branch(i, v):
    if i > 3:
        t = 1.0
    else:
        for k in range(i):
            t = v[k]
        v[i] = t
        t = 2.0


def only_updated(i, v):
    t += 1.0
    v[i] = t


def in_its_own_value(i, v):
    t = t + 1.0
    v[i] = t


def three_ways(i, v):
    if i > 3:
        t = 1.0
    elif i > 2:
        v[i] = 0
    else:
        t = 2.0
    v[i] = t


@pytest.mark.parametrize(
    "function",
    [
        early,
        one_branch,
        annotated_in_the_other,
        annotated_in_a_block,
        in_a_loop,
        in_a_while,
        of_the_last_trip,
        in_its_own_value,
        three_ways,
        in_the_other_branch_too_early,
        hidden_in_the_other_branch,
        after_a_loop_of_the_other_branch,
    ],
)
def test_a_name_without_a_value_is_refused_whatever_is_outside(function) -> None:
    with pytest.raises(WorkunitError, match=r"'t' has no value (here|yet): line \d+ gives it one"):
        lower(function, "for", 1, {"v": VIEW})


def test_an_update_of_a_name_that_is_outside_says_that_it_stays_as_it_is() -> None:
    with pytest.raises(WorkunitError, match="cannot change what is called 't' outside"):
        lower(only_updated, "for", 1, {"v": VIEW})


def a_text(i, v):
    t = "text"


def nothing(i, v):
    t = None


def a_view(i, v):
    t = v


def a_pair(i, v):
    t = 1, 2


def a_list(i, v):
    t = [1.0, 2.0]


def a_range(i, v):
    t = range(3)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (a_text, "a text may only be the first argument"),
        (nothing, "None is not a number"),
        (a_view, "'v' is a view: index it"),
        (a_pair, "a tuple is not supported"),
        (a_list, r"a list \(other than as the value of `name: List"),
        (a_range, "range"),
    ],
)
def test_values_that_have_no_type(function, message: str) -> None:
    with pytest.raises(WorkunitError, match=message):
        lower(function, "for", 1, {"v": VIEW})


def sums_into_an_int(i, v):
    total = 0
    for k in range(3):
        total += v[k]
    v[i] = total


def mixed(i, v):
    if i > 3:
        total = 0
    else:
        total = v[i]
    v[i] = total


def meant(i, v):
    total: int = 0
    total += v[i]
    v[i] = total


def a_double(i, v):
    total = 0.0
    total += v[i]
    total = 3
    v[i] = total


@pytest.mark.parametrize("function", [sums_into_an_int, mixed])
def test_a_fraction_that_is_lost_is_warned_of(function) -> None:
    with pytest.warns(UserWarning, match="'total' is of type int32, as its first value") as caught:
        lower(function, "for", 1, {"v": VIEW})
    (said,) = caught
    assert said.filename == __file__
    assert 0 < said.lineno - function.__code__.co_firstlineno <= 5


@pytest.mark.parametrize("function", [meant, a_double])
def test_others_are_not(function) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lower(function, "for", 1, {"v": VIEW})


# ----------------------------------------------------------------- what they compute


@pk.workunit
def smooth(i, x, y, n):
    left = x[i - 1] if i > 0 else x[i]
    if i < n - 1:
        right = x[i + 1]
    else:
        right = x[i]
    mean = (left + x[i] + right) / 3
    best = mean
    for k in range(3):
        here = mean * k
        if here > best:
            best = here
    y[i] = best


@pk.workunit
def negated(i, x, y):
    value = y[i]
    a = b = -value
    x[i] = a + b


@pk.workunit
def norm(i, acc: pk.Acc[float], x):
    value = x[i]
    acc += value * value


@pk.function
def helper(x: float) -> float:
    twice = 2 * x
    return twice


@pk.workunit
def helped(i, x):
    twice = x[i]
    x[i] = helper(twice) + twice


class Functor:
    def __init__(self, x: pk.View1D[pk.double]) -> None:
        self.x: pk.View1D[pk.double] = x

    @pk.workunit
    def add(self, i: int) -> None:
        x = self.x[i]  # a local, not the member
        self.x[i] = x + 1


def plain(function: Callable[..., Any], **arguments: Any) -> None:
    for i in range(len(arguments["x"])):
        function(i, **arguments)


@pytest.mark.skipif(shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("fused", [False, True])
def test_results_are_those_of_plain_python(fused: bool) -> None:
    n = 50
    start = np.random.default_rng(1).integers(-8, 9, n) / 4
    x, y, wanted_x, wanted_y = start.copy(), np.zeros(n), start.copy(), np.zeros(n)
    with pyfuser.fusing() if fused else pyfuser.unfused():
        pk.parallel_for(n, smooth, x=x, y=y, n=n)
        pk.parallel_for(n, negated, x=x, y=y)
        pk.parallel_for(n, helped, x=x)
        pk.parallel_for(n, Functor(x).add)
        total = float(pk.parallel_reduce(n, norm, x=x))
    plain(smooth, x=wanted_x, y=wanted_y, n=n)
    plain(negated, x=wanted_x, y=wanted_y)
    for i in range(n):
        wanted_x[i] = 3 * wanted_x[i] + 1
    assert (x == wanted_x).all() and (y == wanted_y).all()
    assert np.isclose(total, (wanted_x**2).sum())
