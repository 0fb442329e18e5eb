"""The result of planning: which calls run together, and why others may not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pyfuser.analysis.dependences import Dependence
from pyfuser.tuning.thresholds import DEFAULT

SCAN_TILE: int = DEFAULT.scan_tile
"""Iterations that one partial result of a scan covers: its bits depend on that."""

STRIP: int = DEFAULT.strip


@dataclass(frozen=True, slots=True)
class Rejection:
    """Two calls (positions in the trace) that do not share a loop.

    reason: a short fixed slug ("flow", "anti", "output", "space", "pattern", "scalar",
    "unknown-access", "opaque", "profit", "measured", "cycle", "limit"); `dependence` names the
    accesses for the first three and for "unknown-access".
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
class Stage:
    """How one loop of a sweep keeps its distance from the others, in steps of its outermost index.

    lag: how far it stays behind the front. ahead: how far behind the beginning of a thread's share
    it starts, as what comes before needs the neighbouring thread (it ends `lag` before the end).
    """

    lag: int
    ahead: int


class Rolling(NamedTuple):
    """A view (its cluster) of which a sweep keeps only the steps that its loops still read.

    While the front moves from `before` to `front`, the loop that writes the view first makes the
    steps from before + made to front + made, and loops use none older than before + oldest. In a
    thread's share, which begins at `first`, it starts with first + begun. Around the cut between
    two shares, loops touch the steps from cut + oldest to cut + until. All ends are exclusive.
    step: bytes of one step, over which all else of the view stretches.
    """

    cluster: int
    step: int
    oldest: int
    made: int
    begun: int
    until: int


@dataclass(frozen=True, slots=True)
class Sweep:
    """Groups that run in one launch as a wavefront, each as one loop close behind the one before.

    groups: places in `Plan.groups`; stages[k] belongs to groups[k]. wave: by how many steps the
    front moves on at a time. rolling: views that need no memory of their own. If one of the groups
    is a scan, no loop lags, and waves are its tiles, which are taken in any order.
    """

    groups: tuple[int, ...]
    stages: tuple[Stage, ...]
    wave: int
    rolling: tuple[Rolling, ...] = ()


class Declined(NamedTuple):
    """Why the group at `place` of a plan did not go on with the sweep of the groups before it."""

    groups: tuple[int, ...]
    place: int
    why: str


class Coarsened(NamedTuple):
    """A call (its place in the trace) of which one iteration runs `factor` of the program's."""

    call: int
    factor: int


class Guarded(NamedTuple):
    """A call (its place in the trace) that runs over a larger box, guarded by its own.

    given: how many arguments the program gave it; bounds of its own box (or, of a call that has its
    places, rows) come after these.
    """

    call: int
    given: int


class Placed(NamedTuple):
    """A call (its place in the trace) whose statements run at rows among those of other calls."""

    call: int
    rows: tuple[int, ...]


class Recomputed(NamedTuple):
    """A call (its place in the trace) that computes again what others would store for it.

    sources: for each argument that the planned trace has, the call that the program gave it to, and
    its place there. producers: the calls that it computes, and how many of their iterations each.
    """

    call: int
    sources: tuple[tuple[int, int], ...]
    producers: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Groups in an order that respects every dependence, and the rejections that shaped them.

    sweeps: neighbouring groups that share a launch; every other group has its own. declined:
    neighbours that were not made a sweep, and why, for people. coarsened: calls that the planned
    trace has with fewer, longer iterations than the program gave them. boxed: calls over one axis
    that the planned trace has over two. guarded: calls that it has with a larger box. placed: calls
    that it has at some rows among those of others. recomputed: calls that compute again what others
    would store. vanished: calls that do nothing, as nobody reads what they would store.
    """

    groups: tuple[Group, ...]
    rejections: tuple[Rejection, ...]
    sweeps: tuple[Sweep, ...] = ()
    declined: tuple[Declined, ...] = ()
    coarsened: tuple[Coarsened, ...] = ()
    boxed: tuple[int, ...] = ()
    guarded: tuple[Guarded, ...] = ()
    placed: tuple[Placed, ...] = ()
    recomputed: tuple[Recomputed, ...] = ()
    vanished: tuple[int, ...] = ()

    def launches(self) -> tuple[tuple[int, ...], ...]:
        """The groups (places) of each launch, in order."""
        first = {sweep.groups[0]: sweep.groups for sweep in self.sweeps}
        inside = {place for sweep in self.sweeps for place in sweep.groups}
        return tuple(
            first.get(place, (place,))
            for place in range(len(self.groups))
            if place in first or place not in inside
        )
