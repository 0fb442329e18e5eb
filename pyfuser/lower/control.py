"""Control flow: branches, loops, returns, and statements that only call."""

from __future__ import annotations

import ast

from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Assign,
    Body,
    Break,
    Compare,
    Const,
    Continue,
    Expr,
    For,
    If,
    Load,
    Read,
    Stmt,
    Store,
    Update,
    While,
)
from pyfuser.ir.visit import all_expressions, assigned, contains, expressions
from pyfuser.lower import convert, inferred, records
from pyfuser.lower.annotation import last_name
from pyfuser.lower.calls import call_statement
from pyfuser.lower.calls import value as value_of
from pyfuser.lower.context import Context, Record, Variable, lowers
from pyfuser.lower.loops import warn_of_endless, warn_of_loop
from pyfuser.lower.returns import RETURN

_NO_RESULT = "this returns no value: write to a view, or add to a parallel_reduce's accumulator"


@lowers(ast.If)
def branch(ctx: Context, node: ast.If) -> None:
    """`if`, `elif`, `else`."""
    test = ctx.condition(node.test)
    then, orelse = inferred.branches(ctx, node)
    if _is_same_number(test):  # the rank in a team of one
        ctx.out.extend(then)
    else:
        ctx.out.append(If(test, then, orelse))


def _is_same_number(test: Expr) -> bool:
    if not isinstance(test, Compare) or test.op != "==" or not isinstance(test.left, Const):
        return False
    return test.left == test.right and test.left.dtype.is_integer


@lowers(ast.While)
def while_loop(ctx: Context, node: ast.While) -> None:
    """A while loop; a condition that needs statements is tested at the start of the body."""
    if node.orelse:
        raise ctx.error(node.orelse[0], _ELSE)
    with ctx.hoisted() as before:
        test = ctx.condition(node.test)
    body = ctx.block(node.body)
    if not before:
        warn_of_endless(ctx, node, test, body)
        ctx.out.append(While(test, body))
        return
    leave = If(test, (), (Break(),))
    ctx.out.append(While(Const(True, DType.BOOL), (*before, leave, *body)))


@lowers(ast.For)
def for_loop(ctx: Context, node: ast.For) -> None:
    """`for i in range(...)`: C++'s loop of an int as wide as indices, the bound read every time."""
    target, call = node.target, node.iter
    if not isinstance(target, ast.Name):
        raise ctx.error(target, "a loop has one variable, as in `for j in range(v.extent(0))`")
    if node.orelse:
        raise ctx.error(node.orelse[0], _ELSE)
    is_range = isinstance(call, ast.Call) and getattr(call.func, "id", None) == "range"
    if not is_range or not isinstance(call, ast.Call):
        example = "as in `for j in range(v.extent(0))`"
        if isinstance(call, ast.Call) and (last_name(call.func) or "").endswith("Range"):
            example = f"write pk.parallel_for({ast.unparse(call)}, inner) with a nested function"
        raise ctx.error(call, f"a loop runs over range(...) only, {example}")
    if not 1 <= len(call.args) <= 3 or call.keywords:
        raise ctx.error(call, "range takes one to three numbers")
    start: Expr = Const(0, DType.INT32)
    step: Expr = Const(1, DType.INT32)
    if len(call.args) > 1:
        start = _bound(ctx, call.args[0])
    with ctx.hoisted() as before:
        stop = _bound(ctx, call.args[0 if len(call.args) == 1 else 1])
        if len(call.args) == 3:
            step = _step(ctx, call.args[2])
    _warn_of_no_trip(ctx, call, start, stop, step)
    sym = fresh(target.id, ctx.shared.index_dtype)
    with ctx.scope() as scope:
        scope[target.id] = Variable(sym, "local")
        body = ctx.block(node.body)
    if before and not _invariant(before, (stop, step), body):
        raise ctx.error(
            call,
            "this bound calls a function of values that the loop changes: "
            "compute it before the loop",
        )
    warn_of_loop(ctx, node, sym, (stop, step), body)
    ctx.out.extend(before)
    ctx.out.append(For(sym, convert.cast(start, sym.dtype), stop, step, body))


_ELSE = (
    "`else` of a loop is not supported: set a flag where the loop is left, and test it after the "
    "loop"
)


def _bound(ctx: Context, node: ast.expr, is_step: bool = False) -> Expr:
    value = ctx.expression(node)
    if value.dtype.is_integer:
        return value
    instead = "use int(...)"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        instead = f"write {ast.unparse(node.left)} // {ast.unparse(node.right)}"
    elif is_step:
        text = ast.unparse(node)
        instead = f"count whole steps, `for k in range(n)`, and compute `t = start + k * {text}`"
    raise ctx.error(node, f"range needs integers, not {value.dtype.value}: {instead}")


