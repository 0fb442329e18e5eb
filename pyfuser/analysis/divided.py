"""Divisions of integers that iterations make for sure, and what they divide by; steps of loops.

A loop whose step is 0 never ends, if it starts below its end and nothing in it changes that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from pyfuser.analysis.affine import Affine, PointSet
from pyfuser.analysis.evaluate import Fact
from pyfuser.analysis.interpret import Interpreter
from pyfuser.analysis.relation import Relation
from pyfuser.ir.definitions import loaded
from pyfuser.ir.divisions import Division, divisor_of, may_fail
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Body,
    Break,
    Compare,
    Const,
    For,
    If,
    Load,
    Stmt,
    Store,
    Sym,
    Workunit,
)
from pyfuser.ir.visit import assigned, contains, reads, statements, written


class SureDivision(NamedTuple):
    """`relation` has the divisor as a function of the iteration; or, if it is an element, which."""

    division: Division
    relation: Relation
    element: Load | None = None


class SureStep(NamedTuple):
    """The step of a loop as a function of the iterations that enter it."""

    loop: For
    relation: Relation


def sure_divisions(
    workunit: Workunit, begin: tuple[int, ...], end: tuple[int, ...], facts: Sequence[Fact]
) -> tuple[list[SureDivision], list[SureStep]]:
    """The divisions of a call by functions that are known, and by elements of views; and steps.

    Kernels test the divisors of 64-bit divisions themselves (`division.h`), so elements that those
    divide by are left out.
    """
    walk = _Walk(workunit, begin, end, tuple(facts))
    walk.run()
    return walk.sure, walk.steps


def has_steps(body: Body) -> bool:
    """Whether the step of some loop is no number."""
    return any(isinstance(s, For) and not isinstance(s.step, Const) for s in statements(body))


class _Element(NamedTuple):
    view: Sym
    indices: tuple[Affine | None, ...]


class _Stored(NamedTuple):
    """A number that the same iteration has stored before, and where it has."""

    where: PointSet
    value: Affine


class _Walk(Interpreter):
    def run(self) -> tuple[()]:
        self.sure: list[SureDivision] = []
        self.steps: list[SureStep] = []
        self._stored: dict[_Element, _Stored] = {}
        super().run()
        return ()

    def execute(self, body: Body) -> None:
        for stmt in body:
            if isinstance(stmt, For) and not isinstance(stmt.step, Const):
                entered = Compare("<", stmt.start, stmt.stop)
                self._under(entered, True, partial(self._record_step, stmt))
            super().execute((stmt,))
            self._remember(stmt)

    def _remember(self, stmt: Stmt) -> None:
        """What elements are after a statement, where it or a branch of it has stored a number."""
        if not isinstance(stmt, If):  # whose statements came here
            changed = written((stmt,))
            self._stored = {e: s for e, s in self._stored.items() if e.view not in changed}
        if not isinstance(stmt, Store) or not self.exact or self.loops:
            return
        value = self.affine(stmt.value)
        indices = tuple(self.affine(index) for index in stmt.indices)
        if value is not None and None not in indices and stmt.view in self.views:
            self._stored[_Element(stmt.view, indices)] = _Stored(self.guard, value)

    def _record_step(self, loop: For) -> None:
        if not self.exact or contains(loop.body, Break):
            return
        if assigned(loop.body) & {loop.sym, *reads(loop.step, loop.stop)}:
            return
        step = self.affine(loop.step)
        if step is not None:
            self.steps.append(SureStep(loop, self._relation((step,))))

    def _record_division(self, division: Division, dtype: DType) -> None:
        divisor = divisor_of(division)
        if not (self.exact and may_fail(division.op, dtype, divisor)):
            return
        for points, exact, known in self.cases(divisor) or ():
            self._where(points, exact, partial(self._divide_by, division, known))
        element = loaded(divisor, self.workunit) if dtype.size < DType.INT64.size else None
        if element is None or element.view not in self.views:
            return
        indices = tuple(self.affine(index) for index in element.indices)
        if None in indices:
            return
        stored = self._stored.get(_Element(element.view, indices))
        if stored is not None:
            self._where(stored.where, True, partial(self._divide_by, division, stored.value))
        self.sure.append(SureDivision(division, self._relation(indices), element))

    def _divide_by(self, division: Division, value: Affine) -> None:
        if self.exact:
            self.sure.append(SureDivision(division, self._relation((value,))))
