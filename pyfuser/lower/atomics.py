"""`pk.atomic_*`: as a statement an atomic Update, as a value an AtomicFetch (of the old value)."""

from __future__ import annotations

import ast
import math
from collections.abc import Set

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import AtomicFetch, Body, Const, Eval, Expr, Load, Stmt, Store, Sym, Update
from pyfuser.ir.visit import map_body, written
from pyfuser.lower import convert
from pyfuser.lower.context import Context
from pyfuser.lower.expressions import index, indexed
from pyfuser.lower.views import LocalArray, ViewRef

_OPERATIONS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "mod": "%",
    "and": "&",
    "or": "|",
    "xor": "^",
    "lshift": "<<",
    "rshift": ">>",
    "min": "min",
    "max": "max",
}
_STEPS = {"increment": "+", "inc": "+", "decrement": "-", "dec": "-"}
_INTEGER_ONLY = frozenset({"%", "&", "|", "^", "<<", ">>"})
_NO_COMPLEX = frozenset({"min", "max"}) | _INTEGER_ONLY


def is_atomic(name: str) -> bool:
    """Whether a function name is that of an atomic."""
    return name.startswith("atomic_")


def statement(ctx: Context, name: str, node: ast.Call) -> None:
    """An atomic whose old value is not used."""
    if name == "atomic_compare_exchange":
        ctx.out.append(Eval(value(ctx, name, node)))
        return
    op, view, indices, operand = _parts(ctx, name, node)
    ctx.out.append(Update(op, view.sym, indices, operand, True, ctx.location(node)))


def value(ctx: Context, name: str, node: ast.Call) -> Expr:
    """An atomic whose old value is used."""
    if name == "atomic_compare_exchange":
        _arity(ctx, name, node, 4)
        view, indices = _element(ctx, name, node)
        expected, desired = (
            convert.cast(ctx.expression(argument), view.dtype) for argument in node.args[2:]
        )
        return AtomicFetch(
            "compare_exchange", view.sym, indices, desired, expected, ctx.location(node)
        )
    if name != "atomic_exchange" and not name.startswith("atomic_fetch_"):
        fetch = name.replace("atomic_", "atomic_fetch_", 1)
        raise ctx.error(node, f"{name} has no value: use {fetch} for the old one")
    op, view, indices, operand = _parts(ctx, name, node)
    return AtomicFetch(op, view.sym, indices, operand, None, ctx.location(node))


def with_traits(body: Body, views: Set[Sym]) -> Body:
    """A body in which every access of Views with the trait Atomic is atomic, as in Kokkos.

    An iteration may then see what others wrote: its loads are not those of an element that is its
    own, whose value is known from before. In a body that only reads such a View they are.
    """
    views = views & written(body)
    if not views:
        return body

    def fetched(e: Expr) -> Expr:
        if not isinstance(e, Load) or e.view not in views:
            return e
        # Exchanges a value for itself, where it is that: no atomic changes less.
        integer = e.dtype.is_integer
        some = Const(0, DType.INT32) if integer else Const(math.nan, DType.FLOAT64)
        same = convert.cast(some, e.dtype)
        return AtomicFetch("compare_exchange", e.view, e.indices, same, same, e.location)

    def stored(s: Stmt) -> Stmt:
        if not isinstance(s, Store) or s.view not in views:
            return s
        return Update("exchange", s.view, s.indices, s.value, True, s.location)

    return map_body(body, fetched, stored)


def _parts(ctx: Context, name: str, node: ast.Call) -> tuple[str, ViewRef, tuple[Expr, ...], Expr]:
    short = name.removeprefix("atomic_").removeprefix("fetch_")
    step = _STEPS.get(short)
    op = step or ("exchange" if short in ("exchange", "assign", "store") else None)
    op = op or _OPERATIONS.get(short)
    if op is None:
        raise ctx.error(node.func, f"{name} is not supported in a workunit")
    _arity(ctx, name, node, 2 if step else 3)
    view, indices = _element(ctx, name, node)
    dtype = view.dtype
    if (op in _INTEGER_ONLY and not dtype.is_integer) or (op in _NO_COMPLEX and dtype.is_complex):
        raise ctx.error(node, f"{name} does not work on {dtype.value}")
    if step:
        operand: Expr = convert.cast(Const(1, DType.INT32), dtype)
    else:
        operand = convert.cast(ctx.expression(node.args[2]), dtype)
    return op, view, indices, operand


def _arity(ctx: Context, name: str, node: ast.Call, count: int) -> None:
    if len(node.args) != count or node.keywords:
        shape = ", ".join(["view", "[i]", "value", "value"][:count])
        raise ctx.error(node, f"{name} takes {count} arguments, as in {name}({shape})")


def _element(ctx: Context, name: str, node: ast.Call) -> tuple[ViewRef, tuple[Expr, ...]]:
    view = indexed(ctx, node.args[0])
    places = node.args[1]
    if isinstance(view, LocalArray):
        raise ctx.error(node.args[0], f"{name} needs a view: a list is local to the iteration")
    if not isinstance(places, (ast.List, ast.Tuple)):
        raise ctx.error(places, f"{name} takes its indices as a list, as in [i]")
    if len(places.elts) != view.rank:
        raise ctx.error(places, f"the view has {view.rank} dimension(s), not {len(places.elts)}")
    return view, view.indices([index(ctx, place) for place in places.elts])
