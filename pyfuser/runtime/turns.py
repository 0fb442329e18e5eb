"""Tiny calls of a steady program: recorded, or run at once, whichever was measured to be faster.

To record a few tiny calls and to find what runs for them takes as long as to run them, and a fused
loop over little data may lose more than one launch takes. The extension measures both in turns, see
`hot/turns.c`, and asks here when it may, what an earlier process found, and to note what it finds.
Both ways give the same bits: what they do not is recorded whatever was found (`takes_turns`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyfuser.ir.effects import atomics, effects
from pyfuser.ir.nodes import Update, Workunit
from pyfuser.runtime.session import SESSION
from pyfuser.support.caches import cached
from pyfuser.support.extension import HOT
from pyfuser.support.lazy import lazily
from pyfuser.support.passes import left_out
from pyfuser.support.settings import SETTINGS

if TYPE_CHECKING:
    from pyfuser.runtime import eager
else:
    eager = lazily("pyfuser.runtime.eager")

if TYPE_CHECKING:
    from pyfuser.engine.store.store import Entry

NEVER = -1

KERNEL = 1 << 13
"""Calls that are waited for where a kernel has to be compiled: they take a part of its time."""

WINDOW = 32
"""Flushes, the latest, that tell what a program's loop calls."""


@cached(1024)
# law: False
def takes_turns(workunit: Workunit) -> bool:
    """Whether calls give the same bits fused and alone, in whatever order others run.

    Atomic updates of integers commute, as far as `transform.tables` says so; old values that they
    fetch, and sums of floats, differ.
    """
    from pyfuser.transform.tables import KINDS

    known = effects(workunit)
    if known.output or known.fetches or known.waits:
        return False
    return all(
        isinstance(a, Update) and a.target.dtype.is_integer and a.op in KINDS
        for a in atomics(workunit.body)
    )


class Turns:
    """What the extension asks."""

    def __init__(self) -> None:
        self.paid = 0  # calls that were waited for, as kernels have to be compiled
        self.asked: list[Entry] = []  # what a later process will ask for

    def ready(self, _: None) -> int:
        """How many calls more to wait for until a trial, as it compiles; NEVER: there is none."""
        wanted = {
            id(call.workunit): call.workunit
            for flush in SESSION.flushes[-WINDOW:]
            for call in flush.program.given.calls
        }
        if wanted and not any(map(takes_turns, wanted.values())):
            return NEVER
        cost = KERNEL * sum(not eager.has_code(workunit) for workunit in wanted.values())
        more = max(cost - self.paid, 0)
        self.paid = cost
        return more

    def known(self, _: None) -> bool:
        """Whether an earlier process found that all that runs now had better not be recorded."""
        self.paid = 0
        self.asked = _entries()
        return bool(self.asked) and all(entry.read() is True for entry in self.asked)

    def decided(self, alone: bool) -> None:
        """Note what a trial found, for `explain` and for later processes."""
        for entry in (*self.asked, *_entries()):
            entry.write(alone)
        if not alone:
            return
        for flush in SESSION.flushes[-WINDOW:]:
            parts = zip(flush.program.given.calls, *[iter(flush.made)] * 3, strict=False)
            for call, label, code, at in parts:
                key = label or call.workunit.name, code
                if key not in SESSION.apart:
                    SESSION.apart.keep(key, at)


def _entries() -> list[Entry]:
    """Where the choice is kept for each trace of the loop at hand."""
    from pyfuser.engine.store.store import STORE  # with all that reads and writes

    given = dict.fromkeys(flush.program.given for flush in SESSION.flushes[-WINDOW:])
    found = [STORE.entry("turns", trace.calls, trace.clusters) for trace in given]
    return [entry for entry in found if entry is not None]


def allowed() -> bool:
    """Whether programs may be measured: nothing looks at what is recorded."""
    looks = SETTINGS.verify or SETTINGS.check or SETTINGS.debug or SETTINGS.sync
    usual = SETTINGS.arbitrate and SETTINGS.engine == "native"
    return usual and not looks and not left_out("turns")


if HOT is not None:
    TURNS = Turns()
    functions: tuple[Callable[..., object] | None, ...] = (TURNS.ready, TURNS.known, TURNS.decided)
    HOT.bind_turns(*(functions if allowed() else (None, None, None)))
