"""A signal handler that launches and reads while a flush runs: each kernel runs once."""

from __future__ import annotations

import dis
import functools
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

import pyfuser
from pyfuser.engine import flight, native
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.runtime import building, execute, isolate, program
from pyfuser.runtime import flush as runtime_flush
from pyfuser.runtime.session import TRACER
from pyfuser.support.extension import HOT
from pyfuser.trace import tracer
from tests.faults.conftest import Machine, Program
from tests.faults.workunits import SIZE, increment, scaled, total

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX signals")


#: Files in which a handler comes in between.
_WATCHED = {m.__file__ for m in (runtime_flush, building, execute, isolate, program, tracer)}


class Handled:
    """Calls a handler before the n-th bytecode of the code that runs kernels, as a signal may."""

    def __init__(
        self,
        place: int,
        handler: Callable[[], None],
        watched: Collection[str] = _WATCHED,
        raises: bool = False,
    ) -> None:
        self.place = self.left = place
        self.handler = handler
        self.watched = watched
        self.raises = raises
        self.happened = False

    def __enter__(self) -> None:
        sys.settrace(self._enter)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in self.watched and not name.startswith("<launch of"):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode" and self._after_call(frame):
            self.left -= 1
            if self.left < 0 and not self.happened:
                self.happened = True
                self.handler()
        return self._step

    def _after_call(self, frame: FrameType) -> bool:
        first = frame.f_lasti == 0 and not self.raises
        return first or frame.f_lasti in _breaks(frame.f_code, not self.raises)


@functools.cache
def _breaks(code: CodeType, loops: bool) -> frozenset[int]:
    """Where a signal handler may run: after calls and jumps back.

    loops: also where a loop begins. An exception there may be outside of a block that any other is
    inside of.
    """
    found, before = [], ""
    for instruction in dis.get_instructions(code):
        begins = loops and instruction.is_jump_target
        if begins or before.startswith(("CALL", "RESUME", "JUMP_BACKWARD")):
            found.append(instruction.offset)
        before = instruction.opname
    return frozenset(found)


@pytest.mark.parametrize("reads", [True, False])
def test_a_handler_at_any_place(reads: bool, machine: Machine, program: Program) -> None:
    """It launches on the memory of what runs, and reads it, or leaves its launch pending."""
    program.check_done()  # compiled
    place = misses = 0
    seen: list[float] = []
    while misses < 2:
        program, z = Program(), np.zeros(SIZE)
        w = pk.View([SIZE], pk.double)

        def handler(x: Any = program.x, z: Any = z, w: Any = w) -> None:
            pk.parallel_for(SIZE, scaled, x=x, a=10.0)
            pk.parallel_for(SIZE, scaled, x=z, a=1.0)
            pk.parallel_for(SIZE, scaled, x=w, a=1.0)
            if reads:
                seen.append(float(x[SIZE - 1]))
                pk.parallel_for(SIZE, scaled, x=z, a=1.0)

        handled = Handled(place, handler)
        with handled:
            pyfuser.sync()
        place += handled.happened
        misses = 0 if handled.happened else misses + 1
        expected = 10.0 * handled.happened
        where = f"handled at place {place}"
        assert set(program.x) == {1.0 + expected}, where
        assert float(program.sum) in (SIZE, SIZE * (1.0 + expected)), where
        assert set(w) == {float(handled.happened)}, where
        pyfuser.sync()
        assert set(z) == {(1.0 + reads) * handled.happened}, where
        buffers = [program.x, program.y, w]
        assert not any(view._region.buffer.pending for view in buffers), where
        assert not TRACER.raw and not TRACER.gate, where
    assert place > (60 if HOT is None else 10), "so many places were tried"
    assert set(seen) <= {10.0, 11.0}


def test_a_handler_while_a_call_is_recorded(machine: Machine) -> None:
    """What it runs leaves the count of what is being recorded as it is: no read is stale."""
    place, happened = 0, True
    while happened:
        z = np.zeros(SIZE)

        def handler(z: Any = z) -> None:
            pk.parallel_for(SIZE, scaled, x=z, a=1.0)
            pyfuser.sync()

        call, handled = _call(z), Handled(place, handler)
        with handled:
            TRACER.record(call)
        assert TRACER.raw >= len(pyfuser.pending())
        wrapped = pk.View([SIZE], pk.double, array=z)
        assert set(wrapped) == {1.0 + handled.happened}
        happened = handled.happened
        place += happened
    assert place > 3