def _warn_of_no_trip(ctx: Context, node: ast.Call, start: Expr, stop: Expr, step: Expr) -> None:
    """Warn of a loop that counts from a number to a smaller one, or down to a larger one."""
    numbers = [e.value for e in (start, stop, step) if isinstance(e, Const)]
    if len(numbers) < 3 or len(node.args) == 1 or range(*numbers):  # type: ignore[arg-type]
        return
    if numbers[0] != numbers[1]:
        first, last, by = (ast.unparse(arg) for arg in (*node.args, ast.Constant(1))[:3])
        other = by[1:] if by.startswith("-") else f"-{by}"
        way = "down" if other.startswith("-") else "up"
        ctx.warn(
            node,
            f"{ast.unparse(node)} is empty: the loop never runs; to count {way} write "
            f"range({first}, {last}, {other})",
        )


def _step(ctx: Context, node: ast.expr) -> Expr:
    step = _bound(ctx, node, is_step=True)
    if isinstance(step, Const):
        if step.value == 0:
            raise ctx.error(node, "the step of range is zero")
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        raise ctx.error(node, "a negative step must be a number, as in range(n, 0, -1)")
    return step


def _invariant(before: list[Stmt], bounds: tuple[Expr, ...], body: Body) -> bool:
    """Whether statements and the bounds after them give the same in every iteration."""
    used = list(all_expressions(tuple(before)))
    used += [e for bound in bounds for e in expressions(bound)]
    changed = assigned(body)
    if any(isinstance(e, Read) and e.sym in changed for e in used):
        return False
    if not any(isinstance(e, Load) for e in used):
        return True
    return not contains(body, Store, Update)


@lowers(ast.Return)
def return_statement(ctx: Context, node: ast.Return) -> None:
    """Marks the place; `lower.returns` removes it."""
    value = node.value
    if isinstance(value, ast.Constant) and value.value is None:
        value = None
    if value is not None:
        if ctx.result is None:
            raise ctx.error(node, _NO_RESULT)
        _give_result(ctx, node, value)
    elif ctx.result is not None:
        raise ctx.error(node, "a value must be returned here")
    ctx.out.append(RETURN)


def _give_result(ctx: Context, node: ast.Return, value: ast.expr) -> None:
    result, given = ctx.result, value_of(ctx, value)
    if isinstance(result, Record):
        if not isinstance(given, Record):
            raise ctx.error(node, f"a {result.cls.__name__} must be returned here")
        records.assign(ctx, node, result, given)
        return
    assert result is not None
    if isinstance(given, Record):
        raise ctx.error(node, "a number must be returned here, not an object")
    if given.dtype.is_float and result.dtype.is_integer:
        name = ctx.function.__name__
        ctx.warn(
            node,
            f"{name} returns an integer, so this value, of type {given.dtype.value}, loses its "
            f"fraction: annotate {name} `-> float`, or write int(...)",
        )
    ctx.out.append(Assign(result, convert.cast(given, result.dtype)))


@lowers(ast.Break)
def break_statement(ctx: Context, node: ast.Break) -> None:
    """Leave the innermost loop."""
    ctx.out.append(Break())


@lowers(ast.Continue)
def continue_statement(ctx: Context, node: ast.Continue) -> None:
    """Go on with the next iteration of the innermost loop."""
    ctx.out.append(Continue())


@lowers(ast.Pass, ast.Nonlocal)
def nothing(ctx: Context, node: ast.stmt) -> None:
    """Statements without effect."""


@lowers(ast.Expr)
def expression_statement(ctx: Context, node: ast.Expr) -> None:
    """A call for its effect, or a docstring."""
    if isinstance(node.value, ast.Constant):
        return
    if isinstance(node.value, (ast.Yield, ast.YieldFrom, ast.Await)):
        raise ctx.unsupported(node.value)
    if not isinstance(node.value, ast.Call):
        if isinstance(node.value, ast.Compare) and isinstance(node.value.ops[0], ast.Eq):
            raise ctx.error(node, "`==` compares, which has no effect here: `=` assigns")
        why = "an expression as a statement has no effect: only calls may stand so"
        if ctx.source.name == "lambda_":
            why = (
                "the value of this lambda goes nowhere: name the view that it is stored to after "
                "it, as in parallel_for(n, lambda i: ..., y)"
            )
        raise ctx.error(node, why)
    call_statement(ctx, node.value)
