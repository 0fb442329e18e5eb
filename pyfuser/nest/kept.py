"""What iterations keep from one loop to the next: arrays with a place for each iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyfuser.ir.nodes import (
    Binary,
    Body,
    Const,
    Declare,
    DeclareArray,
    Expr,
    Load,
    Read,
    Stmt,
    Store,
    Sym,
)
from pyfuser.nest.nodes import Alloc, Clear, Row, number
from pyfuser.nest.segments import is_zero
from pyfuser.support.records import dataclass

Place = Callable[[Sym], Expr]
"""The place of an iteration in the array of a local."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The array of each local, and how many elements of it a place has if it is an array itself."""

    arrays: dict[Sym, Sym]
    lengths: dict[Sym, int]

    def allocs(self, places: int) -> Body:
        """The arrays."""
        pairs = self.arrays.items()
        return tuple(Alloc(array, places * self.lengths.get(sym, 1)) for sym, array in pairs)

    def arriving(self, syms: Iterable[Sym], place: Place) -> Body:
        """The declarations of what was kept."""
        return tuple(
            self._row(sym, place)
            if sym in self.lengths
            else Declare(sym, Load(self.arrays[sym], (place(sym),)))
            for sym in syms
        )

    def leaving(self, syms: Iterable[Sym], place: Place) -> Body:
        """What keeps values; those of arrays are there already."""
        found = (sym for sym in syms if sym not in self.lengths)
        return tuple(Store(self.arrays[sym], (place(sym),), Read(sym)) for sym in found)

    def in_place(self, body: Body, place: Place) -> tuple[Body, Body]:
        """The declarations of the arrays of a body that are kept, and the body without them."""
        before, rest = list[Stmt](), list[Stmt]()
        for stmt in body:
            if not isinstance(stmt, DeclareArray) or stmt.sym not in self.lengths:
                rest.append(stmt)
                continue
            before.append(self._row(stmt.sym, place))
            if all(map(is_zero, stmt.values)):
                before.append(Clear(stmt.sym, len(stmt.values)))
            else:
                values = enumerate(stmt.values)
                rest += [Store(stmt.sym, (number(cell),), value) for cell, value in values]
        return tuple(before), tuple(rest)

    def _row(self, sym: Sym, place: Place) -> Row:
        length = self.lengths[sym]
        return Row(sym, self.arrays[sym], times(place(sym), length), length)


def times(place: Expr, count: int) -> Expr:
    """The first of so many elements that each place has."""
    if isinstance(place, Const) and isinstance(place.value, int):
        return number(place.value * count)
    return Binary("*", number(count), place)
