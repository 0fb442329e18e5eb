"""What a mistake leaves of a trace: it ends there, as an eager program would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyfuser.ir.divisions import divisions
from pyfuser.nest.abi import DIVIDED
from pyfuser.support.errors import DivisionError
from pyfuser.trace.call import Call, called_as, not_run, ran_too
from pyfuser.trace.future import Future
from pyfuser.trace.tracer import Tracer


def end_trace(
    error: DivisionError, launch: Sequence[Call], calls: Sequence[Call], tracer: Tracer
) -> None:
    """Drop what an eager program would not have called after a division by 0, and say so.

    launch: the calls of the launch that ran and divided. calls: those of the whole flush.
    """
    suspects = [call for call in launch if any(divisions(call.workunit.body))] or launch
    last = max(call.position for call in suspects)
    dropped = tracer.give_up(error, last)
    gone = set(map(id, dropped))
    ran = [call for call in calls if call.position > last and id(call) not in gone]
    error.args = (f"{error}{called_as(suspects)}{ran_too(ran)}{not_run(dropped)}",)


def end_apart(
    error: Exception, calls: Sequence[Call], ran: Sequence[tuple[int, Any]], tracer: Tracer
) -> None:
    """As `end_trace`, where calls run one by one; also for what is found before one runs.

    ran: the status of each call that ran. A call stays pending if it needs a result that failed: it
    has no mistake itself.
    """
    if ran and ran[-1][0] == DIVIDED:
        assert isinstance(error, DivisionError)
        end_trace(error, [calls[len(ran) - 1]], calls, tracer)
        return
    call = calls[len(ran)]
    if not any(type(a) is Future and a.failed for a in call.arguments):
        dropped = tracer.give_up(error, call.position - 1)
        error.args = (f"{error}{not_run(dropped[1:])}",)
