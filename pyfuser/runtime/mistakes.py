"""Mistakes that the analysis of a trace finds before anything of it runs."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from pyfuser.analysis.inside import is_inside
from pyfuser.runtime.looked import facts_with, look_at, was_looked_at
from pyfuser.runtime.session import SESSION
from pyfuser.support.errors import CheckError, WorkunitWarning
from pyfuser.trace.call import Call, not_run
from pyfuser.trace.shape import TraceShape
from pyfuser.trace.tracer import Tracer


def refuse(trace: TraceShape, calls: Sequence[Call], tracer: Tracer) -> None:
    """Raise what the analysis finds wrong with a call, where an eager program would have ended.

    The calls before it have run then, and those from it on are forgotten.
    """
    from pyfuser.analysis.mistakes import refuse_mistakes

    seen: set[int] = set()
    for place, (kind, shape) in enumerate(zip(trace.kinds, trace.calls, strict=True)):
        if kind in seen:
            continue
        seen.add(kind)
        facts = facts_with(shape, calls[place].arguments)
        known = was_looked_at(shape.workunit, shape.space, facts)
        if known and is_inside(shape, facts):
            continue
        try:
            refuse_mistakes(shape, calls[place], calls[:place], warns=not known)
            look_at(shape.workunit, shape.space, facts)
        except (CheckError, WorkunitWarning) as error:
            with tracer.place or contextlib.nullcontext():
                for call in calls[:place]:
                    SESSION.run(call)
                    tracer.remove([call])
            dropped = tracer.give_up(error, calls[place].position - 1)
            error.args = (f"{error}{not_run(dropped[1:])}",)
            raise
