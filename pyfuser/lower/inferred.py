"""Locals without an annotation: each has the type of the first value that it is given.

That is C++'s `auto`: a literal is an int or a double, an element has its view's type, arithmetic
the common type of its operands; what is assigned later is converted. A name is known to the end of
the block in which it got its first value, and after an `if` of which every branch that goes on
gives it one: the first of them decides on the type.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Assign, Body, Declare, Expr, Read, Stmt, Sym
from pyfuser.lower import records
from pyfuser.lower.context import Context, Record, Variable


def declare(ctx: Context, target: ast.Name, value: Expr | Record) -> Expr | Record:
    """Give a name its first value; returns what the name stands for from then on."""
    if isinstance(value, Record):
        ctx.scopes[-1][target.id] = record = records.copy(ctx, target, value)
        return record
    variable = Variable(ctx.temporary(target.id, value.dtype, value), "local")
    ctx.scopes[-1][target.id] = variable
    ctx.inferred[variable.sym] = target.lineno
    return Read(variable.sym)


def warn_of_loss(ctx: Context, target: ast.expr, sym: Sym, dtype: DType) -> None:
    """Warn where a float becomes an integer, only because the name's first value was one."""
    line = ctx.inferred.get(sym)
    kind = sym.dtype
    if line is None or not (kind.is_integer and dtype.is_float):
        return
    name, spelling = ast.unparse(target), "bool" if kind is DType.BOOL else "int"
    warnings.warn_explicit(
        f"{name!r} is of type {kind.value}, as its first value in line {line} is, so what this "
        f"assigns, of type {dtype.value}, loses its fraction: start with a float, as in "
        f"`{name} = 0.0`, or write `{name}: {spelling} = ...` if that is meant",
        UserWarning,
        ctx.location(target).file,
        ctx.location(target).line,
    )


# --------------------------------------------------------------------------- branches


def branches(ctx: Context, node: ast.If) -> tuple[Body, Body]:
    """Lower both branches; names that get their first value in both are declared before."""
    then = _branch(ctx, node.body, _assigned(node.orelse))
    orelse = _branch(ctx, node.orelse, _assigned(node.body))
    return then, orelse


def _branch(ctx: Context, nodes: list[ast.stmt], other: set[str] | None) -> Body:
    """Lower one branch of two; `other`: what the other one assigns, None if it does not go on."""
    with ctx.scope() as scope, ctx.hoisted() as out:
        for node in nodes:
            ctx.statement(node)
    for name, known in scope.items():
        is_inferred = isinstance(known, Variable) and known.sym in ctx.inferred
        if is_inferred and (other is None or name in other):
            assert isinstance(known, Variable)
            ctx.scopes[-1][name] = known
            ctx.out.append(Declare(known.sym, None))
            out = [s for statement in out for s in _assigning(statement, known)]
    return tuple(out)


def _assigning(statement: Stmt, variable: Variable) -> Iterator[Stmt]:
    """The statement, where the variable is declared already."""
    if not isinstance(statement, Declare) or statement.sym != variable.sym:
        yield statement
    elif statement.value is not None:
        yield Assign(variable.sym, statement.value)


def _assigned(nodes: Iterable[ast.stmt]) -> set[str] | None:
    """Names that are surely assigned, not declared, once these have run; None: nothing follows."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            return None
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.If):
            then, orelse = _assigned(node.body), _assigned(node.orelse)
            if then is None and orelse is None:
                return None
            both = [names for names in (then, orelse) if names is not None]
            found |= set.intersection(*both)
    return found
