"""Which calls are traced: process-wide switches and blocks, the innermost block winning."""

from __future__ import annotations

from contextvars import ContextVar, Token
from types import TracebackType

from pyfuser import driver
from pyfuser.settings import SETTINGS

#: The innermost block of this thread or task: True traces, False runs at once, None: no block.
BLOCK: ContextVar[bool | None] = ContextVar("pyfuser_block", default=None)


class Switches:
    """Process-wide state. `everywhere` is what `enable` and `disable` set; None: only marked ones.

    `allowed` is False where PYFUSER_FUSION=0 forbids tracing altogether. `careful`: the program
    knows nothing of us, so a launch on memory that NumPy can reach runs at once unless it was made
    by `dispatch.watched_for`, and reductions return numbers; blocks make their own promises.
    """

    __slots__ = ("allowed", "careful", "everywhere")

    def __init__(self) -> None:
        self.allowed = SETTINGS.fusion
        self.careful = False
        self.everywhere: bool | None = None


SWITCHES = Switches()


def traced(marked: bool) -> bool:
    """Whether a call made here is recorded; `marked`: its workunit is decorated by `fuse`."""
    if not SWITCHES.allowed:
        return False
    block = BLOCK.get()
    if block is not None:
        return block
    return marked if SWITCHES.everywhere is None else SWITCHES.everywhere


class _Block:
    """A `with` block that sets the mode; one object may be entered again, also inside itself."""

    __slots__ = ("_tokens",)
    _mode: bool

    def __init__(self) -> None:
        self._tokens: list[Token[bool | None]] = []

    def __enter__(self) -> None:
        self._tokens.append(BLOCK.set(self._mode))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        BLOCK.reset(self._tokens.pop())


class Fusing(_Block):
    """Every call in the block is recorded; its end runs them, also if the block raised."""

    __slots__ = ()
    _mode = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, traceback)
        driver.TRACER.flush()


class Unfused(_Block):
    """Every call in the block runs at once; what is pending runs at its start."""

    __slots__ = ()
    _mode = False

    def __enter__(self) -> None:
        driver.TRACER.flush()
        super().__enter__()
