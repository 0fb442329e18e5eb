"""Which names of a function are its own, and which of them surely have a value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Scope:
    """What `rewrite` knows of the function (or module) whose statements it rewrites.

    names: the local and free variables. certain: parameters that are never deleted, so that
    loading them never raises. defers: whether its statements may leave calls pending.
    """

    names: frozenset[str] = frozenset()
    certain: frozenset[str] = frozenset()
    defers: bool = True
    inside_function: bool = field(default=False)

    def inside(self, function: Function) -> Scope:
        """The scope of a function that is defined in this one."""
        parameters = frozenset(_parameters(function.args))
        bound, shared, deleted = set(parameters), set[str](), set[str]()
        generates = False
        for node in own_nodes(function):
            bound.update(_bound(node))
            if isinstance(node, ast.Global):
                shared.update(node.names)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
                deleted.add(node.id)
            elif isinstance(node, (ast.Yield, ast.YieldFrom)):
                generates = True
        return Scope(
            names=(self.names | bound) - shared,
            certain=parameters - deleted,
            defers=not generates and isinstance(function, ast.FunctionDef),
            inside_function=True,
        )


_OTHERS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function's body, without those of functions and classes inside it."""
    return _nodes(list(function.body), _OTHERS)


def nodes_below(tree: ast.AST) -> Iterator[ast.AST]:
    """What `ast.walk` gives, sooner and in another order."""
    return _nodes([tree], ())


def _nodes(pending: list[ast.AST], closed: tuple[type[ast.AST], ...]) -> Iterator[ast.AST]:
    """Nodes and what is below them, but not below those that are `closed`."""
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, closed):
            continue
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                pending += [part for part in value if isinstance(part, ast.AST)]
            elif isinstance(value, ast.AST):
                pending.append(value)


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        yield argument.arg
    for extra in (arguments.vararg, arguments.kwarg):
        if extra is not None:
            yield extra.arg


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a node binds by itself."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield alias.asname or alias.name.split(".")[0]
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest
