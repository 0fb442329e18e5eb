"""Stores of work arrays wait until somebody reads them, which most often nobody does.

A solver that makes its work arrays once, before its time loop, overwrites them in each step unread.
A name still holds them when a step ends (as it reads a norm), so each step has to leave them in
memory. Where a trace has come back and so far nobody read some of its arrays in between, it runs as
if nothing could reach these: they are contracted like any temporary. The calls that compute them
stay pending, before all others, as if they had not run (`Tracer.postponed`): whoever touches what
they touch has them run first. When what is recorded next overwrites all of them, they go. A few
flushes may come in between that touch nothing of it: loops read several numbers in a step.

Which calls may run later is the law of `analysis.work_arrays`. Memory that the host can reach
unseen is no part of it, and arrays that it has had before are stored (`Buffer.seen`). The cost:
some 0.1 ms a flush, which Python has to see, so there must be `postponed_bytes`; a plan and
kernels, so the trace must have run for as long as these take, by the model. If it then was slower
than before, as what is stored had been taken apart by a trial, it is as before again.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from pyfuser.analysis.structural import structural_scalars
from pyfuser.engine.ahead import Pending
from pyfuser.runtime import lifetimes, replay
from pyfuser.runtime.launch import REMEMBERED, Source
from pyfuser.runtime.prepared import prepared
from pyfuser.runtime.program import Program
from pyfuser.runtime.replay import Replay
from pyfuser.runtime.session import SESSION
from pyfuser.runtime.unread import is_whole, left_unread, region_of, touched_by, unreachable
from pyfuser.support.counters import COUNTERS
from pyfuser.support.lazy import lazily
from pyfuser.support.passes import left_out
from pyfuser.trace.call import Again, Call
from pyfuser.trace.memory import Allocation, Buffer, Handle, Region, Unmade
from pyfuser.trace.shape import TraceShape, shape_of
from pyfuser.trace.tracer import POSTPONING, Tracer, are_first
from pyfuser.tuning.thresholds import NOW

if TYPE_CHECKING:
    from pyfuser.analysis import work_arrays
else:
    work_arrays = lazily("pyfuser.analysis.work_arrays")

TRIED = 256
"""Flushes of a trace after which it is known whether its arrays are read."""

MOST = 128
"""Calls that may wait: they count among those that a trace may have."""

LOST = 4 * REMEMBERED
"""Flushes by which it has to take longer: a mean forgets a run that was disturbed sooner."""

BETWEEN = 8
"""Flushes that may come in between: Python has to see each."""

_GONE = weakref.ref(Handle())


class Account:
    """What is known of a trace that may postpone stores.

    unread: how often in a row its arrays were overwritten unread. wanted: the seconds that it has
    to have run for by then, by the model, for a plan. between: flushes that came before they were,
    in the mean of the latest. lost: flushes in a row by which it took longer.
    """

    def __init__(self, program: Program) -> None:
        self.given = program.given
        self.work = (
            work_arrays.Work({}, {}, False, {})
            if program.cuts
            else work_arrays.work_of(program.given)
        )
        self.seconds = program.seconds
        self.arrays = tuple(self.work.arrays)
        self.wanted = NOW.running.trial_kernel * len(program.launches)
        self.flushes = self.unread = self.misses = self.lost = 0
        self.between = 0.0
        self.program: Program | None = None  # where they wait
        self.pending = Pending()  # that program
        self.prepared: Any = replay.MISSING
        sizes = lifetimes.sizes_of(program.given)
        most = sum(sizes[_cluster(program.given, source)] for source in self.arrays)
        self.hopeless = (
            most < NOW.running.postponed_bytes
            or left_out("postpone")
            or program.graphs is not None  # a device's stores are not left out
        )

    @cached_property
    def writes(self) -> tuple[tuple[int, ...], ...]:
        """For each call of the trace the places of what it writes."""
        return tuple(map(work_arrays.places_written, self.given.calls))

    def missed(self) -> None:
        """Somebody read an array, or overwrote what it is computed from."""
        self.unread = 0
        self.misses += 1
        self.hopeless |= self.misses >= NOW.running.misses

    def found(self, unread: tuple[Source, ...]) -> None:
        """These arrays were overwritten unread."""
        if len(unread) < len(self.arrays):
            self.arrays = unread
            self.unread = 0
        self.unread += 1

    def narrow(self, program: Program) -> None:
        """Let those wait only that need no memory where they do."""
        self.program = program
        given = program.given
        stored = {
            lifetimes.cluster_of(given, source)
            for launch in program.launches
            for source in lifetimes.stored(launch).values()
        }
        sizes = lifetimes.sizes_of(given)
        gone = [s for s in self.arrays if lifetimes.cluster_of(given, s) not in stored]
        self.hopeless |= (
            sum(sizes[_cluster(given, source)] for source in gone) < NOW.running.postponed_bytes
        )
        if len(gone) < len(self.arrays):
            self.arrays = tuple(gone)
            self.program = None


class Postponing(NamedTuple):
    """The latest flush that could postpone stores: its arrays by source.

    position: of the last call since. again: the calls that wait, if it did, by the number of the
    call that each repeats. between: flushes since.
    """

    account: Account
    arrays: dict[Source, Buffer]
    position: int
    again: Mapping[int, Again] = {}
    between: int = 0

    @property
    def waiting(self) -> list[Again]:
        """The calls that wait, in order."""
        return [*self.again.values()]


class Settled(NamedTuple):
    """What becomes of the calls that waited: some are to run; or they wait while `known` runs.

    over: if that overwrites all that they compute, by which of its calls (see `runtime.owed`).
    latest: else, with which they wait on.
    """

    due: Sequence[Call] = ()
    waiting: Sequence[Call] = ()
    known: Replay | None = None
    over: Sequence[frozenset[int]] = ()
    latest: Postponing | None = None


def settle(tracer: Tracer) -> Settled:
    """Before a flush: find out whether it overwrites, unread, all that waiting calls compute."""
    wanted = tracer.why in POSTPONING and tracer.postponed > 0  # else somebody reads
    tracer.postponed = 0
    tracer.show()
    latest, tracer.postponing = tracer.postponing, None
    if latest is None:
        return Settled()
    waiting = latest.waiting if are_first(latest.waiting, tracer.calls) else []
    calls = tracer.calls[len(waiting) :]
    known = None
    unread = unreachable(calls, latest.arrays)
    if len(unread) == len(latest.arrays):
        tracer.remove([*waiting])
        waiting = []
    elif wanted or not latest.again:
        if not calls or calls[0].position != latest.position + 1:
            return Settled(due=waiting)
        known = replay.look(calls).known
        if _is_apart(known, calls, latest):
            if latest.between < BETWEEN:
                return _later(known, calls, latest, tracer)
            if not latest.again:
                return Settled()  # what becomes of the arrays is not found out
        if known is None and latest.again:  # it may fail, when a part of it has run
            latest.account.missed()
            return Settled(due=waiting)
        unread = _unread(known, calls, latest)
    if not latest.again:
        latest.account.found(unread)
        latest.account.between += (latest.between - latest.account.between) / 4
    elif len(unread) < len(latest.arrays):
        latest.account.missed()
    elif known is not None:
        return Settled(waiting=waiting, known=known, over=_over(known, calls, latest))
    return Settled(due=waiting)


def _over(known: Replay, calls: Sequence[Call], latest: Postponing) -> list[frozenset[int]]:
    """For each call that waits, those that overwrite what it writes."""
    parts = account_of(known).work.overwritten.items()
    by = {id(region_of(calls, source).buffer): part.calls for source, part in parts}
    none = frozenset[int]()
    return [none.union(*(by.get(id(b), none) for b in written)) for written in _owed(latest)]


def _owed(latest: Postponing) -> list[list[Buffer]]:
    """What each call that waits is to write."""
    written = latest.account.work.written
    return [
        [region_of((call,), (0, place)).buffer for place in written[n]]
        for n, call in latest.again.items()
    ]


def _later(
    known: Replay | None, calls: Sequence[Call], latest: Postponing, tracer: Tracer
) -> Settled:
    """Nothing is known of the arrays after these calls, either."""
    after = latest._replace(position=calls[-1].position, between=latest.between + 1)
    if latest.again:
        return Settled(waiting=latest.waiting, known=known, latest=after)
    tracer.postponing = after
    return Settled()


# law: True
def _is_apart(known: Replay | None, calls: Sequence[Call], latest: Postponing) -> bool:
    """Whether calls touch nothing that those compute which wait, and change nothing they read.

    Nor may they be the last to need memory that these read: another array of theirs would get it.
    """
    if not latest.again:  # it is to be found out whether any may wait
        arrays = set(map(id, latest.arrays.values()))
        return not any(id(b) in arrays for call in calls for b in touched_by(call))
    if known is None:
        return False
    owed = {id(b) for written in _owed(latest) for b in written}
    read = {id(b) for call in latest.waiting for b in touched_by(call)}
    account = account_of(known)
    return not any(
        type(a) is Region
        and id(a.buffer) in read
        and (
            place in account.writes[n]
            or id(a.buffer) in owed
            or account.given.clusters[_cluster(account.given, (n, place))].temporary
        )
        for n, call in enumerate(calls)
        for place, a in enumerate(call.arguments)
    )


def _unread(known: Replay | None, calls: list[Call], latest: Postponing) -> tuple[Source, ...]:
    """The arrays that calls overwrite before they read them, or that nobody can read any more."""
    before = latest.account.given, latest.account.work
    if known is None:
        work = work_arrays.work_of(shape_of(calls, structural_scalars))
        return left_unread(calls, work, (), latest.arrays, before)
    account = account_of(known)
    programs = [known.program, account.program or known.program]
    return left_unread(calls, account.work, programs, latest.arrays, before)


def account_of(known: Replay) -> Account:
    account: Account | None = known.account
    if account is None:
        account = known.account = Account(known.program)
    return account


def beginning(known: Replay, calls: Sequence[Call], tracer: Tracer) -> Postponing | None:
    """The arrays of a trace that are to wait for a reader this time, and what is to wait then."""
    account = account_of(known)
    if account.hopeless or not known.settled or tracer.watch is not None:
        return None
    if tracer.why not in POSTPONING:  # somebody reads what it computes
        return None
    account.flushes += 1
    account.hopeless = account.flushes > TRIED and not account.unread
    regions = {source: region_of(calls, source) for source in account.arrays}
    arrays = {source: region.buffer for source, region in regions.items() if _may_wait(region)}
    again = _again(account, arrays)
    seen_to = (1 + account.between) * NOW.running.postponed_bytes
    small = sum(buffer.nbytes for buffer in arrays.values()) < seen_to
    if small or len(again) > MOST or not _are_ours(account, calls, again):
        account.hopeless |= account.flushes > NOW.running.misses
        return None
    ready = account.unread > 0 and account.unread * account.seconds >= account.wanted
    ready = ready and not account.pending.is_busy
    if ready and account.program is not None:
        account.lost = account.lost + 1 if _loses(account.program, known.program) else 0
        if account.lost > LOST:
            account.hopeless = True
            return None
    latest = Postponing(account, arrays, calls[-1].position)
    if ready:
        return latest._replace(again={n: calls[n].again() for n in again})
    tracer.postponing = latest
    return None


def _loses(program: Program, other: Program) -> bool:
    """Whether a program was slower than the one that stores, which may have been tried (`tune`)."""
    from pyfuser.runtime.duel import MARGIN

    return (
        min([la.timing.runs for la in program.launches], default=0) > NOW.running.timed_runs
        and min([la.timing.runs for la in other.launches], default=0) > 1  # see `Timing`
        and MARGIN * _seconds(program) > _seconds(other)
    )


def _seconds(program: Program) -> float:
    return sum([launch.timing.mean for launch in program.launches])


def _again(account: Account, arrays: Iterable[Source]) -> list[int]:
    """The calls that compute arrays, in order."""
    return sorted(set().union(*(account.work.arrays[source] for source in arrays)))


def _are_ours(account: Account, calls: Sequence[Call], again: Sequence[int]) -> bool:
    """Whether Views alone reach what calls touch, and what they read stays: somebody has it."""
    mine = {id(buffer) for buffer in _written(account, calls, again)}
    buffers = [b for n in again for b in touched_by(calls[n])]
    return not any(
        b.external or b.lent or b.image is not None or not (id(b) in mine or b.reachable)
        for b in buffers
    )


def _written(account: Account, calls: Sequence[Call], again: Sequence[int]) -> Iterator[Buffer]:
    """The memory that calls of a trace write."""
    return (region_of(calls, (n, place)).buffer for n in again for place in account.work.written[n])


def _whole(account: Account, calls: Sequence[Call]) -> set[int]:
    """The memory all of which is overwritten, by id()."""
    parts = account.work.parts.items()
    return {id(region_of(calls, source).buffer) for source, part in parts if part.whole}


def _may_wait(region: Region) -> bool:
    """Whether it is a View's that the host has never had, and somebody could still read it.

    Arrays of lazy NumPy have other handles.
    """
    buffer = region.buffer
    mine = type(buffer) in (Allocation, Unmade) and type(buffer._handle()) is Handle
    return mine and not buffer.seen and is_whole(region)


def wait(latest: Postponing, calls: Sequence[Call], tracer: Tracer) -> None:
    """After a flush that left its arrays: have what is pending for them wait."""
    keep(latest, tracer)
    if tracer.postponing is latest:
        COUNTERS.postponed += len(latest.again)
        SESSION.flushes[-1].waiting = len(latest.again)
        whole = _whole(latest.account, calls)
        for buffer in _written(latest.account, calls, [*latest.again]):
            if id(buffer) in whole:
                lifetimes.release(buffer)  # they are computed again


def keep(latest: Postponing, tracer: Tracer) -> None:
    """Have calls wait, if they are the first that are pending."""
    tracer.postponing, tracer.postponed = latest, len(latest.again)
    if not are_first(latest.waiting, tracer.calls):  # asked last: a signal handler may run them
        tracer.postponing, tracer.postponed = None, 0


def program_of(
    known: Replay,
    arrays: Iterable[Buffer],
    calls: list[Call],
    made: Callable[[TraceShape, Pending], Program | None],
    tracer: Tracer,
) -> Program | None:
    """What runs while arrays wait: the program of their trace if nothing had them.

    None until it is compiled.
    """
    account = account_of(known)
    with _hidden(arrays, tracer):
        looked = replay.look(calls)
        trace = shape_of(calls, structural_scalars) if looked.known is None else None
        key = None if trace is None else replay.agreed(looked.key, trace, calls)
    if trace is None:
        program: Program = looked.known.program  # type: ignore[union-attr]
    else:
        ready = made(trace, account.pending)
        if ready is None:
            return None
        program = replace(ready, referee=None)  # what is tried would store the arrays
        SESSION.programs.keep(trace, program)
        replay.keep(key, program, calls)
    if account.program is not program:
        account.narrow(program)
    return program


@contextmanager
def _hidden(arrays: Iterable[Buffer], tracer: Tracer) -> Iterator[None]:
    """As if nothing outside of what is recorded could reach arrays."""
    tracer.hidden = [(buffer, buffer._handle) for buffer in arrays]
    try:
        for buffer, _ in tracer.hidden:
            buffer._handle = _GONE
        yield
    finally:
        tracer.show()


def prepared_of(known: Replay, calls: list[Call]) -> Any:
    """The launches of a program that is known, compiled; see `runtime.prepared`."""
    account = account_of(known)
    if known.prepared is not replay.MISSING:
        return known.prepared
    if account.prepared is replay.MISSING:
        account.prepared = prepared(known.program, calls)
    return account.prepared


def _cluster(given: TraceShape, source: Source) -> int:
    cluster = lifetimes.cluster_of(given, source)
    assert cluster is not None
    return cluster
