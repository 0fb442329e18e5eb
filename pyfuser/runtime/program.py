"""What runs for traces of one shape, and what is remembered of each time that it ran."""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any, Protocol

from pyfuser.plan.changed import what_changed
from pyfuser.runtime.launch import Launch
from pyfuser.runtime.session import SESSION
from pyfuser.support.counters import COUNTERS
from pyfuser.support.progress import listening
from pyfuser.support.records import dataclass
from pyfuser.support.units import count
from pyfuser.trace.call import Call, line_at
from pyfuser.trace.reason import Asked, Place, asked
from pyfuser.trace.shape import TraceShape
from pyfuser.transform.kernel import Kernel

if TYPE_CHECKING:
    from pyfuser.analysis.dependences import DependenceGraph
    from pyfuser.plan.plan import Plan


class Judge(Protocol):
    """What tries other programs for a trace; see `runtime.autotune.Referee`."""

    @property
    def open(self) -> Sequence[Any]: ...
    def after(self, program: Program) -> Program: ...
    def wait(self, program: Program) -> int:
        """How many flushes may pass before `after` has something to decide."""


@dataclass(frozen=True)
class Program:
    """What a trace of this shape runs: `kernels[k]` is that of `plan.groups[k]`.

    given: the trace as it was recorded, and trace: as it was planned, with the calls that rewrites
    made (see `plan.rewrite`). referee: what tries other plans in its place, until nothing is in
    doubt. graphs: what launches all kernels together, if a device runs them. seconds: what its
    calls take unfused, modelled. cuts: launches that run in bands, see `runtime.bands`.
    """

    given: TraceShape
    trace: TraceShape
    graph: DependenceGraph
    plan: Plan
    kernels: tuple[Kernel, ...]
    launches: tuple[Launch, ...]
    referee: Judge | None = None
    graphs: Any = None
    seconds: float = 0.0
    cuts: tuple[Any, ...] = ()


class Flush:
    """One flush that ran, for `explain`: its program, and each call's label, code and line.

    Most are never looked at: lines are found when somebody does. made: label, code and `Call.at` of
    one call after the other. why, code, at: as `trace.reason.Asked`. copied: bytes that it copied
    to GPUs, and back. waiting: how many of its calls run again for whoever reads what it has left
    out; the extension makes those without.
    """

    __slots__ = ("at", "code", "copied", "made", "program", "waiting", "why")

    def __init__(self, program: Program, calls: Sequence[Call], asked: Asked) -> None:
        self.program = program
        self.made: tuple[Any, ...] = tuple(
            [part for call in calls for part in (call.label, call.code, call.at)]
        )
        self.why, self.code, self.at = asked
        self.copied: tuple[int, int] = 0, 0
        self.waiting = 0

    @property
    def calls(self) -> tuple[tuple[str | None, CodeType, int], ...]:
        """Each call's label, code and line."""
        parts = iter(self.made)
        calls = zip(parts, parts, parts, strict=True)
        return tuple((label, code, line_at(code, at)) for label, code, at in calls)

    def call(self, n: int) -> tuple[str | None, CodeType, int]:
        """The same of one call."""
        label, code, at = self.made[3 * n : 3 * n + 3]
        return label, code, line_at(code, at)

    @property
    def asked(self) -> Place:
        """What it ran for, and where the program did that."""
        return Asked(self.why, self.code, self.at).place

    def __enter__(self) -> None:
        """Around the launches: counts what is copied."""
        self.copied = COUNTERS.bytes_to_device, COUNTERS.bytes_to_host

    def __exit__(self, *error: object) -> None:
        to_device, to_host = self.copied
        self.copied = COUNTERS.bytes_to_device - to_device, COUNTERS.bytes_to_host - to_host


def note_planned(trace: TraceShape, program: Program, seconds: float) -> None:
    """Log that a trace was planned, and what made that necessary."""
    log = listening("plan")
    if log is not None:
        changed = what_changed(trace, reversed(SESSION.programs))
        log.debug(
            "planned %s as %s in %.3f s%s",
            count(len(trace.calls), "call"), count(len(program.launches), "kernel"), seconds,
            f", again, as {changed}" if changed else "",
        )  # fmt: skip


def remember(program: Program, calls: Sequence[Call]) -> Flush:
    """Keep what `explain` needs of this flush; it holds no data."""
    flush = SESSION.flushes.keep(Flush(program, calls, asked(SESSION.tracer.why)))
    log = listening("flush")
    if log is not None:
        file, line, why = flush.asked
        where = f"{file}:{line}: " if file else ""
        log.debug("flush of %s: %s%s", count(len(calls), "call"), where, why)
    return flush
