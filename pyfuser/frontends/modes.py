"""Which calls are traced: process-wide switches and blocks, the innermost block winning.

A block belongs to what entered it. That is the innermost generator or coroutine on the stack, if
there is one: the block counts while that runs, on whatever thread, and not while it is suspended,
when the stack holds code that knows nothing of the block. Else it is the thread (and those that
`asyncio.to_thread` starts in the block: they have its context).
"""

from __future__ import annotations

import inspect
import linecache
import re
import sys
import threading
from contextvars import ContextVar
from types import FrameType, TracebackType

from pyfuser.runtime.session import TRACER
from pyfuser.support.errors import WorkunitWarning, warn
from pyfuser.support.extension import HOT
from pyfuser.support.settings import SETTINGS
from pyfuser.support.tracebacks import users_line
from pyfuser.trace import reason
from pyfuser.trace.reason import Reason

_STATEMENT = re.compile(r"\s*((?:pyfuser\.)?(?:fusing|unfused))\(\)\s*(?:#.*)?$")
_SUSPENDABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

#: Modules whose functions resume a generator on behalf of their caller: what a function decorated
#: by `contextmanager` enters belongs to the `with` statement that uses it, a fixture's to its test.
_MANAGERS = frozenset({"contextlib", "_pytest.fixtures"})


class Entry:
    """A block that was entered: mode (True traces, False runs at once, None: it has ended)."""

    __slots__ = ("mode", "outer", "owner", "thread")

    def __init__(self, mode: bool, owner: FrameType | None, outer: Entry | None) -> None:
        self.mode: bool | None = mode
        self.owner = owner
        self.outer = outer
        self.thread = threading.get_ident()


#: The innermost block that no generator or coroutine has entered. (Reading a ContextVar takes less
#: than half of the time that a `threading.local` takes.)
_BLOCK: ContextVar[Entry | None] = ContextVar("pyfuser_block", default=None)

#: By frame of a generator or coroutine: its innermost block. Empty in most programs.
_OWNED: dict[FrameType, Entry] = {}


class Switches:
    """Process-wide state. `everywhere` is what `enable` and `disable` set; None: only marked ones.

    `allowed` is False where PYFUSER_FUSION=0 forbids tracing altogether. `careful`: the program
    knows nothing of us, so a launch on memory that NumPy can reach runs at once unless it was made
    by `dispatch.watched_for`, and reductions return numbers; blocks make their own promises.
    `watched`: somebody looks at each call that runs at once (a report, or a setting that checks).
    """

    __slots__ = ("allowed", "careful", "everywhere", "watched")

    def __init__(self) -> None:
        self.allowed = SETTINGS.fusion
        self.careful = False
        self.everywhere: bool | None = None
        self.watched = bool(SETTINGS.check or SETTINGS.verify)


SWITCHES = Switches()


def block() -> bool | None:
    """The mode of the innermost block that counts here; None outside of all blocks."""
    entry = _innermost() if _OWNED else _BLOCK.get()
    while entry is not None and entry.mode is None:  # ended elsewhere
        entry = entry.outer
    return None if entry is None else entry.mode


def _innermost() -> Entry | None:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        entry = _OWNED.get(frame)
        if entry is not None:
            return entry
        frame = frame.f_back
    return _BLOCK.get()


def traced(marked: bool) -> bool:
    """Whether a call made here is recorded; `marked`: its workunit is decorated by `fuse`."""
    if not SWITCHES.allowed:
        return False
    entry = _innermost() if _OWNED else _BLOCK.get()
    if entry is not None:
        mode = entry.mode if entry.mode is not None else block()
        if mode is not None:
            return mode
    return marked if SWITCHES.everywhere is None else SWITCHES.everywhere


def _owner() -> FrameType | None:
    """The innermost frame on the stack that can be suspended."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_flags & _SUSPENDABLE and not _manages(frame):
            return frame
        frame = frame.f_back
    return None


def _manages(frame: FrameType) -> bool:
    """Whether a generator is what a context manager or a fixture is made of."""
    for near in (frame, frame.f_back):
        if near is not None and near.f_globals.get("__name__") in _MANAGERS:
            return True
    return False


def _enter(mode: bool) -> Entry:
    """The entry of a block that begins here."""
    owner = _owner()
    if owner is None:
        entry = Entry(mode, None, _BLOCK.get())
        _BLOCK.set(entry)
    else:
        entry = _OWNED[owner] = Entry(mode, owner, _OWNED.get(owner))
    return entry


def _leave(entry: Entry) -> None:
    """A block ends."""
    entry.mode = None
    if entry.owner is None:
        inner = _BLOCK.get()
        _BLOCK.set(_open(entry.outer if inner is entry else inner))
        return
    left = _open(_OWNED.get(entry.owner))
    if left is None:
        _OWNED.pop(entry.owner, None)
    else:
        _OWNED[entry.owner] = left


def _own(entries: list[Entry]) -> Entry:
    """The latest entry of what leaves a block, removed from those of the block."""
    owner, thread = _owner(), threading.get_ident()
    for n in reversed(range(len(entries))):
        entry = entries[n]
        if entry.owner is owner and (owner is not None or entry.thread == thread):
            return entries.pop(n)
    return entries.pop()


def _open(entry: Entry | None) -> Entry | None:
    """The innermost of blocks, from `entry` on outwards, that has not ended."""
    while entry is not None and entry.mode is None:
        entry = entry.outer
    return entry


def _dropped() -> None:
    """Warn of a line that makes a block and enters none."""
    file, line = users_line()
    made = _STATEMENT.match(linecache.getline(file, line))
    if made is not None:
        text = f"{made[1]}() is a block, and this line enters none: write `with {made[1]}():`"
        warn(text, file, line, WorkunitWarning)


class Block:
    """A `with` block that sets the mode; one object may be entered again, also inside itself.

    mode: whether every call in the block is recorded, or runs at once. begins, ends: what the run
    of what is pending there is called, also if the block raised; None: it stays pending.
    `hot/blocks.c` has the same.
    """

    __slots__ = ("_begins", "_ends", "_entered", "_entries", "_mode")

    def __init__(
        self, mode: bool, begins: Reason | None = None, ends: Reason | None = None
    ) -> None:
        self._entered = False
        self._entries: list[Entry] = []
        self._mode, self._begins, self._ends = mode, begins, ends

    def __enter__(self) -> None:
        if self._begins is not None:
            TRACER.flush(self._begins)
        self._entered = True
        self._entries.append(_enter(self._mode))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _leave(_own(self._entries))
        if self._ends is not None:
            TRACER.flush(self._ends)

    def __del__(self) -> None:
        try:
            if self._entered:
                return
        except AttributeError:  # it was not made
            return
        _dropped()


if HOT is not None:
    HOT.bind_blocks((TRACER, _BLOCK, Entry), (_enter, _leave, _own, _dropped))


def block_of(mode: bool, begins: Reason | None = None, ends: Reason | None = None) -> Block:
    """A `Block`, of the extension's class if there is one."""
    return Block(mode, begins, ends) if HOT is None else HOT.Block(mode, begins, ends)


def recording() -> Block:
    """A block in which every call is recorded, and may stay pending after it."""
    return block_of(True)


def fusing(why: Reason = reason.FUSING_ENDS) -> Block:
    """A block in which every call is recorded; its end, called `why`, runs them."""
    return block_of(True, None, why)


def unfused() -> Block:
    """A block in which every call runs at once; what is pending runs at its start."""
    return block_of(False, reason.UNFUSED_BEGINS)
