"""Locals that are declared without a value, as `t: float`, and read before they get one.

C++ leaves their value open. What no way through the function gives a value is refused; what some
ways leave without one is warned of, as a condition may keep them from the read: a flow analysis of
the syntax tree, which knows that equal conditions have equal outcomes where nothing changes them.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TypeAlias

from pyfuser.ir.dtypes import DType
from pyfuser.lower.annotation import parse
from pyfuser.lower.context import Context
from pyfuser.support.records import dataclass


@dataclass(frozen=True, slots=True)
class _Value:
    """What is known of a local at a place: whether every way here, or some, has given it a value.

    under: conditions under which every way has.
    """

    sure: bool = False
    perhaps: bool = False
    under: frozenset[str] = frozenset()


_NONE, _SURE = _Value(), _Value(True, True)
_Values: TypeAlias = dict[ast.AnnAssign, _Value]  # by declaration


def refuse_unassigned(ctx: Context, nodes: list[ast.stmt]) -> None:
    """Refuse, or warn of, reads of the locals of a body that have no value there."""
    if any(_is_bare(node) for stmt in nodes for node in ast.walk(stmt)):
        _Flow(ctx, nodes).block(nodes, {})


def _is_bare(node: ast.AST) -> bool:
    if not (isinstance(node, ast.AnnAssign) and node.value is None):
        return False
    annotation = parse(node.annotation)
    return (
        isinstance(node.target, ast.Name)
        and annotation is not None
        and annotation.dtype is not None
    )


class _Flow:
    def __init__(self, ctx: Context, nodes: list[ast.stmt]) -> None:
        self._ctx = ctx
        self._scopes: list[dict[str, ast.AnnAssign | None]] = [{}]
        self._told: set[ast.AnnAssign] = set()
        self._leaving: list[tuple[list[_Values], list[_Values]]] = []  # by break, by continue
        self._branches = 0
        self._later: dict[ast.AnnAssign, int] = {}  # given a value in a loop around, at which depth
        self._changes = Counter(name for stmt in nodes for name in _given(stmt))

    # ----------------------------------------------------------------- statements

    def block(self, nodes: Iterable[ast.stmt], values: _Values | None) -> _Values | None:
        """What is known after statements; None: nothing runs after them."""
        self._scopes.append({})
        for node in nodes:
            if values is None:
                break
            values = self._statement(node, values)
        self._scopes.pop()
        return values

    def _statement(self, node: ast.stmt, values: _Values) -> _Values | None:
        if isinstance(node, ast.If):
            return self._branch(node, values)
        if isinstance(node, (ast.For, ast.While)):
            return self._loop(node, values)
        if isinstance(node, ast.FunctionDef):  # of a nested pattern: only what it declares itself
            _Flow(self._ctx, node.body).block(node.body, {})
            return values
        self._reads(node, values)
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            if self._leaving and not isinstance(node, ast.Return):
                self._leaving[-1][isinstance(node, ast.Continue)].append(values)
            return None
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            bare = node if _is_bare(node) else None
            self._scopes[-1][node.target.id] = bare
            return values if bare is None else {**values, bare: _NONE}
        for name in _given(node):
            declaration = self._declared(name)
            if declaration is not None:
                values = {**values, declaration: _SURE}
        return values

    def _branch(self, node: ast.If, values: _Values) -> _Values | None:
        self._reads(node.test, values)
        text = ast.unparse(node.test) if self._is_stable(node.test) else None
        inside = {d: _SURE if text in v.under else v for d, v in values.items()}
        self._branches += 1
        then, orelse = self.block(node.body, inside), self.block(node.orelse, values)
        self._branches -= 1
        joined = _joined(then, orelse)
        if text is not None and joined is not None and then is not None:
            for declaration, value in joined.items():
                if then.get(declaration) == _SURE and not value.sure:
                    joined[declaration] = _Value(False, True, value.under | {text})
        return joined

    def _loop(self, node: ast.For | ast.While, values: _Values) -> _Values | None:
        self._reads(node.iter if isinstance(node, ast.For) else node.test, values)
        later = dict(self._later)
        for name in chain.from_iterable(map(_given, node.body)):
            declaration = self._declared(name)
            if declaration is not None:
                self._later.setdefault(declaration, self._branches)
        target = node.target if isinstance(node, ast.For) else None
        self._scopes.append({target.id: None} if isinstance(target, ast.Name) else {})
        self._leaving.append(([], []))
        end = self.block(node.body, values)
        end = _joined(end, *self._leaving[-1][True])
        if end is not None:  # another trip, from where the first one ended
            told, self._told = self._told, set(values) | set(end)
            end = _joined(end, self.block(node.body, _joined(values, end)))
            self._told = told
        broken, continued = self._leaving.pop()
        self._scopes.pop()
        self._later = later
        trips = _surely_runs(node)
        ways = [end, *continued] if trips is not None else []  # else it ends by `break` alone
        return _joined(*ways, *([] if trips is not False else [values]), *broken)

    # ----------------------------------------------------------------- reads

    def _reads(self, node: ast.AST, values: _Values) -> None:
        """Look at the names that a statement or an expression reads."""
        target = node.target if isinstance(node, ast.AugAssign) else None
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and (isinstance(part.ctx, ast.Load) or part is target):
                self._read(part, values)

    def _read(self, node: ast.Name, values: _Values) -> None:
        declaration = self._declared(node.id)
        if declaration is None or declaration in self._told:
            return
        value = values.get(declaration, _SURE)
        if value.sure:
            return
        self._told.add(declaration)
        example = f"`{ast.unparse(declaration)} = {_zero(declaration)}`"
        line = declaration.lineno
        later = self._later.get(declaration)
        if not value.perhaps and (later is None or later == self._branches):
            raise self._ctx.error(
                node,
                f"{node.id!r} has no value here, as line {line} declares it without one: write "
                f"there {example}",
            )
        self._ctx.warn(
            node,
            f"{node.id!r} may have no value here: line {line} declares it without one, and not "
            f"every way that leads here gives it one; write in line {line} {example}",
        )

    def _declared(self, name: str) -> ast.AnnAssign | None:
        """The declaration without a value that a name stands for here."""
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    def _is_stable(self, test: ast.expr) -> bool:
        """Whether a condition has one outcome, wherever in the function (or trip) it is tested."""
        for part in ast.walk(test):
            if isinstance(part, (ast.Subscript, ast.Call)):
                return False
            if isinstance(part, ast.Name) and self._changes[part.id] > 1:
                return False
        return True


def _zero(declaration: ast.AnnAssign) -> str:
    """A first value of the type that is declared."""
    annotation = parse(declaration.annotation)
    dtype = None if annotation is None else annotation.dtype
    if dtype is DType.BOOL:
        return "False"
    return "0" if dtype is not None and dtype.is_integer else "0.0"


def _joined(*ways: _Values | None) -> _Values | None:
    """What is known where ways meet."""
    known = [values for values in ways if values is not None]
    if len(known) < 2:
        return known[0] if known else None
    one, other = known[0], _joined(*known[1:])
    assert other is not None
    joined = {}
    for declaration in one.keys() | other.keys():
        here, there = one.get(declaration, _NONE), other.get(declaration, _NONE)
        under = here.under & there.under
        if here.sure or there.sure:
            under = here.under | there.under
        sure, perhaps = here.sure and there.sure, here.perhaps or there.perhaps
        joined[declaration] = _Value(sure, perhaps, under)
    return joined


def _given(stmt: ast.stmt) -> Iterator[str]:
    """The names that a statement gives values to, at any depth."""
    for node in ast.walk(stmt):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _surely_runs(loop: ast.For | ast.While) -> bool | None:
    """Whether a loop makes a trip, for sure; None: it never ends, but by `break`."""
    if isinstance(loop, ast.While):
        is_true = isinstance(loop.test, ast.Constant) and bool(loop.test.value)
        return None if is_true else False
    bounds = loop.iter.args if isinstance(loop.iter, ast.Call) else []
    numbers = [arg.value for arg in bounds if isinstance(arg, ast.Constant)]
    if not 0 < len(numbers) == len(bounds) < 3:
        return False
    return len(range(*numbers)) > 0  # type: ignore[arg-type]
