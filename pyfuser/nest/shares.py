"""How the threads of a processor share the iterations of a nest."""

from __future__ import annotations

from pyfuser.ir.nodes import Const, Expr, Sym
from pyfuser.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Trips:
    """The trips of a loop, which arguments tell, each with the work of its body."""

    start: Expr
    stop: Expr
    work: Work


Work = tuple["int | Trips", ...]
"""Terms of a number of additions."""


@dataclass(frozen=True, slots=True)
class Varying:
    """So many iterations as make `worth` additions, for the work of each, which a launch knows."""

    worth: int
    work: Work


@dataclass(frozen=True, slots=True)
class OwnTable:
    """A view of which each thread has a copy while it runs (see `transform.tables`).

    count: its elements. op: the atomic update that adds a copy's element to the view's; nothing:
    the operand that changes nothing, with which a copy begins. place: of the copy, in bytes, in
    memory that a thread has for all of them.
    """

    view: Sym
    count: int
    op: str
    nothing: Const
    place: int


@dataclass(frozen=True, slots=True)
class Shares:
    """least: iterations that are worth another thread; 0 if one runs them all, and locks no table.

    together: neighbours along the innermost axis that stay with one thread: where `least` varies,
    if it is no less than that. tables: those that threads have copies of; bytes: the room of a
    thread's.
    """

    least: int | Varying
    together: int
    tables: tuple[OwnTable, ...] = ()
    bytes: int = 0
