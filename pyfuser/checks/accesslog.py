"""Every access of one kernel run, and two of them that race."""

from __future__ import annotations

import math
from array import array as IntArray
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pyfuser.ir import nodes
from pyfuser.ir.nodes import Expr, Param, SourceLocation, Stmt, Sym, Workunit
from pyfuser.ir.reference.elements import Array, Note, Point
from pyfuser.ir.visit import map_body, sym_of

READ, ATOMIC, WRITE = range(3)
_KINDS = {"r": READ, "a": ATOMIC, "w": WRITE}  # by the first letter of the interpreter's names


class Site(NamedTuple):
    """An access in the source: to which parameter, and where."""

    param: int
    location: SourceLocation | None


class Touch(NamedTuple):
    """An access that was made: its site's number, its kind, and by which iteration."""

    site: int
    kind: int
    iteration: int


def split_sites(workunit: Workunit, watched: Collection[int]) -> tuple[Workunit, list[Site]]:
    """The workunit with a parameter of its own for each access to a watched one, after the others.

    So who runs it can tell the accesses apart. It prints nothing.
    """
    places = {param.sym: n for n, param in enumerate(workunit.params) if n in watched}
    sites: list[Site] = []
    params: list[Param] = []

    def own(node: Any) -> Any:
        view = sym_of(node)
        if view not in places or isinstance(node, nodes.Extent):
            return node
        sym = Sym(view.name, -1 - len(sites), view.dtype)
        params.append(Param(sym, workunit.params[places[view]].rank))
        sites.append(Site(places[view], node.location))
        return replace(node, **{"target" if isinstance(node, nodes.Update) else "view": sym})

    def statement(stmt: Stmt) -> Stmt | tuple[Stmt, ...]:
        silent = isinstance(stmt, nodes.Eval) and isinstance(stmt.expr, nodes.Call)
        result: Stmt | tuple[Stmt, ...] = () if silent else own(stmt)
        return result

    def expression(e: Expr) -> Expr:
        result: Expr = own(e)
        return result

    body = map_body(workunit.body, expression, statement)
    return replace(workunit, body=body, params=(*workunit.params, *params)), sites


class AccessLog:
    """Collects (iteration, address) for each access, in 16 bytes.

    `skipped`: how many views of the kernel come before those of the sites.
    """

    def __init__(self, skipped: int) -> None:
        self._skipped = skipped
        self._iteration = -1
        self._logs: dict[tuple[int, int], IntArray[int]] = {}  # by site and kind
        self._sizes: list[int] = []

    def watch(self, arrays: Mapping[str, Array]) -> dict[str, Note]:
        """Start on a kernel over these arrays; gives `note(kind, *index)` for each site's."""
        numbers = [0]
        notes = {}
        for site, (name, array) in enumerate(list(arrays.items())[self._skipped :]):
            numbers += [array.itemsize, array.__array_interface__["data"][0], *array.strides]
            self._sizes.append(array.itemsize)
            notes[name] = self._note(site, array)
        self._cell = math.gcd(*numbers) or 1
        return notes

    def iterations(self, points: Iterable[Point]) -> Iterator[Point]:
        """The points again, counted."""
        for self._iteration, point in enumerate(points):
            yield point

    def _note(self, site: int, array: Array) -> Note:
        base, strides = array.__array_interface__["data"][0], array.strides
        logs = {letter: IntArray("q") for letter in _KINDS}
        for letter, kind in _KINDS.items():
            self._logs[site, kind] = logs[letter]
        if len(strides) == 1:
            (stride,) = strides

            def note_element(kind: str, index: int) -> None:
                logs[kind[0]].extend((self._iteration, base + index * stride))

            return note_element

        def note(kind: str, *index: int) -> None:
            address = base + sum(i * s for i, s in zip(index, strides, strict=True))
            logs[kind[0]].extend((self._iteration, address))

        return note

    def race(self) -> tuple[Touch, Touch] | None:
        """The race whose first iteration comes first, if there is any; iterations ascend."""
        table = self._table()
        if not table.size:
            return None
        cells, iterations, kinds, _ = table = table[:, np.argsort(table[0], kind="stable")]
        starts = np.flatnonzero(np.r_[True, cells[1:] != cells[:-1]])
        first = np.minimum.reduceat(iterations, starts)
        several = first != np.maximum.reduceat(iterations, starts)
        strongest = np.maximum.reduceat(kinds, starts)
        weakest = np.minimum.reduceat(kinds, starts)
        # Of two iterations one writes, or one updates atomically what the other just reads.
        racing = several & ((strongest == WRITE) | ((strongest == ATOMIC) & (weakest == READ)))
        if not racing.any():
            return None
        group = int(np.flatnonzero(racing)[np.argmin(first[racing])])
        end = starts[group + 1] if group + 1 < len(starts) else len(cells)
        return _pair(table[1:, starts[group] : end])

    def _table(self) -> Array:
        """Rows: cell, iteration, kind, site; a column for each access and each cell it covers."""
        parts = []
        for (site, kind), log in self._logs.items():
            pairs = np.frombuffer(log, dtype=np.int64).reshape(-1, 2)
            for piece in range(self._sizes[site] // self._cell):
                part = np.empty((4, len(pairs)), dtype=np.int64)
                part[0], part[1] = pairs[:, 1] // self._cell + piece, pairs[:, 0]
                part[2], part[3] = kind, site
                parts.append(part)
        return np.concatenate(parts, axis=1) if parts else np.empty((4, 0), dtype=np.int64)


def _pair(touches: Array) -> tuple[Touch, Touch]:
    """The first two accesses to a cell, given as columns, that race."""
    order = np.argsort(touches[0], kind="stable")
    seen: dict[int, list[Touch]] = {READ: [], ATOMIC: [], WRITE: []}
    for iteration, kind, site in touches[:, order].T.tolist():
        touch = Touch(site, kind, iteration)
        for other_kind, others in seen.items():
            if not _collide(kind, other_kind):
                continue
            for other in others:
                if other.iteration != iteration:
                    return other, touch
        known = seen[kind]  # one of each kind, from the first iteration, is enough
        if not known:
            known.append(touch)
    raise AssertionError("a cell without the race that was found in it")


def _collide(kind: int, other: int) -> bool:
    return WRITE in (kind, other) or {kind, other} == {READ, ATOMIC}
