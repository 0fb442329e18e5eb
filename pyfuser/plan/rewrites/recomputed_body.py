"""What a workunit stores, as an expression; and one that computes it again where it reads it.

    t[i] = f(x[i])                 y[i] = g(f(x[i - 1]), f(x[i + 1]))
    y[i] = g(t[i - 1], t[i + 1])

The value of a store is an expression over the indices and parameters alone, if the body is made of
locals, branches and stores. With the indices of the iteration that stored an element in their
place, it has the value of that element. Whether memory still holds what it reads is for the caller
to see (`plan.rewrites.recompute`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from pyfuser.ir.canonical import all_syms
from pyfuser.ir.dtypes import DType
from pyfuser.ir.effects import is_pure
from pyfuser.ir.nodes import (
    Assign,
    Binary,
    Body,
    Call,
    Cast,
    Const,
    Declare,
    Expr,
    Extent,
    If,
    Load,
    Param,
    Read,
    Select,
    Store,
    Sym,
    Workunit,
)
from pyfuser.ir.visit import all_expressions, expressions, map_body, map_expression, sym_of
from pyfuser.support.caches import cached
from pyfuser.support.records import dataclass

MAX_SIZE = 256
"""Nodes of an expression that is computed again ..."""

MAX_BODY = 1024
"""... and of all expressions of a body that does so."""


@dataclass(frozen=True, slots=True)
class Made:
    """What an iteration stores to a view. always: whether each one does, at the end of its body."""

    indices: tuple[Expr, ...]
    value: Expr
    always: bool


class Axis(NamedTuple):
    """An index of the iteration that stored an element: sign * (its subscript - offset)."""

    subscript: int
    sign: int
    offset: int


class _Unfit(Exception):
    """A body that is no expression."""


@cached(1024)
def made_by(workunit: Workunit) -> dict[Sym, Made]:
    """What a map stores, by view; nothing if some of its effects is not such a store."""
    if workunit.accumulators or not all(map(_is_const, _exponents(workunit.body))):
        return {}
    values = _Values(workunit)
    try:
        values.run(workunit.body)
    except _Unfit:
        return {}
    read = {e.view for made in values.made.values() for e in _all(made) if isinstance(e, Load)}
    if read & values.made.keys():
        return {}
    # Compilers compute functions of constants themselves, and perhaps to other bits.
    return {view: made for view, made in values.made.items() if not _is_known(made.value)}


def _is_known(value: Expr) -> bool:
    """Whether a value is the same in every run."""
    return not any(isinstance(e, (Read, Load, Extent)) for e in expressions(value))


def _exponents(body: Body) -> list[Expr]:
    """Of all powers: which function one calls depends on whether its exponent is a constant."""
    found = all_expressions(body)
    return [e.args[1] for e in found if isinstance(e, Call) and e.name == "pow"]


def _is_const(e: Expr) -> bool:
    return isinstance(e, Const) or (isinstance(e, Cast) and _is_const(e.operand))


def _all(made: Made) -> list[Expr]:
    return [e for top in (*made.indices, made.value) for e in expressions(top)]


class _Values:
    """The values of locals, and what was stored, after the statements so far."""

    def __init__(self, workunit: Workunit) -> None:
        self.views = {param.sym for param in workunit.params if param.rank}
        scalars = (param.sym for param in workunit.params if not param.rank)
        self.env: dict[Sym, Expr] = {sym: Read(sym) for sym in (*workunit.indices, *scalars)}
        self.made: dict[Sym, Made] = {}

    def run(self, body: Body) -> None:
        for stmt in body:
            if isinstance(stmt, (Declare, Assign)):
                if stmt.value is None:
                    self.env.pop(stmt.sym, None)
                else:
                    self.env[stmt.sym] = self.value(stmt.value)
            elif isinstance(stmt, Store) and stmt.view in self.views:
                indices = tuple(map(self.value, stmt.indices))
                before = self.made.get(stmt.view)
                if before is not None and before.indices != indices:
                    raise _Unfit
                self.made[stmt.view] = Made(indices, self.value(stmt.value), True)
            elif isinstance(stmt, If):
                self._branch(stmt)
            else:
                raise _Unfit

    # law
    def _branch(self, stmt: If) -> None:
        condition = self.value(stmt.condition)
        env, made = dict(self.env), dict(self.made)
        self.run(stmt.then)
        then_env, then_made = self.env, self.made
        self.env, self.made = env, made
        self.run(stmt.orelse)
        self.env = {
            sym: _either(condition, value, self.env[sym])
            for sym, value in then_env.items()
            if sym in self.env
        }
        for view, then in then_made.items():
            orelse = self.made.get(view)
            if orelse is None:
                self.made[view] = replace(then, always=False)
            elif orelse.indices != then.indices:
                raise _Unfit
            else:
                always = then.always and orelse.always
                self.made[view] = Made(
                    then.indices, _either(condition, then.value, orelse.value), always
                )
        for view in self.made.keys() - then_made.keys():
            self.made[view] = replace(self.made[view], always=False)

    def value(self, expr: Expr) -> Expr:
        """An expression over indices and parameters."""

        def change(e: Expr) -> Expr:
            if isinstance(e, Read):
                if e.sym not in self.env:
                    raise _Unfit
                return self.env[e.sym]
            known = not isinstance(e, (Load, Extent)) or e.view in self.views
            if not known or not is_pure(e):
                raise _Unfit
            return e

        value = map_expression(expr, change)
        if sum(1 for _ in expressions(value)) > MAX_SIZE:
            raise _Unfit
        return value


def _either(condition: Expr, then: Expr, orelse: Expr) -> Expr:
    return then if then == orelse else Select(condition, then, orelse)


# --------------------------------------------------------------------------- computed again


class Recomputed(NamedTuple):
    """A workunit that computes a view's elements, with the parameters that it has for that.

    given: for each parameter after those of the workunit, the parameter of the other that it is.
    times: how many different elements it names.
    """

    workunit: Workunit
    given: tuple[int, ...]
    times: int


def recomputed(
    workunit: Workunit,
    views: frozenset[Sym],
    other: Workunit,
    made: Made,
    axes: tuple[Axis, ...],
    same: Mapping[Sym, Sym],
) -> Recomputed | None:
    """A workunit that reads no element of `views`, as it computes what `other` stored there.

    axes: for each index of `other`. same: parameters of `other` that are the workunit's own. None
    if it became too large.
    """
    for exponent in _exponents(workunit.body):
        if any(isinstance(e, Load) and e.view in views for e in expressions(exponent)):
            return None  # it might become a constant
    used = {sym_of(e) for e in expressions(made.value)}
    given = [n for n, p in enumerate(other.params) if p.sym in used and p.sym not in same]
    uid = 1 + max(sym.uid for sym in all_syms(workunit))
    own = dict(same)
    params = list(workunit.params)
    for number, place in enumerate(given):
        sym, rank = other.params[place].sym, other.params[place].rank
        own[sym] = Sym(sym.name, uid + number, sym.dtype)
        params.append(Param(own[sym], rank))
    elements: set[tuple[Expr, ...]] = set()

    def change(e: Expr) -> Expr:
        if not isinstance(e, Load) or e.view not in views:
            return e
        elements.add(e.indices)
        indices = {
            sym: _iteration(e.indices[axis.subscript], axis, sym.dtype)
            for sym, axis in zip(other.indices, axes, strict=True)
        }
        return map_expression(made.value, lambda part: _placed(part, indices, own))

    body = map_body(workunit.body, change)
    if sum(1 for _ in all_expressions(body)) > MAX_BODY:
        return None
    changed = replace(workunit, params=tuple(params), body=body)
    return Recomputed(changed, tuple(given), len(elements))


def _placed(e: Expr, indices: Mapping[Sym, Expr], own: Mapping[Sym, Sym]) -> Expr:
    """A node of a stored value, in another iteration of another workunit."""
    if isinstance(e, Read):
        return indices[e.sym] if e.sym in indices else Read(own[e.sym])
    if isinstance(e, (Load, Extent)):
        return replace(e, view=own[e.view])
    return _folded(e)


# law
def _iteration(subscript: Expr, axis: Axis, dtype: DType) -> Expr:
    """The index of the iteration that stored the element of a subscript."""
    wide = subscript if subscript.dtype is dtype else Cast(subscript, DType.INT64)
    if axis.sign < 0:
        index: Expr = Binary("-", Const(axis.offset, wide.dtype), wide)
    else:
        index = _plus(wide, -axis.offset)
    return index if index.dtype is dtype else Cast(index, dtype)


def _plus(e: Expr, number: int) -> Expr:
    if not number:
        return e
    op = "+" if number > 0 else "-"
    return _folded(Binary(op, e, Const(abs(number), e.dtype)))


def _folded(e: Expr) -> Expr:
    """`(a + 1) - 2` as `a - 1`: all three are subscripts or sums that fit their type."""
    step, outer = _step(e)
    if outer is None:
        return e
    other, inner = _step(outer)
    if inner is None or not -(2**31) < step + other < 2**31:
        return e
    return _plus(inner, step + other)


def _step(e: Expr) -> tuple[int, Expr | None]:
    """What is added to something; None if it is no such sum."""
    if not isinstance(e, Binary) or e.op not in "+-" or not isinstance(e.right, Const):
        return 0, None
    if e.dtype not in (DType.INT32, DType.INT64) or type(e.right.value) is not int:
        return 0, None
    return (e.right.value if e.op == "+" else -e.right.value), e.left
