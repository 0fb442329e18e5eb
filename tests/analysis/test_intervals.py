import itertools
import random

import numpy as np
import pytest

from pyfuser.analysis.intervals import interval
from pyfuser.ir.arithmetic import UndefinedBehaviour
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Binary, Call, Cast, Compare, Const, Read, Select, Unary
from pyfuser.ir.reference.interpret import interpret
from tests.analysis.build import E, S, View, let, workunit

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
    assert interval(Call("isnan", (Const(1.5, DType.FLOAT64),), DType.BOOL), {}) == (0, 1)
    assert interval(Call("abs", (a.node,), DType.INT32), BOUNDS) == (0, 7)


def random_expression(rng, depth, leaves):
    """Integers of two types in each other's arms."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice((*leaves, *leaves, Const(rng.choice((-3, -1, 0, 1, 2, 7)), DType.INT32)))

    def part(dtype):
        found = random_expression(rng, depth - 1, leaves)
        return found if found.dtype is dtype else Cast(found, dtype)

    dtype = rng.choice((DType.INT32, DType.INT32, DType.INT64, DType.UINT32))
    kind = rng.random()
    if kind < 0.6:
        op = rng.choice(("+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^"))
        return Binary(op, part(dtype), part(dtype))
    if kind < 0.7:
        return Unary(rng.choice("-~+"), part(dtype), dtype)
    if kind < 0.8:
        test = Compare(rng.choice(("<", "==", ">=")), part(dtype), part(dtype))
        return Select(test, part(dtype), part(dtype))
    if kind < 0.9:
        signed = DType.INT64 if dtype is DType.UINT32 else dtype
        return Call("abs", (part(signed),), signed)
    target = rng.choice((DType.INT8, DType.UINT8, DType.BOOL, DType.INT64, DType.UINT64))
    return Cast(part(dtype), target)


@pytest.mark.parametrize("seed", range(20))
def test_rules_hold_for_all_values_of_random_expressions(seed):
    rng = random.Random(seed)
    lows = rng.choice((-6, -2, 0, 1, 3)), rng.choice((-2, 0, 1, 2))
    bounds = {s.sym: (low, low + 4) for s, low in zip((a, b), lows, strict=True)}
    points = np.array(list(itertools.product(*(range(low, low + 5) for low in lows))), np.int32)
    i, xs, ys, out = (
        S("i"),
        View("xs", dtype=DType.INT32),
        View("ys", dtype=DType.INT32),
        View("out", dtype=DType.INT64),
    )
    shown = 0
    for _ in range(60):
        expression = random_expression(rng, rng.randint(1, 4), (a.node, b.node))
        known = interval(expression, bounds)
        if known is None:
            continue
        body = [let(a, xs[i]), let(b, ys[i]), out[i] << E(Cast(expression, DType.INT64))]
        found = np.zeros(len(points), np.int64)
        columns = [np.ascontiguousarray(points[:, n]) for n in (0, 1)]
        try:
            interpret(
                workunit("w", [i], [xs, ys, out], body), "for", (0,), (25,), [*columns, found]
            )
        except UndefinedBehaviour:
            continue
        shown += 1
        assert known[0] <= found.min() and found.max() <= known[1], expression
    assert shown > 10
