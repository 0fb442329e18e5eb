"""From a statement to the check of whether it leaves arrays alone, where there can be one."""

from __future__ import annotations

import ast
from collections.abc import Callable
from copy import copy
from types import MemberDescriptorType, SimpleNamespace
from typing import Any, NamedTuple

from pyfuser.run.attributes import (
    MISSING,
    in_type,
    is_data_descriptor,
    is_view,
    object_dict,
)
from pyfuser.run.endings import end_quietly
from pyfuser.run.harmless import Checks, Moment, Unknown, item_of_view, plain_keys
from pyfuser.run.rules import When, rule_of
from pyfuser.run.scopes import Scope
from pyfuser.run.values import (
    ITERABLES,
    PASSIVE,
    Pairs,
    Row,
    Targets,
    Touches,
    is_scalar,
    is_token,
    targets_of,
    text,
    unpacks_quietly,
)

Check = Callable[[Moment], Any]


class Variable(NamedTuple):
    """A local variable that a check is given.

    certain: it surely has a value. loaded: the statement loads it; else it only assigns to it.
    """

    name: str
    certain: bool
    loaded: bool


Checked = tuple[Check, tuple[Variable, ...]]
"""A check, and what it is given."""

_HELD = 6  # references to an old value: its name or place, and those on the way to `end_quietly`


def touches_nothing(node: ast.stmt) -> bool:
    """Whether a statement is harmless whatever its values are."""
    if rule_of(node).before is When.NEVER:
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Return):
        return node.value is None or _still(node.value)
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__"
    return isinstance(node, ast.Raise) and node.exc is None


def _still(node: ast.expr) -> bool:
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(isinstance(part, (ast.Name, ast.Constant)) for part in node.elts)
    return isinstance(node, (ast.Name, ast.Constant))


def launches_last(node: ast.stmt, scope: Scope) -> ast.Call | None:
    """The call after which a statement does nothing but bind or return its result.

    Only of a function that a name or an attribute leads to: what else is called may be gone, with
    all it holds, when it returns.
    """
    to_names = isinstance(node, ast.Assign) and all(isinstance(t, ast.Name) for t in node.targets)
    if isinstance(node, (ast.Expr, ast.Return)) or (isinstance(node, ast.Assign) and to_names):
        value = node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        value = node.value if scope.inside_function else None  # elsewhere annotations run code
    else:
        return None
    if not scope.defers or not isinstance(value, ast.Call):
        return None
    root = value.func
    while isinstance(root, ast.Attribute):
        root = root.value
    return value if isinstance(root, ast.Name) or _is_super(root) else None


def _is_super(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
    )


def check_of(node: ast.stmt, scope: Scope) -> Checked | None:
    """The check of what a statement does itself (an `if` or a loop: of its expression).

    None where the statement waits always. The rewriter changes the statement afterwards, but not
    the expressions of which checks are made.
    """
    if rule_of(node).before is not When.CHECKED or type(node) not in _MAKERS:
        return None
    checks = Checks(scope)
    try:
        check = _MAKERS[type(node)](checks, node)
    except Unknown:
        return None
    names = checks.names
    return check, tuple(Variable(n, scope.certain(n), n in checks.loaded) for n in names)


def _condition(checks: Checks, node: ast.If | ast.While) -> Check:
    return checks.truth(node.test)


def _loop(checks: Checks, node: ast.For) -> Check:
    given, targets = checks.value(node.iter), targets_of(node.target)
    own = isinstance(node.iter, (ast.Tuple, ast.List))
    where = f"a loop over {text(node.iter)}"
    ends = [_end(checks, part.id) for part in ast.walk(node.target) if isinstance(part, ast.Name)]

    def check(now: Moment) -> None:
        value = given(now)
        for end in ends:
            end(now)
        if not _steps_quietly(value, targets, own):
            raise Touches(where)

    return check


def _steps_quietly(value: Any, targets: Targets, own: bool) -> bool:
    """Whether the steps of a loop over a value run no code. own: nobody else has the value."""
    kind = type(value)
    if targets is ...:
        return False
    if targets is None or value is PASSIVE:
        return value is PASSIVE or kind is Pairs or kind in ITERABLES
    if kind is type({}.items()):
        return all(part is None for part in targets)
    if kind is Pairs:
        parts = zip(value.parts, targets, strict=False)
        return all(_unpack_quietly(part, to, False) for part, to in parts)
    return _unpack_quietly(value, targets, own)


def _unpack_quietly(values: Any, targets: Targets, own: bool) -> bool:
    if targets is None:
        return True
    kept = type(values) is tuple or (own and type(values) is list)
    return kept and all(unpacks_quietly(value, targets, later=True) for value in values)


def _only(checks: Checks, node: ast.Expr | ast.Return) -> Check:
    if node.value is None:
        raise Unknown
    return checks.value(node.value)


def _assertion(checks: Checks, node: ast.Assert) -> Check:
    test = checks.truth(node.test)
    message = checks.scalar(node.msg) if node.msg is not None else None

    def check(now: Moment) -> None:
        test(now)
        if message is not None:
            message(now)

    return check


