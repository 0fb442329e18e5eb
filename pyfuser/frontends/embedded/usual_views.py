"""Views of usual arguments: what they have in common is looked up once."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfuser.frontends.embedded.data_types import real
from pyfuser.frontends.embedded.spaces import Defaults, Layout, MemorySpace, Trait
from pyfuser.frontends.embedded.view_memory import NO_ROW
from pyfuser.ir.dtypes import DType
from pyfuser.runtime.session import TRACER
from pyfuser.support.caches import Table
from pyfuser.support.extension import HOT
from pyfuser.trace import pool
from pyfuser.trace.memory import Allocation, Handle, Region, Unmade

SPACE, LAYOUT, TRAIT = MemorySpace.MemorySpaceDefault, Layout.LayoutDefault, Trait.TraitDefault
"""What the other arguments of usual Views are."""

_LISTS, _INT = (list, tuple), {int}

_KNOWN: Table[Any, tuple[Any, ...]] = Table("views", 4096)
"""Of Views that were made, by shape, type and defaults: what they have in common."""


def init_usual(
    view: Any, shape: Any, dtype: Any, space: Any, layout: Any, trait: Any, array: Any
) -> bool:
    """`View._init_view` for a list of plain integers, a class of numbers, and nothing else.

    False: it is not that, and nothing was done.
    """
    if array is not None or space is not SPACE or layout is not LAYOUT or trait is not TRAIT:
        return False
    if type(dtype) is not type or dtype is real or type(shape) not in _LISTS:
        return False
    extents = tuple(shape)
    if {*map(type, extents)} != _INT:  # True equals 1, and so do other numbers
        return False
    known = common_of(extents, dtype)
    if known is None:
        view._init_view(extents, dtype, SPACE, LAYOUT, TRAIT)
        buffer, _, strides, held, element = view._region
        common = view.dtype, view.layout, view.space, view._code, view._plain, view.size
        key = extents, dtype, Defaults.space, Defaults.uvm
        _KNOWN.keep(key, (*common, buffer.nbytes, strides, held, element, extents, len(extents)))
        return True
    view.dtype, view.layout, view.space, view._code, view._plain, view.size, *memory = known
    view.trait = TRAIT
    region, view._handle = new_memory(*memory[:-2])
    view._memory = view._array = view._given = None  # before the region: see `_attach`
    view._last_row = NO_ROW
    view._region = region
    view.shape, view.ndim = memory[-2:]
    return True


def common_of(extents: tuple[int, ...], dtype: type) -> tuple[Any, ...] | None:
    """What Views of a shape and type have in common, if one was made."""
    return _KNOWN.get((extents, dtype, Defaults.space, Defaults.uvm))


def new_memory(
    size: int, strides: tuple[int, ...], shape: tuple[int, ...], element: DType
) -> tuple[Region, Handle]:
    """A region of new memory, and what is shared by all who can reach it."""
    handle = Handle()
    buffer = Unmade(size, handle)
    if TRACER.watch is not None:
        TRACER.watch.made(buffer)
    return Region(buffer, 0, strides, shape, element), handle


def _nothing(view: Any, key: Any) -> Any:
    """`part_of` without the extension."""


usual, part_of = init_usual, _nothing
if HOT is not None:
    HOT.bind_memory(
        Handle, Allocation, Unmade, np.ndarray, pool.SMALL, pool.POOL.give,
        (pool.SMALLEST, pool.SIZES, pool.COUNT, pool.EACH),
    )  # fmt: skip
    HOT.bind_views(Defaults, init_usual, common_of, real, SPACE, LAYOUT, TRAIT, NO_ROW)
    usual, part_of = HOT.init_usual, HOT.part_of
