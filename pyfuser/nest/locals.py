"""Names of locals that passes make (see `nest.build.local`), of which the user's keep clear."""

from __future__ import annotations

OF_BLOCKS = frozenset(
    {"at", "cell", "count", "half", "lane", "lanes", "left", "line", "step", "strip", "taking"}
)
"""Of loops over blocks of iterations."""

OF_GROUPS = frozenset({"done", "run"})
"""Of sums in groups."""
