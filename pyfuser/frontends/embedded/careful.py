"""Calls of a program that knows nothing of us: which of them may wait.

Rewritten code runs what is pending before it touches an array (see `run`). A call that it cannot
look after runs at once, alone if nothing is pending.
"""

from __future__ import annotations

import _thread
from collections import Counter
from collections.abc import Callable
from typing import Any

from pyfuser.analysis.structural import structural_scalars
from pyfuser.frontends.embedded.bindings import Binding
from pyfuser.frontends.modes import SWITCHES, block
from pyfuser.ir.nodes import Workunit
from pyfuser.runtime.session import TRACER
from pyfuser.support.caches import Table
from pyfuser.support.errors import CheckError
from pyfuser.support.settings import SETTINGS
from pyfuser.trace import reason
from pyfuser.trace.call import Argument, Call, Space, buffers_of
from pyfuser.trace.memory import Region
from pyfuser.trace.pool import most_memory
from pyfuser.trace.reason import Reason
from pyfuser.trace.shape import shape_of

LARGE = 1 << 26  # bytes of a View that there may be too little memory for

LIGHT = 1 << 18
"""Iterations, as in `hot/record.c`, above which others may run with a sum (`runtime.following`)."""

_other_threads: Callable[[], int] = _thread._count  # Python's, but the main one

#: By file and line, how many calls ran at once and alone; empty unless a report wants it.
AT_ONCE: Counter[tuple[str, int]] = Counter()


def record(binding: Binding, call: Call, watched: bool) -> tuple[bool, Any]:
    """Whether a call was recorded, and what it returns; if not, it is to run alone and now.

    watched: code made it that looks after arrays.
    """
    if block() is not None:  # the program does know of us here
        TRACER.record(call)
        return True, call.result
    if not _runs_at_once(binding, call, watched):
        _refuse_mistakes(call)
        TRACER.record(call)
        return True, None
    long = call.result is not None and call.space.size > LIGHT
    if TRACER.calls or long or SETTINGS.check or SETTINGS.verify:
        TRACER.record(call)
        TRACER.flush(seen(call))
        return True, None if call.result is None else call.result.result()
    if SWITCHES.watched:
        AT_ONCE[call.code.co_filename, call.line] += 1
    return False, None


def seen(call: Call) -> Reason:
    """Why a call runs at once that was to be recorded."""
    return reason.AT_ONCE if call.pattern == "for" else reason.NUMBER


#: By workunit (its id), space, shapes and scalars that decide what is touched: calls looked at.
_SEEN: Table[Any, Workunit] = Table("calls looked at for mistakes", 4096)


def _refuse_mistakes(call: Call) -> None:
    """Raise what the analysis finds wrong with a call here, where the program may handle it.

    Calls before it have run then. Raises BoundsError and DivisionError.
    """
    key = _key(call.workunit, call.space, call.arguments)
    if key in _SEEN:
        return
    from pyfuser.analysis.mistakes import refuse_mistakes

    try:
        refuse_mistakes(shape_of((call,), structural_scalars).calls[0], call, TRACER.calls)
    except CheckError:
        TRACER.flush(reason.MISTAKE)
        raise
    _SEEN.keep(key, call.workunit)  # keeps its id from being reused


def _key(workunit: Workunit, space: Space, arguments: tuple[Argument, ...]) -> tuple[Any, ...]:
    """What decides whether a call has mistakes, as far as they are looked for."""
    matters = structural_scalars(workunit)
    return (
        id(workunit), space,
        *[a.shape if type(a) is Region else a for n, a in enumerate(arguments)
          if type(a) is Region or n in matters],
    )  # fmt: skip


def looked_at(
    workunit: Workunit, space: Space, arguments: tuple[Argument, ...]
) -> tuple[Any, ...] | None:
    """The key of a call if such a one was looked at for mistakes and had none."""
    key = _key(workunit, space, arguments)
    return key if key in _SEEN else None


def _runs_at_once(binding: Binding, call: Call, watched: bool) -> bool:
    """Whether the program could tell that a call has not run.

    By its number, by what it prints, by its error, or by the memory it reaches, which another
    thread may meet at any time.
    """
    if call.result is not None or binding.prints or _may_fail(binding, call):
        return True
    return not (watched and _other_threads() == 0) and (
        TRACER.raw > 0 or any(type(a) is Region and a.buffer.external for a in call.arguments)
    )


def _may_fail(binding: Binding, call: Call) -> bool:
    """Whether a call may divide integers by 0, or need more memory than there may be."""
    arguments = call.arguments
    if binding.divides or not all(arguments[place] for place in binding.divisors):
        return True
    return (
        any(
            type(a) is Region and a.buffer.nbytes > LARGE and not a.buffer.allocated
            for a in arguments
        )
        and sum(b.nbytes for b in buffers_of((call,)) if not b.allocated) > most_memory() // 16
    )
