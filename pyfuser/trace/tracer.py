"""The tracer holds the calls that were recorded and not yet run."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from operator import is_
from typing import Any, Protocol

from pyfuser.support.errors import PyFuserError
from pyfuser.trace import reason
from pyfuser.trace.call import Again, Argument, Call
from pyfuser.trace.future import Future
from pyfuser.trace.gate import Overtaken
from pyfuser.trace.memory import Buffer, Region
from pyfuser.trace.period import room_for
from pyfuser.trace.reason import Reason

POSTPONING = frozenset(
    {
        reason.RESULT, reason.SYNC, reason.FULL, reason.FUSING_ENDS, reason.FENCE, reason.FLUSH,
        reason.EXPLAIN, reason.UNFUSED_BEGINS, reason.DISABLE, reason.CELL_ENDS,
        reason.FINALIZE, reason.PROGRAM_ENDS,
    }
)  # fmt: skip
"""Flushes for these leave calls that only a reader of their results needs."""

_NONE: Mapping[int, Again] = {}

MAX_CALLS = 512
MAX_BYTES_KEPT = 1 << 30  # of memory that nothing but the trace keeps alive


class Watch(Protocol):
    """Looks at all that a program does with calls and memory.

    captures: a function is captured (`frontends.embedded.capture`); or see `runtime.following`.
    """

    captures: bool

    def served(self, call: Call) -> Future | None:
        """The result of a reduction that is about to be recorded, if it is there by now."""

    def recorded(self, call: Call) -> None:
        """A call is about to be recorded, or to run alone: its arguments may be replaced."""

    def made(self, buffer: Buffer) -> None:
        """A View has new memory."""

    def touched(self, buffer: Buffer, why: Reason) -> Buffer:
        """The host is about to read or write memory; the buffer that stands for it in calls."""

    def interrupted(self, why: Reason) -> None:
        """What is recorded is about to run."""


class Watched(list[Call]):
    """Pending calls while each use of memory is to be seen: who touches any asks if there are."""

    def __bool__(self) -> bool:
        return True


class Tracer:
    """An ordered list of pending calls, bounded in length and in the memory it keeps alive.

    One tracer serves the process; its lock serialises threads. `flush_function` is given by the
    runtime: it runs the pending calls and removes each from `calls` as soon as it has run, so that
    an error neither loses a call nor runs one twice. A signal handler (Ctrl-C) may raise anywhere:
    so `settle`, also given by the runtime, removes what has run, and the next flush begins with it
    if it was interrupted; and the counts may be too high for a moment, never too low.

    fast: does a flush that only repeats an earlier one, and says whether it did. watch: of a step
    that is captured; the extension records nothing while there is one.

    A handler may also record calls and flush, wherever it comes in between: see `trace.gate`.
    """

    __slots__ = (
        "__dict__", "_bytes", "_look_at", "calls", "fast", "flush_function", "gate", "hidden",
        "limit", "place", "postponed", "postponing", "raw", "recorded", "settle", "watch",
    )  # fmt: skip

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.lock = threading.RLock()
        self.flush_function: Callable[[Tracer], None] | None = None
        self.fast: Callable[[Reason], bool] | None = None
        self.settle: Callable[[], None] = nothing_to_settle
        self.why = reason.PROGRAM_ENDS  # the flush at hand runs
        self.gate: list[bool] | None = None  # of the flush that runs
        self.nested = False  # it was entered while another one ran below it on the stack
        self.stuck: BaseException | None = None  # of calls that cannot run, when all others have
        self.limit = MAX_CALLS
        self.recorded = 0
        self.raw = 0  # pending arguments whose memory other arrays may reach
        self.place: AbstractContextManager[None] | None = None  # stream of pending device calls
        self.watch: Watch | None = None
        self.postponed = 0  # of `calls` the first ones, which only a reader of their results needs
        self.postponing: Any = None  # see `runtime.postpone`; there while calls are postponed
        self.hidden: list[tuple[Buffer, Any]] = []  # memory that seems unreachable, with its handle
        self._bytes = 0  # of all pending arguments
        self._look_at = MAX_BYTES_KEPT  # ... that give reason to count those kept alive

    def record(self, call: Call) -> None:
        """Append a call; flush if that fills the trace, and before if it keeps much memory."""
        with self.lock:
            if self.watch is not None:
                self.watch.recorded(call)
            if self._bytes > self._look_at and self._bytes_kept() > MAX_BYTES_KEPT:
                self.flush(reason.FULL)
            call.position = self.recorded
            self.recorded += 1
            for argument in call.arguments:
                if type(argument) is Region:
                    buffer = argument.buffer
                    if buffer.external:
                        self.raw += 1
                    if not buffer.pending:
                        self._bytes += buffer.nbytes
                    buffer.pending += 1
            self.calls.append(call)
            if len(self.calls) >= self.limit:
                self.limit = room_for(self.calls, MAX_CALLS)
                self.flush(reason.FULL)

    def remove(self, done: list[Call], made: Mapping[int, Again] = _NONE) -> None:
        """Forget calls that have run, or that are dropped.

        `calls` is another list afterwards, unless it is watched.

        made: by id() of some of them what has their place.
        """
        gone = set(map(id, done))
        counted = made.keys() & map(id, self.calls)
        for key in counted:
            self._count_all(made[key].arguments)
        while True:
            calls = self.calls
            before = calls[:]
            size = len(before)
            found = [call for call in before if id(call) in gone]
            here = [made.get(id(call), call) for call in before]
            kept = [call for call in here if id(call) not in gone]
            if type(calls) is Watched:
                if self.calls is calls and calls[:size] == before:  # as below
                    calls[:size] = kept
                    break
            elif self.calls is calls:  # no signal handler can come in between: nothing is called
                self.calls = [*kept, *calls[size:]]
                break
        sooner = counted - set(map(id, found))  # in a handler
        self._uncount([*found, *(made[key] for key in sooner)])

    def _uncount(self, calls: list[Call]) -> None:
        for call in calls:
            for argument in call.arguments:
                if type(argument) is Region:
                    buffer = argument.buffer
                    buffer.pending -= 1
                    if buffer.external:
                        self.raw -= 1
                    if not buffer.pending:
                        self._bytes -= buffer.nbytes
                        if buffer.external and not buffer.lent:
                            buffer.withdraw()

    def exchange(self, old: Sequence[Call], new: Sequence[Call]) -> bool:
        """Have other calls in the place of the first ones; whether these were pending as they were.

        A signal handler may have run them, or dropped them.
        """
        for call in new:
            self._count_all(call.arguments)
        while True:
            calls = self.calls
            same = are_first(old, calls)
            made = [*new, *calls[len(old) :]] if same else calls
            if self.calls is calls:  # no signal handler can come in between this and the next line
                self.calls = made
                break
        self._uncount(list(old if same else new))
        return same

    def _count_all(self, arguments: Sequence[Argument]) -> None:
        for argument in arguments:
            if type(argument) is Region:
                self._count(argument.buffer)

    def _count(self, buffer: Buffer) -> None:
        """One more pending argument is of a buffer."""
        self.raw += buffer.external
        self._bytes += 0 if buffer.pending else buffer.nbytes
        buffer.pending += 1

    def rebind(self, call: Call, arguments: tuple[Argument, ...]) -> None:
        """Give a pending call other arguments."""
        self._count_all(arguments)
        self._uncount([call])
        call.arguments = arguments

    def _bytes_kept(self) -> int:
        """The memory that would be free if the trace had run."""
        self._look_at = self._bytes + MAX_BYTES_KEPT
        buffers = {
            id(argument.buffer): argument.buffer
            for call in self.calls
            for argument in call.arguments
            if type(argument) is Region
        }
        return sum(
            buffer.nbytes
            for buffer in buffers.values()
            if buffer.allocated
            and not (sys.getrefcount(buffer.root) > 2 if buffer.external else buffer.reachable)
        )

    def discard(self) -> list[Call]:
        """Forget all pending calls; their results raise from now on."""
        with self.lock:
            self.settle()
            if self.gate is not None:  # a signal handler does so while a flush runs
                self.gate.clear()
            dropped = self.wanted()
            self.remove(dropped)
        for call in dropped:
            if call.result is not None:
                where = f"{call.name!r} at {call.location}"
                call.result.fail(PyFuserError(f"pyfuser.discard() dropped {where} before it ran"))
        return dropped

    def give_up(self, error: Exception, last: int = -1) -> list[Call]:
        """Forget the calls after position `last`: an eager program would have ended before them.

        Their results raise the error. Returns them.
        """
        dropped = [call for call in self.calls if call.position > last]
        self.remove(dropped)
        for call in dropped:
            if call.result is not None:
                call.result.fail(error)
        return dropped

    def wanted(self) -> list[Call]:
        """The pending calls that for the program have not run."""
        return [call for call in self.calls if type(call) is not Again]

    def touches(self, buffer: Buffer) -> bool:
        """Whether a pending call may read or write the buffer's memory."""
        return buffer.pending > 0 or (buffer.external and self.raw > 0)

    def flush(self, why: Reason) -> None:
        """Run everything that is pending, in an order its dependences allow."""
        self._flush(why)

    def flush_before(self, call: Call, why: Reason) -> None:
        """Run what is pending before a call that is not recorded.

        What is postponed waits on if the call touches nothing of it.
        """
        touched = any(type(a) is Region and self.touches(a.buffer) for a in call.arguments)
        if touched or self.wanted():
            self.flush(why)

    def compute(self, result: Future) -> None:
        """Run what is pending, for a result."""
        if self.gate is not None and all(call.result is not result for call in self.calls):
            return  # a flush asks: what is pending does not compute it
        try:
            self._flush(reason.RESULT)
        except Exception as error:
            if error is not self.stuck or not result.given:
                raise

    def _flush(self, why: Reason) -> None:
        if self.watch is not None:
            self.watch.interrupted(why)
        if not self.calls or (self.postponed and self._waits(why)):
            return
        if not self.postponed and self.fast is not None and self.fast(why):
            return
        inside = self.lock._is_owned()  # type: ignore[attr-defined]
        with self.lock:
            self.settle()
            outer = self.why, self.gate, self.nested
            if not inside:
                outer = why, None, False
            self.nested = outer[1] is not None
            if self.gate is not None:
                self.gate.clear()
            self.why = why
            try:
                while self.calls and self.flush_function is not None:
                    self.gate = [True]
                    try:
                        self.flush_function(self)
                        break
                    except Overtaken:
                        continue
            finally:
                if not (inside or self.calls):  # nor is a call being recorded: the gate is there
                    self.raw = self._bytes = 0
                    self._look_at = MAX_BYTES_KEPT
                self.why, self.gate, self.nested = outer

    def show(self) -> None:
        """Give memory back the handles that `runtime.postpone` took, also if it was interrupted."""
        for buffer, handle in self.hidden:
            buffer._handle = handle
        self.hidden = []

    def _is_settled(self, buffer: Buffer) -> bool:
        """Whether what is postponed reads the buffer at most, and nothing else touches it."""
        latest = self.postponing
        return (
            self.postponed > 0
            and latest is not None
            and not any(buffer is owed for owed in latest.arrays.values())
            and not any(_touches(call, buffer) for call in self.wanted())
        )

    def _waits(self, why: Reason) -> bool:
        """Whether all that is pending is postponed, and goes on to be."""
        with self.lock:
            self.show()
            latest = self.postponing  # a signal handler may have seen to it
            if latest is None or self.wanted():
                return False
            if not any(buffer.reachable for buffer in latest.arrays.values()):
                dropped, self.postponed, self.postponing = list(self.calls), 0, None
                self.remove(dropped)  # nobody can read what they compute
            if why not in POSTPONING:
                self.postponed = 0
            return self.postponed == len(self.calls)

    def flush_for(self, buffer: Buffer, why: Reason, writes: bool = True) -> None:
        """Make the buffer's memory safe for the host to read, and to write if it `writes`.

        Calls that cannot run do not stand in the way of memory that they do not touch.
        """
        if self.watch is not None:
            buffer = self.watch.touched(buffer, why)
        if not writes and self._is_settled(buffer):
            return
        if self.calls and self.touches(buffer):
            try:
                self.flush(why)
            except Exception as error:
                if error is not self.stuck or self.touches(buffer):
                    raise


def _touches(call: Call, buffer: Buffer) -> bool:
    return any(
        type(a) is Region and (a.buffer is buffer or a.buffer.external) for a in call.arguments
    )


def are_first(some: Sequence[Call], calls: Sequence[Call]) -> bool:
    """Whether these are the first of some calls, and not others that are equal."""
    return len(calls) >= len(some) and all(map(is_, some, calls))


def nothing_to_settle() -> None:
    """Nothing has run that is not removed."""
