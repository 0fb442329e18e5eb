"""Arrays of others that pending calls touch: nobody runs the calls when such an array is read."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence

from pyfuser.ir.visit import written
from pyfuser.support.errors import PyFuserWarning
from pyfuser.trace.call import Argument, Call
from pyfuser.trace.memory import Region


def raw_arguments(call: Call) -> Iterator[tuple[str, Region, bool]]:
    """The call's arguments in memory of the host that any array may reach.

    For each one its name, its region, and whether the call may write it.
    """
    changed = written(call.workunit.body)
    for param, argument in zip(call.workunit.params, call.arguments, strict=True):
        if (
            type(argument) is Region
            and argument.buffer.external
            and argument.buffer.root is not None
        ):
            yield param.sym.name, argument, param.sym in changed


def unread(calls: Sequence[Call]) -> list[tuple[Call, str]]:
    """The calls that write an array which is no View's, each with the array's name."""
    found = []
    for call in calls:
        changed = written(call.workunit.body)
        for place, param in enumerate(call.workunit.params):
            if param.sym not in changed or not _is_array(call.arguments[place]):
                continue
            # A View keeps its region, and runs what is pending when it is read.
            if _references(call.arguments[place]) <= _references(_ALONE[0]):
                found.append((call, param.sym.name))
                break
    return found


def _is_array(argument: Argument) -> bool:
    return type(argument) is Region and argument.buffer.wraps_array


def _references(value: object) -> int:
    return sys.getrefcount(value)


_ALONE = (object(),)  # a value that, like a call's argument, only a tuple refers to


def warn_of_unread(found: Sequence[tuple[Call, str]]) -> None:
    """Warn once, with the line of the first call, that calls ran only when the process ended."""
    if not found:
        return
    call, name = found[0]
    others = f" (and {len(found) - 1} later)" if len(found) > 1 else ""
    warnings.warn_explicit(
        f"{call.name!r}, launched here{others}, ran only when the process ended: until then the "
        f"NumPy array {name!r} had its old values; call pyfuser.sync() before you read arrays",
        PyFuserWarning,
        call.code.co_filename,
        call.line,
    )
