"""The result of planning: which calls run together, and why others may not."""

from __future__ import annotations

from dataclasses import dataclass

from pyfuser.analysis.dependences import Dependence


@dataclass(frozen=True, slots=True)
class Rejection:
    """Two calls (positions in the trace) that do not share a loop.

    reason: a short fixed slug ("flow", "anti", "output", "space", "pattern", "scalar",
    "unknown-access", "opaque", "profit", "cycle", "limit"); `dependence` names the accesses for
    the first three and for "unknown-access".
    """

    first: int
    second: int
    reason: str
    dependence: Dependence | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Calls that share one kernel, as positions in the trace, ascending."""

    calls: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Groups in an order that respects every dependence, and the rejections that shaped them."""

    groups: tuple[Group, ...]
    rejections: tuple[Rejection, ...]
