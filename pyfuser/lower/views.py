"""What a name of a view stands for: a view parameter, or a subview of one.

Subviews are resolved while lowering: an access through one becomes an access of the base view.
"""

from __future__ import annotations

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Expr, Extent, Sym
from pyfuser.lower import convert
from pyfuser.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Axis:
    """How one axis of the base view is seen.

    `fixed`: always this index; the axis is not visible. Else a visible axis, which starts at
    `offset` (None: 0) and has `length` elements (None: as the base).
    """

    fixed: Expr | None = None
    offset: Expr | None = None
    length: Expr | None = None


@dataclass(frozen=True, slots=True)
class ViewRef:
    """A view or subview: a base view and how each of its axes is seen."""

    sym: Sym
    axes: tuple[Axis, ...]

    @property
    def dtype(self) -> DType:
        return self.sym.dtype

    @property
    def rank(self) -> int:
        """The number of visible axes."""
        return sum(axis.fixed is None for axis in self.axes)

    def indices(self, visible: list[Expr]) -> tuple[Expr, ...]:
        """Indices into the base view for indices into this one; the lengths must agree."""
        given = iter(visible)
        result = []
        for axis in self.axes:
            if axis.fixed is not None:
                result.append(axis.fixed)
                continue
            index = next(given)
            result.append(convert.binary("+", axis.offset, index) if axis.offset else index)
        return tuple(result)

    def extent(self, visible: int) -> Expr:
        """The length of a visible axis."""
        places = [n for n, axis in enumerate(self.axes) if axis.fixed is None]
        place = places[visible]
        length = self.axes[place].length
        return Extent(self.sym, place) if length is None else length

    def narrowed(self, parts: list[Axis]) -> ViewRef:
        """The subview that sees each visible axis as the part says."""
        given = iter(parts)
        return ViewRef(
            self.sym,
            tuple(a if a.fixed is not None else _compose(a, next(given)) for a in self.axes),
        )


def whole(sym: Sym, rank: int) -> ViewRef:
    """A view parameter."""
    return ViewRef(sym, (Axis(),) * rank)


def _compose(outer: Axis, part: Axis) -> Axis:
    offset = outer.offset
    if part.fixed is not None:
        fixed = part.fixed if offset is None else convert.binary("+", offset, part.fixed)
        return Axis(fixed=fixed)
    if part.offset is None:
        start = offset
    else:
        start = part.offset if offset is None else convert.binary("+", offset, part.offset)
    return Axis(offset=start, length=part.length if part.length is not None else outer.length)


@dataclass(frozen=True, slots=True)
class LocalArray:
    """A local array of constant length."""

    sym: Sym
    length: int
