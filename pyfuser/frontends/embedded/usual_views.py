"""Views of usual arguments: what they have in common is looked up once."""

from __future__ import annotations

from typing import Any

from pyfuser.frontends.embedded.data_types import real
from pyfuser.frontends.embedded.spaces import Defaults, Layout, MemorySpace, Trait
from pyfuser.frontends.embedded.view_memory import NO_ROW
from pyfuser.ir.dtypes import DType
from pyfuser.runtime.session import TRACER
from pyfuser.support.caches import Table
from pyfuser.trace.memory import Allocation, Handle, Region

SPACE, LAYOUT, TRAIT = MemorySpace.MemorySpaceDefault, Layout.LayoutDefault, Trait.TraitDefault
"""What the other arguments of usual Views are."""

_LISTS, _INT = (list, tuple), {int}

_KNOWN: Table[Any, tuple[Any, ...]] = Table("views", 4096)
"""Of Views that were made, by shape, type and defaults: what they have in common."""


def init_usual(view: Any, shape: Any, dtype: Any) -> bool:
    """`View._init_view` for a list of plain integers and a class of numbers; False: it is not."""
    if type(dtype) is not type or dtype is real or type(shape) not in _LISTS:
        return False
    extents = tuple(shape)
    if {*map(type, extents)} != _INT:  # True equals 1, and so do other numbers
        return False
    key = extents, dtype, Defaults.space, Defaults.uvm
    known = _KNOWN.get(key)
    if known is None:
        view._init_view(extents, dtype, SPACE, LAYOUT, TRAIT)
        buffer, _, strides, held, element = view._region
        common = view.dtype, view.layout, view.space, view._code, view._plain, view.size
        _KNOWN.keep(key, (*common, buffer.nbytes, strides, held, element))
        return True
    view.dtype, view.layout, view.space, view._code, view._plain, view.size, *memory = known
    view.trait = TRAIT
    region, view._handle = new_memory(*memory)
    view._memory = view._array = view._given = None  # before the region: see `_attach`
    view._last_row = NO_ROW
    view._region = region
    view.shape = extents
    view.ndim = len(extents)
    return True


def new_memory(
    size: int, strides: tuple[int, ...], shape: tuple[int, ...], element: DType
) -> tuple[Region, Handle]:
    """A region of new memory, and what is shared by all who can reach it."""
    handle = Handle()
    buffer = Allocation(size, handle)
    if TRACER.watch is not None:
        TRACER.watch.made(buffer)
    return Region(buffer, 0, strides, shape, element), handle
