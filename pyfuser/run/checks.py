"""From a statement to the check of whether it leaves arrays alone, where there can be one."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from copy import copy
from functools import partial

from pyfuser.run.harmless import (
    OPAQUE,
    SUPPORTED,
    Names,
    Touches,
    is_sequence,
    outermost_call,
    plain_attribute_store,
    plain_item_store,
    scalar,
    truth,
    value_of,
)
from pyfuser.run.scopes import Scope, nodes_below

Check = Callable[[Names], None]
Checked = tuple[Check, tuple[str, ...]]

_SIMPLE = (ast.Expr, ast.Return, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Assert)
_PARTS = (
    ast.FormattedValue, ast.Starred, ast.keyword, ast.expr_context, ast.operator, ast.unaryop,
    ast.cmpop, ast.boolop,
)  # fmt: skip


def touches_nothing(node: ast.stmt) -> bool:
    """Whether a simple statement is harmless whatever its values are: names and constants only."""
    if isinstance(node, (ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal)):
        return True
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__"
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Return):
        return node.value is None or _still(node.value)
    if isinstance(node, ast.Delete):
        return all(isinstance(target, ast.Name) for target in node.targets)
    if isinstance(node, ast.Raise):
        return node.exc is None
    if not isinstance(node, ast.Assign) or not _still(node.value):
        return False
    return all(isinstance(target, ast.Name) or _swap(target, node.value) for target in node.targets)


def _still(node: ast.expr) -> bool:
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(isinstance(part, (ast.Name, ast.Constant)) for part in node.elts)
    return isinstance(node, (ast.Name, ast.Constant))


def _swap(target: ast.expr, value: ast.expr) -> bool:
    if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(value, ast.Tuple):
        return False
    return len(target.elts) == len(value.elts) and all(
        isinstance(part, ast.Name) for part in target.elts
    )


def launches_last(node: ast.stmt, scope: Scope) -> ast.Call | None:
    """The call after which a statement does nothing but bind or return its result."""
    to_names = isinstance(node, ast.Assign) and all(isinstance(t, ast.Name) for t in node.targets)
    if isinstance(node, (ast.Expr, ast.Return)) or (isinstance(node, ast.Assign) and to_names):
        value = node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        value = node.value if scope.inside_function else None  # elsewhere annotations run code
    else:
        return None
    return value if scope.defers and isinstance(value, ast.Call) else None


def check_of(node: ast.stmt, scope: Scope) -> Checked | None:
    """The check of what a statement does itself (an `if` or a loop: of its expression)."""
    found = _check(node, scope)
    if found is None:
        return None
    check, expressions = found
    if not all(_supported(expression) for expression, _ in expressions):
        return None
    loads = [load for pair in expressions for load in _loads(*pair) if load[0] in scope.names]
    certain = scope.certain.union(name for name, maybe in loads if not maybe)
    if not certain.issuperset(name for name, _ in loads):
        return None  # loading it now might raise where the program would not
    return check, tuple(dict.fromkeys(name for name, _ in loads))


_Expressions = list[tuple[ast.expr, bool]]


def _check(node: ast.stmt, scope: Scope) -> tuple[Check, _Expressions] | None:
    """A check, and the expressions it looks at, each with whether it is evaluated conditionally.

    The rewriter changes statements, lambdas and the function of the last call; so checks are made
    of the expressions below, and no check looks at a lambda.
    """
    if isinstance(node, (ast.If, ast.While)):
        return partial(truth, node.test), [(node.test, False)]
    if isinstance(node, ast.For):
        return partial(_iteration, node.iter, unpacking(node.target)), [(node.iter, False)]
    if not isinstance(node, _SIMPLE):
        return None
    node = copy(node)
    call = copy(launches_last(node, scope))
    if call is not None:
        looked_at = [call.func, *call.args, *(keyword.value for keyword in call.keywords)]
        return partial(outermost_call, call), [(part, False) for part in looked_at]
    if isinstance(node, ast.Assert):
        return _assertion(node)
    if isinstance(node, ast.AugAssign):
        return _augmented(node)
    if isinstance(node, ast.AnnAssign):
        if not (isinstance(node.target, ast.Name) and scope.inside_function and node.value):
            return None
        return partial(_only, node.value), [(node.value, False)]
    if isinstance(node, (ast.Expr, ast.Return)) and node.value is not None:
        return partial(_only, node.value), [(node.value, False)]
    if isinstance(node, ast.Assign):
        parts = [part for target in node.targets for part in _target_parts(target)]
        check = partial(_assignment, node.targets, node.value)
        return check, [(part, False) for part in (node.value, *parts)]
    return None


def _only(node: ast.expr, names: Names) -> None:
    value_of(node, names)


def _assertion(node: ast.Assert) -> tuple[Check, _Expressions]:
    expressions = [(node.test, False)]
    if node.msg is not None:
        expressions.append((node.msg, True))

    def check(names: Names) -> None:
        truth(node.test, names)
        if node.msg is not None:
            scalar(node.msg, names)

    return check, expressions


def _augmented(node: ast.AugAssign) -> tuple[Check, _Expressions]:
    target = node.target
    before = copy(target)
    before.ctx = ast.Load()

    def check(names: Names) -> None:
        scalar(before, names)
        value = scalar(node.value, names)
        if isinstance(target, ast.Attribute):
            plain_attribute_store(target, names)
        elif isinstance(target, ast.Subscript):
            plain_item_store(target, value, names)

    return check, [(before, False), (node.value, False)]


def _target_parts(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, ast.Attribute):
        return [target.value]
    if isinstance(target, ast.Subscript):
        return [target.value, target.slice]
    return []


def _assignment(targets: list[ast.expr], value: ast.expr, names: Names) -> None:
    assigned = value_of(value, names)
    for target in targets:
        if isinstance(target, ast.Attribute):
            plain_attribute_store(target, names)
        elif isinstance(target, ast.Subscript):
            plain_item_store(target, assigned, names)
        elif unpacking(target) > 1 or (unpacking(target) and type(assigned) not in (tuple, list)):
            raise Touches(f"unpacking {ast.unparse(value)}")


def unpacking(target: ast.expr) -> int:
    """0: a name; 1: several names; 2: something else to assign to."""
    if isinstance(target, ast.Name):
        return 0
    if isinstance(target, (ast.Tuple, ast.List)):
        return 1 if all(isinstance(part, ast.Name) for part in target.elts) else 2
    return 2


def _iteration(node: ast.expr, unpacks: int, names: Names) -> None:
    value = value_of(node, names)
    if isinstance(node, ast.Call) and value is OPAQUE and unpacks <= 1:
        return  # range, enumerate, zip
    if unpacks or not is_sequence(value):
        raise Touches(f"a loop over {ast.unparse(node)}")


def _supported(node: ast.expr) -> bool:
    return all(type(part) in SUPPORTED or isinstance(part, _PARTS) for part in nodes_below(node))


def _loads(node: ast.AST, conditional: bool) -> Iterator[tuple[str, bool]]:
    """The names that an expression loads, and whether it may do without."""
    if isinstance(node, ast.Name):
        yield node.id, conditional
    for index, child in enumerate(ast.iter_child_nodes(node)):
        maybe = conditional
        if isinstance(node, ast.BoolOp):
            maybe = maybe or index > 1  # the operator, the first operand, ...
        elif isinstance(node, ast.IfExp):
            maybe = maybe or index > 0
        elif isinstance(node, ast.Compare):
            maybe = maybe or child in node.comparators[1:]
        yield from _loads(child, maybe)
