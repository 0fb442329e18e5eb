"""Plans in doubt: what earlier trials found of a program is applied, the rest is tried in turn."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyfuser.engine.engine import capabilities
from pyfuser.runtime import autotune_apart
from pyfuser.runtime.autotune import Referee, cut_plan, doubts, settled
from pyfuser.runtime.autotune_apart import Make
from pyfuser.runtime.program import Program
from pyfuser.runtime.rivals import tried
from pyfuser.runtime.session import SESSION
from pyfuser.trace.shape import TraceShape
from pyfuser.tuning.thresholds import NOW


def tuned(program: Program, anew: Make) -> Program:
    """The program, or one of another plan; it has a referee if launches are still in doubt.

    anew: the program of the same trace as it was recorded, for another trace as it is planned, with
    its dependences and its plan.
    """
    able = capabilities(call.space.execution for call in program.trace.calls)
    return tried(program, anew, able, partial(_cut, anew)) if able.timed else program


def _cut(anew: Make, program: Program) -> Program:
    """The program with what earlier trials have cut, and with a referee for others."""
    if not autotune_apart.doubted(program):
        return _refereed(program, anew)
    parts = autotune_apart.settled(program)
    if parts:
        return autotune_apart.without(program, parts, anew)
    worth = NOW.running.soon if parts is None else NOW.running.again
    program = _refereed(program, anew)
    return replace(program, referee=autotune_apart.Apart(anew, program.referee, worth))


def _refereed(program: Program, anew: Make) -> Program:
    """The program, with the cuts that earlier trials found, and a referee for others."""
    make = partial(anew, program.trace, program.graph)
    begin = partial(anew.begin, program.trace, program.graph)
    open_groups = doubts(program)
    plan = program.plan
    for calls, choice in settled(program, open_groups).items():
        open_groups.remove(calls)
        if choice.cuts:
            plan = cut_plan(plan, calls, choice.place)
    if plan is not program.plan:
        program = make(plan)
    if not open_groups:
        return program
    referee = Referee(open_groups, lambda other: replace(make(other), referee=referee), begin)
    return replace(program, referee=referee)


def tuned_on(trace: TraceShape, program: Program) -> None:
    """Choose what runs the next time for a trace, now that a program ran."""
    referee = program.referee
    if referee is not None and referee.open:
        following = referee.after(program)
        if following is not program:
            SESSION.programs[trace] = following
