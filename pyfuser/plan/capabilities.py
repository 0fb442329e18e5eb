"""What an engine's kernels may be: all that planning knows of engines."""

from __future__ import annotations

from pyfuser.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What plans may ask for.

    accumulators: how many one kernel may have. sweeps: whether loops may share a launch. timed:
    whether the time of a launch says which of two plans is better. without: the names of rewrites
    that the engine has no use for.
    """

    accumulators: int = 1 << 30
    sweeps: bool = True
    timed: bool = True
    without: frozenset[str] = frozenset()


ALL = Capabilities()
