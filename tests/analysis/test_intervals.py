import itertools

import pytest

from pyfuser.analysis.intervals import interval
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Binary, Call, Cast, Const, Read, Select
from tests.analysis.build import S, View

a, b = S("a"), S("b")
BOUNDS = {a.sym: (-5, 7), b.sym: (2, 3)}


def c_value(op, x, y):
    quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    return {
        "+": x + y,
        "-": x - y,
        "*": x * y,
        "/": quotient,
        "%": x - y * quotient,
        "<<": x * 2**y,
        ">>": x >> y,
        "&": x & y,
    }[op]


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "%", "<<", ">>", "&"])
def test_holds_every_value(op):
    known = interval(Binary(op, a.node, b.node), BOUNDS)
    values = [c_value(op, x, y) for x, y in itertools.product(range(-5, 8), range(2, 4))]
    assert known is not None
    assert known[0] <= min(values) and max(values) <= known[1]


@pytest.mark.parametrize("op", ["+", "-", "*", "/"])
def test_is_tight(op):
    values = [c_value(op, x, y) for x, y in itertools.product(range(-5, 8), range(2, 4))]
    assert interval(Binary(op, a.node, b.node), BOUNDS) == (min(values), max(values))


def test_what_may_overflow_has_none():
    big = Const(2**30, DType.INT32)
    assert interval(Binary("+", big, Binary("-", big, Const(1, DType.INT32))), {}) is not None
    assert interval(Binary("+", big, big), {}) is None
    assert interval(Binary("-", Binary("+", big, big), big), {}) is None
    assert interval((a + 1).node, {}) is None  # any int32
    assert interval(Cast(Binary("*", a.node, b.node), DType.INT8), BOUNDS) == (-15, 21)
    assert interval(Cast(a.node, DType.UINT8), BOUNDS) is None


def test_division_by_what_may_be_zero():
    assert interval((b // a).node, BOUNDS) is None
    assert interval((a % a).node, BOUNDS) is None


def test_leaves():
    x = View("x", dtype=DType.INT8)
    assert interval(x[a].node, BOUNDS) == (-128, 127)
    assert interval(Read(S("u", DType.UINT8).sym), {}) == (0, 255)
    assert interval(Const(1.5, DType.FLOAT64), {}) is None
    assert interval(Select((a < b).node, a.node, b.node), BOUNDS) == (-5, 7)
    assert interval(Call("min", (a.node, b.node), DType.INT32), BOUNDS) == (-5, 3)
    assert interval(Call("abs", (a.node,), DType.INT32), BOUNDS) == (0, 7)
