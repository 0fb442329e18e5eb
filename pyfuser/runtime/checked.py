"""PYFUSER_CHECK: run every call alone, looking for mistakes in its workunit.

Nothing is fused, so that an error names a line of the user's and happens where an eager program
would have had it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyfuser.support.errors import CheckError
from pyfuser.support.lazy import lazily
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import Call, not_run
from pyfuser.trace.gate import Ran
from pyfuser.trace.tracer import Tracer, nothing_to_settle

if TYPE_CHECKING:
    from pyfuser.runtime import eager
else:
    eager = lazily("pyfuser.runtime.eager")


def run(call: Call, ran: Ran | None = None) -> None:
    """Run one call with the checks that PYFUSER_CHECK names. ran: see `make_run`.

    Raises BoundsError, with what earlier iterations wrote in place, or RaceError, before anything
    is written.
    """
    try:
        if "races" in SETTINGS.check:
            from pyfuser.checks.races import check_races

            check_races(call)
        eager.run(call, "bounds" in SETTINGS.check, ran)
    except CheckError as error:
        error.args = (f"{error}\n  called as {call.name!r} at {call.location}",)
        raise


def run_all(calls: Sequence[Call], tracer: Tracer) -> None:
    """Run recorded calls in order.

    A mistake ends the trace as it would have ended an eager program: the calls after it are
    dropped, and their results raise.
    """
    ran = Ran(tracer.gate)

    def settle() -> None:
        tracer.remove(list(calls[: len(ran)]))
        tracer.settle = nothing_to_settle

    tracer.settle = settle
    try:
        for call in calls:
            run(call, ran)
    except CheckError as error:
        dropped = tracer.give_up(error, call.position - 1)
        error.args = (f"{error}{not_run([later for later in dropped if later is not call])}",)
        raise
    finally:
        settle()
