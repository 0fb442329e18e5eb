"""What the extension fills in when it launches (a `Patch` of `hot/hot.h`), by the numbers there."""

from __future__ import annotations

from pyfuser.ir.dtypes import DType

KINDS = {
    "threads": 0, "pointer": 1, "scalar": 2, "begin": 3, "end": 4,
    # on a device: a pointer that is written, what a launch makes, a scalar that may be there
    "written": 5, "results": 6, "workspace": 7, "number": 8,
}  # fmt: skip

NUMBERS = {dtype: n for n, dtype in enumerate(DType)}
"""Of types."""

NOBODY = (-1, 0)
"""In place of an heir, whose memory a pointer gets: it gets none's."""
