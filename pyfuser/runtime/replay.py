"""Flushes whose trace has run before, found by a key that is cheaper than the trace's shape.

What a flush does follows from its trace's shape and from the plans that are still being tried
(`runtime.tune`). While none of a trace is tried, its program is kept by `trace.key`, whose law is
that equal keys have equal shapes; a flush that finds it there launches at once, if the session has
no other program for the shape by now. All else takes the ordinary way, and
`pyfuser.stats()` counts why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pyfuser.analysis.structural import structural_scalars
from pyfuser.runtime.prepared import prepared
from pyfuser.runtime.program import Program
from pyfuser.runtime.session import SESSION
from pyfuser.support.counters import COUNTERS
from pyfuser.support.extension import HOT
from pyfuser.support.passes import left_out
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import Call
from pyfuser.trace.images import USE
from pyfuser.trace.key import Key, key_of
from pyfuser.trace.shape import TraceShape
from pyfuser.tuning.thresholds import NOW

MISSING: Any = object()

MAX_FACTS = 16
"""Ways in which the memory of one sequence of calls may lie, live and be fresh."""

NEW = "no such calls have run"
MEMORY = "memory overlaps, lives or is fresh in another way"
EARLIER = "an argument is a result of an earlier flush"
DEVICES = "a GPU is in use"
WATCHED = "a setting looks at each flush"
TRIED = "another plan may be tried"


FOREVER = -1


class Replay:
    """What runs for traces of one key.

    given: the shape of their trace. held: keeps what the key names by id() alive. prepared: its
    launches, compiled, from the second flush on; None if Python runs them. left: flushes before the
    program's referee is asked again, what else runs; FOREVER: it has none. account: what
    `runtime.postpone` knows of it. following: what `runtime.following` does; False: nothing yet;
    None: nothing follows, or it ends too soon to be worth a look.
    """

    __slots__ = ("account", "following", "given", "held", "left", "prepared", "program")

    def __init__(self, program: Program, calls: Sequence[Call], left: int) -> None:
        self.program = program
        self.left = left
        self.given = program.given
        self.held = tuple([(call.workunit, call.space) for call in calls])
        self.prepared: Any = MISSING
        self.account: Any = None
        long = program.seconds >= NOW.running.long and calls[-1].result is not None
        self.following: Any = False if long and not left_out("following") else None

    @property
    def settled(self) -> bool:
        """Whether no other plan is tried, nor will be soon."""
        return self.left == FOREVER or getattr(self.program.referee, "idle", False)


def key_now(calls: list[Call]) -> Key | None:
    """The key of recorded calls, as the table has it."""
    if HOT is None:
        return key_of(calls, structural_scalars)
    found = HOT.key_of(calls)
    return None if found is None else Key(*found)


class Looked(NamedTuple):
    """The key of a flush, None if it has none, and what is known for it, or why nothing is."""

    key: Key | None
    known: Replay | None
    why: str = ""


def found(looked: Looked, calls: list[Call]) -> Replay | None:
    """What a flush runs, if that is known and nothing else is to be tried; it is counted."""
    known, why = looked.known, looked.why
    if known is not None and known.left != FOREVER:
        if known.left == 0:
            known, why = None, TRIED
        else:
            known.left -= 1
    if known is None:
        COUNTERS.misses[why] = COUNTERS.misses.get(why, 0) + 1
        return None
    COUNTERS.replays += 1
    if known.prepared is MISSING and (known.account.hopeless or not known.settled):
        known.prepared = prepared(known.program, calls)
    return known


def known(calls: list[Call]) -> Replay | None:
    """What a flush of all of these calls would find, if all is known by now."""
    replay = look(calls).known
    return None if replay is None or replay.left != FOREVER else replay


def look(calls: list[Call]) -> Looked:
    """Look for what earlier flushes of such calls ran."""
    if SETTINGS.verify or SETTINGS.debug or SETTINGS.sync or SETTINGS.engine != "native":
        return Looked(None, None, WATCHED)
    if USE.devices and SESSION.tracer.place is None:
        return Looked(None, None, DEVICES)
    key = key_now(calls)
    if key is None:
        return Looked(None, None, EARLIER)
    known = SESSION.replays.get(key.words)
    if known is None:
        return Looked(key, None, NEW)
    replay = known.get(key.facts)
    if replay is None:
        return Looked(key, None, MEMORY)
    program = replay.program
    if SESSION.programs.get(program.given) is not program:
        return Looked(key, None, NEW)
    if USE.devices and program.graphs is None:  # the host runs it, perhaps on what a device has
        return Looked(key, None, DEVICES)
    return Looked(key, replay)


def agreed(key: Key | None, trace: TraceShape, calls: list[Call]) -> Key | None:
    """The key, if it and a shape that was computed after it have the same facts; before a run."""
    if key is None or (HOT is not None and key != key_now(calls)):
        return None
    written = key if HOT is None else key_of(calls, structural_scalars)
    return key if written is not None and written.fits(trace) else None


def keep(key: Key | None, program: Program, calls: Sequence[Call]) -> None:
    """After a flush of all of its calls: the next one of this key need not look at the shape.

    key: as `agreed`.
    """
    referee = program.referee
    left = referee.wait(program) if referee is not None and referee.open else FOREVER
    if key is None or left == 0 or (program.graphs is None and USE.devices):
        return
    known: dict[Any, Replay] = SESSION.replays.get(key.words) or SESSION.replays.keep(key.words, {})
    replay = known.get(key.facts)
    if replay is None or replay.program is not program:
        if len(known) >= MAX_FACTS:
            del known[next(iter(known))]
        known[key.facts] = Replay(program, calls, left)
    elif left != replay.left:
        replay.left = left
        if replay.settled and replay.account is not None and not replay.account.hopeless:
            replay.prepared = MISSING  # Python runs it: it may leave stores
