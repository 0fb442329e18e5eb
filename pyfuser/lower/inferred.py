"""Locals without an annotation: each has the type of the first value that it is given.

That is C++'s `auto`: a literal is an int or a double, an element has its view's type, arithmetic
the common type of its operands; what is assigned later is converted. A name is known to the end of
the block in which it got its first value, and after an `if` of which every branch that goes on
gives it one: the first of them decides on the type.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Assign, Binary, Body, Cast, Const, Declare, Expr, Read, Stmt, Sym
from pyfuser.lower import convert, records
from pyfuser.lower.context import Context, Record, Variable


def declare(ctx: Context, target: ast.Name, value: Expr | Record) -> Expr | Record:
    """Give a name its first value; returns what the name stands for from then on."""
    if isinstance(value, Record):
        ctx.scopes[-1][target.id] = record = records.copy(ctx, target, value)
        return record
    variable = ctx.promised.get(target.id)
    if variable is None:
        variable = Variable(ctx.temporary(target.id, value.dtype, value), "local")
        ctx.inferred[variable.sym] = target.lineno
    else:
        warn_of_loss(ctx, target, variable.sym, value)
        ctx.out.append(Assign(variable.sym, convert.cast(value, variable.sym.dtype)))
    ctx.scopes[-1][target.id] = variable
    return Read(variable.sym)


def warn_of_loss(ctx: Context, target: ast.expr, sym: Sym, value: Expr) -> None:
    """Warn where a float becomes an integer, or an integer of 64 bits one of 32, only because the
    name's first value was one.
    """
    line = ctx.inferred.get(sym)
    kind, dtype = sym.dtype, value.dtype
    if line is None or not kind.is_integer:
        return
    name, spelling = ast.unparse(target), "bool" if kind is DType.BOOL else "int"
    if dtype.is_float:
        text = (
            f"{name!r} is of type {kind.value}, as its first value in line {line} is, so what this "
            f"assigns, of type {dtype.value}, loses its fraction: start with a float, as in "
            f"`{name} = 0.0`, or write `{name}: {spelling} = ...` if that is meant"
        )
    elif kind is not DType.BOOL and dtype.size > 4 >= kind.size and not _is_small(value, kind):
        text = (
            f"{name!r} is of type {kind.value}, as its first value in line {line} is, so what this "
            f"assigns, of type {dtype.value}, loses its upper bits: write there "
            f"`{name}: pk.{dtype.value} = ...`, or `{name}: pk.{kind.value} = ...` if that is meant"
        )
    else:
        return
    ctx.warn(target, text)


def _is_small(value: Expr, kind: DType) -> bool:
    """Whether a value fits into a narrower type, as the remainder of a small number does."""
    low, high = kind.range()
    if isinstance(value, Binary) and value.op in "%&":
        low, value = 0, value.right
    while isinstance(value, Cast):
        value = value.operand
    return isinstance(value, Const) and isinstance(value.value, int) and low <= value.value <= high


# --------------------------------------------------------------------------- branches


def branches(ctx: Context, node: ast.If) -> tuple[Body, Body]:
    """Lower both branches; names that have a value behind both of them are declared before."""
    in_then, in_else = _assigned(node.body), _assigned(node.orelse)
    then, begun = _branch(ctx, node.body)
    lifted = {n: v for n, v in begun.items() if in_else is None or n in in_else}
    outer = ctx.promised
    ctx.promised = outer | lifted
    try:
        orelse, begun = _branch(ctx, node.orelse)
    finally:
        ctx.promised = outer
    if in_then is None:
        lifted = begun | lifted
    for name, variable in lifted.items():
        ctx.scopes[-1][name] = variable
        if outer.get(name) != variable:
            ctx.out.append(Declare(variable.sym, None))
            then, orelse = _assigning(then, variable), _assigning(orelse, variable)
    return tuple(then), tuple(orelse)


def _branch(ctx: Context, nodes: list[ast.stmt]) -> tuple[list[Stmt], dict[str, Variable]]:
    """Lower a branch; which names without annotation got their first value in this block."""
    with ctx.scope() as scope, ctx.hoisted() as out:
        for node in nodes:
            ctx.statement(node)
    begun = {n: v for n, v in scope.items() if isinstance(v, Variable) and v.sym in ctx.inferred}
    return out, begun


def _assigning(body: list[Stmt], variable: Variable) -> list[Stmt]:
    """The block, where the variable is declared already."""
    found: list[Stmt] = []
    for statement in body:
        if not isinstance(statement, Declare) or statement.sym != variable.sym:
            found.append(statement)
        elif statement.value is not None:
            found.append(Assign(variable.sym, statement.value))
    return found


def _assigned(nodes: Iterable[ast.stmt]) -> set[str] | None:
    """Names that are surely assigned, not declared, once these have run; None: nothing follows."""
    found: set[str] = set()
    declared: set[str] = set()  # with an annotation: names of this block alone
    for node in nodes:
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            return None
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign):
            declared |= {node.target.id} if isinstance(node.target, ast.Name) else set()
        elif isinstance(node, ast.If):
            then, orelse = _assigned(node.body), _assigned(node.orelse)
            if then is None and orelse is None:
                return None
            both = [names for names in (then, orelse) if names is not None]
            found |= set.intersection(*both)
    return found - declared
