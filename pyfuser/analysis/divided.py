"""Divisions of integers that iterations make for sure, and what they divide by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyfuser.analysis.evaluate import Fact
from pyfuser.analysis.interpret import Interpreter
from pyfuser.analysis.relation import Relation
from pyfuser.ir.definitions import loaded
from pyfuser.ir.divisions import Division, divisor_of, may_fail
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Load, Workunit


class SureDivision(NamedTuple):
    """`relation` has the divisor as a function of the iteration; or, if it is an element, which."""

    division: Division
    relation: Relation
    element: Load | None = None


def sure_divisions(
    workunit: Workunit, begin: tuple[int, ...], end: tuple[int, ...], facts: Sequence[Fact]
) -> list[SureDivision]:
    """The divisions of a call by functions that are known, and by elements of views.

    Kernels test the divisors of 64-bit divisions themselves (`division.h`), so elements that those
    divide by are left out.
    """
    walk = _Walk(workunit, begin, end, tuple(facts))
    walk.run()
    return walk.sure


class _Walk(Interpreter):
    def run(self) -> tuple[()]:
        self.sure: list[SureDivision] = []
        super().run()
        return ()

    def _record_division(self, division: Division, dtype: DType) -> None:
        divisor = divisor_of(division)
        if not (self.exact and may_fail(division.op, dtype, divisor)):
            return
        known = self.affine(divisor)
        if known is not None:
            self.sure.append(SureDivision(division, self._relation((known,))))
            return
        element = loaded(divisor, self.body) if dtype.size < DType.INT64.size else None
        if element is None or element.view not in self.views:
            return
        indices = tuple(self.affine(index) for index in element.indices)
        if None not in indices:
            self.sure.append(SureDivision(division, self._relation(indices), element))