def _augmented(checks: Checks, node: ast.AugAssign) -> Check:
    before = copy(node.target)
    before.ctx = ast.Load()
    old, value = checks.scalar(before), checks.scalar(node.value)
    store = _STORES[type(node.target)](checks, node.target)

    def check(now: Moment) -> None:
        old(now)
        store(now, value(now))

    return check


def _annotated(checks: Checks, node: ast.AnnAssign) -> Check:
    target = node.target
    if not (isinstance(target, ast.Name) and checks.scope.inside_function and node.value):
        raise Unknown
    return _stored(checks, [target], node.value)


def _assignment(checks: Checks, node: ast.Assign) -> Check:
    return _stored(checks, node.targets, node.value)


def _stored(checks: Checks, targets: list[ast.expr], node: ast.expr) -> Check:
    value = checks.value(node)
    stores = [_STORES[type(target)](checks, target) for target in targets]

    def check(now: Moment) -> None:
        assigned = value(now)
        for store in stores:
            store(now, assigned)

    return check


def _deletion(checks: Checks, node: ast.Delete) -> Check:
    if not all(isinstance(target, ast.Name) for target in node.targets):
        raise Unknown
    ends = [_end(checks, target.id) for target in node.targets if isinstance(target, ast.Name)]

    def check(now: Moment) -> None:
        for end in ends:
            end(now)

    return check


# ------------------------------------------------------------------------ what is assigned to

Store = Callable[[Moment, Any], None]


def _end(checks: Checks, name: str) -> Check:
    """Raises Touches if the end of a variable's present value may run foreign code."""
    old = checks.variable(name)

    def check(now: Moment) -> None:
        if not end_quietly((old(now),), _HELD):
            raise Touches(f"what {name} was may run code when it goes")

    return check


def _to_name(checks: Checks, target: ast.Name) -> Store:
    end = _end(checks, target.id)
    return lambda now, value: end(now)


def _to_names(checks: Checks, target: ast.Tuple | ast.List) -> Store:
    stores = [_end(checks, part.id) for part in ast.walk(target) if isinstance(part, ast.Name)]
    targets = targets_of(target)
    if targets is ...:
        raise Unknown

    def store(now: Moment, value: Any) -> None:
        if not unpacks_quietly(value, targets, later=True):
            raise Touches(f"unpacking to {text(target)}")
        for end in stores:
            end(now)

    return store


def _to_attribute(checks: Checks, target: ast.Attribute) -> Store:
    of, name = checks.value(target.value), checks.scope.mangled(target.attr)

    def store(now: Moment, value: Any) -> None:
        owner = of(now)
        old = None if is_token(owner) else _plain_attribute(owner, name)
        if old is MISSING or is_token(owner):
            raise Touches(f"setting {text(target)}")
        if not end_quietly((old,), _HELD):
            raise Touches(f"what {text(target)} was may run code when it goes")

    return store


def _plain_attribute(owner: Any, name: str) -> Any:
    """An attribute that an assignment replaces, None if it is new; `MISSING` if that runs code."""
    kind = type(owner)
    if kind is SimpleNamespace:
        return vars(owner).get(name)
    found = in_type(kind, name)
    if in_type(kind, "__setattr__") is not object.__setattr__:
        return MISSING
    if type(found) is MemberDescriptorType:
        try:
            return found.__get__(owner)
        except AttributeError:  # it has none yet
            return None
    own = object_dict(owner, kind)
    return MISSING if own is None or is_data_descriptor(found) else own.get(name)


def _to_item(checks: Checks, target: ast.Subscript) -> Store:
    of = checks.value(target.value)
    entries = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    keys = [checks.value(entry) for entry in entries]
    slices = [isinstance(entry, ast.Slice) for entry in entries]

    def store(now: Moment, value: Any) -> None:
        owner, given = of(now), [key(now) for key in keys]
        watches = (type(owner) is Row or is_view(owner)) and is_scalar(value)
        if watches and item_of_view(owner, given, slices) is not MISSING:
            return
        kind = type(owner)
        plain = kind is list or (kind is dict and plain_keys(owner))
        if not plain or len(given) != 1 or type(given[0]) not in (int, str):
            raise Touches(f"setting {text(target)}")
        old = None
        if kind is dict or (type(given[0]) is int and -len(owner) <= given[0] < len(owner)):
            old = owner.get(given[0]) if kind is dict else owner[given[0]]
        if not end_quietly((old,), _HELD):
            raise Touches(f"what {text(target)} was may run code when it goes")

    return store


def _to_many(checks: Checks, target: ast.Starred) -> Store:
    raise Unknown


_MAKERS: dict[type[ast.stmt], Callable[[Checks, Any], Check]] = {
    ast.If: _condition,
    ast.While: _condition,
    ast.For: _loop,
    ast.Expr: _only,
    ast.Return: _only,
    ast.Assert: _assertion,
    ast.AugAssign: _augmented,
    ast.AnnAssign: _annotated,
    ast.Assign: _assignment,
    ast.Delete: _deletion,
}
_STORES: dict[type[ast.expr], Callable[[Checks, Any], Store]] = {
    ast.Name: _to_name,
    ast.Attribute: _to_attribute,
    ast.Subscript: _to_item,
    ast.Tuple: _to_names,
    ast.List: _to_names,
    ast.Starred: _to_many,
}
