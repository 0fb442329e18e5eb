"""Loops whose branches g++ would rearrange, so that they cannot be masked operations of vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from pyfuser.ir import nodes
from pyfuser.ir.nodes import Body, Const, Expr, Select, Stmt, Sym
from pyfuser.ir.visit import all_expressions, child_expressions, expressions, statements
from pyfuser.nest.cost.gathers import depends, loaded_locals
from pyfuser.nest.cost.vectorisable import is_covered

_Test: TypeAlias = Callable[[Expr], bool]


def kept_straight(body: Body) -> tuple[str, ...]:
    """The headers that keep it from that, for a body that could be vectors."""
    needed = {"straight": _rearranges(body), "choices": _computes_from_choices(body)}
    return tuple(header for header, is_needed in needed.items() if is_needed)


def _rearranges(body: Body) -> bool:
    """Whether it would move calls into branches, or join these (see straight.h)."""
    found = list(all_expressions(body))
    by_data = partial(depends, loaded=loaded_locals(body))
    branches = sum(isinstance(stmt, nodes.If) for stmt in body)
    reals = [e for s in body for e in expressions(s) if isinstance(e, Select) and e.dtype.is_float]
    choices = sum(by_data(e.condition) for e in reals)  # of integers g++ makes minima at once
    calls = any(map(is_covered, found))
    chosen = any(isinstance(e, Select) for e in found)
    return max(branches, choices) > 1 or (calls and (branches > 0 or chosen))


def _computes_from_choices(body: Body) -> bool:
    """Whether it would compute from a constant in the branch that chose it (see choices.h).

    if x >= length: x = 0.0
    c = int(x)                ->    if x >= length: x = 0.0; c = 0    else: c = int(x)

    What indices alone choose, as neighbours at the edges, takes its help: it computes each once.
    """
    chosen: set[Sym] = set()
    by_data = partial(depends, loaded=loaded_locals(body))
    for stmt in body:
        inside = tuple(statements((stmt,)))
        if any(_is_chosen(e, chosen, by_data) for each in inside for e in _operands(each)):
            return True
        chosen.update(_choices(inside, by_data))
    return False


def _operands(stmt: Stmt) -> Iterator[Expr]:
    """What the expressions of a statement compute with."""
    for whole in child_expressions(stmt):
        for e in expressions(whole):
            if not isinstance(e, nodes.Compare):
                yield from child_expressions(e)


def _is_chosen(e: Expr, chosen: set[Sym], by_data: _Test) -> bool:
    return _has_constant(e, by_data) or (isinstance(e, nodes.Read) and e.sym in chosen)


def _has_constant(e: Expr | None, by_data: _Test) -> bool:
    if not isinstance(e, Select) or not by_data(e.condition):
        return False
    return any(isinstance(c, Const) for c in (e.then, e.orelse))


def _choices(inside: tuple[Stmt, ...], by_data: _Test) -> Iterator[Sym]:
    """Locals that are a constant after one branch of a statement."""
    branches = any(isinstance(stmt, nodes.If) and by_data(stmt.condition) for stmt in inside)
    for stmt in inside:
        if not isinstance(stmt, (nodes.Assign, nodes.Declare)):
            continue
        if _has_constant(stmt.value, by_data) or (branches and isinstance(stmt.value, Const)):
            yield stmt.sym
