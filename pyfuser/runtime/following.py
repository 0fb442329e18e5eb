"""Sums that always follow a trace run with it, before the program asks for them.

A program that reads several numbers (`float(pk.parallel_reduce(...))`, one after another) has each
of its sums run alone, over memory that the one before it has just read. So where a trace that ends
with a read reduction comes back, it is watched what is called next. Reductions that came next
ROUNDS times, on arguments that the trace had, on the same parts of its arrays, or on what is always
the same, are run with the trace from then on, fused with it as any call. Their results are held
until the program calls them; it finds out nothing of it.

What may be held is a law: a held sum is that of a call made now. Until then every use of memory and
each call is seen (`trace.tracer.Watch`), and what is held goes with the first one that could make a
difference. Only Views whose memory no array reaches are read, at subscripts that are inside for
sure, and only by workunits that can neither fail nor print, write or look up where they read, nor
loop as often as what they read says.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import dropwhile
from types import FrameType
from typing import Any

from pyfuser.runtime.followers import (
    MOST,
    ROUNDS,
    Chain,
    Follower,
    Following,
    is_same_call,
    may_run_early,
)
from pyfuser.runtime.replay import Replay
from pyfuser.support.counters import COUNTERS
from pyfuser.trace import reason
from pyfuser.trace.call import Call
from pyfuser.trace.future import Future
from pyfuser.trace.images import USE
from pyfuser.trace.memory import Buffer, Region
from pyfuser.trace.reason import PACKAGE, Reason
from pyfuser.trace.tracer import Tracer, Watched

_READ = (reason.RESULT, reason.NUMBER)


def calls_after(known: Replay, calls: Sequence[Call], tracer: Tracer) -> list[tuple[Any, Call]]:
    """What is to run with calls that are about to run, in order, each with what told so."""
    if tracer.why not in _READ:
        known.following = known.following or None  # its sums are not read at once
        return []
    if not _may_look(calls, tracer) or _is_inside_ours():
        return []
    following = known.following = known.following or Following()
    followers = following.followers(calls)
    if following.hopeless:
        known.following = None
    found: list[tuple[Any, Call]] = []
    for follower in followers:
        call = follower.call(calls, tracer)
        if call is None:
            break
        call.position = tracer.recorded
        tracer.recorded += 1
        found.append((follower, call))
    return found


def learn(known: Replay, calls: Sequence[Call], tracer: Tracer) -> None:
    """Calls have run, and nothing with them: see what comes next, if that is not known yet."""
    if known.following and tracer.why in _READ and _may_look(calls, tracer):
        for chain in known.following.chains(calls):
            watch = _watch(tracer) if chain.rounds < ROUNDS else None
            if watch is not None:
                watch.learn(chain, calls)


_CALLERS = tuple(
    os.path.join(PACKAGE, *path)
    for path in (("frontends", "modes.py"), ("run", ""), ("__main__.py",), ("cli.py",))
)
"""What calls the program, and does nothing to memory after that."""


# law: False
def _is_inside_ours() -> bool:
    """Whether the program was called by a part of ours which may change memory when it returns.

    As `view[0] = x` does, where `float(x)` is code of the program.
    """
    files: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        files.append(frame.f_code.co_filename)
        frame = frame.f_back
    outside = dropwhile(lambda file: file.startswith(PACKAGE), files)
    return any(file.startswith(PACKAGE) and not file.startswith(_CALLERS) for file in outside)


def _may_look(calls: Sequence[Call], tracer: Tracer) -> bool:
    return calls[-1].result is not None and not tracer.nested and not USE.devices


def expect(held: list[tuple[Any, Call]], tracer: Tracer) -> None:
    """These are about to run: from now on see whether anything happens to what they read."""
    watch = _watch(tracer)
    if watch is not None:
        watch.expect(held)


def hold(tracer: Tracer) -> None:
    """They have run: give their results to the calls that ask for them next."""
    if type(tracer.watch) is _Next:
        tracer.watch.hold()


def _watch(tracer: Tracer) -> _Next | None:
    """What sees to it that comes next; None: something else does."""
    if tracer.watch is None:
        tracer.watch = _Next(tracer)
    return tracer.watch if type(tracer.watch) is _Next else None


class _Next:
    """Sees what comes after traces, and gives it what there is; see `trace.tracer.Watch`.

    open: what is learnt, the calls before, and those that came since. held: calls that have not
    come, which count as pending ones for who touches memory; running: so far they have no results.
    """

    captures = False

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._open: list[tuple[Chain, Sequence[Call], list[Call]]] = []
        self._held: list[tuple[Follower, Call]] = []
        self._running = False

    def learn(self, chain: Chain, before: Sequence[Call]) -> None:
        """See what comes after these calls, too."""
        self._open.append((chain, before, []))

    def expect(self, held: list[tuple[Follower, Call]]) -> None:
        """Calls that are about to run."""
        self._drop()
        for _, call in held:
            self._tracer._count_all(call.arguments)
        self._held, self._running = held, True
        self._exchange(self._tracer.calls, Watched())

    def hold(self) -> None:
        """They have run: keep their results until something could change them."""
        self._running = False
        if any(call.result is None or not call.result.given for _, call in self._held):
            self._drop()

    def served(self, call: Call) -> Future | None:
        """The result of such a call, if it is held."""
        with self._tracer.lock:
            if self._running or type(self._tracer.calls) is not Watched:  # not all is seen
                self._drop()
            for each in list(self._held):
                follower, mine = each
                if is_same_call(call, mine):
                    try:
                        self._held.remove(each)
                    except ValueError:  # a signal handler came in between
                        return None
                    self._tracer._uncount([mine])
                    follower.hits += 1
                    COUNTERS.early += 1
                    self._came(call)
                    return mine.result
        return None

    def recorded(self, call: Call) -> None:
        self._drop()
        if may_run_early(call):
            self._came(call)
        elif any(type(a) is Region for a in call.arguments):  # not `sum / n`
            self._end()

    def made(self, buffer: Buffer) -> None:
        pass

    def touched(self, buffer: Buffer, why: Reason) -> Buffer:
        if any(_reads(call, buffer) for _, call in self._held):
            self._drop()
        return buffer

    def interrupted(self, why: Reason) -> None:
        self._drop()
        if why not in _READ:
            self._end()

    def _came(self, call: Call) -> None:
        for chain, before, came in self._open:
            came.append(call)
            if len(came) == MOST:
                chain.came(came, before)
        self._open = [each for each in self._open if len(each[2]) < MOST]
        if not (self._open or self._held):
            self._end()

    def _end(self) -> None:
        """What comes from now on follows nothing."""
        self._drop()
        if self._tracer.watch is self:
            self._tracer.watch = None
        for chain, before, came in self._open:
            chain.came(came, before)
        self._open = []

    def _drop(self) -> None:
        """Forget results."""
        with self._tracer.lock:
            held, self._held = self._held, []
            for follower, call in held:
                follower.misses += 1
                self._tracer._uncount([call])
            if type(self._tracer.calls) is Watched:
                self._exchange(self._tracer.calls, [])

    def _exchange(self, old: list[Call], new: list[Call]) -> None:
        """Have another list of the pending calls."""
        while self._tracer.calls is old:
            new[:] = old
            if self._tracer.calls is old and new == old:  # no signal handler can come in between
                self._tracer.calls = new


def _reads(call: Call, buffer: Buffer) -> bool:
    return any(type(a) is Region and a.buffer is buffer for a in call.arguments)
