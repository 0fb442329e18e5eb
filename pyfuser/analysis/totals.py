"""Sums of integers that their accumulator cannot hold, as far as it is known what is added up.

That is what depends on indices alone, and elements of views that nothing pending writes: these are
added up in memory, once a shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from pyfuser.analysis.elements import known_elements
from pyfuser.analysis.evaluate import Fact
from pyfuser.analysis.interpret import Interpreter
from pyfuser.analysis.intervals import fits
from pyfuser.analysis.relation import Relation
from pyfuser.ir import nodes
from pyfuser.ir.definitions import loaded
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Accumulator, Body, Load, SourceLocation, Sym, Workunit
from pyfuser.ir.visit import as_written, statements
from pyfuser.trace.call import Call
from pyfuser.trace.shape import CallShape


class Total(NamedTuple):
    """What an accumulator would be, and cannot."""

    accumulator: Sym
    value: int
    location: SourceLocation | None


class _Term(NamedTuple):
    """What is added in all iterations: an element of a view, or else the value, a function of the
    variables over whose ranges is summed.
    """

    element: Load | None
    relation: Relation
    over: tuple[int, ...]


def lost_totals(
    shape: CallShape, facts: Sequence[Fact], call: Call, before: Sequence[Call]
) -> Iterator[Total]:
    """The sums that are certainly too large. before: calls that run first and have not run."""
    unit = shape.workunit
    for accumulator in unit.accumulators:
        dtype = accumulator.sym.dtype
        if not dtype.is_signed or dtype.is_float or dtype.size == DType.INT64.size:
            continue  # unsigned sums may mean to wrap
        walk = _Walk(unit, shape.space.begin, shape.space.end, tuple(facts))
        total, known = 0, walk.terms(accumulator)
        for term in known or ():
            value = _sum(term, call, before)
            if value is None:
                break
            total += value
        else:
            if known and not fits((total, total), dtype):
                yield Total(accumulator.sym, total, _place(unit, accumulator))


def _place(unit: Workunit, accumulator: Accumulator) -> SourceLocation | None:
    for stmt in statements(unit.body):
        if isinstance(stmt, nodes.Update) and stmt.target == accumulator.sym:
            return stmt.location or unit.location
    return unit.location


class _Walk(Interpreter):
    """Gathers what is added to an accumulator."""

    def terms(self, accumulator: Accumulator) -> list[_Term] | None:
        """All that is added to it; None if that is not known."""
        self._accumulator = accumulator.sym
        self._terms: list[_Term] | None = []
        self.run()
        return self._terms

    def execute(self, body: Body) -> None:
        for stmt in body:
            if isinstance(stmt, nodes.Update) and stmt.target == self._accumulator:
                self._add(stmt)
            elif isinstance(stmt, nodes.Assign) and stmt.sym == self._accumulator:
                self._terms = None
            super().execute((stmt,))

    def _add(self, stmt: nodes.Update) -> None:
        value = as_written(stmt.value)
        element = loaded(value, self.workunit)
        if element is not None and element.view not in self.views:
            element = None
        wanted = (value,) if element is None else element.indices
        known = tuple(self.affine(index) for index in wanted)
        relation = self._relation(known)
        if stmt.op != "+" or self._terms is None or None in known or not relation.box:
            self._terms = None
            return
        over = (*range(len(self.begin)), *self.loops)
        self._terms.append(_Term(element, relation, over))


def _sum(term: _Term, call: Call, before: Sequence[Call]) -> int | None:
    ranges = term.relation.ranges
    trips = {number: ranges[number][1] - ranges[number][0] + 1 for number in term.over}
    count = prod(trips.values())
    if count <= 0:
        return 0
    if term.element is None:
        (value,) = term.relation.indices
        assert value is not None
        if not {number for number, _ in value.terms} <= trips.keys():
            return None
        ends = sum(factor * sum(ranges[number]) for number, factor in value.terms)
        return value.constant * count + ends * count // 2
    found = known_elements(call, term.element, term.relation, before)
    if found is None or not found[1].size:
        return None
    elements = found[1]
    if not fits((int(elements.min()), int(elements.max())), DType.INT32):
        return None  # each of them is cut before it is added
    return int(elements.sum(dtype=np.int64)) * (count // elements.size)
