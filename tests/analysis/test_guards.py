"""What branches and loops say of subscripts, against all iterations of workunits run by Python."""

from __future__ import annotations

import random

import pytest

from pyfuser.analysis.accesses import structural_scalars
from pyfuser.analysis.conditions import conditions, hold, numbers_of
from pyfuser.analysis.inside import subscripts_of, surely_inside
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Assign,
    Binary,
    Cast,
    Compare,
    Const,
    Declare,
    For,
    If,
    Load,
    Logical,
    Param,
    Read,
    Store,
    Sym,
    Unary,
    Workunit,
)
from pyfuser.lower.lower import lower
from pyfuser.lower.types import ScalarType, ViewType
from pyfuser.trace.call import Space

EXTENT = 12


def after_the_first(i, y, x, k, m):
    if i > 0:
        y[i] = x[i - 1]


def before_the_last(i, y, x, k, m):
    if i + 1 < m:
        y[i] = x[i + 1]


def two_sides(i, y, x, k, m):
    if i + k >= 0 and i + k < m:
        y[i] = x[i + k]


def otherwise(i, y, x, k, m):
    if i < k or i - k >= m:
        y[i] = x[i]
    else:
        y[i] = x[i - k]


def chosen(i, y, x, k, m):
    y[i] = x[i - k] if i >= k else x[k - i]


def equal(i, y, x, k, m):
    if i == k:
        y[i] = x[2 * k - i]


def turned(i, y, x, k, m):
    if not (k > i):
        y[i] = x[i - k]


def local(i, y, x, k, m):
    at = i + k
    if at >= 0 and m > at:
        y[i] = x[at]


def triangle(i, y, x, k, m):
    for j in range(k, m - i):
        y[i] += x[i + j]


def branch_in_a_loop(i, y, x, k, m):
    for d in range(m):
        if d > k:
            y[i] += x[d - k - 1]
        if d < m - 1:
            y[i] += x[d + 1]


def short_circuit(i, y, x, k, m):
    if i + k < m and x[i + k] > 0.0:
        y[i] = 1.0


def either(i, y, x, k, m):
    if i < k or x[i - k] > 0.0:
        y[i] = 1.0


# Illegal twins: what the guard says is not what would have to be known.


def one_less(i, y, x, k, m):
    if i >= 0:
        y[i] = x[i - 1]


def or_not_and(i, y, x, k, m):
    if i + k >= 0 or i + k < m:
        y[i] = x[i + k]


def wrong_side(i, y, x, k, m):
    if i > k:
        y[i] = x[i]
    else:
        y[i] = x[i - k]


def not_equal(i, y, x, k, m):
    if i != k:
        y[i] = x[2 * k - i]


def behind(i, y, x, k, m):
    if i > 0:
        y[i] = x[i]
    y[i] += x[i - 1]


def changed(i, y, x, k, m):
    at: int = i + k
    if at >= 0 and at < m:
        at = at + k
        y[i] = x[at]


def other_trip(i, y, x, k, m):
    at: int = 0
    while at < m:
        if at < k:
            at += 3
            y[i] += x[at]
        at += 1


def until_after(i, y, x, k, m):
    for j in range(k, m):
        y[i] += x[j + 1]


LEGAL = [
    after_the_first, before_the_last, two_sides, otherwise, chosen, equal, turned, local, triangle,
    branch_in_a_loop, short_circuit, either,
]  # fmt: skip
ILLEGAL = [
    one_less, or_not_and, wrong_side, not_equal, behind, changed, other_trip, until_after,
]  # fmt: skip
VIEW = ViewType(DType.FLOAT64, 1)


class Watched:
    """A view that notes whether a subscript leaves it."""

    def __init__(self) -> None:
        self.left = False

    def __getitem__(self, index: int) -> float:
        self.left |= not 0 <= index < EXTENT
        return float(index % 2)

    def __setitem__(self, index: int, value: float) -> None:
        self[index]


def lowered(function) -> Workunit:
    number = ScalarType(DType.INT32)
    types = {"y": VIEW, "x": VIEW, "k": number, "m": number}
    return lower(function, "for", 1, types).workunit


def stays(function, begin: int, end: int, k: int, m: int) -> bool:
    x, y = Watched(), Watched()
    for i in range(begin, end):
        function(i, y, x, k, m)
    return not (x.left or y.left)


