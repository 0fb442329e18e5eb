"""Names and attributes as values: locals, parameters, and numbers from outside the workunit."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from pyfuser.ir.dtypes import DType
from pyfuser.ir.maths import CONSTANTS
from pyfuser.ir.nodes import Const, Expr, Read
from pyfuser.lower.context import Binding, Context, Record, Variable, lowers
from pyfuser.lower.free import MISSING, member, outside
from pyfuser.lower.team import NestedFunction, Team
from pyfuser.lower.types import scalar_dtype
from pyfuser.lower.views import LocalArray, ViewRef
from pyfuser.support.errors import close


@lowers(ast.Constant)
def constant(ctx: Context, node: ast.Constant) -> Expr:
    """A literal: `int` is 32 bits wide if the value fits, else 64; `float` is a double."""
    value = node.value
    if isinstance(value, (bool, int, float, complex)):
        dtype = DType.INT32 if type(value) is int and value < 2**31 else scalar_dtype(value)
        if dtype is None:
            raise ctx.error(
                node,
                f"{value} is too large for a literal, which has 63 bits and a sign: pass it as an "
                "argument, as in k=np.uint64(...)",
            )
        return Const(value, dtype)
    if isinstance(value, str):
        raise ctx.error(
            node,
            "a text may only be the first argument of pk.printf: indices and choices are numbers",
        )
    if value is None:
        raise ctx.error(
            node, "None is not a number, and no argument is None: test for a number, as in `k == 0`"
        )
    raise ctx.error(node, f"{value!r} is not a number")


@lowers(ast.Name)
def name(ctx: Context, node: ast.Name) -> Expr:
    """The value of a name."""
    binding = ctx.lookup(node.id)
    if binding is not None:
        return _read(ctx, node, binding)
    if node.id in _local_names(ctx):  # whatever has that name outside
        raise ctx.error(node, f"{node.id!r} has no value here{hint(ctx, node.id)}")
    return _number(ctx, node, node.id, outside(ctx.function, node.id))


def _read(ctx: Context, node: ast.expr, binding: Binding) -> Expr:
    """The value of what a name or member is bound to."""
    name = ast.unparse(node)
    if isinstance(binding, Variable):
        if binding.kind == "pending":
            raise ctx.error(node, f"{name!r} is used in its own declaration")
        return Read(binding.sym)
    if isinstance(binding, ViewRef):
        if binding.rank == 0:
            raise ctx.error(node, f"{name!r} is a subview of one element: index the view itself")
        number = f"; one number is passed as {name}=float(...)" if binding.rank == 1 else ""
        raise ctx.error(node, f"{name!r} is a view: index it, as in {name}[i]{number}")
    if isinstance(binding, LocalArray):
        raise ctx.error(node, f"{name!r} is a list: index it, as in {name}[0]")
    if isinstance(binding, Team):
        raise ctx.error(node, f"{name!r} is a team's member: use {name}.league_rank()")
    if isinstance(binding, NestedFunction):
        raise ctx.error(node, f"{name!r} is a function: only nested patterns can run it")
    raise ctx.error(node, f"{name!r} is an object, not a number: use its members")


def member_of(ctx: Context, node: ast.Attribute, owner: Record) -> Expr:
    """The value of an object's member."""
    binding = owner.fields.get(node.attr)
    if binding is None:
        raise ctx.error(node, f"{ast.unparse(node)!r} is no member{close(node.attr, owner.fields)}")
    return _read(ctx, node, binding)


