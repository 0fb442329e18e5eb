"""A trace that is new: its calls run one by one without a compiler, as far as they know how.

Planning and compiling take some tenths of a second, which a trace that comes a few times does not
earn. The rule looks at traces alone, never at a clock: calls that can `compute` without a kernel do
so until traces of their shape have moved as much memory as could be moved while it is compiled.
Traces that differ in sizes alone share kernels (`runtime.families`): once all of them have moved as
much, each needs to earn no more than its plan, or what it costs to give it the code of another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from itertools import compress, starmap
from math import prod
from typing import Any, TypeAlias

from pyfuser.plan.plan_cache import family_of
from pyfuser.runtime.session import SESSION
from pyfuser.support.caches import Table
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import GPU_SPACES, Call
from pyfuser.trace.gate import Overtaken
from pyfuser.trace.memory import LINE, Region, are_strided
from pyfuser.trace.shape import TraceShape
from pyfuser.trace.tracer import Tracer, nothing_to_settle
from pyfuser.tuning.thresholds import NOW

Step: TypeAlias = Callable[[Callable[[], object]], None]


class DirectCall(Call):
    """A call that can run without a kernel.

    ripe: such operations have moved `ripe_bytes` before one was recorded.
    """

    __slots__ = ("ripe",)

    ripe: bool

    @property
    def weight(self) -> int:
        """How often as long it takes as to move its arguments."""
        return 1

    def compute(self, step: Step) -> None:
        """Do what the kernel would.

        step: calls what it is given, once, which makes all changes and must be a function of C's,
        or one that may be called again.
        """
        raise NotImplementedError


SEEN: Table[Hashable, int] = Table("bytes that traces and their families moved", 1024)


_KEPT = -(1 << 62)
"""Of calls that a kernel is made for: they are never given up."""

GIVEN_UP = 1 << 62
"""Of those that are."""

SITES: Table[Any, int] = Table("bytes that instructions moved without a kernel", 4096)
"""By code, place in it and shape of the result."""


def is_lost(site: Any) -> bool:
    """Whether calls like this one were recorded long enough, and no trace of theirs came again.

    So it is where what a program works on moves in every trip of a loop, as rows of a matrix do.
    """
    return SITES.get(site, 0) >= GIVEN_UP


def lose(trace: TraceShape, calls: Sequence[Call]) -> None:
    """Have NumPy compute such calls from now on, without recording them."""
    SEEN.keep(trace, GIVEN_UP)
    for call in calls:
        site = _site(call)
        if site is not None:
            SITES.keep(site, GIVEN_UP)


def _site(call: Call) -> Any:
    """The instruction that recorded a call, with the shape of its result; None: not known."""
    first = call.arguments[0]
    if type(first) is not Region or call.code is None:
        return None
    return call.code, call.at, first.shape


def _note(calls: Sequence[Call], compiled: bool, each: int = 0) -> None:
    """Count what calls moved whose trace is new, or that a kernel is made for.

    each: bytes that count for each instruction, if they are not those that its calls move.
    """
    moved: dict[Any, int] = {}  # by site
    for call in calls:
        site = _site(call)
        if site is not None:
            moved[site] = each or moved.get(site, 0) + _bytes((call,))
    for site, count in moved.items():
        total = SITES.get(site, 0) + count
        SITES.keep(
            site, _KEPT if compiled else GIVEN_UP if total >= NOW.running.lost_bytes else total
        )


WORTH_CALL = 120_000
"""Bytes that NumPy moves in cache while a call is recorded and its part of a kernel runs, ..."""

WORTH_FLUSH = 20 * WORTH_CALL
"""... and while a flush finds what to launch. Measured on an AMD EPYC (Zen 4), one thread, other
work on it: of NPBench's programs at M, cavity_flow gains and channel_flow loses."""

TRIES = 32
"""Calls of one instruction that is ripe after which it is given up, as its traces never come again;
such a call takes NumPy some microseconds, and several times as many to get there."""


PAID = 16
"""Traces of a function that are compiled as it is ripe. Where each trip of a loop makes another
one, the others cost more than they gain, and their calls run at once from then on."""


def may_run(calls: Sequence[Call]) -> bool:
    """Whether calls may run without a kernel."""
    if SETTINGS.numpy_lazy or SETTINGS.verify or SETTINGS.debug:  # or somebody looks at kernels
        return False
    return are_direct(calls) and calls[0].space.execution not in GPU_SPACES