@pytest.mark.parametrize("function", [*LEGAL, *ILLEGAL])
def test_what_is_said_to_stay_inside_does(function) -> None:
    unit = lowered(function)
    subscripts, scalars = subscripts_of(unit), structural_scalars(unit)
    assert subscripts is not None
    rng = random.Random(11)
    gained = held = 0
    for _ in range(1500):
        begin = rng.randint(0, 4)
        end, k, m = begin + rng.randint(1, 8), rng.randint(-5, 9), rng.randint(-1, EXTENT + 2)
        space, facts = Space((begin,), (end,)), ((EXTENT,), (EXTENT,), k, m)
        sure = surely_inside(subscripts, space, facts, scalars)
        if sure:
            assert stays(function, begin, end, k, m), (begin, end, k, m)
            bare = tuple([(*each[:3], ()) for each in subscripts.found])
            without = subscripts._replace(found=bare)
            gained += not surely_inside(without, space, facts, scalars)
        places = sorted(scalars)
        box = [(0, 20), (0, 20), *[(facts[place], facts[place] + 1) for place in places]]
        rows = conditions(subscripts, 1, facts, places, box)
        if rows is not None and hold(rows, numbers_of(space, facts, places)):
            assert stays(function, begin, end, k, m), (begin, end, k, m)
            held += 1
    if function in LEGAL:
        assert gained > 20 and held > 20


I32, I64, U32 = DType.INT32, DType.INT64, DType.UINT32
I, J, N, X = Sym("i", 0, I32), Sym("j", 3, I32), Sym("n", 1, I32), Sym("x", 2, DType.FLOAT64)


def store(index) -> Store:
    return Store(X, (index,), Const(1.0, DType.FLOAT64))


def number(value: int, dtype: DType = I32) -> Const:
    return Const(value, dtype)


def sure(*body, n: int = 5, end: int = 10) -> bool:
    unit = Workunit("unit", (I,), (Param(N), Param(X, 1)), tuple(body))
    subscripts = subscripts_of(unit)
    assert subscripts is not None
    return surely_inside(subscripts, Space((0,), (end,)), (n, (10,)), frozenset({0}))


LESS = Binary("-", Read(I), number(1))
FIRST = If(Compare(">", Read(I), number(0)), (store(LESS),))


def test_what_changes_in_between_says_nothing() -> None:
    assert sure(FIRST)
    assert not sure(FIRST, Assign(I, number(0)))
    assert not sure(If(FIRST.condition, (Assign(I, number(0)), store(LESS))))


def test_comparisons_of_values_that_are_converted_say_nothing() -> None:
    """-1 as an unsigned number is not less than 0."""
    at = Binary("-", Read(I), Read(N))  # from -5 on
    assert sure(If(Compare(">=", at, number(0)), (store(at),)))
    assert not sure(If(Compare("<", number(0, U32), at), (store(at),)))
    assert sure(If(Compare("<", at, number(1, U32)), (), (store(at),)), n=0)
    wide = Compare(">=", at, number(0, I64))
    assert sure(If(wide, (store(at),)))
    unsigned = Compare(">=", at, number(0, U32))
    assert not sure(If(unsigned, (store(at),)))


def test_both_sides_of_a_conjunction_say_something() -> None:
    """And of neither side of a disjunction that holds one knows that it does."""
    at = Binary("+", Read(I), Read(N))
    low, high = Compare(">=", at, number(0)), Compare("<", at, number(10))
    for n in (-5, 5):  # from -5 to 4, from 5 to 14
        assert sure(If(Logical("&&", low, high), (store(at),)), n=n)
        assert sure(If(Logical("&&", high, low), (store(at),)), n=n)
        assert not sure(If(Logical("||", low, high), (store(at),)), n=n)
        outside = Logical("||", Compare("<", at, number(0)), Compare(">", at, number(9)))
        assert sure(If(outside, (), (store(at),)), n=n)


def test_elements_say_what_their_types_do() -> None:
    """`if i > t[i]` for a byte means i > 0, whatever becomes of t[i] in between."""
    for dtype in (DType.UINT8, DType.INT8, DType.FLOAT64):
        t = Sym("t", 4, dtype)
        element = Load(t, (Read(I),), dtype)
        zeroed = Store(t, (Read(I),), number(0, dtype))
        guarded = If(Compare(">", Read(I), element), (zeroed, store(LESS)))
        unit = Workunit("unit", (I,), (Param(t, 1), Param(X, 1)), (guarded,))
        subscripts = subscripts_of(unit)
        assert subscripts is not None
        inside = surely_inside(subscripts, Space((0,), (10,)), ((10,), (10,)), frozenset())
        assert inside is (dtype is DType.UINT8)


