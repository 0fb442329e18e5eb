"""Watching a function whose calls are captured: where what it uses comes from, and what it does.

See `frontends.embedded.capture`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from pyfuser.frontends.embedded.views import ViewType
from pyfuser.ir.dtypes import DType
from pyfuser.runtime.captured import Computed, Number, Part
from pyfuser.runtime.session import TRACER
from pyfuser.support.tracebacks import users_line
from pyfuser.trace.call import Call
from pyfuser.trace.future import Future, plain
from pyfuser.trace.memory import Buffer, Region
from pyfuser.trace.reason import Reason
from pyfuser.trace.tracer import Watched


class Refusal(NamedTuple):
    """Why a function is not replayed, and the line that says so."""

    why: str
    file: str
    line: int


class Memory:
    """A stand-in for the buffer of an argument: the same bytes, under another identity.

    Each View has one of its own, also where several share a buffer: next time they may not.
    """

    def __init__(self, buffer: Buffer) -> None:
        buffer.allocate()
        self.real = buffer
        self.standin = Buffer.__new__(Buffer)
        for name in Buffer.__slots__:
            if not name.startswith("__"):
                setattr(self.standin, name, getattr(buffer, name))
        self.standin.external = False  # nor is anything pending on it: calls touch the real one
        self.standin.lent = True

    def settle(self) -> None:
        """The calls have run: what the function keeps of the stand-in reaches the memory."""
        if sys.getrefcount(self.standin) > 2:
            self.real.expose()
            self.standin.expose()


class Watch:
    """What happens while a function runs for the first time; see `trace.tracer.Watch`.

    arguments: what the function is given. calls, sources: what it called, and where the arguments
    come from (`runtime.captured.Source`). made_buffers: memory of the Views that it made. read:
    places of numbers that it looked at.
    """

    captures = True

    def __init__(self, values: Sequence[Any]) -> None:
        self.refusal: Refusal | None = None
        self.calls: list[Call] = []
        self.sources: list[tuple[Any, ...]] = []
        self.made_buffers: list[Buffer] = []
        self.read: set[int] = set()
        self._values = values
        self._thread = threading.get_ident()
        self._owners: dict[int, tuple[int, Region]] = {}  # by id() of a stand-in: an argument
        self._standins: dict[int, tuple[Any, Any, Memory]] = {}  # by id() of a View
        self._numbers: dict[int, int] = {}  # by id() of a Future: the place of a number
        self.arguments = [self._given(place, value) for place, value in enumerate(values)]

    def _given(self, place: int, value: Any) -> Any:
        if isinstance(value, ViewType):
            if id(value) not in self._standins:
                self._standins[id(value)] = self._view(place, value)
            return self._standins[id(value)][0]
        if not isinstance(value, float):
            return value

        def look(future: Future) -> None:
            self.read.add(place)
            future.set(value)

        future = Future(DType.FLOAT64, look)
        self._numbers[id(future)] = place
        return future

    def _view(self, place: int, view: ViewType) -> tuple[Any, ViewType, Memory]:
        """A View's stand-in, and itself."""
        region, memory = view._region, Memory(view._region.buffer)
        self._owners[id(memory.standin)] = place, region
        made: Any = ViewType.__copy__(view)  # of a row `copy` makes an array
        made._region = Region(memory.standin, *region[1:])
        made._memory = made._array = made._given = None
        made._last_row = None, None
        if made._handle is None:  # or NumPy would make the parts of it
            made._handle = self
        return made, view, memory

    def original(self, value: Any) -> Any:
        """What a stand-in stands for; anything else as it is."""
        for standin, view, _ in self._standins.values():
            if value is standin:
                return view
        return self._values[self._numbers[id(value)]] if id(value) in self._numbers else value

    def begin(self) -> None:
        """The function begins."""
        TRACER.calls = Watched()
        TRACER.watch = self

    def end(self) -> None:
        """The function has ended: stand-ins become Views as any others."""
        TRACER.watch = None
        TRACER.calls = list(TRACER.calls)
        self._owners.clear()
        for standin, view, memory in self._standins.values():
            if standin._region.buffer is memory.standin:
                standin.__dict__.update(view.__dict__)

    def settle(self) -> None:
        """What was recorded has run."""
        for _, _, memory in self._standins.values():
            memory.settle()

    def refuse(self, why: str, place: tuple[str, int] | None = None) -> None:
        """The function is not replayed; the first reason counts."""
        if self.refusal is None:
            self.refusal = Refusal(why, *(place or users_line()))
            TRACER.calls = list(TRACER.calls)

    # ------------------------------------------------------------------- what happens

    def served(self, call: Call) -> None:
        return None

    def recorded(self, call: Call) -> None:
        self.sources.append(tuple(map(self._source, call.arguments)))
        call.arguments = tuple(map(self._real, call.arguments))
        self.calls.append(call)

    def made(self, buffer: Buffer) -> None:
        if threading.get_ident() == self._thread:
            self.made_buffers.append(buffer)

    def touched(self, buffer: Buffer, why: Reason) -> Buffer:
        self.interrupted(why)
        owner = self._owners.get(id(buffer))
        return buffer if owner is None else owner[1].buffer

    def interrupted(self, why: Reason) -> None:
        if threading.get_ident() == self._thread:
            self.refuse(why.text)

    def _real(self, argument: Any) -> Any:
        """An argument of a call, without stand-ins."""
        if type(argument) is Region and id(argument.buffer) in self._owners:
            return Region(self._owners[id(argument.buffer)][1].buffer, *argument[1:])
        place = self._numbers.get(id(argument))
        return argument if place is None else float(self._values[place])

    def _source(self, argument: Any) -> Any:
        """Where an argument comes from; what comes from outside stays as it is."""
        if type(argument) is Region:
            owner = self._owners.get(id(argument.buffer))
            if owner is not None:
                place, base = owner
                return Part(place, False, argument.offset - base.offset, *argument[2:])
            for place, buffer in enumerate(self.made_buffers):
                if buffer is argument.buffer:
                    return Part(place, True, *argument[1:])
        elif type(argument) is Future:
            if id(argument) in self._numbers:
                return Number(self._numbers[id(argument)])
            for place, call in enumerate(self.calls):
                if call.result is argument:
                    return Computed(place)
            return plain(argument)
        return argument
