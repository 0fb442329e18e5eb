"""Kernels that are compiled while the program goes on, for what it may run later.

What is tried, and what a trace becomes once it is known what follows, is better than what runs at
present or is not: nobody has to wait for it. The compiler gets what others leave of the processors.

A shell that is no child of ours runs it, so that `os.wait()` of a program finds its own children
alone, and no lock is held and no thread runs that a fork would copy. What it made is taken into the
cache when somebody asks. The end of a program ends it; after `os._exit()` it ends by itself.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from pyfuser.support.passes import left_out
from pyfuser.support.records import dataclass

NICE = 10
"""How far the compiler stands back, as of `nice`: it gets a tenth of a busy processor."""

_DONE = "done"


@dataclass(frozen=True, slots=True)
class Piece:
    """One library. command: makes it in a directory; take: takes it away, or raises OSError."""

    directory: Path
    command: Sequence[str]
    take: Callable[[], None]


class Ahead:
    """Pieces of work, one after the other. What fails has to be done by who needs it."""

    def __init__(self, pieces: Sequence[Piece] = ()) -> None:
        self._pieces = pieces
        self._owner = os.getpid()
        self._group = 0
        if pieces:
            _BEGUN.add(self)
            try:
                self._group = _started(pieces)
            except BaseException as error:
                self.give_up()
                if not isinstance(error, OSError):
                    raise

    @property
    def is_done(self) -> bool:
        """Whether nothing is under way; what is ready is taken. A fork has nothing under way."""
        if os.getpid() != self._owner:
            return True
        if self._pieces and not self._runs():
            for piece in self._pieces:
                with contextlib.suppress(OSError):
                    piece.take()
            self._forget()
        return not self._pieces

    def _runs(self) -> bool:
        if (self._pieces[-1].directory / _DONE).exists():
            return False
        try:
            os.killpg(self._group, 0)
        except OSError:
            return False
        return True

    def give_up(self) -> None:
        """End it."""
        if os.getpid() != self._owner:
            return
        if self._group and self._pieces and self._runs():
            with contextlib.suppress(OSError):
                os.killpg(self._group, signal.SIGKILL)
        self._forget()

    def _forget(self) -> None:
        for piece in self._pieces:
            shutil.rmtree(piece.directory, ignore_errors=True)
        self._pieces = ()
        _BEGUN.discard(self)


def _started(pieces: Sequence[Piece]) -> int:
    """Start a shell that does the pieces, and is no child of ours; the group of its processes."""
    import shlex  # loaded only when something must be compiled
    import subprocess

    steps = [
        f"cd {shlex.quote(str(piece.directory))} && nice -n {NICE} {shlex.join(piece.command)}; "
        f": > {shlex.quote(str(piece.directory / _DONE))}"
        for piece in pieces
    ]
    steps.append(f"kill -0 {os.getpid()} || rm -rf {shlex.join(str(p.directory) for p in pieces)}")
    script = f"( {'; '.join(steps)} ) < /dev/null > /dev/null 2>&1 &"
    with subprocess.Popen(["/bin/sh", "-c", script], start_new_session=True) as shell:
        pass
    return shell.pid


_BEGUN: set[Ahead] = set()


@atexit.register
def _end() -> None:
    for ahead in list(_BEGUN):
        ahead.give_up()


class Pending:
    """What is compiled ahead of one use, or nothing yet."""

    __slots__ = ("_ahead",)

    def __init__(self) -> None:
        self._ahead: Ahead | None = None

    @property
    def is_busy(self) -> bool:
        """Whether something is under way."""
        return self._ahead is not None and not self._ahead.is_done

    @property
    def is_begun(self) -> bool:
        """Whether something was begun and not taken."""
        return self._ahead is not None

    def has(self, begin: Callable[[], Ahead]) -> bool:
        """Whether it is there, and taken; what `begin` begins is, the first time. Raises as it."""
        if self._ahead is None:
            if left_out("compile-ahead"):
                return True
            self._ahead = begin()
        if not self._ahead.is_done:
            return False
        self._ahead = None
        return True
