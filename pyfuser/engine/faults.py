"""A kernel that dies of a segmentation fault says which one it is, and how to find the mistake.

Python's `faulthandler` does it: it prints the Python lines of all threads, async-signal-safely, and
lets the signal end the process as it would have. The launch of a kernel is code whose file name is
`described(...)`, so the first line names the kernel. A launch costs nothing for that.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import signal
import sys
from collections.abc import Sequence

from pyfuser.nest.spec import KernelSpec
from pyfuser.support.caches import once
from pyfuser.support.settings import SETTINGS

_ACTION_BYTES = 512  # more than a `struct sigaction` has anywhere; its handler comes first


def described(title: str, loops: Sequence[KernelSpec]) -> str:
    """The file name of the code that launches a kernel."""
    places = dict.fromkeys(loop.place for loop in loops if loop.place)
    where = f" ({', '.join(places)})" if places else ""
    advice = "; PYFUSER_CHECK=bounds finds an index outside of a view"
    return f"<launch of {title or 'kernel'}{where}{'' if loops[0].checked else advice}>"


@once
def watch() -> bool:
    """Let a segmentation fault be told, unless the program or a library has a handler of its own.

    Tells whether it is.
    """
    if SETTINGS.sync or faulthandler.is_enabled() or not _is_default(signal.SIGSEGV):
        return False
    if sys.__stderr__ is None:
        return False
    with contextlib.suppress(OSError, RuntimeError, ValueError):  # closed
        faulthandler.enable(sys.__stderr__)
    return faulthandler.is_enabled()


def _is_default(number: int) -> bool:
    """Whether a signal does what it does in a new process; False where nobody knows."""
    action = ctypes.create_string_buffer(_ACTION_BYTES)
    try:
        failed = ctypes.CDLL(None).sigaction(int(number), None, action)
    except (AttributeError, OSError, TypeError):  # Windows
        return False
    return failed == 0 and not any(action.raw[: ctypes.sizeof(ctypes.c_void_p)])
