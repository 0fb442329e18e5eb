"""What the process has done so far: the numbers that `pyfuser.stats()` reports and tests assert."""

from __future__ import annotations

from dataclasses import field

from pyfuser.support.extension import HOT
from pyfuser.support.records import dataclass


@dataclass(slots=True)
class Counters:
    """Counts since the process started (or the last `reset`); times are in seconds.

    apart: calls that ran unfused, as their plan would have cost more (see `runtime.budget`).
    loaded: plans and kernels that an earlier process left on disk (see `runtime.stored`). resized:
    traces that run the code of one that differs in sizes (see `runtime.families`). rolled: calls
    for which others ran, of which each does what many do (see `runtime.roll`). replays: how
    many flushes found what they run without a look at the shape of their trace, and misses: how
    many did not, by the reason (see `runtime.replay`). postponed: calls that ran without storing
    what nobody may read (see `runtime.postpone`). early: sums that had run with what they follow
    when they were called (see `runtime.following`). compiled: whether the extension runs
    (docs/hot.md).
    """

    recorded: int = 0
    launches: int = 0
    flushes: int = 0
    apart: int = 0
    plans: int = 0
    resized: int = 0
    rolled: int = 0
    compilations: int = 0
    cache_hits: int = 0
    loaded: int = 0
    analysis_seconds: float = 0.0
    compile_seconds: float = 0.0
    bytes_to_device: int = 0
    bytes_to_host: int = 0
    graph_launches: int = 0
    replays: int = 0
    misses: dict[str, int] = field(default_factory=dict)
    postponed: int = 0
    early: int = 0
    compiled: bool = HOT is not None

    def reset(self) -> None:
        self.__init__()  # type: ignore[misc]


COUNTERS = Counters()
