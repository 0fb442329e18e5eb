"""What one access touches: a relation from iterations to elements."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from pyfuser.analysis.affine import Affine, Interval, PointSet
from pyfuser.ir.nodes import SourceLocation


class Mode(Enum):
    READ = "read"
    WRITE = "write"
    REDUCE = "reduce"  # an atomic update whose old value nobody sees

    __hash__ = object.__hash__


class Relation(NamedTuple):
    """The pairs (iteration, element) of an access.

    Iterations lie in the box begin <= index < end and in `domain`, which also ties the inner
    variables. indices: one affine function a dimension, None where it is not known (any element
    along that dimension). ranges: bounds of each variable where the access happens. box: it
    happens for all combinations of all variables in their ranges. vague: some variable stands for
    a value of which only the bounds are known.
    """

    begin: tuple[int, ...]
    end: tuple[int, ...]
    indices: tuple[Affine | None, ...]
    domain: PointSet
    ranges: tuple[Interval, ...]
    box: bool
    vague: bool = False

    @property
    def everywhere(self) -> bool:
        """Whether the access happens in every iteration."""
        space = tuple((low, end - 1) for low, end in zip(self.begin, self.end, strict=True))
        return self.box and self.ranges[: len(space)] == space


class Access(NamedTuple):
    """One access of `workunit.params[param]`; `op` is the operator of a REDUCE."""

    param: int
    mode: Mode
    op: str
    relation: Relation
    location: SourceLocation | None
    exact: bool
