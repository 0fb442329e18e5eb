"""What expressions are worth, compared with what they are in each iteration."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import reduce

import numpy as np
import pytest

from pyfuser.analysis.affine import EVERYTHING, NOTHING, Affine, Constraint
from pyfuser.analysis.evaluate import MAX_CASES, Case, Evaluator
from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Workunit
from pyfuser.ir.reference.interpret import interpret
from tests.analysis.build import E, S, View, any_of, expr, select, workunit

BEGIN, END = -5, 17
MORE = 20  # of both sides, in which inner variables are looked for
Made = Callable[[S], E]


def shifted(op: str, value: E, by: int) -> E:
    return E(nodes.Binary(op, value.node, nodes.Const(by, value.node.dtype)))


def least(value: E, *others: int) -> E:
    """The least of a value and of numbers."""
    for other in others:
        value = select(value < other, value, other)
    return value


def stairs(value: E, count: int) -> E:
    """So many numbers, two iterations each."""
    found = value
    for n in reversed(range(count - 1)):
        found = select(value < BEGIN + 2 * n + 2, 20 + n, found)
    return found


def inside(value: E) -> E:
    return select(value >= 0, value, 0)


def one_of(value: E, *numbers: int) -> E:
    return reduce(any_of, (value.eq(n) for n in numbers))


X = View("x", dtype=DType.INT32)  # of which nothing is known


#: How many cases each expression has between BEGIN and END; none if it is not understood.
EXPRESSIONS: list[tuple[str, Made, int]] = [
    ("sum", lambda i: i + 3, 1),
    ("difference", lambda i: 3 - i, 1),
    ("product", lambda i: 2 * i, 1),
    ("product on the left", lambda i: expr(2) * i, 1),
    ("square", lambda i: i * i, 0),
    ("negated", lambda i: E(nodes.Unary("-", i.node, i.node.dtype)) + 1, 1),
    ("not", lambda i: E(nodes.Unary("~", i.node, i.node.dtype)), 1),
    ("of an element", lambda i: E(nodes.Unary("!", i.node, DType.BOOL)).cast(DType.INT32), 0),
    ("shifted up", lambda i: shifted("<<", i + 5, 2), 1),
    ("shifted up from below zero", lambda i: shifted("<<", i, 2), 0),
    ("shifted up from 1", lambda i: shifted("<<", i + 6, 0), 1),
    ("shifted up too far", lambda i: shifted("<<", i + 5, 64), 0),
    ("shifted up by less than nothing", lambda i: shifted("<<", i + 5, -1), 0),
    ("shifted down", lambda i: shifted(">>", i, 2), 1),
    ("shifted down too far", lambda i: shifted(">>", i, 64), 0),
    ("shifted down by less than nothing", lambda i: shifted(">>", i, -1), 0),
    ("low bits", lambda i: i & 7, 1),
    ("no bits", lambda i: i & 0, 1),
    ("other bits", lambda i: i & 6, 0),
    ("bits but one", lambda i: i & 2, 0),
    ("high bits", lambda i: i & -4, 0),
    ("all bits", lambda i: i & -1, 0),
    ("either bits", lambda i: shifted("|", i + 5, 3), 0),
    ("either bits of little", lambda i: shifted("|", i + 5, 30), 0),
    ("remainder by nothing", lambda i: (i + 5) % 0, 0),
    ("remainder of two cases by nothing", lambda i: inside(i) % 0, 0),
    ("remainder of two cases by less than nothing", lambda i: inside(i) % -30, 0),
    ("quotient", lambda i: (i + 5) // 4, 1),
    ("quotient of what may be negative", lambda i: i // 4, 0),
    ("quotient of little", lambda i: (i + 5) // 40, 1),
    ("quotient by less than nothing", lambda i: (i + 5) // -4, 0),
    ("remainder", lambda i: (i + 5) % 4, 1),
    ("remainder of little", lambda i: (i + 5) % 40, 1),
    ("remainder of little that may be negative", lambda i: i % 40, 1),
    ("remainder as large", lambda i: i % 16, 0),
    ("remainder just larger", lambda i: i % 17, 1),
    ("remainder of what may be as small", lambda i: (i - 4) % 9, 0),
    ("remainder by less than nothing", lambda i: (i + 5) % -4, 0),
    ("around the end", lambda i: (i + 10) % 17, 2),
    ("around a later end", lambda i: (i + 40) % 17, 2),
    ("around an end far on", lambda i: (i + 5 + 2 * 22 + 8) % 22, 2),
    ("around the end of a half", lambda i: 3 * ((i + 10) % 17) - i, 2),
    ("of two ends", lambda i: (i + 10) % 17 + (i + 14) % 17, 3),
    ("product of two cases", lambda i: ((i + 10) % 17) * (i + 10), 0),
    ("product with cases", lambda i: expr(2) * ((i + 10) % 17), 2),
    ("quotient of cases", lambda i: (((i + 10) % 17) + 40) // 20, 2),
    ("quotient of cases that may be negative", lambda i: (((i + 10) % 17) - 3) // 2, 0),
    ("at least", lambda i: inside(i), 2),
    ("at most", lambda i: least(i, 9), 2),
    ("between", lambda i: least(inside(i), 9), 3),
    ("always", lambda i: select(i > -9, i + 1, i * i), 1),
    ("never", lambda i: select(i < -9, i * i, i + 1), 1),
    ("never, and unknown", lambda i: select(i < -9, X[i], i + 1), 1),
    ("never, by numbers", lambda i: select(expr(1) > 2, X[i], i + 1), 1),
    ("an element", lambda i: X[i], 0),
    ("by many parts", lambda i: select(one_of(i, 1, 3, 5, 7, 9), i, 4), 2),
    (
        "by too many parts",
        lambda i: select(one_of(i, *range(5)), select(one_of(i, 1, 3, 5, 9), i, 4), 5),
        0,
    ),
    (
        "sum by too many parts",
        lambda i: select(one_of(i, *range(5)), i, 4) + select(one_of(i, 1, 3, 5, 9), i, 4),
        0,
    ),
    ("chosen from what is unknown", lambda i: select(i > 0, i, i * i), 0),
    ("unknown, chosen first", lambda i: select(i > 0, i * i, i), 0),
    ("by what is unknown", lambda i: select(i * i > 9, i, i + 1), 2),
    ("sum by what is unknown", lambda i: select(i * i > 9, i, i + 1) + inside(i), 4),
    ("by what is unknown, inside", lambda i: select(i > 3, select(i * i > 99, i, 4 - i), i), 3),
    ("by what is unknown, outside", lambda i: select(i * i > 99, inside(i), i), 3),
    ("steps", lambda i: stairs(i, MAX_CASES), MAX_CASES),
    ("too many steps", lambda i: stairs(i, MAX_CASES + 1), 0),
    ("the least of many", lambda i: least(i, *range(15, 15 - MAX_CASES, -1)), 2),
    ("by cases compared", lambda i: select(inside(i + 2) < 5, i, 9), 2),
    ("by cases of both", lambda i: select(inside(i - 3) < least(2 * i, 11), i, 9), 2),
    ("by equal cases", lambda i: select(inside(i).eq(least(i, 4)), i, 9), 2),
    ("by cases that are unknown", lambda i: select(select(i * i > 9, i, 3) < 5, i, 9), 2),
    ("by cases and what is unknown", lambda i: select(inside(i).compare("<", X[0]), i, 9), 2),
    (
        "by cases some of which are unknown",
        lambda i: select(select(i < 3, select(i * i > 9, i, 1), i) < 1, i, 9),
        2,
    ),
    (
        "by cases of too many parts",
        lambda i: select(
            select(one_of(i, *range(5)), i, 4) < select(one_of(i, 1, 3, 5, 9), i, 4), i, 9
        ),
        2,
    ),
    (
        "by cases of parts that become too many",
        lambda i: select(select(one_of(i, *range(0, 20, 2)), i, 4).ne(2 * i - 4), i, 9),
        2,
    ),
    ("cases that never meet", lambda i: select(i > 3, i, 1) + select(2 * i < 5, i, 2), 3),
    ("by too many cases", lambda i: select(stairs(i, 10) < 5, i, 9), 2),
    ("narrow", lambda i: (i + 5).cast(DType.INT8), 1),
    ("too narrow", lambda i: (9 * i).cast(DType.INT8), 0),
    ("narrow in cases", lambda i: inside(i).cast(DType.UINT8), 2),
    ("a case too narrow", lambda i: least(i, 9).cast(DType.UINT8), 0),
    ("low bits somewhere", lambda i: select(i.eq(1), (2 - i) & 1, i), 2),
    ("a quotient somewhere", lambda i: select(i > 12, i // 2, 3 - i), 2),
    ("cases of a quotient compared", lambda i: select(select(i.eq(1), i & 1, i) < 5, i, 9), 2),
    ("as a float", lambda i: (2**25 * (i + 5) + 1).cast(DType.FLOAT32).cast(DType.INT64), 0),
    ("a sum of other numbers", lambda i: (expr(1.5) * 3.0).cast(DType.INT32) + i, 0),
    ("another number", lambda i: expr(2.5).cast(DType.INT32) + i, 0),
    ("another number, chosen", lambda i: select(i > 0, 2.5, 0.5).cast(DType.INT32) + i, 0),
]


def made_of(value: E, i: S) -> Workunit:
    """y[i] = value over two axes."""
    y = View("y", dtype=DType.INT64)
    return workunit("w", [i, S("j")], [y, X], [y[i - BEGIN] << value.cast(DType.INT64)])


def truth(value: E, i: S) -> list[int]:
    """What the reference interpreter computes."""
    found = np.zeros(END - BEGIN, np.int64)
    unit = made_of(value, i)
    interpret(unit, "for", (BEGIN, 0), (END, 1), [found, np.zeros(END, np.int32)])
    return [int(n) for n in found]


def at(function: Affine, point: tuple[int, ...]) -> int:
    return sum(c * point[v] for v, c in function.terms) + function.constant


def holds(constraint: Constraint, point: tuple[int, ...]) -> bool:
    value = at(constraint.expr, point)
    return value == 0 if constraint.equality else value >= 0


def worth(evaluator: Evaluator, case: Case, iteration: int) -> set[int]:
    """The values of a case in an iteration, for each choice of inner variables that is allowed."""
    inner = [range(max(low, -MORE), min(high, MORE) + 1) for low, high in evaluator.ranges[2:]]
    ties = [tie for limits in evaluator.definitions.values() for tie in limits]
    found = set()
    for choice in itertools.product(*inner):
        point = iteration, 0, *choice
        allowed = all(holds(tie, point) for tie in ties)
        if allowed and any(all(holds(c, point) for c in part) for part in case.points):
            found.add(at(case.value, point))
    return found


@pytest.mark.parametrize(
    ("make", "count"), [e[1:] for e in EXPRESSIONS], ids=[e[0] for e in EXPRESSIONS]
)
def test_an_expression_is_one_of_its_cases(make: Made, count: int) -> None:
    """And the only one that holds in an iteration, if that is said to be exact."""
    i = S("i")
    value = make(i)
    evaluator = Evaluator(made_of(value, i), (BEGIN, 0), (END, 3), (None, None))
    cases = evaluator.cases(value.node)
    assert (0 if cases is None else len(cases)) == count
    for iteration, known in enumerate(truth(value, i) if cases is not None else ()):
        found = [(worth(evaluator, c, BEGIN + iteration), c.exact) for c in cases or ()]
        assert any(known in values for values, _ in found)
        assert all(values <= {known} for values, exact in found if exact)
        assert all(len(values) <= 1 for values, _ in found)


def test_at_no_points_there_are_no_cases() -> None:
    i = S("i")
    evaluator = Evaluator(made_of(i, i), (BEGIN, 0), (END, 3), (None, None))
    cases = evaluator.cases(inside(i).node)
    assert cases is not None and len(cases) == 2
    assert evaluator.restricted(cases, EVERYTHING, True) == cases
    assert evaluator.restricted(cases, NOTHING, True) == ()
