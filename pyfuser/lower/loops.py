"""Loops of Python that are other loops in C++: what a `for` does to its variable and its bounds.

In C++ the variable ends with its loop, and hides a local of the same name; the bound is computed
again before every iteration, and what is assigned to the variable counts for the next one.
And loops that never end, which no Ctrl-C interrupts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from pyfuser.ir.nodes import (
    Assign,
    AtomicFetch,
    Binary,
    Body,
    Break,
    Compare,
    Const,
    Expr,
    Load,
    Read,
    Stmt,
    Store,
    Sym,
    Update,
)
from pyfuser.ir.visit import assigned, contains, expressions, reads, statements
from pyfuser.lower.context import Context, Variable
from pyfuser.lower.returns import RETURN


def warn_of_loop(ctx: Context, node: ast.For, sym: Sym, bounds: Iterable[Expr], body: Body) -> None:
    """Warn of a loop, lowered with the variable `sym`, that Python would run otherwise."""
    assert isinstance(node.target, ast.Name)
    name, bounds = node.target.id, tuple(bounds)
    message = ""
    if ctx.lookup(name) is not None and _read_after(ctx, node, name):
        message = (
            f"the variable {name!r} of this loop ends with it, so after the loop {name!r} is what "
            f"it was before: assign to another name in the loop, as in `last = {name}`"
        )
    elif sym in assigned(body):
        message = (
            f"{name!r} is assigned to inside its loop, which counts on from there, as in C++, and "
            "not in Python: use another name, or a while loop"
        )
    elif _changes(body, bounds):
        message = (
            f"this loop changes {ast.unparse(node.iter)}, which is computed again before every "
            "iteration, as in C++, and not in Python: give the bound a name before the loop"
        )
    elif _is_index(ctx, name) and _places(body, sym):
        message = (
            f"the variable {name!r} of this loop hides the index {name!r}, so all iterations "
            "change the same elements: use another name"
        )
    if message:
        ctx.warn(node, message)


def warn_of_endless(ctx: Context, node: ast.While, test: Expr, body: Body) -> None:
    """Warn of a `while` that nothing ends: neither its body nor what else may run changes what it
    tests; and of one that waits for a float to be what it need not meet.
    """
    leaves = contains(body, Break) or any(stmt is RETURN for stmt in statements(body))
    if leaves or any(isinstance(part, (Load, AtomicFetch)) for part in expressions(test)):
        return
    tested = reads(test)
    if not tested & assigned(body):
        names = " or ".join(repr(sym.name) for sym in sorted(tested, key=lambda sym: sym.name))
        what = f"nothing in it changes {names}" if names else "nothing leaves it"
        ctx.warn(node, f"this loop never ends once it has begun: {what}")
        return
    met = isinstance(test, Compare) and test.op == "!=" and test.left.dtype.is_float
    step = next(filter(None, (_inexact_step(stmt, tested) for stmt in body)), None)
    if met and step is not None:
        ctx.warn(
            node,
            f"this loop ends where {ast.unparse(node.test)} is false, and no float is exactly "
            f"{step}, by which it goes: it may pass by and never end; count whole steps, "
            f"`for k in range(n)`, and compute from k * {step}",
        )


def _inexact_step(stmt: Stmt, tested: set[Sym]) -> float | None:
    """By what number a statement changes one of some locals, if that has no short binary form."""
    if not (isinstance(stmt, Assign) and stmt.sym in tested):
        return None
    value = stmt.value
    if not (isinstance(value, Binary) and value.op in ("+", "-")):
        return None
    number = value.right.value if isinstance(value.right, Const) else None
    if not isinstance(number, float) or (number * 2**20).is_integer():
        return None
    return number if reads(value.left) == {stmt.sym} else None


def _is_index(ctx: Context, name: str) -> bool:
    hidden = ctx.lookup(name)
    return isinstance(hidden, Variable) and hidden.kind == "index"


def _places(body: Body, sym: Sym) -> bool:
    """Whether a variable decides which elements a body changes."""
    return any(
        sym in reads(*stmt.indices)
        for stmt in statements(body)
        if isinstance(stmt, (Store, Update))
    )


def _changes(body: Body, bounds: tuple[Expr, ...]) -> bool:
    """Whether a loop's body assigns to a local or to an element that a bound is made of."""
    parts = [part for bound in bounds for part in expressions(bound)]
    changed = assigned(body)
    if any(isinstance(part, Read) and part.sym in changed for part in parts):
        return True
    elements = {(part.view, part.indices) for part in parts if isinstance(part, Load)}
    return any(
        (place, stmt.indices) in elements
        for stmt in statements(body)
        if isinstance(stmt, (Store, Update))
        for place in (stmt.view if isinstance(stmt, Store) else stmt.target,)
    )


# --------------------------------------------------------------------------- what comes after


def _read_after(ctx: Context, loop: ast.For, name: str) -> bool:
    """Whether a name's value is used behind a loop before it gets another one."""
    function = ctx.running[-1] if ctx.running else ctx.source.node
    for block in _blocks_after(function.body, loop) or ():
        used = _is_read(block, name)
        if used is not None:
            return used
    return False


def _blocks_after(body: list[ast.stmt], loop: ast.For) -> list[list[ast.stmt]] | None:
    """What follows a statement in its block, and in each block around; None: it is not here."""
    for place, stmt in enumerate(body):
        if stmt is loop:
            return [body[place + 1 :]]
        for inner in _bodies(stmt):
            found = _blocks_after(inner, loop)
            if found is not None:
                return [*found, body[place + 1 :]]
    return None


def _bodies(stmt: ast.stmt) -> Iterator[list[ast.stmt]]:
    for part in ("body", "orelse"):
        inner = getattr(stmt, part, None)
        if isinstance(inner, list):
            yield inner


def _is_read(block: Iterable[ast.stmt], name: str) -> bool | None:
    """Whether statements use a name's value (True), or give it another (False), or neither."""
    for stmt in block:
        if isinstance(stmt, ast.For) and getattr(stmt.target, "id", None) == name:
            if _mentions(stmt.iter, name):
                return True
            continue  # a variable of its own
        bodies = list(_bodies(stmt))
        if not bodies:
            if _mentions(stmt, name, updates=True):
                return True
            if _assigns(stmt, name):
                return False
            continue
        head = stmt.iter if isinstance(stmt, ast.For) else getattr(stmt, "test", None)
        if head is not None and _mentions(head, name):
            return True
        found = [_is_read(inner, name) for inner in bodies]
        if True in found:
            return True
        if isinstance(stmt, ast.If) and found == [False, False]:
            return False
    return None


def _mentions(node: ast.AST, name: str, updates: bool = False) -> bool:
    if updates and isinstance(node, ast.AugAssign) and getattr(node.target, "id", None) == name:
        return True
    return any(
        isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load)
        for part in ast.walk(node)
    )


def _assigns(stmt: ast.stmt, name: str) -> bool:
    if isinstance(stmt, (ast.Return, ast.Break, ast.Continue)):
        return True  # nothing follows
    targets = stmt.targets if isinstance(stmt, ast.Assign) else [getattr(stmt, "target", None)]
    return any(getattr(target, "id", None) == name for target in targets)
