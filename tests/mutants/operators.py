"""Operators that make one law weaker: what is generated from a marked function.

A function of the product that decides legality has a comment above its `def`, or at its end:

    # law: True         the permissive answer: `True` lets more be fused, moved or left out
    # law: not None     `None` refuses (or leaves it to a costlier law), any other answer permits
    # law               no answer is the permissive one (bounds, sets, new bodies)

Only faults in the permissive direction are faults: a law that refuses more is slower, never wrong.
So where the answer is known, each condition has a direction (it may only hold more often if it
permits, only less often if it refuses), and operators that make it stricter generate nothing.
Where it is not known, both directions are generated, and only --all tries them, but for those on
the checklist: half of them are no faults, or change only what is legal to what is slower.

The operators are those of Offutt et al. (1996, "An experimental determination of sufficient mutant
operators") that fit predicates, and deletion of statements (Untch 2009), one edit a mutant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_LOOSER: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.LtE, ast.Gt: ast.GtE}
_STRICTER: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.LtE: ast.Lt, ast.GtE: ast.Gt}
_SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}
#: Operators one of whose sides may be left out; the left one only where the order does not matter.
_EITHER_SIDE = (ast.Add, ast.BitOr, ast.BitAnd)
_RIGHT_SIDE = (ast.Sub, ast.BitXor)


class Edit(NamedTuple):
    """In a function, the node `old` (by identity) becomes `new`."""

    operator: str
    old: ast.AST
    new: ast.AST


class Answer(NamedTuple):
    """The text of the value that permits (or, if `refuses`, does not); empty if none is named."""

    text: str = ""
    refuses: bool = False

    def direction(self, value: ast.expr | None) -> int:
        """1 if to return the value permits, -1 if it refuses, 0 if that is not known."""
        if not self.text:
            return 0
        text = "None" if value is None else ast.unparse(value)
        if self.is_bool and text not in ("True", "False"):
            return 0
        # A value that is computed is another one than None or ().
        return 1 if (text == self.text) != self.refuses else -1

    @property
    def is_bool(self) -> bool:
        """Whether the function answers yes or no."""
        return self.text in ("True", "False")


def edits(function: ast.FunctionDef, answer: Answer) -> Iterator[Edit]:
    """All edits of a function's body, in the order of its text."""
    yield from _block(function.body, answer)


def _block(body: Sequence[ast.stmt], answer: Answer) -> Iterator[Edit]:
    for stmt in body:
        yield from _statement(stmt, answer)


def _statement(stmt: ast.stmt, answer: Answer) -> Iterator[Edit]:
    match stmt:
        case ast.FunctionDef():
            answer = Answer()  # what it answers is another question
        case ast.If():
            yield from _condition(stmt.test, _leads_to(stmt.body, stmt.orelse, answer))
        case ast.While():
            yield from _bool(stmt.test, 0)
        case ast.Return():
            yield from _returned(stmt, answer)
        case ast.For():
            yield from _value(stmt.iter)
        case ast.Match():
            for case in stmt.cases:
                yield from _case(case, answer)
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.Expr() | ast.Continue():
            if _may_go(stmt):
                yield Edit("drop a statement", stmt, ast.Pass())
            yield from _value(getattr(stmt, "value", None) or ast.Constant(None))
    for name in ("body", "orelse", "finalbody"):
        yield from _block(getattr(stmt, name, ()), answer)


def _case(case: ast.match_case, answer: Answer) -> Iterator[Edit]:
    if case.guard is not None:
        yield from _condition(case.guard, _leads_to(case.body, (), answer))
    yield from _block(case.body, answer)


def _may_go(stmt: ast.stmt) -> bool:
    """Whether names are bound without a statement, too, and it is no docstring."""
    if isinstance(stmt, ast.Assign):
        return not any(isinstance(t, (ast.Name, ast.Tuple)) for t in stmt.targets)
    if isinstance(stmt, ast.Expr):
        return not isinstance(stmt.value, ast.Constant)
    return isinstance(stmt, (ast.AugAssign, ast.Continue))


def _leads_to(then: Sequence[ast.stmt], orelse: Sequence[ast.stmt], answer: Answer) -> int:
    """The direction of a condition: that of what is returned where it holds."""
    for body, sign in ((then, 1), (orelse, -1)):
        if body and isinstance(last := body[-1], ast.Return):
            return sign * answer.direction(last.value)
    return 0


def _returned(stmt: ast.Return, answer: Answer) -> Iterator[Edit]:
    value = stmt.value
    if value is None:
        return
    if answer.is_bool:
        if not isinstance(value, ast.Constant):
            yield from _condition(value, 1 if answer.text == "True" else -1)
        return
    if answer.text and not answer.refuses and answer.text != ast.unparse(value):
        yield Edit("permissive answer", value, ast.parse(answer.text, mode="eval").body)
    yield from _value(value)


