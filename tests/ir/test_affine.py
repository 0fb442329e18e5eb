"""Linear forms: what is one, what is not, and that they have the value of the expression."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from pyfuser.ir.affine import Linear, everywhere, linear, number, values_of
from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Binary, Cast, Const, Expr, For, Load, Read, Sym, Unary

I, J, N = (fresh(name, DType.INT32) for name in "ijn")
W = fresh("w", DType.INT64)
P, B = fresh("p", DType.INT32), fresh("b", DType.BOOL)
i, j, n, w = map(Read, (I, J, N, W))
ELEMENT = Load(P, (i,))


def c(value: int, dtype: DType = DType.INT32) -> Expr:
    return Const(value, dtype)


def op(sign: str, left: Expr, right: Expr) -> Expr:
    return Binary(sign, left, right)


LATER = op("+", i, c(3))
WIDE, NARROW = Cast(LATER, DType.INT64), Cast(w, DType.INT32)
QUOTIENT = op("/", i, c(2))

FORMS: list[tuple[Expr, dict[Expr, int], int]] = [
    (c(7), {}, 7),
    (i, {i: 1}, 0),
    (LATER, {i: 1}, 3),
    (op("-", c(3), i), {i: -1}, 3),
    (Unary("-", LATER, DType.INT32), {i: -1}, -3),
    (op("*", c(2), LATER), {i: 2}, 6),
    (op("*", LATER, op("-", c(4), c(2))), {i: 2}, 6),
    (op("-", op("+", i, j), i), {j: 1}, 0),
    (op("+", op("*", i, n), j), {op("*", i, n): 1, j: 1}, 0),
    (op("+", QUOTIENT, QUOTIENT), {QUOTIENT: 2}, 0),
    (op("+", ELEMENT, c(1)), {ELEMENT: 1}, 1),
    (op("%", i, c(4)), {op("%", i, c(4)): 1}, 0),
    (op("+", w, Cast(c(2), DType.INT64)), {w: 1}, 2),
    (op("+", w, WIDE), {w: 1, WIDE: 1}, 0),  # LATER may wrap around before it is widened
    (op("+", NARROW, i), {NARROW: 1, i: 1}, 0),
]


@pytest.mark.parametrize(("e", "terms", "constant"), FORMS)
def test_forms(e: Expr, terms: dict[Expr, int], constant: int) -> None:
    assert linear(e) == Linear(terms, constant)


def test_conversions_that_are_looked_through() -> None:
    both = op("+", WIDE, op("*", w, c(2, DType.INT64)))
    assert linear(both, everywhere) == Linear({i: 1, w: 2}, 3)
    assert linear(both, lambda e: e.dtype is DType.INT32).terms[WIDE] == 1
    truth = Cast(i, DType.BOOL)
    assert linear(Cast(truth, DType.INT32), everywhere) == Linear({truth: 1}, 0)
    real = Cast(Read(fresh("x", DType.FLOAT64)), DType.INT32)
    assert linear(real, everywhere) == Linear({real: 1}, 0)


def test_values_that_are_known() -> None:
    def value(e: Expr) -> int | None:
        return 5 if e == n else number(e)

    assert linear(op("+", op("*", i, n), n), value=value) == Linear({i: 5}, 5)


def test_coefficients() -> None:
    form = linear(op("+", op("*", i, n), op("*", j, c(3))))
    assert form.coefficient(J) == 3
    assert form.coefficient(W) == 0
    assert form.coefficient(I) is None
    assert form.coefficient(N) is None


def test_numbers() -> None:
    assert number(Cast(c(-1), DType.INT64)) == -1
    assert number(Cast(c(-1), DType.UINT32)) is None  # another number
    assert number(Cast(c(2), DType.BOOL)) is None
    assert number(Const(2.0, DType.FLOAT64)) is None
    assert number(Cast(Const(2.5, DType.FLOAT64), DType.INT32)) is None
    assert number(i) is None


def test_values_of_loops() -> None:
    def loop(start: Expr, stop: Expr, step: Expr) -> For:
        return For(J, start, stop, step, ())

    assert values_of(loop(c(1), Cast(c(8), DType.INT64), c(3))) == range(1, 8, 3)
    assert values_of(loop(c(8), c(1), c(-1))) == range(8, 1, -1)
    assert values_of(loop(c(8), c(1), c(1))) == range(0)
    for unknown in (loop(n, c(8), c(1)), loop(c(0), n, c(1)), loop(c(0), c(8), n)):
        assert values_of(unknown) is None
    assert values_of(loop(c(0), c(8), c(0))) is None  # endless


# --------------------------------------------------------------------------- by chance


def wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def value_of(e: Expr, values: Mapping[Sym, int]) -> int:
    match e:
        case Const(value=int(value)):
            return value
        case Read():
            return values[e.sym]
        case Unary():
            return wrapped(-value_of(e.operand, values))
        case Binary():
            left, right = value_of(e.left, values), value_of(e.right, values)
            if e.op == "%":
                return abs(left) % 7 * (1 if left >= 0 else -1)
            return wrapped({"+": left + right, "-": left - right, "*": left * right}[e.op])
    raise AssertionError(e)


def expression(rng: random.Random, depth: int) -> Expr:
    kind = rng.randrange(6) if depth else rng.randrange(2)
    if kind == 0:
        return c(rng.choice((-3, 0, 1, 2, 2**31 - 1)))
    if kind == 1:
        return rng.choice((i, j, n))
    if kind == 2:
        return Unary("-", expression(rng, depth - 1), DType.INT32)
    if kind == 3:
        return op("%", expression(rng, depth - 1), c(7))
    return op(rng.choice("+-*"), expression(rng, depth - 1), expression(rng, depth - 1))


def test_forms_have_the_value_of_the_expression_whatever_overflows() -> None:
    rng = random.Random(2)
    taken_apart = 0
    for _ in range(3000):
        e = expression(rng, 4)
        form = linear(e)
        values = {sym: rng.choice((0, -5, 17, 2**31 - 1, -(2**31))) for sym in (I, J, N)}
        total = sum(count * value_of(term, values) for term, count in form.terms.items())
        assert wrapped(total + form.constant) == value_of(e, values)
        taken_apart += e not in form.terms
    assert taken_apart > 1000


def test_a_number_is_an_integer() -> None:
    """Also one that conversions keep; of other types none is, even if it is whole."""
    assert number(c(2)) == number(Cast(c(2), DType.INT64)) == 2
    assert number(Cast(c(1000), DType.INT8)) is None
    assert number(Cast(c(2), DType.BOOL)) is None
    for whole in (Cast(c(2), DType.FLOAT64), c(2, DType.FLOAT64)):
        assert number(whole) is None
        assert number(Cast(whole, DType.INT32)) is None
        assert linear(Cast(whole, DType.INT32), everywhere).terms
