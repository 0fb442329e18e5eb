"""Lambdas as workunits: `lambda i: e` stores `e` in an element, `lambda i, acc: e` in the sum."""

from __future__ import annotations

import ast
import linecache
import sys
from types import CodeType, FunctionType

from pyfuser.lower.source import FunctionSource, not_supported, remember
from pyfuser.support import syntax
from pyfuser.support.caches import CodeTable

_MADE: CodeTable[tuple[CodeType, str]] = CodeTable("functions made of lambdas")


def as_workunit(function: FunctionType, pattern: str, stores: bool) -> tuple[FunctionType, str]:
    """A function that does with a lambda's value what the pattern does, and where the value goes.

    stores: whether the value of a `parallel_for` is stored to element `i` of a view. The view is
    the function's last parameter then, whose name is returned (else that of the accumulator, or
    ""). It has the lambda's closure and globals; it can be lowered, not called.

    Raises WorkunitError where the lambda's source cannot be found, or it has other parameters.
    """
    code = function.__code__
    key = pattern, stores
    made, target = _MADE.of(code, key) or _MADE.keep(code, _make(function, pattern, stores), key)
    result = FunctionType(made, function.__globals__, made.co_name, None, function.__closure__)
    return result, target


def _make(function: FunctionType, pattern: str, stores: bool) -> tuple[CodeType, str]:
    code = function.__code__
    node, lines = _find(function)
    names = [parameter.arg for parameter in node.args.args]
    wanted = 2 if pattern == "reduce" else 1
    if len(names) != wanted:
        what = "an index and an accumulator" if wanted == 2 else "one index"
        raise not_supported(function, f"a lambda of parallel_{pattern} takes {what}")
    target = ""
    statement: ast.stmt = ast.Expr(node.body)
    if pattern == "reduce":
        target = names[1]
        statement = _accumulated(target, node.body)
    elif stores:
        target = _unused("view", code)
        element = ast.Subscript(
            ast.Name(target, ast.Load()), ast.Name(names[0], ast.Load()), ast.Store()
        )
        statement = ast.Assign([element], node.body)
    given = [ast.arg(name) for name in (*names, target)[: len(names) + stores]]
    parameters = ast.arguments([], given, None, [], [], None, [])
    definition = ast.FunctionDef("lambda_", parameters, [statement], [], None)
    for new in ast.walk(definition):
        if not hasattr(new, "lineno"):
            ast.copy_location(new, node.body)
    made = code.replace(co_name=f"lambda_{pattern}{'_store' * stores}")
    remember(made, FunctionSource("lambda_", code.co_filename, definition, tuple(lines)))
    return made, target


def _accumulated(accumulator: str, body: ast.expr) -> ast.stmt:
    """`acc = acc + e` as `acc += e`, so that a sum is recognised."""
    target = ast.Name(accumulator, ast.Store())
    if isinstance(body, ast.BinOp) and isinstance(body.op, ast.Add):
        for own, other in ((body.left, body.right), (body.right, body.left)):
            if getattr(own, "id", None) == accumulator and not _names(other, accumulator):
                return ast.AugAssign(target, body.op, other)
    return ast.Assign([target], body)


def _names(node: ast.expr, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))


def _unused(name: str, code: CodeType) -> str:
    while name in (*code.co_names, *code.co_freevars, *code.co_varnames):
        name += "_"
    return name


def _find(function: FunctionType) -> tuple[ast.Lambda, list[str]]:
    """The syntax tree of a lambda, which must be the only one of its kind on its line."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    try:
        tree = syntax.module("".join(lines))
    except SyntaxError:
        lines, tree = [], ast.Module([], [])
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno
    ]
    if len(found) > 1 and sys.version_info >= (3, 11):
        found = [node for node in found if _stands_at(node, code)]
    parameters = code.co_varnames[: code.co_argcount]
    found = [n for n in found if tuple(p.arg for p in n.args.args) == parameters]
    if not found:
        raise not_supported(function, "the source of this lambda cannot be found: use def")
    if len({ast.dump(node) for node in found}) > 1:
        raise not_supported(function, "there are several lambdas on this line: write one a line")
    return found[0], lines


def _stands_at(node: ast.Lambda, code: CodeType) -> bool:
    body = node.body
    place = (body.lineno, body.end_lineno, body.col_offset, body.end_col_offset)
    return place in set(code.co_positions())  # type: ignore[attr-defined,unused-ignore]
