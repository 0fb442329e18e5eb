"""What was called on what: one `Call` for each parallel pattern the program asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import CodeType
from typing import NamedTuple, TypeAlias

from pyfuser.ir.nodes import SourceLocation, Workunit
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Buffer, Region

Scalar: TypeAlias = bool | int | float | complex
Argument: TypeAlias = Region | Scalar | Future


GPU_SPACES = frozenset({"Cuda", "HIP"})
"""Execution spaces whose kernels a device runs."""


class Space(NamedTuple):
    """An iteration space: the box `begin <= index < end`, and who executes it.

    RangePolicy (one dimension) from an MDRangePolicy.
    """

    begin: tuple[int, ...]
    end: tuple[int, ...]
    execution: str = "OpenMP"

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(max(e - b, 0) for b, e in zip(self.begin, self.end, strict=True))

    @property
    def size(self) -> int:
        """The number of iterations."""
        total = 1
        for begin, end in zip(self.begin, self.end, strict=True):
            total *= max(end - begin, 0)
        return total


def buffers_of(calls: Iterable[Call]) -> list[Buffer]:
    """The memory that calls touch, each once."""
    found: dict[int, Buffer] = {}
    for call in calls:
        for argument in call.arguments:
            if type(argument) is Region:
                found[id(argument.buffer)] = argument.buffer
    return list(found.values())


class Call:
    """A recorded call; `arguments[k]` is bound to `workunit.params[k]`.

    pattern: "for", "reduce" or "scan". A reduction has one result, a scan too. at: the line of the
    program that made it, or ~i of the instruction i of its code, whose line is found when somebody
    wants to know (see `line_at`).
    """

    __slots__ = (
        "arguments",
        "at",
        "code",
        "label",
        "pattern",
        "position",
        "result",
        "space",
        "workunit",
    )

    def __init__(
        self,
        pattern: str,
        space: Space,
        workunit: Workunit,
        arguments: tuple[Argument, ...],
        result: Future | None,
        label: str | None,
        code: CodeType,
        at: int,
    ) -> None:
        self.position = -1
        self.pattern = pattern
        self.space = space
        self.workunit = workunit
        self.arguments = arguments
        self.result = result
        self.label = label
        self.code = code
        self.at = at

    def again(self) -> Again:
        """One that computes once more what this one has."""
        made = Again(
            self.pattern, self.space, self.workunit, self.arguments, self.result, self.label,
            self.code, self.at,
        )  # fmt: skip
        made.position = self.position
        return made

    @property
    def line(self) -> int:
        """The program's line that made the call."""
        return line_at(self.code, self.at)

    @property
    def location(self) -> SourceLocation:
        """Where the user's program made the call."""
        return SourceLocation(self.code.co_filename, self.line, 0, self.code.co_name)

    @property
    def name(self) -> str:
        return self.label or self.workunit.name


class Again(Call):
    """One that for the program has run: whatever is dropped, it is not (see `runtime.postpone`)."""

    __slots__ = ()


def line_at(code: CodeType, at: int) -> int:
    """`at`, or the line of instruction `~at` (bytes, as `frame.f_lasti` has it); 0 if it has none.

    To look through a code's table of lines takes longer than to record a call.
    """
    if at >= 0:
        return at
    place = ~at
    lines = (line for begin, end, line in code.co_lines() if begin <= place < end)
    return next(lines, None) or 0


SHOWN = 10  # calls that a message names


def called_as(calls: Sequence[Call]) -> str:
    """Lines for the end of a message: the calls that it is about."""
    return _lines("", "called as ", calls)


def not_run(calls: Sequence[Call]) -> str:
    """Lines for the end of a message: calls after the mistake, which are dropped."""
    return _lines("\n  called after it, dropped and will not run:", "  ", calls)


def ran_too(calls: Sequence[Call]) -> str:
    """Lines for the end of a message: calls after the mistake that had run before it was known."""
    return _lines("\n  called after it, and has run, too:", "  ", calls)


def _lines(head: str, what: str, calls: Sequence[Call]) -> str:
    lines = [f"\n  {what}{call.name!r} at {call.location}" for call in calls[:SHOWN]]
    more = f"\n  {what and '  '}and {len(calls) - SHOWN} more calls" * (len(calls) > SHOWN)
    return head * bool(calls) + "".join(lines) + more