def runs_here(trace: TraceShape, calls: Sequence[Call]) -> bool:
    """Whether these calls run without a kernel this time."""
    if not may_run(calls):
        return False
    moved = SEEN.get(trace, 0)
    if moved >= GIVEN_UP:  # by other instructions, or Python counts them in another way by now
        lose(trace, calls)
        return True
    if moved < 0:
        return False
    new, bytes_now = not moved, _bytes(calls)
    needed, alike = _needed(trace, bytes_now)
    ripe = [call for call in calls if getattr(call, "ripe", False)]
    worth = bytes_now >= WORTH_FLUSH + WORTH_CALL * len(calls)
    place = ("ripe", calls[0].code)
    hopeless = not worth or (not alike and SEEN.get(place, 0) >= PAID)
    if not ripe or (worth and alike):
        moved += bytes_now
    else:
        moved += max(bytes_now, needed // (TRIES if hopeless else 2 + len(calls) // 16))
    if ripe and hopeless:
        _note(ripe, False, NOW.running.lost_bytes)
    compiled = moved >= needed  # also what is given up, and recorded as something else is pending
    SEEN.keep(trace, -1 if compiled else moved)
    if compiled:
        for key in (("family", family_of(trace)), place):
            SEEN.keep(key, (SEEN.used(key) or 0) + 1)
    if new or compiled:
        _note(calls, compiled)
    _note(ripe, compiled, NOW.running.lost_bytes // TRIES)
    return not compiled


def _needed(trace: TraceShape, moved: int) -> tuple[int, int]:
    """What a trace has to move before it is compiled, and how many were that differ in sizes alone.

    moved: by this run, which is counted. The first of them have to move as much together as one
    alone.
    """
    running = NOW.running
    needed = running.planned_bytes + running.planned_call_bytes * len(trace.calls)
    key = family_of(trace)
    if key is None:
        return needed, 0
    planned = SEEN.get(("family", key), 0)
    if not planned:
        together = SEEN.keep(key, (SEEN.used(key) or 0) + moved)
        return (needed if together < needed else 0), 0
    family = SESSION.families.get(key)
    has_code = family is not None and family.has_code
    each = running.resized_call_bytes if has_code else running.planned_again_bytes
    return min(needed, each * len(trace.calls)), planned


def _bytes(calls: Sequence[Call]) -> int:
    """What could be moved while these calls run."""
    return sum(
        prod(argument.shape) * _moved(argument) * getattr(call, "weight", 1)
        for call in calls
        for argument in call.arguments
        if type(argument) is Region
    )


def _moved(region: Region) -> int:
    """The bytes that each element moves."""
    return LINE if are_strided(region.shape, region.strides) else region.dtype.size


def _held(call: Call) -> int:
    """The bytes of its arguments."""
    return sum(prod(a.shape) * a.dtype.size for a in call.arguments if type(a) is Region)


def run(calls: list[Call], tracer: Tracer) -> None:
    """Run the calls in order; each is forgotten when it has run.

    An error (a warning that the program's filters make one) drops what was recorded after it.

    A signal handler may flush at any place. So a call runs, if the gate is open, and is noted in
    one step, without any of Python's between: `compress` looks at the gate, `starmap` calls the
    function, `extend` notes that it has run.
    """
    done: list[Call] = []  # that have run or are about to
    ran: list[object] = []  # one entry for each that has
    gate: list[bool] = [True] if tracer.gate is None else tracer.gate
    tracer.settle = partial(_forget, done, ran, tracer)

    def step(function: Callable[[], object]) -> None:
        ran.extend(starmap(function, compress(((),), gate)))

    try:
        while calls:
            call = calls.pop(0)  # so that what only it refers to goes with it
            assert isinstance(call, DirectCall)
            done.append(call)
            try:
                call.compute(step)
            except Warning as error:  # the result is stored all the same
                ran.append(None)
                tracer.settle()
                tracer.give_up(error, call.position)
                raise
            if len(ran) < len(done):
                raise Overtaken
            if len(done) >= AT_A_TIME or _held(call) >= SETTLED:
                tracer.settle()
                tracer.settle = partial(_forget, done, ran, tracer)
    finally:
        tracer.settle()


SETTLED = 1 << 20
"""Bytes of a call that is forgotten at once: what only it refers to is memory for the next one."""

AT_A_TIME = 8
"""Calls that have run and are not forgotten yet, which takes as long for many as for one."""


def _forget(done: list[Call], ran: list[object], tracer: Tracer) -> None:
    if ran:
        tracer.remove(done[: len(ran)])
        done.clear()
        ran.clear()
    tracer.settle = nothing_to_settle


def are_direct(calls: Sequence[Call]) -> bool:
    """Whether none of these calls needs a kernel."""
    return all(isinstance(call, DirectCall) for call in calls)
