"""What becomes of the calls that wait (`runtime.postpone`) as those of a flush run.

A call that has run without storing what it computed waits, in its own place among what is pending.
One whose array was overwritten waits no more. Both hold from the moment on at which the calls that
ran are forgotten, neither sooner nor later: a signal handler may come in anywhere, an interrupt may
end the flush between two kernels, and what is pending then may run, or be dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyfuser.trace.call import Again, Call


class Owed(NamedTuple):
    """The calls that wait while a flush runs, whose calls are named by their numbers.

    made: what is to wait when a call has run. before: what has waited. over: the calls that
    overwrite what a waiting call computes, by its place in `before`.
    """

    made: Mapping[int, Again] = {}
    before: Sequence[Call] = ()
    over: Sequence[frozenset[int]] = ()

    # law
    def overwritten(self, done: Sequence[int]) -> list[Call]:
        """What waits no more when these have run.

        That is what would write over what they wrote, and all of it when nothing is left to wait
        for.
        """
        ran = frozenset(done)
        if all(over <= ran for over in self.over):
            return [*self.before]
        return [call for call, over in zip(self.before, self.over, strict=True) if over & ran]


NOTHING = Owed()
"""Of a flush in which no call waits."""
