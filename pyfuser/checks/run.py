"""PYFUSER_CHECK: run every call alone, looking for mistakes in its workunit.

Nothing is fused, so that an error names a line of the user's and happens where an eager program
would have had it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyfuser import eager
from pyfuser.checks.races import check_races
from pyfuser.errors import CheckError
from pyfuser.settings import SETTINGS
from pyfuser.trace.call import Call
from pyfuser.trace.tracer import Tracer


def run(call: Call) -> None:
    """Run one call with the checks that PYFUSER_CHECK names.

    Raises BoundsError, with what earlier iterations wrote in place, or RaceError, before anything
    is written.
    """
    try:
        if "races" in SETTINGS.check:
            check_races(call)
        eager.run(call, "bounds" in SETTINGS.check)
    except CheckError as error:
        error.args = (f"{error}\n  called as {call.name!r} at {call.location}",)
        raise


def run_all(calls: Sequence[Call], tracer: Tracer) -> None:
    """Run recorded calls in order.

    A mistake ends the trace as it would have ended an eager program: the calls after it are
    forgotten, and their results raise.
    """
    done: list[Call] = []
    try:
        for call in calls:
            run(call)
            done.append(call)
    except CheckError as error:
        tracer.give_up(error, done[-1].position if done else -1)
        raise
    finally:
        tracer.remove(done)
