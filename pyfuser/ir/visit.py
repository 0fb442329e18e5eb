"""Walking and rewriting ir trees; every pass is built on these few functions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, get_args

from pyfuser.ir import nodes
from pyfuser.ir.nodes import Body, Expr, Stmt, Sym

_EXPRS = frozenset(get_args(nodes.Expr))
Nested = tuple[tuple[str, bool], ...]  # fields that hold nodes, and whether they hold tuples
T = TypeVar("T")


class _ByClass(dict[type, T]):
    """What is to know of a node's class, also of those that only loop nests have.

    Trees are walked too often to look at the type of every value.
    """

    def __init__(self, find: Callable[[Any], T]) -> None:
        self._find = find

    def __missing__(self, kind: type) -> T:
        return self.setdefault(kind, self._find(kind))


def _nested(kind: type[Any], *annotations: str) -> Nested:
    found = [field for field in dataclasses.fields(kind) if field.type in annotations]
    return tuple((f.name, str(f.type) in ("tuple[Expr, ...]", "Body")) for f in found)


_OF_EXPRS = ("Expr", "Expr | None", "tuple[Expr, ...]")
_FIELDS = _ByClass(lambda kind: tuple(field.name for field in dataclasses.fields(kind)))
_OPERANDS = _ByClass(lambda kind: _nested(kind, *_OF_EXPRS))
_BODIES = _ByClass(lambda kind: tuple(name for name, _ in _nested(kind, "Body")))
_NESTED = _ByClass(lambda kind: _nested(kind, *_OF_EXPRS, "Body"))


def child_expressions(node: Expr | Stmt) -> Iterator[Expr]:
    """The expressions directly below a node, in order of evaluation."""
    for name, many in _OPERANDS[type(node)]:
        value = getattr(node, name)
        if many:
            yield from value
        elif value is not None:
            yield value


def expressions(node: Expr | Stmt) -> Iterator[Expr]:
    """All expressions below a node (itself, if it is one; not those of nested statements)."""
    found: list[Expr] = []
    _gather(node, found)
    return iter(found if type(node) in _EXPRS else found[1:])


def _gather(node: Any, found: list[Any]) -> None:
    """Append a node and what is below it: much faster than generators in generators."""
    found.append(node)
    for name, many in _OPERANDS[type(node)]:
        value = getattr(node, name)
        if many:
            for child in value:
                _gather(child, found)
        elif value is not None:
            _gather(value, found)


def statements(body: Body) -> Iterator[Stmt]:
    """All statements of a body in order, nested ones after the one that holds them."""
    found: list[Stmt] = []
    _gather_statements(body, found)
    return iter(found)


def _gather_statements(body: Body, found: list[Stmt]) -> None:
    for stmt in body:
        found.append(stmt)
        for name in _BODIES[type(stmt)]:
            _gather_statements(getattr(stmt, name), found)


def bodies(stmt: Stmt) -> Iterator[Body]:
    """The bodies that a statement holds."""
    return (getattr(stmt, name) for name in _BODIES[type(stmt)])


def all_expressions(body: Body) -> Iterator[Expr]:
    """All expressions anywhere in a body."""
    found: list[Any] = []
    for stmt in statements(body):
        for child in child_expressions(stmt):
            _gather(child, found)
    return iter(found)


def contains(body: Body, *kinds: type) -> bool:
    """Whether a statement or an expression anywhere in a body is of one of the kinds."""
    return any(isinstance(s, kinds) for s in statements(body)) or (
        not _EXPRS.isdisjoint(kinds) and any(isinstance(e, kinds) for e in all_expressions(body))
    )


def reads(*parts: Expr | Stmt) -> set[Sym]:
    """The Syms whose values expressions, or what statements evaluate themselves, use."""
    return {e.sym for part in parts for e in expressions(part) if isinstance(e, nodes.Read)}


def written(body: Body) -> set[Sym]:
    """The views whose elements a body may write, and the accumulators that it adds to."""
    found = {s.view for s in statements(body) if isinstance(s, nodes.Store)}
    found |= {s.target for s in statements(body) if isinstance(s, nodes.Update)}
    return found | {e.view for e in all_expressions(body) if isinstance(e, nodes.AtomicFetch)}


def _replaced(node: Any, changes: dict[str, Any]) -> Any:
    """`dataclasses.replace`, without its checks."""
    kind = type(node)
    return kind(
        *[changes[name] if name in changes else getattr(node, name) for name in _FIELDS[kind]]
    )


def _rebuild(node: Any, change: Callable[[Any], Any]) -> Any:
    """`node` with `change` applied to what is nested in it; itself if nothing changed."""
    changes: dict[str, Any] = {}
    for name, many in _NESTED[type(node)]:
        value = getattr(node, name)
        if many:
            new = _rebuild_tuple(value, change) if value else value
        else:
            new = value if value is None else change(value)
        if new is not value:
            changes[name] = new
    return _replaced(node, changes) if changes else node


def _rebuild_tuple(values: tuple[Any, ...], change: Callable[[Any], Any]) -> tuple[Any, ...]:
    result: list[Any] = []
    changed = False
    for value in values:
        new = change(value)
        changed |= new is not value
        if type(new) is tuple:  # a statement replaced by several, or by none
            result.extend(new)
        else:
            result.append(new)
    return tuple(result) if changed else values


def map_expression(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Rewrite bottom-up: `change` sees each expression after its children were rewritten."""

    def visit(node: Any) -> Any:
        return change(_rebuild(node, visit))

    result: Expr = visit(expr)
    return result


