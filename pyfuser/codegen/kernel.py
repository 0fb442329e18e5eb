"""What a native kernel's code depends on, and nothing else: the key of compiled kernels.

A KernelSpec holds no data, no extents and no addresses: two kernels of equal spec run the same
machine code. It does hold what lets the code be fast, such as which axis of a view is contiguous.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyfuser.ir.accesses import accesses
from pyfuser.ir.canonical import all_syms, canonical
from pyfuser.ir.divisions import divisions
from pyfuser.ir.effects import written_views
from pyfuser.ir.nodes import Body, SourceLocation, Workunit
from pyfuser.nest.nodes import LoopOrder, given_order
from pyfuser.nest.passes.loop_order import SERIAL_SPACES, loop_order
from pyfuser.trace.shape import RegionShape
from pyfuser.transform.kernel import Kernel
from pyfuser.tuning.target import Target, host
from pyfuser.tuning.thresholds import DEFAULT, Tuning

LONG_ROW = 64
"""Iterations of an innermost loop that asks for memory ahead (see `passes.prefetch`): loops over
rows of 3 took 1.3 times as long, over rows of 20 0.95 times."""

UNIT = -1
"""The stride class of an axis along which elements are contiguous."""


@dataclass(frozen=True, slots=True)
class ViewSpec:
    """How a view parameter is addressed.

    strides: a stride class for each axis: UNIT, or a number; axes (of all views of the kernel) of
    one number have the same stride, so that the code computes with one variable.
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
    loops; long_rows: whether the innermost has LONG_ROW iterations, or is the only one. `names` are
    the user's names of `all_syms(workunit)`; like `title` they are for readers only. `sites` has
    the `accesses` and then the `divisions` of a checked kernel, which tests their subscripts and
    divisors; it is None for all others. target: the processor; tuning: the numbers that code is
    tuned by.
    """

    workunit: Workunit
    pattern: str
    views: tuple[ViewSpec | None, ...]
    serial: bool
    order: LoopOrder
    title: str = field(default="", compare=False)
    names: tuple[str, ...] = field(default=(), compare=False)
    sites: tuple[Site, ...] | None = None
    long_rows: bool = True
    target: Target = field(default_factory=host)
    tuning: Tuning = DEFAULT

    @property
    def rank(self) -> int:
        """The number of dimensions of the iteration space."""
        return len(self.workunit.indices)

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


def names_of(spec: KernelSpec | SweepSpec) -> tuple[tuple[str, ...], ...]:
    """What messages call each loop and its Syms; equal specs may differ in that."""
    loops = spec.stages if isinstance(spec, SweepSpec) else (spec,)
    return tuple((loop.title, *loop.names) for loop in loops)


def spec_of(
    kernel: Kernel,
    checked: Workunit | None = None,
    target: Target | None = None,
    tuning: Tuning | None = None,
) -> KernelSpec:
    """The spec of a kernel.

    checked: the one workunit that a kernel was made of, if its accesses are to be tested. The
    iterations of such a kernel run in ascending order on one thread, so that the first mistake is
    found, and the same one every time. target: this machine's processor by default.
    """
    workunit = kernel.workunit
    written = written_views(workunit)
    aliased = {
        sym for pair in kernel.overlaps if pair & written for sym in pair
    }  # an overlap of two views that are only read constrains nobody
    classes: dict[tuple[int, bool], int] = {}
    views: list[ViewSpec | None] = []
    order = given_order(len(workunit.indices)) if checked is not None else loop_order(kernel)
    serial = checked is not None or kernel.space.execution in SERIAL_SPACES
    for param, shape in zip(workunit.params, kernel.shapes, strict=True):
        if not param.rank:
            views.append(None)
            continue
        assert isinstance(shape, RegionShape)
        size = shape.dtype.size
        packed = all(stride % size == 0 for stride in shape.strides)
        strides, restrict = _stride_classes(shape, packed, classes), param.sym not in aliased
        views.append(
            ViewSpec(
                strides=strides,
                restrict=restrict,
                written=param.sym in written,
                packed=packed,
            )
        )
    return KernelSpec(
        workunit=canonical(workunit),
        pattern=kernel.pattern,
        views=tuple(views),
        serial=serial,
        order=order,
        title=workunit.name,
        names=tuple(sym.name for sym in all_syms(workunit)),
        sites=_sites(checked.body) if checked is not None else None,
        target=target or host(),
        tuning=tuning or DEFAULT,
        long_rows=len(workunit.indices) == 1 or kernel.space.shape[order.axes[-1]] >= LONG_ROW,
    )


def _sites(body: Body) -> tuple[Site, ...]:
    """What a checked kernel tests, in the order of its reports."""
    found = [Site(access.view.name, access.location) for access in accesses(body)]
    found += [Site(None, division.location) for division in divisions(body)]
    return tuple(found)


def _stride_classes(
    shape: RegionShape, packed: bool, classes: dict[tuple[int, bool], int]
) -> tuple[int, ...]:
    size = shape.dtype.size
    result = []
    for stride in shape.strides:
        key = (stride // size if packed else stride, packed)
        result.append(UNIT if key == (1, True) else classes.setdefault(key, len(classes)))
    if result.count(UNIT) > 1:  # an axis of extent 1 beside the contiguous one: prefer the last
        last = len(result) - 1 - result[::-1].index(UNIT)
        spare = classes.setdefault((1, True), len(classes))
        result = [spare if c == UNIT and axis != last else c for axis, c in enumerate(result)]
    return tuple(result)
