"""What a native kernel's code depends on, and nothing else: the key of compiled kernels.

A KernelSpec holds no data, no extents and no addresses: two kernels of equal spec run the same
machine code. It does hold what lets the code be fast, such as which axis of a view is contiguous.
"""

from __future__ import annotations

from dataclasses import field
from typing import NamedTuple

from pyfuser.ir.canonical import all_syms
from pyfuser.ir.nodes import SourceLocation, Sym, Workunit
from pyfuser.support.records import dataclass
from pyfuser.tuning.target import Target, host
from pyfuser.tuning.thresholds import DEFAULT, Tuning


class LoopOrder(NamedTuple):
    """The axes of a space, outermost first.

    block: if it is not 0, the last two are cut into blocks, of so many iterations along the first
    of them (see `Nest.along` for the other).
    """

    axes: tuple[int, ...]
    block: int = 0

    @property
    def as_given(self) -> bool:
        """Whether these are the loops that the program wrote."""
        return self == given_order(len(self.axes))


def given_order(rank: int) -> LoopOrder:
    """The loops that the program wrote: the last axis innermost."""
    return LoopOrder(tuple(range(rank)))


UNIT = -1
"""The stride class of an axis along which elements are contiguous."""


@dataclass(frozen=True, slots=True)
class ViewSpec:
    """How a view parameter is addressed.

    strides: a stride class for each axis: a number from 0 on, or a constant, which is the negated
    stride in elements, as UNIT is. Axes (of all views of the kernel) of one number have the same
    stride, so that the code computes with one variable.
    restrict: no other view that overlaps it is written, and nor is it itself if any overlaps.
    packed: strides are multiples of the element; if not, the strides are in bytes.
    """

    strides: tuple[int, ...]
    restrict: bool
    written: bool
    packed: bool = True

    @property
    def unit_axis(self) -> int | None:
        """The axis along which elements are contiguous, if there is one."""
        return self.strides.index(UNIT) if UNIT in self.strides else None


@dataclass(frozen=True, slots=True)
class Site:
    """An access in the user's source: the name of the view or local array, and the place.

    A division of integers is of no view.
    """

    view: str | None
    location: SourceLocation | None


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """A kernel without its data.

    `views[k]` belongs to `workunit.params[k]` and is None for scalars. `order` is that of a map's
    loops; long_rows: whether the innermost is long, or is the only one. `title`,
    `place` (of the user's first workunit) and `names` (of `all_syms(workunit)`) are for readers
    only. `sites` has the `accesses` and then the `divisions` of a checked kernel, which tests their
    subscripts and divisors; it is None for all others. tables: see `Kernel.tables`. target: the
    processor; tuning: the numbers that code is tuned by.
    """

    workunit: Workunit
    pattern: str
    views: tuple[ViewSpec | None, ...]
    serial: bool
    order: LoopOrder
    title: str = field(default="", compare=False)
    place: str = field(default="", compare=False)
    names: tuple[str, ...] = field(default=(), compare=False)
    sites: tuple[Site, ...] | None = None
    long_rows: bool = True
    tables: tuple[tuple[int, int], ...] = ()
    target: Target = field(default_factory=host)
    tuning: Tuning = DEFAULT

    @property
    def rank(self) -> int:
        """The number of dimensions of the iteration space."""
        return len(self.workunit.indices)

    @property
    def views_by_name(self) -> dict[Sym, ViewSpec]:
        """How each view is addressed."""
        pairs = zip(self.workunit.params, self.views, strict=True)
        return {param.sym: view for param, view in pairs if view is not None}

    @property
    def checked(self) -> bool:
        """Whether subscripts are tested before memory is touched."""
        return self.sites is not None

    def names_of_params(self) -> tuple[str, ...]:
        """The user's names of the parameters, for messages."""
        first = self.rank
        names = self.names or tuple(sym.name for sym in all_syms(self.workunit))
        return names[first : first + len(self.workunit.params)]


@dataclass(frozen=True, slots=True)
class SweepSpec:
    """Loops that run as a wavefront in one launch (see `plan.wavefront`); at least two.

    rolling: for each view that is kept only as long as loops read it, the parameters (loop, place)
    that stand for it.
    """

    stages: tuple[KernelSpec, ...]
    rolling: tuple[tuple[tuple[int, int], ...], ...] = ()

    @property
    def title(self) -> str:
        """For readers only."""
        return "sweep of " + ", ".join(stage.title for stage in self.stages)

    @property
    def serial(self) -> bool:
        """Whether one thread runs everything."""
        return any(stage.serial for stage in self.stages)


def loops_of(spec: KernelSpec | SweepSpec) -> tuple[KernelSpec, ...]:
    """The loops of a launch."""
    return spec.stages if isinstance(spec, SweepSpec) else (spec,)


def names_of(spec: KernelSpec | SweepSpec) -> tuple[tuple[str, ...], ...]:
    """What messages call each loop and its Syms; equal specs may differ in that."""
    return tuple((loop.title, loop.place, *loop.names) for loop in loops_of(spec))
