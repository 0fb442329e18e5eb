"""What an engine's kernels may be: all that planning knows of engines."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What plans may ask for.

    accumulators: how many one kernel may have. sweeps: whether loops may share a launch. timed:
    whether the time of a launch says which of two plans is better. coarsening: whether calls may
    be given fewer, longer iterations. boxes: whether loops over two axes are as good as over one.
    guards: whether calls may run over larger boxes than theirs. recompute: whether calls may
    compute again what others would store for them.
    """

    accumulators: int = 1 << 30
    sweeps: bool = True
    timed: bool = True
    coarsening: bool = True
    boxes: bool = True
    guards: bool = True
    recompute: bool = True


ALL = Capabilities()
