"""The program of a trace that is new: found on disk, or another's, else planned and compiled."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from pyfuser.analysis.dependences import DependenceGraph
from pyfuser.engine.ahead import Ahead, Pending
from pyfuser.engine.engine import ENGINE, capabilities, graphs_for
from pyfuser.plan.cost_model import cost_model
from pyfuser.plan.plan import Plan
from pyfuser.plan.search import seconds
from pyfuser.runtime import bands, families, first_tier, stored
from pyfuser.runtime.budget import NoGain, TooDear, taken
from pyfuser.runtime.debug import show_program
from pyfuser.runtime.launch import Draft, LaunchKey, Ready
from pyfuser.runtime.lifetimes import with_ends
from pyfuser.runtime.mistakes import refuse
from pyfuser.runtime.no_gain import has_none
from pyfuser.runtime.program import Program, note_planned
from pyfuser.runtime.session import SESSION
from pyfuser.runtime.tune import tuned
from pyfuser.support.counters import COUNTERS
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import Call
from pyfuser.trace.shape import TraceShape
from pyfuser.trace.tracer import Tracer
from pyfuser.transform.group import group_shapes
from pyfuser.transform.kernel import Kernel


def new_program(trace: TraceShape, calls: list[Call], tracer: Tracer) -> Program:
    """The program of a trace that is new, by whatever takes least. Raises TooDear."""
    earned = first_tier.are_direct(calls)  # its plan, by what such calls moved without a kernel
    program = resized(trace, None if earned else calls)
    if program is None and not earned and SESSION.budget.passes(trace, calls):
        refuse(trace, calls, tracer)
        raise TooDear
    if program is None:
        program = banded(trace, calls, earned)
    if program is None:
        refuse(trace, calls, tracer)
        program = program_for(trace, None if earned else calls, first_tier.may_run(calls))
        SESSION.budget.made(calls)
        SESSION.budget.planned(calls, trace, partial(saved, program))
    return program


def banded(trace: TraceShape, calls: Sequence[Call], earned: bool) -> Program | None:
    """A program that runs its calls in bands; None if the trace had better be planned.

    Raises TooDear if they had better run apart. earned: whether a plan is paid for.
    """
    better = bands.beat_plans(trace)
    if not better and (earned or not SESSION.budget.refuses_plan(trace, calls)):
        return None
    program = bands.program_of(trace, calls)
    if program is not None:
        SESSION.programs.keep(trace, program)
        SESSION.budget.made(calls)
    elif not better or (not earned and SESSION.budget.refuses_plan(trace, calls)):
        raise TooDear
    return program


def resized(trace: TraceShape, calls: Sequence[Call] | None) -> Program | None:
    """The program of a trace that is new, if it is that of one of other sizes.

    Raises TooDear if its calls are given and had better run apart.
    """
    family = families.find(trace)
    if family is None:
        return None
    if calls and SESSION.budget.refuses_resized(trace, calls):
        raise TooDear
    make = Maker(trace)
    return families.program_of(family, trace, lambda program: tuned(program, make))


def program_for(
    trace: TraceShape, calls: Sequence[Call] | None = None, doubted: bool = False
) -> Program:
    """The program of a trace shape, made once.

    Raises TooDear if its calls are given and had better run apart; NoGain if it is `doubted` and
    NumPy had better compute them.
    """
    program = SESSION.programs.get(trace)
    if program is None:
        before = COUNTERS.analysis_seconds
        program = build(trace, calls, doubted)
        note_planned(trace, program, COUNTERS.analysis_seconds - before)
        SESSION.programs.keep(trace, program)
        families.keep(trace, program)
        show_program(program.plan, program.graph, program.kernels, SETTINGS.debug)
    return program


def build(given: TraceShape, calls: Sequence[Call] | None = None, doubted: bool = False) -> Program:
    """Plan a trace and compile those of its kernels that are new, as `program_for`."""
    start = time.perf_counter()
    able = capabilities(call.space.execution for call in given.calls)
    trace, graph, plan = stored.plan_for(given, able)
    COUNTERS.plans += 1
    COUNTERS.analysis_seconds += time.perf_counter() - start
    if doubted and has_none(given, trace, plan):
        raise NoGain
    return tuned(compiled(given, trace, graph, plan, calls), Maker(given))


class Maker:
    """Makes the programs of other plans for a trace that was recorded, see `autotune_apart.Make`.

    Raises PyFuserError.
    """

    def __init__(self, given: TraceShape) -> None:
        self._given = given

    def __call__(self, trace: TraceShape, graph: DependenceGraph, plan: Plan) -> Program:
        return compiled(self._given, trace, graph, plan)

    def begin(self, trace: TraceShape, _: DependenceGraph, plan: Plan) -> Ahead:
        """Compile what a program lacks while others run."""
        return begin(trace, plan)


def when_compiled(given: TraceShape, pending: Pending) -> Program | None:
    """The program of a trace; None while what it lacks is compiled, and others run."""
    return program_for(given) if is_compiled(given, pending) else None


def is_compiled(given: TraceShape, pending: Pending) -> bool:
    """Whether there is all that a trace needs; else it is compiled while others run."""
    return SESSION.programs.get(given) is not None or pending.has(partial(begin_for, given))


def begin_for(given: TraceShape) -> Ahead:
    """Plan a trace, and compile what it lacks while others run. Raises PyFuserError."""
    able = capabilities(call.space.execution for call in given.calls)
    trace, _, plan = stored.plan_for(given, able)
    return begin(trace, plan)


def begin(trace: TraceShape, plan: Plan) -> Ahead:
    """Compile what the program of a plan lacks while others run. Raises PyFuserError."""
    new = [
        draft
        for draft in drafted(trace, plan)[1]
        if SESSION.launchables.used(draft.key) is None
        and stored.code_of(stored.entry_of(draft.key)) is None
    ]
    return ENGINE.begin([(tuple(map(ENGINE.final, d.kernels)), d.rolling) for d in new])


def saved(program: Program) -> float:
    """Seconds that a program saves in each run, of what its calls take unfused; modelled."""
    model = cost_model(program.given)
    unfused = sum([model.cost((n,)) for n in range(len(program.given.calls))])
    return unfused - seconds(program.trace, program.plan)


def compiled(
    given: TraceShape,
    trace: TraceShape,
    graph: DependenceGraph,
    plan: Plan,
    calls: Sequence[Call] | None = None,
) -> Program:
    """The program of a plan, whose kernels are compiled. calls: see `program_for`."""
    start = time.perf_counter()
    kept = SESSION.launchables
    kernels, drafts = drafted(trace, plan)
    new = {draft.key: draft for draft in drafts if kept.used(draft.key) is None}
    made = code_for(list(new.values()), given, calls, start)
    launches = with_ends(
        given, plan, [draft.launch(made.get(draft.key) or kept[draft.key]) for draft in drafts]
    )
    for key, ready in made.items():
        kept.keep(key, ready)
    graphs = graphs_for([launch.launchable for launch in launches])
    return Program(given, trace, graph, plan, kernels, launches, None, graphs, taken(given.calls))


def drafted(trace: TraceShape, plan: Plan) -> tuple[tuple[Kernel, ...], list[Draft]]:
    """The kernels of a plan's groups, and its launches before they are compiled."""
    shapes = group_shapes(trace, [group.calls for group in plan.groups])
    made = {s: SESSION.kernels.used(s) or stored.kernel_for(s) for s in dict.fromkeys(shapes)}
    for shape, kernel in made.items():
        SESSION.kernels.keep(shape, kernel)
    kernels = tuple([made[shape] for shape in shapes])
    sources = plan.sources()
    return kernels, [Draft(trace, plan, p, shapes, kernels, sources) for p in plan.launches()]


