"""The sums that come after a trace, as `runtime.following` has seen them, and may foresee them."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from math import copysign
from types import CodeType
from typing import Any, NamedTuple, TypeAlias

from pyfuser.analysis.inside import is_inside
from pyfuser.analysis.unasked import may_run_unasked
from pyfuser.engine.ahead import Pending
from pyfuser.trace.call import Argument, Call, Space
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Allocation, Buffer, Handle, Region, Unmade
from pyfuser.trace.tracer import Tracer

ROUNDS = 3
"""Times in a row that a call has to come next."""

MOST = 16
"""Calls that may follow one trace, ..."""

CHAINS = 64
"""... and traces of a key that are told apart, by integers of their last call, ..."""

PARTS = 16
"""... and by what parts of memory it reads."""


class _Of(NamedTuple):
    """The argument of a call of the trace."""

    call: int
    place: int


class _In(NamedTuple):
    """A region, always the same, of the memory of an argument of the trace, always as large."""

    call: int
    place: int
    size: int  # bytes
    rest: tuple[Any, ...]


class _Part(NamedTuple):
    """A region of memory that is always the same."""

    buffer: Any  # a weak reference
    rest: tuple[Any, ...]


class _Number(NamedTuple):
    """A number that is always the same."""

    kind: type
    sign: float
    value: Any


Source: TypeAlias = "_Of | _In | _Part | _Number"
"""Where an argument comes from."""


class Follower:
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
        ours = all(is_ours(a.buffer) for a in arguments if type(a) is Region)
        return made if ours and _sizes(made) in self.known else None

    @property
    def is_gone(self) -> bool:
        """Whether it reads memory that is gone: what comes next is to be found out anew."""
        return any(
            all(isinstance(s, _Part) and s.buffer() is None for s in sources)
            for sources in self.arguments
        )

    @property
    def is_worth_it(self) -> bool:
        """Whether it is asked for often enough: each miss is work for nothing."""
        return 4 * self.misses <= self.hits + 4


class Chain:
    """What follows a trace: the calls, after so many rounds in which they were looked for."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """As nothing has come yet."""
        self.rounds = 0
        self.followers: list[Follower] = []

    def came(self, calls: Sequence[Call], before: Sequence[Call]) -> None:
        """These calls came next, in another round."""
        if self.rounds == 0:
            self.followers = [Follower(call, before) for call in calls]
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
    """What follows the traces of a key: whatever parts of memory they read, and these parts.

    pending: their program with what follows; is_compiled: whether it was made, once.
    """

    def __init__(self) -> None:
        self.pending = Pending()
        self.is_compiled = False
        self._chains: dict[tuple[Any, ...], Chain] = {}
        self._parts: dict[tuple[Any, ...], Chain] = {}

    def chains(self, calls: Sequence[Call]) -> list[Chain]:
        """What follows such calls, and these parts; of too many kinds of them not all are here."""
        last = calls[-1].arguments
        integers = tuple([a for a in last if isinstance(a, int)])
        parts = integers, tuple([a.offset for a in last if type(a) is Region])
        for kinds, key, most in ((self._chains, integers, CHAINS), (self._parts, parts, PARTS)):
            if key not in kinds and len(kinds) < most:
                kinds[key] = Chain()
        chains = self._chains.get(integers), self._parts.get(parts)
        return [chain for chain in chains if chain is not None]

    def followers(self, calls: Sequence[Call]) -> list[Follower]:
        """The calls that follow, as far as is known."""
        found: list[Follower] = []
        for chain in self.chains(calls):
            if any(follower.is_gone for follower in chain.followers):
                chain.forget()
            if chain.rounds < ROUNDS:
                return []
            chain.followers = [f for f in chain.followers if f.is_worth_it]
            found = chain.followers or found
        return found

    @property
    def hopeless(self) -> bool:
        """Whether nothing follows any trace, as far as is known."""
        chains = *self._chains.values(), *self._parts.values()
        return not any(c.followers or c.rounds < ROUNDS for c in chains)


def _sizes(call: Call) -> tuple[Any, ...]:
    """What decides whether a call has mistakes, and how long it takes."""
    sizes = [
        a.shape if type(a) is Region else a if isinstance(a, int) else None for a in call.arguments
    ]
    return call.space, *sizes


# law: True
def is_same_call(call: Call, other: Call) -> bool:
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
        found += [
            _In(n, place, argument.buffer.nbytes, argument[1:])
            for n, call in enumerate(before)
            for place, other in enumerate(call.arguments)
            if type(other) is Region and other.buffer is argument.buffer
        ]
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
        elif isinstance(source, _In):
            found = found or _part_of(before[source.call].arguments[source.place], source)
        elif isinstance(source, _Number):
            return source.value
    if found is None:
        parts = [(s.buffer(), s.rest) for s in sources if isinstance(s, _Part)]
        found = next((Region(buffer, *rest) for buffer, rest in parts if buffer is not None), None)
    return found


# law: True
def may_run_early(call: Call) -> bool:
    """Whether a reduction of such sizes and integers may run before the program calls it again."""
    if call.pattern != "reduce" or not may_run_unasked(call.workunit):
        return False
    return is_inside(call, [a.shape if type(a) is Region else a for a in call.arguments])


# law: not None
def _part_of(argument: Argument, source: _In) -> Region | None:
    """That part of its memory, which there is only where the memory is as large as it was."""
    assert type(argument) is Region
    fits = argument.buffer.nbytes == source.size
    return Region(argument.buffer, *source.rest) if fits else None


# law: True
def is_ours(buffer: Buffer) -> bool:
    """Whether Views alone reach memory of the host, and the program has one of them."""
    if type(buffer) not in (Allocation, Unmade) or buffer.external:
        return False
    return type(buffer._handle()) is Handle
