"""Calls of device functions (`@pk.function`) are inlined: ir has no functions."""

from __future__ import annotations

import ast
from types import FunctionType

from pyfuser.ir.canonical import fresh
from pyfuser.ir.nodes import Assign, Body, Declare, Expr, Read, Sym
from pyfuser.ir.visit import statements
from pyfuser.lower import convert
from pyfuser.lower.annotation import Annotation, parse
from pyfuser.lower.context import Binding, Context, Variable
from pyfuser.lower.returns import without_returns
from pyfuser.lower.signature import signature
from pyfuser.lower.team import Team
from pyfuser.lower.views import ViewRef

Argument = Expr | ViewRef | Team


def inline(
    ctx: Context, node: ast.Call, path: str, function: FunctionType, arguments: list[Argument]
) -> Expr | None:
    """Put the function's body here; the value it returns, or None if it returns nothing."""
    header = signature(function)
    source = header.source
    if function.__code__ in ctx.shared.active:
        raise ctx.error(node, f"{function.__name__} calls itself: recursion is not supported")
    if len(arguments) != len(header.names):
        raise ctx.error(
            node, f"{function.__name__} takes {len(header.names)} argument(s), not {len(arguments)}"
        )
    result = _result(ctx, node, function, source.node)
    inner = Context(function, source, ctx.shared, f"{ctx.path}{path}().", result)
    for name, argument in zip(header.names, arguments, strict=True):
        annotation = header.annotations.get(name)
        if annotation is None:
            raise ctx.error(
                node,
                f"parameter {name!r} of {function.__name__} needs an annotation to be "
                "called in a workunit",
            )
        inner.scopes[0][name] = _bind(ctx, node, name, argument, annotation)
    ctx.shared.active.append(function.__code__)
    try:
        for statement in source.node.body:
            inner.statement(statement)
    finally:
        ctx.shared.active.pop()
    body = without_returns(tuple(inner.out))
    ctx.out.extend(body if result is None else _declared(result, body))
    return None if result is None else Read(result)


def _result(
    ctx: Context, node: ast.Call, function: FunctionType, definition: ast.FunctionDef
) -> Sym | None:
    """Where the returned value goes."""
    returns = definition.returns
    if returns is None:
        if any(isinstance(n, ast.Return) and n.value for n in ast.walk(definition)):
            raise ctx.error(
                node, f"{function.__name__} needs a return annotation to be called in a workunit"
            )
        return None
    if isinstance(returns, ast.Constant) and returns.value is None:
        return None
    parsed = parse(returns)
    if parsed is None or parsed.kind != "scalar" or parsed.dtype is None:
        raise ctx.error(
            node, f"{function.__name__} must return a number, not {ast.unparse(returns)!r}"
        )
    return fresh(function.__name__, parsed.dtype)


def _declared(result: Sym, body: Body) -> Body:
    """The body with the result declared: by its last statement where that is what sets it."""
    sets = [s for s in statements(body) if isinstance(s, Assign) and s.sym == result]
    if len(sets) == 1 and body[-1] is sets[0]:
        return (*body[:-1], Declare(result, sets[0].value))
    return (Declare(result, None), *body)


def _bind(
    ctx: Context, node: ast.Call, name: str, argument: Argument, annotation: Annotation
) -> Binding:
    if isinstance(argument, Team):
        if annotation.kind != "team":
            raise ctx.error(node, f"parameter {name!r} must be annotated pk.TeamMember")
        return argument
    if isinstance(argument, ViewRef):
        fits = (
            annotation.kind in ("view", "scratch")
            and annotation.rank == argument.rank
            and annotation.dtype in (None, argument.dtype)
        )
        if not fits:
            raise ctx.error(
                node,
                f"parameter {name!r} does not take a {argument.rank}-D view of "
                f"{argument.dtype.value}: compare its annotation",
            )
        return argument
    if annotation.kind != "scalar" or annotation.dtype is None:
        raise ctx.error(node, f"parameter {name!r} is annotated as a view but gets a number")
    value = convert.cast(argument, annotation.dtype)
    return Variable(ctx.temporary(name, annotation.dtype, value), "local")
