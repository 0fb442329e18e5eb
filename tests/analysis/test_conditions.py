"""Conditions on the numbers of a call: where they hold, no subscript leaves its view."""

from __future__ import annotations

import itertools
import random

import pytest

from pyfuser.analysis.accesses import structural_scalars
from pyfuser.analysis.affine import Affine
from pyfuser.analysis.conditions import coefficients, conditions, hold, numbers_of
from pyfuser.analysis.inside import subscripts_of
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Assign,
    Binary,
    Call,
    Cast,
    Const,
    For,
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

EXTENT = 24
BOX = [(0, 60), (0, 60), (-40, 40), (-40, 40)]


def shifted(i, y, x, k, m):
    y[i] = x[i + k]


def mirrored(i, y, x, k, m):
    y[i + 1] = x[k - i - 1] + x[-(m - i)]


def scaled(i, y, x, k, m):
    place = 2 * i - m + 20
    y[i] = x[place] + x[(i - k) * 3]


def triangular(i, y, x, k, m):
    for j in range(i, k):
        y[i] += x[j] * x[j - m]


def nested(i, y, x, k, m):
    for j in range(k, m):
        for n in range(j, m + 1):
            y[i] += x[j + n]


def around(i, y, x, k, m):
    y[i] = x[k % 4] + x[(m % 4 + 4) % 4]


FUNCTIONS = [shifted, mirrored, scaled, triangular, nested, around]
VIEW = ViewType(DType.FLOAT64, 1)


class Watched:
    """A view that notes whether a subscript leaves it."""

    def __init__(self) -> None:
        self.left = False

    def __getitem__(self, index: int) -> float:
        self.left |= not 0 <= index < EXTENT
        return 0.0

    def __setitem__(self, index: int, value: float) -> None:
        self[index]


def lowered(function) -> Workunit:
    k = ScalarType(DType.INT32)
    return lower(function, "for", 1, {"y": VIEW, "x": VIEW, "k": k, "m": k}).workunit


def rows_of(unit: Workunit, box, extent: int = EXTENT) -> list[Affine] | None:
    subscripts = subscripts_of(unit)
    assert subscripts is not None
    places = sorted(structural_scalars(unit))
    return conditions(subscripts, 1, ((extent,), (extent,), 0, 0), places, box)


def is_inside(function, begin: int, end: int, k: int, m: int) -> bool:
    x, y = Watched(), Watched()
    for i in range(begin, end):
        function(i, y, x, k, m)
    return not (x.left or y.left)


def test_what_holds_is_inside_and_what_has_iterations_and_is_inside_holds() -> None:
    rng = random.Random(7)
    for function in FUNCTIONS:
        unit = lowered(function)
        places = sorted(structural_scalars(unit))
        rows = rows_of(unit, [BOX[n] for n in (0, 1, *places)])
        if function is around:
            assert rows is None  # k may be negative in this box
            rows = rows_of(unit, [BOX[0], BOX[1], (0, 40), BOX[3]])
        assert rows is not None
        found = 0
        for _ in range(4000):
            begin = rng.randint(-2, 20)
            numbers = begin, begin + rng.randint(1, 9), rng.randint(-6, 30), rng.randint(-30, 30)
            begin, end, k, m = numbers
            given = numbers_of(Space((begin,), (end,)), (0, 0, k, m), places)
            held, inside = hold(rows, given), is_inside(function, *numbers)
            assert inside or not held, (function.__name__, numbers)
            trips = {triangular: end <= k, nested: k < m, around: k >= 0}.get(function, True)
            if inside and begin >= 0 and trips:
                assert held, (function.__name__, numbers)
                found += 1
        assert found > 5, function.__name__


def test_numbers_stay_in_their_box() -> None:
    rows = rows_of(lowered(shifted), [(2, 9), (4, 12), (-1, 3)])
    assert rows is not None
    for begin, end, k in itertools.product(range(1, 11), range(3, 14), range(-2, 5)):
        fits = 2 <= begin <= 9 and 4 <= end <= 12 and -1 <= k <= 3
        expected = fits and begin + k >= 0 and end + k <= EXTENT and end >= 1
        assert hold(rows, (begin, end, k)) is expected


def test_a_sum_that_may_wrap_is_not_followed() -> None:
    assert rows_of(lowered(shifted), [(0, 2**30), (0, 2**30), (0, 2**30)]) is not None
    assert rows_of(lowered(shifted), [(0, 2**30), (0, 2**30), (0, 2**30 + 1)]) is None


def test_what_is_inside_for_the_whole_box_needs_no_affine_function() -> None:
    box = [(0, 60), (0, 60), (0, 40), (-40, 40)]
    assert rows_of(lowered(around), box, 4) is not None
    assert rows_of(lowered(around), box, 3) is None


I32 = DType.INT32
I, J, N, X = Sym("i", 0, I32), Sym("j", 3, I32), Sym("n", 1, I32), Sym("x", 2, DType.FLOAT64)
ONE, ZERO = Const(1, I32), Const(0, I32)


def built(*body) -> list[Affine] | None:

    unit = Workunit("unit", (I,), (Param(N), Param(X, 1)), tuple(body))
    subscripts = subscripts_of(unit)
    assert subscripts is not None
    return conditions(subscripts, 1, (0, (10,)), [0], [(0, 99), (0, 99), (0, 99)])


def store(index) -> Store:
    return Store(X, (index,), Const(1.0, DType.FLOAT64))


def loop(start, stop, step=ONE, body=None, sym=J) -> For:
    return For(sym, start, stop, step, body or (store(Read(sym)),))


@pytest.mark.parametrize("sym", [I, N])
def test_what_the_body_sets_is_no_number_of_the_call(sym: Sym) -> None:
    assert built(store(Read(sym))) is not None
    assert built(Assign(sym, Const(50, I32)), store(Read(sym))) is None


def test_only_loops_that_count_up_once_are_followed() -> None:
    assert built(loop(ZERO, Read(N))) is not None
    assert built(loop(Read(N), ZERO, Const(-1, I32))) is None
    assert built(loop(ZERO, Read(N)), loop(ZERO, Read(I))) is None
    changes = (Assign(J, Read(I)), store(Read(J)))
    assert built(loop(ZERO, Read(N), body=changes)) is None


def test_the_last_trip_is_one_before_the_stop() -> None:
    rows = built(loop(Read(I), Read(N)))
    assert rows is not None
    assert hold(rows, (0, 5, 10)) and not hold(rows, (0, 5, 11))


def test_casts_signs_and_products_are_affine_and_others_are_not() -> None:
    wide = Cast(Read(I), DType.INT64)
    minus = Unary("-", Read(I), I32)
    assert built(store(wide)) is not None
    negative = built(store(minus))
    assert negative is not None and not hold(negative, (1, 2, 0)) and hold(negative, (0, 1, 0))
    assert built(store(Call("abs", (Read(I),), I32))) is None
    assert built(store(Unary("~", Read(I), I32))) is None
    assert built(store(Binary("*", Read(I), Read(N)))) is None
    assert built(store(Binary("&", Read(I), Read(N)))) is None
    for product in (Binary("*", Read(I), Const(3, I32)), Binary("*", Const(3, I32), Read(I))):
        rows = built(store(product))
        assert rows is not None and hold(rows, (0, 4, 0)) and not hold(rows, (0, 5, 0))
    back = built(store(Binary("+", Binary("*", Read(I), Const(-2, I32)), Read(N))))
    assert back is not None and hold(back, (1, 3, 5)) and not hold(back, (1, 4, 5))
    assert not hold(back, (1, 3, 12))


def test_each_part_has_to_be_affine() -> None:
    other = Unary("~", Read(I), I32)
    for pair in ((Read(I), other), (other, Read(I))):
        assert built(store(Binary("+", *pair))) is None
    assert built(loop(ZERO, Read(N), body=(store(Binary("*", Read(J), Read(I))),))) is None
    assert built(store(Unary("-", other, I32))) is None
    assert built(loop(Read(I), Binary("+", other, Const(90, I32)))) is None
    assert built(loop(other, Read(N))) is None


def test_what_is_cut_off_from_a_float_is_not_followed() -> None:
    half = Const(0.5, DType.FLOAT64)
    assert built(store(Cast(Binary("+", half, half), I32))) is None


def test_a_loop_whose_end_may_wrap_is_not_followed() -> None:
    end = Binary("*", Read(N), Const(2**25, I32))
    assert built(loop(ZERO, Binary("*", Read(N), Const(2, I32)))) is not None
    assert built(loop(ZERO, end)) is None


def test_a_loop_variable_that_is_set_has_other_values() -> None:
    for value in (Const(5, I32), Read(I), Read(N)):
        assert built(loop(ZERO, Read(N), body=(Assign(J, value), store(Read(J))))) is None


def test_each_axis_has_its_numbers() -> None:
    j, a = Sym("j", 7, I32), Sym("a", 8, DType.FLOAT64)
    body = (Store(a, (Read(I), Read(j)), Const(1.0, DType.FLOAT64)),)
    subscripts = subscripts_of(Workunit("unit", (I, j), (Param(a, 2),), body))
    assert subscripts is not None
    box = [(0, 50), (0, 60), (0, 70), (0, 80)]
    rows = conditions(subscripts, 2, ((4, 6),), [], box)
    assert rows is not None
    for numbers in itertools.product((0, 1), (3, 4, 5), (0, 2), (5, 6, 7)):
        assert hold(rows, numbers) is (numbers[1] <= 4 and numbers[3] <= 6)
    for shape, beyond in (((60, 80), None), ((59, 80), (0, 60, 0, 9)), ((60, 79), (0, 9, 0, 80))):
        rows = conditions(subscripts, 2, (shape,), [], box)
        assert rows is not None and (beyond is None or not hold(rows, beyond))
        assert (len(rows) == 8) is (beyond is None)  # those of the box alone


def test_a_flag_is_no_number() -> None:
    flag = Cast(Read(N), DType.BOOL)
    assert built(store(Binary("+", Read(I), Cast(flag, I32)))) is None


def test_rows_have_a_coefficient_for_each_number() -> None:
    rows = [Affine(((0, 2), (2, -1)), 7), Affine((), -3)]
    assert list(coefficients(rows, 3)) == [7, 2, 0, -1, -3, 0, 0, 0]
    assert (
        hold(rows[:1], (1, 0, 9)) and not hold(rows[:1], (1, 0, 10)) and not hold(rows, (1, 0, 9))
    )


def test_numbers_are_begin_and_end_of_each_axis_then_integers() -> None:
    assert numbers_of(Space((1, 3), (2, 4)), ("x", 5, True), (1, 2)) == [1, 2, 3, 4, 5, 1]