def _call(z: Any) -> Any:
    pk.parallel_for(SIZE, scaled, x=z, a=1.0)
    (call,) = TRACER.calls
    TRACER.remove([call])
    return call


@pytest.fixture
def timer() -> Iterator[Callable[[Any, float], None]]:
    """timer(handler, seconds): calls it again and again."""
    before = signal.getsignal(signal.SIGALRM)

    def start(handler: Any, seconds: float) -> None:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)

    yield start
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("interval", [0.01, 0.001])
def test_a_short_timer_while_everything_is_compiled(
    interval: float, machine: Machine, timer: Any
) -> None:
    """Kernels take many times the timer's interval to compile: handlers do not pile up."""
    x, y = pk.View([SIZE], pk.double), pk.View([SIZE], pk.double)
    seen: list[float] = []
    depths = [0]

    def handler(*_: Any) -> None:
        depths[0] += 1
        assert depths[0] < 20
        pk.parallel_for(SIZE, scaled, x=x, a=1000.0)
        seen.append(float(x[0]))
        depths[0] -= 1
        if len(seen) >= 50:  # a slow machine would do nothing else
            signal.setitimer(signal.ITIMER_REAL, 0)

    steps = 0
    with pyfuser.fusing():
        timer(handler, interval)
        while steps < 200 or len(seen) < 50:
            pk.parallel_for(SIZE, increment, x=x)
            pk.parallel_for(SIZE, increment, x=y)
            steps += 1
            if steps % 2:
                assert y[1] == steps
            elif steps % 20 == 0:
                float(pk.parallel_reduce(SIZE, total, x=y))
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert set(x) == {steps + 1000.0 * len(seen)}
    assert set(y) == {float(steps)}


def test_a_handler_that_needs_the_kernel_that_is_compiled(machine: Machine, timer: Any) -> None:
    """It waits for the compiler that runs already."""
    machine.break_compiler('sleep 1; exec "$real" "$@"')
    x, y = pk.View([SIZE], pk.double), pk.View([SIZE], pk.double)
    seen: list[float] = []

    def handler(*_: Any) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        with pyfuser.unfused():
            pk.parallel_for(SIZE, increment, x=y)
        seen.append(float(y[0]))

    with pyfuser.unfused():
        timer(handler, 0.3)
        pk.parallel_for(SIZE, increment, x=x)
    assert seen == [1.0] and set(x) == {1.0}
    assert machine.compilations == 1


def test_ctrl_c_ends_the_compiler(machine: Machine, timer: Any) -> None:
    """The twin: an interrupted compilation is given up, and begins anew the next time."""
    machine.break_compiler("sleep 100")
    x = pk.View([SIZE], pk.double)
    pk.parallel_for(SIZE, increment, x=x)
    timer(signal.default_int_handler, 0.3)
    with pytest.raises(KeyboardInterrupt):
        pyfuser.sync()
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert not native._FLIGHTS._known and not native._FLIGHTS._waiting
    assert signal.SIGALRM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    machine.mend()
    assert set(x) == {1.0}


def test_a_handler_that_drops_what_is_pending(machine: Machine, program: Program) -> None:
    """What it drops does not run, wherever it comes; what has run before stays."""
    program.check_done()
    place, happened = 0, True
    while happened:
        x = pk.View([SIZE], pk.double)
        pk.parallel_for(SIZE, increment, x=x)
        dropped: list[str] = []
        handled = Handled(place, lambda dropped=dropped: dropped.extend(pyfuser.discard()))
        with handled:
            pyfuser.sync()
        assert set(x) == {1.0 - len(dropped)}, f"handled at place {place}"
        happened = handled.happened
        place += happened


def test_other_threads_compile_themselves() -> None:
    flights, made = flight.Flights(), []

    def build(cancelled: Any) -> Path:
        made.append((cancelled, threading.current_thread().name))
        return Path("x")

    assert flights.get("key", build) == Path("x")
    thread = threading.Thread(target=flights.get, args=("key", build), name="mine")
    thread.start()
    thread.join()
    assert [name for _, name in made] == ["pyfuser-compile", "mine"] and made[1][0] is None