def _condition(test: ast.expr, direction: int) -> Iterator[Edit]:
    for sign, holds in ((1, True), (-1, False)):
        if direction in (0, sign):
            yield Edit("condition", test, ast.Constant(holds))
    yield from _bool(test, direction)


def _bool(test: ast.expr, direction: int) -> Iterator[Edit]:
    """Edits of an expression that is true or false; 1: it may hold more often, -1: less often."""
    if isinstance(test, ast.BoolOp):
        weakens = 1 if isinstance(test.op, ast.And) else -1
        for operand in test.values:
            if direction in (0, weakens):
                rest = [other for other in test.values if other is not operand]
                new = ast.BoolOp(test.op, rest) if len(rest) > 1 else rest[0]
                yield Edit("drop a conjunct" if weakens > 0 else "drop a disjunct", test, new)
            yield from _bool(operand, direction)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _bool(test.operand, -direction)
    elif isinstance(test, ast.Compare):
        yield from _compare(test, direction)
    elif isinstance(test, ast.Call) and _name(test) in ("any", "all") and len(test.args) == 1:
        yield from _quantified(test, direction)
    elif isinstance(test, ast.IfExp):
        yield from _condition(test.test, 0)
        yield from _bool(test.body, direction)
        yield from _bool(test.orelse, direction)
    else:
        yield from _value(test)


def _compare(test: ast.Compare, direction: int) -> Iterator[Edit]:
    for place, op in enumerate(test.ops):
        for sign, table in ((1, _LOOSER), (-1, _STRICTER)):
            if direction in (0, sign) and type(op) in table:
                ops = [*test.ops[:place], table[type(op)](), *test.ops[place + 1 :]]
                yield Edit("shift a bound", test, ast.Compare(test.left, ops, test.comparators))
        among = test.comparators[place]
        sign = 1 if isinstance(op, ast.NotIn) else -1 if isinstance(op, ast.In) else 0
        if sign and direction in (0, sign) and isinstance(among, (ast.Tuple, ast.Set)):
            for element in among.elts:
                rest = [other for other in among.elts if other is not element]
                yield Edit("drop an element", among, ast.Tuple(rest, ast.Load()))
    for side in (test.left, *test.comparators):
        yield from _value(side)


def _quantified(test: ast.Call, direction: int) -> Iterator[Edit]:
    name = _name(test)
    weakens = 1 if name == "all" else -1  # `all` holds less often than `any`
    if direction in (0, weakens):
        yield Edit("swap all and any", test.func, ast.Name(_SWAPPED[name], ast.Load()))
    (over,) = test.args
    if not isinstance(over, ast.GeneratorExp):
        yield from _value(over)
        return
    for generator in over.generators:
        for test_ in generator.ifs:
            # With fewer elements `all` holds more often, `any` less often.
            yield from _condition(test_, -direction if name == "all" else direction)
        yield from _value(generator.iter)
    yield from _bool(over.elt, direction)


def _value(expr: ast.expr) -> Iterator[Edit]:
    """Edits of an expression of which no value is known to be the permissive one."""
    name = _name(expr) if isinstance(expr, ast.Call) else ""
    if _is_bool(expr) or name in ("any", "all"):
        yield from _condition(expr, 0)
        return
    if name in _SWAPPED:
        assert isinstance(expr, ast.Call)
        yield Edit("swap min and max", expr.func, ast.Name(_SWAPPED[name], ast.Load()))
    if isinstance(expr, ast.BinOp) and not isinstance(expr.left, (ast.Constant, ast.JoinedStr)):
        if isinstance(expr.op, (*_EITHER_SIDE, *_RIGHT_SIDE)):
            yield Edit("drop an operand", expr, expr.left)
        if isinstance(expr.op, _EITHER_SIDE):
            yield Edit("drop an operand", expr, expr.right)
    for field, child in _children(expr):
        yield from _condition(child, 0) if field in ("test", "ifs") else _value(child)


def _is_bool(expr: ast.expr) -> bool:
    return isinstance(expr, (ast.BoolOp, ast.Compare)) or (
        isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.Not)
    )


def _children(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The expressions in an expression, and as what of it."""
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, (ast.comprehension, ast.keyword)):
                yield from _children(child)
            elif isinstance(child, ast.expr) and not isinstance(child, ast.Lambda):
                yield field, child


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def substituted(tree: ast.AST, edit: Edit) -> ast.AST:
    """The tree with one node replaced; what does not change is shared with the old one."""
    if tree is edit.old:
        return ast.copy_location(edit.new, edit.old)
    changed = {}
    for name, value in ast.iter_fields(tree):
        if isinstance(value, ast.AST):
            new: object = substituted(value, edit)
        elif isinstance(value, list):
            new = [substituted(v, edit) if isinstance(v, ast.AST) else v for v in value]
            new = value if all(a is b for a, b in zip(new, value, strict=True)) else new
        else:
            continue
        if new is not value:
            changed[name] = new
    if not changed:
        return tree
    made = type(tree)(**{**dict(ast.iter_fields(tree)), **changed})
    return ast.copy_location(made, tree)
