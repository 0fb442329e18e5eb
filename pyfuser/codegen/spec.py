"""What a native kernel's code depends on, and nothing else: the key of compiled kernels.

A KernelSpec holds no data, no extents and no addresses: two kernels of equal spec run the same
machine code. It does hold what lets the code be fast, such as which axis of a view is contiguous.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyfuser.ir import nodes
from pyfuser.ir.canonical import all_syms, canonical
from pyfuser.ir.nodes import Sym, Workunit
from pyfuser.ir.visit import all_expressions, statements
from pyfuser.trace.shape import RegionShape
from pyfuser.transform.kernel import Kernel

UNIT = -1
"""The stride class of an axis along which elements are contiguous."""

_SERIAL_SPACES = frozenset({"Serial"})


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
class KernelSpec:
    """A kernel without its data.

    `views[k]` belongs to `workunit.params[k]` and is None for scalars. `names` are the user's
    names of `all_syms(workunit)`; like `title` they are for readers only.
    """

    workunit: Workunit
    pattern: str
    views: tuple[ViewSpec | None, ...]
    serial: bool
    title: str = field(default="", compare=False)
    names: tuple[str, ...] = field(default=(), compare=False)

    @property
    def rank(self) -> int:
        """The number of dimensions of the iteration space."""
        return len(self.workunit.indices)

    def names_of_params(self) -> tuple[str, ...]:
        """The user's names of the parameters, for messages."""
        first = self.rank
        names = self.names or tuple(sym.name for sym in all_syms(self.workunit))
        return names[first : first + len(self.workunit.params)]


def spec_of(kernel: Kernel) -> KernelSpec:
    """The spec of a kernel."""
    workunit = kernel.workunit
    written = written_views(workunit)
    aliased = {
        sym for pair in kernel.overlaps if pair & written for sym in pair
    }  # an overlap of two views that are only read constrains nobody
    classes: dict[tuple[int, bool], int] = {}
    views: list[ViewSpec | None] = []
    for param, shape in zip(workunit.params, kernel.shapes, strict=True):
        if not param.rank:
            views.append(None)
            continue
        assert isinstance(shape, RegionShape)
        size = shape.dtype.size
        packed = all(stride % size == 0 for stride in shape.strides)
        views.append(
            ViewSpec(
                strides=_stride_classes(shape, packed, classes),
                restrict=param.sym not in aliased,
                written=param.sym in written,
                packed=packed,
            )
        )
    return KernelSpec(
        workunit=canonical(workunit),
        pattern=kernel.pattern,
        views=tuple(views),
        serial=kernel.space.execution in _SERIAL_SPACES,
        title=workunit.name,
        names=tuple(sym.name for sym in all_syms(workunit)),
    )


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


def written_views(workunit: Workunit) -> frozenset[Sym]:
    """The view parameters that a workunit writes (atomically or not)."""
    params = {param.sym for param in workunit.params if param.rank}
    written: set[Sym] = set()
    for stmt in statements(workunit.body):
        if isinstance(stmt, nodes.Store):
            written.add(stmt.view)
        elif isinstance(stmt, nodes.Update) and stmt.indices:
            written.add(stmt.target)
    fetches = (e for e in all_expressions(workunit.body) if isinstance(e, nodes.AtomicFetch))
    written.update(e.view for e in fetches)
    return frozenset(written & params)