def code_for(
    drafts: Sequence[Draft], given: TraceShape, calls: Sequence[Call] | None, start: float
) -> dict[LaunchKey, Ready]:
    """The compiled code of launches, from disk or new. start: see `COUNTERS.analysis_seconds`."""
    entries = {draft.key: stored.entry_of(draft.key) for draft in drafts}
    codes = {key: code for key, entry in entries.items() if (code := stored.code_of(entry))}
    final = {
        draft.key: tuple(map(ENGINE.final, draft.kernels))
        for draft in drafts
        if draft.key not in codes
    }
    rolling = {draft.key: draft.rolling for draft in drafts}
    wanted = [(kernels, rolling[key]) for key, kernels in final.items()]
    specs = [code.spec for code in codes.values()]
    if calls and drafts and SESSION.budget.refuses_kernels(wanted, given, calls, specs):
        raise TooDear
    COUNTERS.analysis_seconds += time.perf_counter() - start
    found = {key: stored.loaded(code) for key, code in codes.items()}
    final |= {key: codes[key].kernels for key, code in found.items() if code is None}
    wanted = [(kernels, rolling[key]) for key, kernels in final.items()]
    made = dict(zip(final, ENGINE.prepare(wanted), strict=True)) if wanted else {}
    for key, launchable in made.items():
        stored.keep(entries[key], final[key], launchable)
    result = {key: Ready(launchable, final[key]) for key, launchable in made.items()}
    for key, loaded in found.items():
        if loaded is not None:
            result[key] = Ready(loaded, codes[key].kernels)
    return result
