"""Iterations of a kernel run that collide in a memory cell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pyfuser.ir.reference.elements import Array, Note, Point


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two iterations that touch one cell, at least one of them writing; names are parameters'."""

    first: Point
    first_access: str
    second: Point
    second_access: str

    def __str__(self) -> str:
        return f"{self.first_access} of {self.first} against {self.second_access} of {self.second}"


class RaceDetector:
    """Collects the accesses of one kernel run and reports collisions of different iterations.

    A cell is a piece of memory small enough that every element of every view is a whole number of
    cells; views may overlap in any way. Atomic updates by one operator do not collide with each
    other. At most `limit` conflicts are kept; `found` counts all.
    """

    def __init__(self, limit: int = 10) -> None:
        self.conflicts: list[Conflict] = []
        self.found = 0
        self._limit = limit
        self._point: Point = ()
        self._cell = 1
        # cell -> kind of access ("read", "write", "atomic +", ...) -> (first iteration, access)
        self._touched: dict[int, dict[str, tuple[Point, str, bool]]] = {}

    def watch(self, arrays: Mapping[str, Array]) -> dict[str, Note]:
        """Start on a kernel over these arrays; gives `note(kind, *index)` for each."""
        numbers = [0]
        for array in arrays.values():
            numbers += [array.itemsize, array.__array_interface__["data"][0], *array.strides]
        self._cell = math.gcd(*numbers) or 1
        self._touched.clear()
        return {name: self._noter(name, array) for name, array in arrays.items()}

    def iterations(self, points: Iterable[Point]) -> Iterator[Point]:
        """The points again, each made the current iteration before it is handed out."""
        for point in points:
            self._point = point
            yield point

    def _noter(self, name: str, array: Array) -> Note:
        base = array.__array_interface__["data"][0]
        strides, size = array.strides, array.itemsize

        def note(kind: str, *index: int) -> None:
            address = base + sum(i * s for i, s in zip(index, strides, strict=True))
            for cell in range(address // self._cell, (address + size) // self._cell):
                self._touch(cell, kind, f"{kind} of {name}[{', '.join(map(str, index))}]")

        return note

    def _touch(self, cell: int, kind: str, access: str) -> None:
        point = self._point
        touched = self._touched.setdefault(cell, {})
        for other, (first, first_access, several) in touched.items():
            if (several or first != point) and _collide(kind, other):
                self.found += 1
                if len(self.conflicts) < self._limit:
                    self.conflicts.append(Conflict(first, first_access, point, access))
        known = touched.get(kind)
        if known is None:
            touched[kind] = (point, access, False)
        elif known[0] != point and not known[2]:
            touched[kind] = (known[0], known[1], True)


def _collide(kind: str, other: str) -> bool:
    return kind == "write" or kind != other  # same-kind reads and same-operator atomics commute
