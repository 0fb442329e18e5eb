"""Numbers that code is tuned by; where one was measured, it says where."""

from __future__ import annotations

BLOCK = 128
"""Iterations that are run together; of a reduction, terms that are computed before being added."""

TILE = 4096
"""Iterations that one partial result of a large reduction covers."""

TILES = 64
"""Partial results of a small reduction, so that threads can share it."""

SMALLEST_TILE = 8
"""Iterations of a tile where there are few."""