def map_body(
    body: Body,
    change_expression: Callable[[Expr], Expr] | None = None,
    change_statement: Callable[[Stmt], Stmt | Body] | None = None,
) -> Body:
    """Rewrite a body bottom-up.

    `change_statement` sees a statement after its parts were rewritten; it may return a tuple to
    replace it by several statements or by none.
    """

    def visit(node: Any) -> Any:
        if type(node) in _EXPRS:
            return change_expression(_rebuild(node, visit)) if change_expression else node
        new = _rebuild(node, visit)
        return change_statement(new) if change_statement else new

    return _rebuild_tuple(body, visit)


_SYM_FIELD = _ByClass(
    lambda kind: next((f.name for f in dataclasses.fields(kind) if f.type == "Sym"), "")
)
_DECLARING = (nodes.Declare, nodes.DeclareArray, nodes.Scratch, nodes.For, nodes.Extra)


def as_written(e: Expr) -> Expr:
    """An expression without the conversions of integers that stand around it."""
    while isinstance(e, nodes.Cast) and e.operand.dtype.is_integer:
        e = e.operand
    return e


def sym_of(node: Expr | Stmt) -> Sym | None:
    """The Sym a node names (read, written, declared or indexed), if it names one."""
    name = _SYM_FIELD[type(node)]
    return getattr(node, name) if name else None


def substitute_syms(body: Body, mapping: dict[Sym, Sym]) -> Body:
    """Rename Syms wherever they are read, written, declared or indexed."""

    def rename(node: Any) -> Any:
        name = _SYM_FIELD[type(node)]
        if not name:
            return node
        new = mapping.get(getattr(node, name))
        return node if new is None else _replaced(node, {name: new})

    return map_body(body, rename, rename)


def declared(body: Body) -> Iterator[Sym]:
    """The Syms a body declares: locals, local arrays, scratch memory and loop variables."""
    for stmt in statements(body):
        if isinstance(stmt, _DECLARING) and _SYM_FIELD[type(stmt)]:
            yield stmt.sym  # type: ignore[union-attr]


def leaves_loop(stmt: Stmt) -> bool:
    """Whether a statement of a loop's body may leave that loop or skip the rest of a trip."""
    if isinstance(stmt, (nodes.Break, nodes.Continue)):
        return True
    return isinstance(stmt, nodes.If) and any(map(leaves_loop, (*stmt.then, *stmt.orelse)))


def breaks_loop(stmt: Stmt) -> bool:
    """Whether a statement of a loop's body may leave that loop."""
    if isinstance(stmt, nodes.If):
        return any(map(breaks_loop, (*stmt.then, *stmt.orelse)))
    return isinstance(stmt, nodes.Break)


def assigned(body: Body) -> set[Sym]:
    """The local Syms whose value a body changes after declaration (Assign, Update)."""
    return {
        stmt.sym if isinstance(stmt, nodes.Assign) else stmt.target
        for stmt in statements(body)
        if isinstance(stmt, nodes.Assign) or (isinstance(stmt, nodes.Update) and not stmt.indices)
    }
