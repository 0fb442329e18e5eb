"""What a row of a View has."""

from __future__ import annotations

import math
from typing import Any

from pyfuser.frontends.embedded.view_memory import FLAGS, NO_ROW, ViewMemory, view_code
from pyfuser.trace.memory import Array, Region


def row_of(parent: ViewMemory, part: Region, memory: Array | None) -> dict[str, Any]:
    """All that a Row has, in the order of `_attach`."""
    return {
        "_memory": memory,
        "_last_row": NO_ROW,
        "_region": part,
        "_handle": parent._handle,
        "_array": memory if parent._handle is None else None,
        "_code": view_code(part.dtype, len(part.shape)) | parent._code & FLAGS,
        "_plain": True,
        "shape": part.shape,
        "ndim": len(part.shape),
        "size": math.prod(part.shape),
        "space": parent.space,
        "layout": parent.layout,
        "trait": parent.trait,
        "dtype": part.dtype.numpy,
    }
