"""Calls of device functions (`@pk.function`) are inlined: ir has no functions."""

from __future__ import annotations

import ast
from types import FunctionType

from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Assign, Body, Declare, Expr, Read, Sym
from pyfuser.ir.visit import statements
from pyfuser.lower import convert, records
from pyfuser.lower.annotation import Annotation, parse
from pyfuser.lower.context import Binding, Context, Record, Variable
from pyfuser.lower.returns import ends_with_return, without_returns
from pyfuser.lower.signature import annotation_of, parameters, signature
from pyfuser.lower.source import source_of, unwrap
from pyfuser.lower.team import Team
from pyfuser.lower.unassigned import refuse_unassigned
from pyfuser.lower.views import ViewRef

Argument = Expr | ViewRef | Record | Team


def inline(
    ctx: Context,
    node: ast.Call,
    path: str,
    function: FunctionType,
    arguments: list[Argument],
    receiver: Record | None = None,
) -> Expr | Record | None:
    """Put the function's body here; the value it returns, or None if it returns nothing.

    path: where the function is found from the workunit. receiver: the object it is a method of.
    """
    _check_annotations(function, arguments, is_method=receiver is not None)
    header = signature(function)
    source = header.source
    if function.__code__ in ctx.shared.active:
        active = ctx.shared.active
        through = [code.co_name for code in active[active.index(function.__code__) + 1 :]]
        by = f" (by {', '.join(through)})" if through else ""
        raise ctx.error(
            node,
            f"{function.__name__} calls itself{by}: recursion is not supported; write a loop, with "
            "a list of fixed length where it needs a stack, as in `stack: List[int] = [0, 0, 0]`",
        )
    names = header.names if receiver is None else header.names[1:]
    if len(arguments) != len(names):
        missing = [name for name in names[len(arguments) :] if name in header.defaults]
        hint = (
            f": default arguments are not supported, pass {missing[0]!r} "
            f"({header.defaults[missing[0]]}), too"
            if missing
            else ""
        )
        raise ctx.error(
            node, f"{function.__name__} takes {len(names)} argument(s), not {len(arguments)}{hint}"
        )
    inner = Context(function, source, ctx.shared, f"{path}().")
    inner.result = result = _result(ctx, node, inner, source.node)
    if receiver is not None:
        inner.scopes[0][header.names[0]] = inner.receiver = receiver
    for name, argument in zip(names, arguments, strict=True):
        annotation = header.annotations[name].with_real(ctx.shared.real)
        inner.scopes[0][name] = _bind(ctx, node, name, argument, annotation)
    ctx.shared.active.append(function.__code__)
    try:
        for statement in source.node.body:
            inner.statement(statement)
    finally:
        ctx.shared.active.pop()
    refuse_unassigned(inner, source.node.body)
    if result is not None:
        _check_returns(inner, source.node)
    body = without_returns(tuple(inner.out))
    if isinstance(result, Record):
        records.declare(ctx, result)
    ctx.out.extend(_declared(result, body) if isinstance(result, Sym) else body)
    return Read(result) if isinstance(result, Sym) else result


def _result(
    ctx: Context, node: ast.Call, inner: Context, definition: ast.FunctionDef
) -> Sym | Record | None:
    """Where the returned value goes."""
    function, returns = inner.function, definition.returns
    if returns is None or (isinstance(returns, ast.Constant) and returns.value is None):
        return None
    found = records.class_of(inner, returns)
    if found is not None:
        return records.fresh_record(ctx, node, *found)
    parsed = parse(returns)
    if parsed is None or parsed.kind != "scalar" or parsed.dtype is None:
        raise ctx.error(
            node, f"{function.__name__} must return a number, not {ast.unparse(returns)!r}"
        )
    return fresh(function.__name__, parsed.with_real(ctx.shared.real).dtype or parsed.dtype)


def _check_annotations(function: FunctionType, arguments: list[Argument], is_method: bool) -> None:
    """Refuse a function whose parameters or result have no type of the language; what is wrong
    with any of them is one message, with a definition that would be right.
    """
    source = source_of(unwrap(function))
    definition = source.node
    wrong, types = [], []
    for place, node in enumerate(parameters(definition)[is_method:]):
        text = None if node.annotation is None else ast.unparse(node.annotation)
        if node.annotation is None or annotation_of(function, node.annotation) is None:
            wrong.append(f"{node.arg!r} has {'none' if text is None else repr(text)}")
            text = _type_for(arguments[place] if place < len(arguments) else None)
        types.append(f"{node.arg}: {text}")
    returns = definition.returns
    gives = any(isinstance(n, ast.Return) and n.value for n in ast.walk(definition))
    result = f" -> {ast.unparse(returns)}" if returns is not None else ""
    if returns is None and gives:
        wrong.append("the result has none")
        result = " -> float"
    if wrong:
        inside = ", ".join(["self"] * is_method + types)
        raise source.error(
            definition,
            f"a workunit calls {function.__name__}, so its parameters and its result need types of "
            f"the language, but {', '.join(wrong)}; write for example "
            f"`def {function.__name__}({inside}){result}:`",
        )


_BOOL = DType.BOOL
_SPELLED = {DType.FLOAT64: "float", DType.INT32: "int", DType.BOOL: "bool"}


def _type_for(argument: Argument | None) -> str:
    """An annotation that takes an argument."""
    if isinstance(argument, ViewRef):
        return f"pk.View{argument.rank}D[pk.{argument.dtype.value.replace('float64', 'double')}]"
    if isinstance(argument, Team):
        return "pk.TeamMember"
    if argument is None or isinstance(argument, Record):
        return "float"
    return _SPELLED.get(argument.dtype, f"pk.{argument.dtype.value}")


def _check_returns(inner: Context, definition: ast.FunctionDef) -> None:
    """Refuse a function that promises a value and returns none; warn if some way returns none."""
    name = inner.function.__name__
    if not any(isinstance(n, ast.Return) for n in ast.walk(definition)):
        raise inner.error(
            definition,
            f"{name} is annotated `-> {ast.unparse(definition.returns or definition)}` and returns "
            "nothing: end it with `return ...`",
        )
    if not ends_with_return(tuple(inner.out)):
        inner.warn(
            definition,
            f"not every way through {name} ends with a return: where none does, the value is 0",
        )


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
    if isinstance(argument, Record):
        if annotation.kind != "object":
            raise ctx.error(node, f"parameter {name!r} is no object but gets one")
        return argument
    if annotation.kind != "scalar" or annotation.dtype is None:
        what = "an object" if annotation.kind == "object" else "a view"
        raise ctx.error(node, f"parameter {name!r} is annotated as {what} but gets a number")
    if argument.dtype.is_float and annotation.dtype.is_integer and annotation.dtype is not _BOOL:
        ctx.warn(
            node,
            f"parameter {name!r} of {ast.unparse(node.func)} is of type {annotation.dtype.value}, "
            f"so what it gets, of type {argument.dtype.value}, loses its fraction: annotate it "
            "`float`, or give it int(...)",
        )
    value = convert.cast(argument, annotation.dtype)
    return Variable(ctx.temporary(name, annotation.dtype, value), "local")
