"""Sums that always follow a trace run with it, before the program asks for them.

A program that reads several numbers (`float(pk.parallel_reduce(...))`, one after another) has each
of its sums run alone, over memory that the one before it has just read. So where a trace that ends
with a read reduction comes back, it is watched what is called next. Reductions that came next
ROUNDS times, on arguments that the trace had or that are always the same, are run with the trace
from then on, fused with it as any call. Their results are held until the program calls them; it
finds out nothing of it.

What may be held is a law: a held sum is that of a call made now. Until then every use of memory and
each call is seen (`trace.tracer.Watch`), and what is held goes with the first one that could make a
difference. Only Views whose memory no array reaches are read, and only by workunits that can
neither fail nor print, write or look up where they read, nor loop as often as what they read says.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Iterable, Sequence
from itertools import dropwhile
from math import copysign
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeAlias

from pyfuser.analysis.unasked import may_run_unasked
from pyfuser.runtime.replay import Replay
from pyfuser.support.counters import COUNTERS
from pyfuser.trace import reason
from pyfuser.trace.call import Argument, Call, Space
from pyfuser.trace.future import Future
from pyfuser.trace.images import USE
from pyfuser.trace.memory import Allocation, Buffer, Handle, Region, Unmade
from pyfuser.trace.reason import PACKAGE, Reason
from pyfuser.trace.tracer import Tracer, Watched

ROUNDS = 3
"""Times in a row that a call has to come next."""

MOST = 16
"""Calls that may follow one trace, ..."""

CHAINS = 64
"""... and traces of a key that are told apart, by integers of their last call."""

_READ = (reason.RESULT, reason.NUMBER)


class _Of(NamedTuple):
    """The argument of a call of the trace."""

    call: int
    place: int


class _Part(NamedTuple):
    """A region of memory that is always the same."""

    buffer: Any  # a weak reference
    rest: tuple[Any, ...]


class _Number(NamedTuple):
    """A number that is always the same."""

    kind: type
    sign: float
    value: Any


Source: TypeAlias = "_Of | _Part | _Number"
"""Where an argument comes from."""


class _Follower:
    """A call that comes next; arguments, spaces: where each may come from, by what came so far.

    An int in `spaces` is the call of the trace that has the same. known: the `_sizes` of those that
    the program has made. hits, misses: how often it was held, and asked for or not.
    """

    __slots__ = (
        "arguments", "at", "code", "dtype", "hits", "known", "label", "misses", "spaces",
        "workunit",
    )  # fmt: skip

    def __init__(self, call: Call, before: Sequence[Call]) -> None:
        assert call.result is not None
        self.workunit = call.workunit
        self.label = call.label
        self.dtype = call.result.dtype
        self.code: CodeType = call.code
        self.at = call.at
        self.arguments = [_sources(a, before) for a in call.arguments]
        self.spaces = _spaces(call.space, before)
        self.known = {_sizes(call)}
        self.hits = self.misses = 0

    def agrees(self, call: Call, before: Sequence[Call]) -> bool:
        """Whether a call that came next again is explained by what explained the others."""
        if call.workunit is not self.workunit or call.label != self.label:
            return False
        self.known.add(_sizes(call))
        self.spaces &= _spaces(call.space, before)
        self.arguments = [
            known & _sources(a, before)
            for known, a in zip(self.arguments, call.arguments, strict=True)
        ]
        return bool(self.spaces) and all(self.arguments)

    def call(self, before: Sequence[Call], tracer: Tracer) -> Call | None:
        """The call that will come next; None if it may not run before it comes."""
        arguments = [_found(sources, before) for sources in self.arguments]
        if any(a is None for a in arguments):
            return None
        space = next((before[s].space if type(s) is int else s for s in self.spaces), None)
        result = Future(self.dtype, tracer.compute)
        made = Call(
            "reduce", space, self.workunit, tuple(arguments), result, self.label,  # type: ignore[arg-type]
            self.code, self.at,
        )  # fmt: skip
        ours = all(_is_ours(a.buffer) for a in arguments if type(a) is Region)
        return made if ours and _sizes(made) in self.known else None

    @property
    def is_worth_it(self) -> bool:
        """Whether it is asked for often enough: each miss is work for nothing."""
        return 4 * self.misses <= self.hits + 4


class _Chain:
    """What follows a trace: the calls, after so many rounds in which they were looked for."""

    def __init__(self) -> None:
        self.rounds = 0
        self.followers: list[_Follower] = []

    def came(self, calls: Sequence[Call], before: Sequence[Call]) -> None:
        """These calls came next, in another round."""
        if self.rounds == 0:
            self.followers = [_Follower(call, before) for call in calls]
        else:
            agree = [
                follower.agrees(call, before)
                for follower, call in zip(self.followers, calls, strict=False)
            ]
            del self.followers[[*agree, False].index(False) :]
        for n, follower in enumerate(self.followers):
            if not all(follower.arguments):
                del self.followers[n:]
                break
        self.rounds = self.rounds + 1 if self.followers else ROUNDS


class Following:
    """What follows the traces of a key."""

    def __init__(self) -> None:
        self._chains: dict[tuple[int, ...], _Chain] = {}

    def chain(self, calls: Sequence[Call]) -> _Chain | None:
        """What follows such calls; None if there are too many kinds of them."""
        key = tuple([a for a in calls[-1].arguments if isinstance(a, int)])
        chain = self._chains.get(key)
        if chain is None and len(self._chains) < CHAINS:
            chain = self._chains[key] = _Chain()
        return chain

    @property
    def hopeless(self) -> bool:
        """Whether nothing follows any trace, as far as is known."""
        return not any(c.followers or c.rounds < ROUNDS for c in self._chains.values())


def calls_after(known: Replay, calls: Sequence[Call], tracer: Tracer) -> list[tuple[Any, Call]]:
    """What is to run with calls that are about to run, in order, each with what told so."""
    if tracer.why not in _READ:
        known.following = known.following or None  # its sums are not read at once
        return []
    if not _may_look(calls, tracer) or _is_inside_ours():
        return []
    following = known.following = known.following or Following()
    chain = following.chain(calls)
    if chain is not None and chain.rounds < ROUNDS:
        return []
    followers = [] if chain is None else [f for f in chain.followers if f.is_worth_it]
    if chain is not None:
        chain.followers = followers
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
        chain = known.following.chain(calls)
        if chain is not None and chain.rounds < ROUNDS:
            watch = _watch(tracer)
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
        self._open: list[tuple[_Chain, Sequence[Call], list[Call]]] = []
        self._held: list[tuple[_Follower, Call]] = []
        self._running = False

    def learn(self, chain: _Chain, before: Sequence[Call]) -> None:
        """See what comes after these calls, too."""
        self._open.append((chain, before, []))

    def expect(self, held: list[tuple[_Follower, Call]]) -> None:
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
                if _is_same_call(call, mine):
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
        if call.pattern == "reduce" and may_run_unasked(call.workunit):
            self._came(call)
        else:
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


# ------------------------------------------------------------------------- what is the same


def _sizes(call: Call) -> tuple[Any, ...]:
    """What decides whether a call has mistakes, and how long it takes."""
    sizes = [
        a.shape if type(a) is Region else a if isinstance(a, int) else None for a in call.arguments
    ]
    return call.space, *sizes


# law: True
def _is_same_call(call: Call, other: Call) -> bool:
    """Whether two reductions compute the same, on memory that is as it was."""
    return _identity(call) == _identity(other)


def _identity(call: Call) -> tuple[Any, ...]:
    """What decides the result of a reduction, beside the memory; for calls that are both alive."""
    return id(call.workunit), call.pattern, call.space, call.label, *map(_of, call.arguments)


def _of(argument: Argument) -> Any:
    """The same for arguments that are the same; of a Future, equal to nothing."""
    if type(argument) is Region:
        return id(argument.buffer), argument[1:]
    if type(argument) is float:
        return float, copysign(1.0, argument), argument
    return (type(argument), argument) if type(argument) in (int, bool) else object()


def _sources(argument: Argument, before: Sequence[Call]) -> frozenset[Source]:
    """All that an argument may come from."""
    this = _of(argument)
    found: list[Source] = [
        _Of(n, place)
        for n, call in enumerate(before)
        for place, other in enumerate(call.arguments)
        if this == _of(other)
    ]
    if type(argument) is Region:
        found.append(_Part(weakref.ref(argument.buffer), argument[1:]))
    elif type(argument) in (int, bool, float):
        sign = copysign(1.0, argument)  # type: ignore[arg-type]
        found.append(_Number(type(argument), sign, argument))
    return frozenset(found)


def _spaces(space: Space, before: Sequence[Call]) -> frozenset[Any]:
    return frozenset([space, *[n for n, call in enumerate(before) if call.space == space]])


def _found(sources: Iterable[Source], before: Sequence[Call]) -> Any:
    """The argument; None if its memory is gone."""
    found: Argument | None = None
    for source in sources:
        if isinstance(source, _Of):
            found = before[source.call].arguments[source.place]
        elif isinstance(source, _Number):
            return source.value
    if found is None:
        parts = [(s.buffer(), s.rest) for s in sources if isinstance(s, _Part)]
        found = next((Region(buffer, *rest) for buffer, rest in parts if buffer is not None), None)
    return found


def _reads(call: Call, buffer: Buffer) -> bool:
    return any(type(a) is Region and a.buffer is buffer for a in call.arguments)


# law: True
def _is_ours(buffer: Buffer) -> bool:
    """Whether Views alone reach memory of the host, and the program has one of them."""
    if type(buffer) not in (Allocation, Unmade) or buffer.external:
        return False
    return type(buffer._handle()) is Handle
