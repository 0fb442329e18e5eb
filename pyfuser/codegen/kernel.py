"""The spec of a kernel: what its code depends on (see `nest.spec`)."""

from __future__ import annotations

from pyfuser.ir.accesses import accesses
from pyfuser.ir.canonical import all_syms, canonical
from pyfuser.ir.divisions import divisions
from pyfuser.ir.effects import written_views
from pyfuser.ir.nodes import Body, Workunit
from pyfuser.nest.passes.loop_order import SERIAL_SPACES, loop_order
from pyfuser.nest.short_rows import short_rows
from pyfuser.nest.spec import UNIT, KernelSpec, Site, ViewSpec, given_order
from pyfuser.trace.shape import RegionShape
from pyfuser.transform.kernel import Kernel
from pyfuser.tuning.target import Target, host
from pyfuser.tuning.thresholds import NOW, Tuning


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
    workunit, tuning = kernel.workunit, tuning or NOW.tuning
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
        short = short_rows(workunit.body, param.sym, shape) if packed else frozenset[int]()
        strides, restrict = _stride_classes(shape, packed, short, classes), param.sym not in aliased
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
        place="" if workunit.location is None else str(workunit.location),
        names=tuple(sym.name for sym in all_syms(workunit)),
        sites=_sites(checked.body) if checked is not None else None,
        tables=() if serial else kernel.tables,
        target=target or host(),
        tuning=tuning,
        long_rows=len(workunit.indices) == 1
        or kernel.space.shape[order.axes[-1]] >= tuning.long_row,
    )


def _sites(body: Body) -> tuple[Site, ...]:
    """What a checked kernel tests, in the order of its reports."""
    found = [Site(access.view.name, access.location) for access in accesses(body)]
    found += [Site(None, division.location) for division in divisions(body)]
    return tuple(found)


def _stride_classes(
    shape: RegionShape, packed: bool, short: frozenset[int], classes: dict[tuple[int, bool], int]
) -> tuple[int, ...]:
    size = shape.dtype.size
    result = []
    for axis, stride in enumerate(shape.strides):
        key = (stride // size if packed else stride, packed)
        if axis in short:
            result.append(-key[0])
            continue
        result.append(UNIT if key == (1, True) else classes.setdefault(key, len(classes)))
    if result.count(UNIT) > 1:  # an axis of extent 1 beside the contiguous one: prefer the last
        last = len(result) - 1 - result[::-1].index(UNIT)
        spare = classes.setdefault((1, True), len(classes))
        result = [spare if c == UNIT and axis != last else c for axis, c in enumerate(result)]
    return tuple(result)
