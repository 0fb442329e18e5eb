"""Why the recorded calls run now, and where in the program: who flushes gives the reason."""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import NamedTuple

from pyfuser.trace.call import line_at

PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


class Reason(NamedTuple):
    """What made the calls run, in words.

    file, line: where, if who flushes knows; else it is the line of the program that called us.
    placed: whether there is such a line.
    """

    text: str
    file: str = ""
    line: int = 0
    placed: bool = True


RESULT = Reason("a result is read")
VIEW = Reason("a View is read or written")
FULL = Reason("the list of recorded calls was full")
AT_ONCE = Reason("another thread, printf or code that is not rewritten could see its effect")
NUMBER = Reason("its result is a number")
ALONE = Reason("a call is not recorded")
MISTAKE = Reason("a call has a mistake")
STREAM = Reason("a call runs on another device or stream")
CALLBACKS = Reason("callbacks of a workload run")
FENCE = Reason("pk.fence()")
FLUSH = Reason("pk.flush()")
FINALIZE = Reason("pk.finalize()")
SYNC = Reason("pyfuser.sync()")
DISABLE = Reason("pyfuser.disable()")
EXPLAIN = Reason("pyfuser.explain()")
CAPTURED = Reason("a captured step runs")
FUSING_ENDS = Reason("a block of fusing() ends")
UNFUSED_BEGINS = Reason("a block of unfused() begins")
FORK = Reason("the process forks")
CELL_ENDS = Reason("the end of a cell of %%fuse", placed=False)
PROGRAM_ENDS = Reason("the end of the program", placed=False)


class Place(NamedTuple):
    """File, line (0: none) and why."""

    file: str
    line: int
    why: str


class Asked(NamedTuple):
    """A reason, and the program's code and instruction (see `trace.call.line_at`) if it has one."""

    reason: Reason
    code: CodeType | None = None
    at: int = 0

    @property
    def place(self) -> Place:
        if self.code is None:
            return Place(self.reason.file, self.reason.line, self.reason.text)
        return Place(self.code.co_filename, line_at(self.code, self.at), self.reason.text)


def asked(reason: Reason) -> Asked:
    """The reason with the place in the program that made the calls run; to be read later."""
    if reason.line or not reason.placed:
        return Asked(reason)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return Asked(reason) if frame is None else Asked(reason, frame.f_code, ~frame.f_lasti)


def place_of(reason: Reason) -> Place:
    """Where the program is that made the calls run, and why."""
    return asked(reason).place
