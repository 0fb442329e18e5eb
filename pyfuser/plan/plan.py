"""The result of planning: which calls run together, and why others may not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple, TypeVar

from pyfuser.analysis.dependences import Dependence
from pyfuser.support.records import dataclass
from pyfuser.tuning.thresholds import DEFAULT

SCAN_TILE: int = DEFAULT.scan_tile
"""Iterations that one partial result of a scan covers: its bits depend on that."""

STRIP: int = DEFAULT.strip


REASONS = (
    *("flow", "anti", "output", "unknown-access"),  # with a dependence
    *("space", "pattern", "scalar", "order", "threads", "opaque", "cycle"),
    *("limit", "profit", "measured"),  # they may, and had better not
)
"""Why two calls do not share a loop; `report.words` has the sentences."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Two calls (positions in the trace) that do not share a loop.

    reason: one of REASONS; `dependence` names the accesses for the first four.
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
    is a scan, no loop lags, and waves are its tiles, which are taken in any order. ring: lags and
    aheads are around the ends of the outermost axis, too.
    """

    groups: tuple[int, ...]
    stages: tuple[Stage, ...]
    wave: int
    rolling: tuple[Rolling, ...] = ()
    ring: bool = False


class Told(NamedTuple):
    """What a report knows when it asks a note for its lines: the names of calls, by place.

    split: whether the loop is split where ranges of calls begin and end.
    """

    name: Callable[[int], str]
    split: bool = False

    def names(self, notes: Iterable[Note]) -> str:
        """The names of the calls of notes, each once."""
        return ", ".join(dict.fromkeys(self.name(note.call) for note in notes))


@dataclass(frozen=True, slots=True)
class Note:
    """What planning did to a call (its place in the trace), and what follows for those who run it.

    A rewrite has a subclass of its own (see `plan.rewrite`). alone: whether the call may be as it
    was again, in a launch of its own, while all other launches stay.
    """

    alone: ClassVar[bool] = False

    call: int

    def source(self, place: int) -> tuple[int, int] | None:
        """The call, and the place there, that has an argument of the call as it is planned.

        None for a number that is known: no call has it.
        """
        return self.call, place

    @property
    def until(self) -> tuple[int, ...]:
        """Other calls that must have run before this one may be forgotten."""
        return ()

    def why_apart(self, first: int, second: int) -> str:
        """Why two calls are not in one sweep, if this note is about that."""
        return ""

    @classmethod
    def lines(cls, notes: Sequence[Note], told: Told) -> Iterator[str]:
        """What a report says of the notes of this class about the calls of one loop."""
        yield from ()


AnyNote = TypeVar("AnyNote", bound=Note)


@dataclass(frozen=True, slots=True)
class Declined(Note):
    """Why the loop that begins with `call` did not go on with the sweep of the loops before it."""

    alone = True

    before: frozenset[int]
    after: frozenset[int]
    why: str

    def why_apart(self, first: int, second: int) -> str:
        """The reason, if one of the calls is before and one behind."""
        ways = (first, second), (second, first)
        return self.why if any(a in self.before and b in self.after for a, b in ways) else ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Groups in an order that respects every dependence, and the rejections that shaped them.

    sweeps: neighbouring groups that share a launch; every other group has its own. notes: what
    became of calls, in the order in which it was done to them.
    """

    groups: tuple[Group, ...]
    rejections: tuple[Rejection, ...]
    sweeps: tuple[Sweep, ...] = ()
    notes: tuple[Note, ...] = ()

    def launches(self) -> tuple[tuple[int, ...], ...]:
        """The groups (places) of each launch, in order."""
        first = {sweep.groups[0]: sweep.groups for sweep in self.sweeps}
        inside = {place for sweep in self.sweeps for place in sweep.groups}
        return tuple(
            first.get(place, (place,))
            for place in range(len(self.groups))
            if place in first or place not in inside
        )

    def of(self, kind: type[AnyNote]) -> tuple[AnyNote, ...]:
        """The notes of one kind."""
        return tuple(note for note in self.notes if isinstance(note, kind))

    def sources(self) -> Sources:
        """See `Sources`."""
        found: dict[int, list[Note]] = {}
        for note in self.notes:
            found.setdefault(note.call, []).insert(0, note)
        return Sources(found)


class Sources(NamedTuple):
    """Where the arguments of planned calls come from. notes: of each call, the latest first."""

    notes: Mapping[int, Sequence[Note]]

    def of(self, call: int, place: int) -> tuple[int, int] | None:
        """The call of the program, and the place there, that has an argument of a planned call.

        None for a number that is known.
        """
        for note in self.notes.get(call, ()):
            source = note.source(place)
            if source is None or source[0] != call:
                return source
            place = source[1]
        return call, place
