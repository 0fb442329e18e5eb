"""Workunits that the random programs call on arrays."""

from __future__ import annotations

from typing import Any

import pykokkos as pk

import pyfuser


@pyfuser.fuse
@pk.workunit
def twice(i, x):
    x[i] = 2.0 * x[i]


def double(array: Any) -> None:
    """`array *= 2.0` of one axis, on the host if a GPU refuses its memory."""
    if array.size:
        memory = getattr(array, "__pyfuser_memory__", lambda: None)()
        space = pk.OpenMP if memory is None else pk.ExecutionSpace.Default
        pk.parallel_for(pk.RangePolicy(space, 0, array.size), twice, x=array)
        if memory is None or memory[0].buffer.external:
            pyfuser.sync()  # as PyKokkos programs do where others reach the memory
