"""What a flush has launched, and what stops it once another flush has taken over its calls.

A signal handler, or a destructor, may flush while a flush runs below it on the stack. It goes on
from what has run, runs the rest itself and closes the gate of the flush below, which launches
nothing more: every kernel runs once, wherever the handler came in between.
"""

from __future__ import annotations

from typing import Any


class Overtaken(Exception):
    """The calls of a flush have run meanwhile: it must look again at what is pending."""


class Ran(list[Any]):
    """(status, result) of each launch that has run; see `engine.marshal.make_run`.

    gate: what a launch passes, in one step with the kernel: [True], or empty once it is closed.
    """

    __slots__ = ("gate",)

    def __init__(self, gate: list[bool] | None = None) -> None:
        super().__init__()
        self.gate = [True] if gate is None else gate

    def pass_on(self, before: int = -1) -> None:
        """Raise Overtaken if the gate is closed, or nothing was added to `before` entries."""
        if len(self) == before or not self.gate:
            raise Overtaken
