"""A process that dies by a kernel says which one it is, and how to find the mistake.

A store outside of a view may end the process in the kernel, or damage the memory of `malloc`, which
aborts when something is freed: often at exit. Python's `faulthandler` prints the Python lines of
all threads, async-signal-safely, and lets the signal end the process as it would have. The launch
of a kernel is code whose file name is `described(...)`, so the first line names the kernel.

The extension has a handler below that one, which lives on when Python has ended: it names the
kernels that were launched last. A launch costs the note of an address for that.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial

from pyfuser.nest.spec import KernelSpec
from pyfuser.support.caches import once
from pyfuser.support.extension import HOT
from pyfuser.support.settings import SETTINGS

_ACTION_BYTES = 512  # more than a `struct sigaction` has anywhere; its handler comes first


def described(title: str, loops: Sequence[KernelSpec]) -> str:
    """The file name of the code that launches a kernel."""
    advice = "; PYFUSER_CHECK=bounds finds an index outside of a view"
    return f"<launch of {_named(title, loops)}{'' if loops[0].checked else advice}>"


def launching(
    title: str, loops: Sequence[KernelSpec], entry: int | None
) -> Callable[[], None] | None:
    """What to call before a kernel is launched, if anything; entry: the address of its code.

    A kernel that checks its indices does no harm.
    """
    if HOT is None or loops[0].checked:
        return None
    HOT.name_kernel(entry, _named(title, loops).replace("\0", ""))
    return partial(HOT.launching, entry)


def _named(title: str, loops: Sequence[KernelSpec]) -> str:
    places = dict.fromkeys(loop.place for loop in loops if loop.place)
    return (title or "kernel") + (f" ({', '.join(places)})" if places else "")


@once
def watch() -> bool:
    """Let faults be told, unless the program or a library has a handler of its own.

    Tells whether `faulthandler` does that for PyFuser.
    """
    if SETTINGS.sync or sys.__stderr__ is None:
        return False
    known = faulthandler.is_enabled() and not callable(signal.getsignal(signal.SIGSEGV))
    usual = _is_default(signal.SIGSEGV) and not faulthandler.is_enabled()
    with contextlib.suppress(OSError, RuntimeError, ValueError):  # closed
        if HOT is not None:
            HOT.watch_faults(sys.__stderr__.fileno(), known)
        if usual:
            faulthandler.enable(sys.__stderr__)
    return usual and faulthandler.is_enabled()


def _is_default(number: int) -> bool:
    """Whether a signal does what it does in a new process; False where nobody knows."""
    action = ctypes.create_string_buffer(_ACTION_BYTES)
    try:
        failed = ctypes.CDLL(None).sigaction(int(number), None, action)
    except (AttributeError, OSError, TypeError):  # Windows
        return False
    return failed == 0 and not any(action.raw[: ctypes.sizeof(ctypes.c_void_p)])
