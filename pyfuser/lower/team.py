"""What lowering knows of a team, and of the functions nested in a workunit."""

from __future__ import annotations

import ast
from dataclasses import field
from typing import Any

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Call, Eval, Read, Sym
from pyfuser.lower.source import FunctionSource
from pyfuser.support.errors import WorkunitError
from pyfuser.support.records import dataclass

_BARRIER = "team_barrier"


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in the user's source."""

    source: FunctionSource
    node: ast.AST

    def error(self, message: str) -> WorkunitError:
        return self.source.error(self.node, message)


@dataclass(frozen=True, slots=True)
class Shared:
    """A loop that the threads of a team share.

    total: the sum of a reduction or scan, which all threads get: they wait for each other.
    """

    place: Place
    total: Sym | None = None


@dataclass(frozen=True, eq=False)
class Team:
    """The team of a workunit: what its parameter of type `pk.TeamMember` stands for.

    size: threads of a team. rank: stands for a thread's rank in its team, if there are several.
    loops, by loop variable, and barriers and scratch memory are what the threads do together.
    """

    size: int
    league_rank: Sym
    rank: Sym
    loops: dict[Sym, Shared] = field(default_factory=dict)
    barriers: dict[Sym, Place] = field(default_factory=dict)
    scratch: dict[Sym, Place] = field(default_factory=dict)

    def barrier(self, mark: Sym, place: Place) -> Eval:
        """The mark of a barrier, which `lower.lockstep` removes."""
        self.barriers[mark] = place
        return Eval(Call(_BARRIER, (Read(mark),), DType.INT32))


def barrier_mark(stmt: object) -> Sym | None:
    """The Sym that stands for a barrier, if the statement is one."""
    if isinstance(stmt, Eval) and isinstance(stmt.expr, Call) and stmt.expr.name == _BARRIER:
        (mark,) = stmt.expr.args
        assert isinstance(mark, Read)
        return mark.sym
    return None


@dataclass(frozen=True, eq=False)
class NestedFunction:
    """A function defined in a workunit, with the scopes that it sees: those around it."""

    node: ast.FunctionDef
    scopes: tuple[dict[str, Any], ...]