def test_what_may_wrap_says_nothing() -> None:
    """(i + n) - n - 1 >= 0, where i + n may be more than there is."""

    def guarded(n: int) -> If:
        there = Binary("-", Binary("+", Read(I), number(n)), number(n))
        return If(Compare(">=", Binary("-", there, number(1)), number(0)), (store(LESS),))

    assert sure(guarded(2**31 - 10)) and not sure(guarded(2**31 - 9))


def test_a_truth_value_of_a_number_is_no_comparison() -> None:
    assert not sure(If(Cast(Read(I), DType.BOOL), (store(LESS),)))
    for op, parts in (("<=", ((store(LESS),),)), (">", ((), (store(LESS),)))):
        assert sure(If(Unary("!", Compare(op, Read(I), number(0)), DType.BOOL), *parts))


def test_what_is_no_less_may_be_equal() -> None:
    left = Binary("-", Binary("-", Read(N), Read(I)), number(1))
    assert sure(If(Compare("<", Read(I), Read(N)), (store(left),)))
    assert not sure(If(Compare("<=", Read(I), Read(N)), (store(left),)))


def loop(stop, step: int = 1, body=(), start=None) -> For:
    return For(J, start or Read(N), stop, number(step), tuple(body))


def test_trips_of_loops_that_count_up_by_one() -> None:
    least = Binary("-", Read(J), Read(N))
    most = Binary("+", Read(J), Binary("-", number(9), Read(I)))
    assert sure(loop(number(9), body=[store(least)]))
    assert sure(loop(Binary("+", Read(I), number(1)), body=[store(most)]), n=0)
    assert not sure(loop(Binary("+", Read(I), number(2)), body=[store(most)]), n=0)
    assert not sure(loop(Read(I), body=[Assign(J, number(0)), store(most)]), n=0)
    from_index = Binary("-", Read(J), Read(I))
    assert sure(loop(number(10), body=[store(from_index)], start=Read(I)))
    assert not sure(loop(Read(I), body=[store(most)]), loop(number(50)), n=0)
    local = Sym("top", 9, I32)
    grows = [store(Binary("-", Read(J), Read(local))), Assign(local, number(50))]
    assert not sure(Declare(local, Read(N)), loop(number(60), body=grows))


def test_trips_from_what_is_converted() -> None:
    """From 2**32 - 1 without a sign, they begin at -1."""
    for dtype in (DType.UINT8, U32):
        t = Sym("t", 4, dtype)
        start = Cast(Read(t), I64)
        trips = loop(number(10), body=[store(Read(J))], start=start)
        subscripts = subscripts_of(Workunit("unit", (I,), (Param(t), Param(X, 1)), (trips,)))
        assert subscripts is not None
        inside = surely_inside(subscripts, Space((0,), (10,)), (None, (10,)), frozenset())
        assert not inside or dtype is DType.UINT8


def test_numbers_that_change_need_no_condition_where_a_guard_is_one() -> None:
    """`if i >= k: y[i] = x[i - k]` for whatever k: one entry serves all of them."""

    subscripts = subscripts_of(Workunit("unit", (I,), (Param(N), Param(X, 1)), (
        If(Compare(">=", Read(I), Read(N)), (store(Binary("-", Read(I), Read(N))),)),
    )))  # fmt: skip
    assert subscripts is not None
    rows = conditions(subscripts, 1, (0, (10,)), [0], [(0, 99), (0, 99), (0, 99)])
    assert rows is not None
    for k in range(12):
        assert hold(rows, (0, 10, k)) and not hold(rows, (0, 11 + k, k))

    last = Binary("+", Binary("-", Read(I), Read(N)), number(10))
    subscripts = subscripts_of(Workunit("unit", (I,), (Param(N), Param(X, 1)), (
        If(Compare("<", Read(I), Read(N)), (store(last),)),
    )))  # fmt: skip
    assert subscripts is not None
    rows = conditions(subscripts, 1, (0, (10,)), [0], [(0, 99), (0, 99), (0, 99)])
    assert rows is not None
    for k in range(11):
        assert hold(rows, (0, 99, k)) and not hold(rows, (0, 99, 11 + k))


def test_subscripts_that_may_wrap_have_no_conditions() -> None:
    at = Binary("+", Read(I), Read(N))
    subscripts = subscripts_of(Workunit("unit", (I,), (Param(N), Param(X, 1)), (store(at),)))
    assert subscripts is not None
    most = (1 << 31) - 1
    for top, known in ((most - 98, True), (most - 97, False)):
        rows = conditions(subscripts, 1, (0, (10,)), [0], [(0, 99), (0, 99), (0, top)])
        assert (rows is not None) is known
