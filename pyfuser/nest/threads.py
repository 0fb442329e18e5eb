"""What nests for a GPU have besides: what its threads do together, and each on its own.

Grammar::

    stmt      = ...                               those of `nest.nodes`
              | Walk(counters, low, high, body, kind)  a loop over several axes as one
              | Join(sums, joins)                 the results, of what all threads have added up
              | Pass(last, items, body)           one of the two passes of a scan
              | Share(sym, stop, body, sums, parts, crew)  a loop up to `sym`, whose trips a crew
                                                  shares; each adds to a part, and these to `sums`
              | One(sym, value, crew)             let sym be what the first of a crew computes
              | Alone(body, crew)                 the first of a crew does it
              | Shared(body)                      the array that is declared is one for a block
              | Barrier(crew)                     all of a crew wait for each other
              | Repeat(body)                      again and again
              | Leave(condition)                  the end of a Repeat, if the condition holds

A crew is who runs code in step, each computing the same values: all threads of a block
(`Kind.BLOCK`), where iterations are a block's, or all lanes of a group (`Kind.LANES`).

What a crew does together stands where that crew runs code in step, which `verify` holds.
"""

from __future__ import annotations

from pyfuser.ir.nodes import (
    Body,
    Declare,
    DeclareArray,
    Expr,
    Extra,
    Read,
    Scratch,
    Stmt,
    Sym,
)
from pyfuser.nest.nodes import Give, Kind, Loop, Scope, added, wide
from pyfuser.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Walk(Extra):
    """The trips of loops over several axes, the last one fastest; every order is right."""

    counters: tuple[Sym, ...]
    low: tuple[Expr, ...]
    high: tuple[Expr, ...]
    body: Body
    kind: Kind


@dataclass(frozen=True, slots=True)
class Join(Extra):
    """Each thread has a part of every accumulator: a block joins its threads', the last one all.

    The order depends on the space alone. joins: the operation that makes one of two parts of each.
    """

    sums: tuple[Sym, ...]
    joins: tuple[str, ...]

    @property
    def meaning(self) -> Stmt:
        """The same in other statements, but for the order of additions."""
        return Scope(tuple(Give(place, Read(sym)) for place, sym in enumerate(self.sums)))


@dataclass(frozen=True, slots=True)
class Pass(Extra):
    """A pass of a scan over a line, each thread with so many (`items`) neighbours at a time.

    last: whether it is the one that starts every thread where the one before stops, and has the
    result; the other one finds these starts. body: the declarations of the flag that says which it
    is and of the sum, and the loop.
    """

    last: bool
    items: int
    body: Body

    @property
    def parts(self) -> tuple[Sym, Sym, Loop]:
        """The flag, the sum and the loop."""
        flag, total, loop = self.body
        assert isinstance(flag, Declare) and isinstance(total, Declare) and isinstance(loop, Loop)
        return flag.sym, total.sym, loop

    @property
    def meaning(self) -> Stmt:
        """The same in other statements, but for the order of additions."""
        result = (Give(0, Read(self.parts[1])),) if self.last else ()
        return Scope((*self.body, *result))


@dataclass(frozen=True, slots=True)
class Share(Extra):
    """body: the declarations of `parts`, and the loop. stop: an integer of any size."""

    sym: Sym
    stop: Expr
    body: Body
    sums: tuple[Sym, ...]
    parts: tuple[Sym, ...]
    crew: Kind

    @property
    def loop(self) -> Loop:
        """The loop."""
        loop = self.body[-1]
        assert isinstance(loop, Loop)
        return loop

    @property
    def meaning(self) -> Stmt:
        """The same in other statements, but for the order of additions."""
        stop = Declare(self.sym, wide(self.stop))
        return Scope((stop, *self.body, *added(self.sums, self.parts)))


@dataclass(frozen=True, slots=True)
class One(Extra):
    sym: Sym
    value: Expr
    crew: Kind


@dataclass(frozen=True, slots=True)
class Alone(Extra):
    body: Body
    crew: Kind


@dataclass(frozen=True, slots=True)
class Shared(Extra):
    """Its threads make it zero, or the first of them gives it the values that it starts with."""

    body: Body

    @property
    def memory(self) -> DeclareArray | Scratch:
        """The declaration."""
        (memory,) = self.body
        assert isinstance(memory, (DeclareArray, Scratch))
        return memory


@dataclass(frozen=True, slots=True)
class Barrier(Extra):
    crew: Kind


@dataclass(frozen=True, slots=True)
class Repeat(Extra):
    body: Body


@dataclass(frozen=True, slots=True)
class Leave(Extra):
    condition: Expr