def attribute(ctx: Context, node: ast.Attribute) -> Expr:
    """`math.pi` and the like, or a number in a module or class."""
    base = node.value
    if not isinstance(base, (ast.Name, ast.Attribute)):
        raise ctx.error(node, f"a number has no attribute {node.attr!r} in a workunit")
    if isinstance(base, ast.Name) and ctx.lookup(base.id) is not None:
        hint = f": use {base.id}.extent(axis)" if node.attr in _OF_ARRAYS else ""
        if isinstance(ctx.lookup(base.id), Team) and node.attr in _OF_TEAMS:
            raise ctx.error(node, f"{ast.unparse(node)} has to be called: {ast.unparse(node)}()")
        raise ctx.error(node, f"{base.id!r} has no attribute {node.attr!r} in a workunit{hint}")
    if isinstance(base, ast.Name) and base.id == "math" and node.attr in CONSTANTS:
        return Const(CONSTANTS[node.attr], DType.FLOAT64)
    path, value = outside_object(ctx, node)
    _, owner = outside_object(ctx, base)
    if owner is not MISSING and not isinstance(owner, (ModuleType, type)):
        raise ctx.error(
            node,
            f"{ast.unparse(base)!r} is a {type(owner).__name__} from outside the workunit, which "
            f"sees no changes of it: pass {node.attr!r} as a keyword argument of the call",
        )
    return _number(ctx, node, path, value)


_OF_ARRAYS = frozenset({"shape", "size", "ndim"})
_OF_TEAMS = frozenset({"league_rank", "league_size", "team_rank", "team_size"})


def outside_object(ctx: Context, node: ast.expr) -> tuple[str, Any]:
    """The path and the value of a name or attribute from outside (MISSING if unknown)."""
    if isinstance(node, ast.Name):
        if ctx.lookup(node.id) is not None:
            return node.id, MISSING
        return node.id, outside(ctx.function, node.id)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):  # an annotation as a text
        return node.value, outside(ctx.function, node.value)
    if isinstance(node, ast.Attribute):
        path, owner = outside_object(ctx, node.value)
        return f"{path}.{node.attr}", member(owner, node.attr)
    return "?", MISSING


def take(ctx: Context, path: str, value: Any) -> None:
    """Note that the workunit depends on this value of an outside name."""
    ctx.shared.free[ctx.path + path] = value


def _number(ctx: Context, node: ast.expr, path: str, value: Any) -> Expr:
    if value is MISSING:
        meant = hint(ctx, path) or close(path, ctx.function.__globals__)
        if not meant:
            known = ", ".join(node.arg for node in ctx.source.node.args.args)
            meant = f": known are the parameters ({known}), locals, and numbers of the module"
        raise ctx.error(node, f"unknown name {path!r}{meant}")
    dtype = scalar_dtype(value)
    if dtype is None:
        raise ctx.error(
            node,
            f"{path!r} is a {type(value).__name__} from outside the workunit: only numbers can be "
            "used so; pass views and arrays as keyword arguments of the call",
        )
    take(ctx, path, value)
    return Const(value.item() if isinstance(value, np.generic) else value, dtype)


def hint(ctx: Context, name: str) -> str:
    """The end of a message about a name without a value: where it gets one, or what is meant."""
    line, loop = _local_names(ctx).get(name, (0, False))
    if not line:
        return close(name, [known for scope in ctx.scopes for known in scope])
    if loop:
        return (
            f": it is the variable of the loop in line {line}, and ends with it; give another name "
            f"a first value before the loop, as in `last = -1`, and write `last = {name}` in it"
        )
    return (
        f": line {line} gives it one, but not on every way that leads here; give it a first value "
        "before"
    )


def _local_names(ctx: Context) -> dict[str, tuple[int, bool]]:
    """The names that the function being lowered gives values to: in which line first, and whether
    only loops do, as their variable.
    """
    found: dict[str, tuple[int, bool]] = {}
    for node in (n for function in (ctx.source.node, *ctx.running) for n in _own(function.body)):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For)):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Name):
                line, loop = found.get(target.id, (node.lineno, True))
                found[target.id] = min(node.lineno, line), loop and isinstance(node, ast.For)
    return found


def _own(nodes: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements at any depth, but those of nested functions."""
    for node in nodes:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield from _own(getattr(node, "body", ()))
            yield from _own(getattr(node, "orelse", ()))
