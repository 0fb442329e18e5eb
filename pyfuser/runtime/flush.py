"""From recorded calls to launched kernels: the whole flow on one page.

A trace's shape decides everything but the data, so the program made for a shape is kept and run
again when the same shape comes back. So is the kernel of a group, which traces may share.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from functools import partial

from pyfuser.analysis.accesses import structural_scalars
from pyfuser.analysis.dependences import DependenceGraph
from pyfuser.engine.engine import ENGINE, capabilities, graphs_for
from pyfuser.plan.cost_model import cost_model
from pyfuser.plan.plan import Plan
from pyfuser.plan.search import seconds
from pyfuser.runtime import bands, families, first_tier, no_gain, postpone, replay, roll, stored
from pyfuser.runtime.budget import TooDear, taken
from pyfuser.runtime.checked import run_all
from pyfuser.runtime.debug import show_program
from pyfuser.runtime.execute import Prepared, execute, settle
from pyfuser.runtime.isolate import FAILURES, recover, run_each
from pyfuser.runtime.launch import Draft, LaunchKey, Ready
from pyfuser.runtime.lifetimes import with_ends
from pyfuser.runtime.mistakes import refuse
from pyfuser.runtime.owed import NOTHING, Owed
from pyfuser.runtime.program import Flush, Program, note_planned, remember
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.runtime.tune import tuned, tuned_on
from pyfuser.runtime.verify import verifying
from pyfuser.support import signals
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import KernelError
from pyfuser.support.extension import HOT
from pyfuser.support.progress import listening
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import Call
from pyfuser.trace.gate import Ran
from pyfuser.trace.images import USE
from pyfuser.trace.reason import PACKAGE, Reason
from pyfuser.trace.shape import TraceShape, shape_of
from pyfuser.trace.tracer import Tracer
from pyfuser.transform.group import group_shapes


def flush(tracer: Tracer) -> None:
    """Analyse, fuse, compile and launch what the tracer holds.

    Nothing has run if analysis or compilation raises: the calls stay pending. Calls whose kernels
    have run are forgotten, also when a later kernel fails. If a call cannot run (its kernel is
    rejected, memory is missing), those that need nothing of it run all the same: see
    `runtime.isolate`. After a division of integers by 0 what was called later is dropped.
    """
    COUNTERS.flushes += 1
    calls = list(tracer.calls)
    if SETTINGS.check:
        run_all(calls, tracer)
        return
    if tracer.nested:  # planning takes longer than some signal handlers have until the next signal
        tracer.postponed, tracer.postponing = 0, None
        with signals.handled_later():
            (first_tier.run if first_tier.are_direct(calls) else run_each)(calls, tracer)
        return
    settled = postpone.settle(tracer)
    due = settled.due
    if settled.known is not None:
        if _run_behind(settled, tracer):
            return
        due = settled.waiting
    if due:
        SESSION.budget.run_apart(due, tracer)
    calls = list(tracer.calls)
    if calls:
        _run(calls, tracer)


def _run_behind(settled: postpone.Settled, tracer: Tracer) -> bool:
    """Run the calls behind those that wait, if what is known of them still holds."""
    calls = list(tracer.calls[len(settled.waiting) :])
    looked = replay.look(calls)
    known = replay.found(looked, calls) if looked.known is settled.known else None
    if known is None:
        return False
    if settled.latest is None:
        _run_known(known, calls, tracer, calls, Owed({}, settled.waiting, settled.over))
    else:
        launch(known.program, calls, tracer, calls, postpone.prepared_of(known, calls))
        postpone.keep(settled.latest, tracer)
    return True


def _run(recorded: list[Call], tracer: Tracer) -> None:
    """Run calls by the program of their trace, which is made if there is none."""
    calls, looked = _looked_for(recorded, tracer)
    if looked is None:
        apart(calls, tracer)
        return
    if looked.known is not None:
        postpone.account_of(looked.known)
    key, known = looked.key, replay.found(looked, calls)
    if known is not None:
        _run_known(known, calls, tracer, recorded)
        if len(recorded) == 1:
            SESSION.budget.by_itself(recorded[0])
        return
    trace = shape_of(calls, structural_scalars)
    program = SESSION.programs.used(trace)
    if program is None and first_tier.runs_here(trace, calls):
        first_tier.run(calls, tracer)
        return
    key = replay.agreed(key, trace, calls)
    try:
        program = program or _new_program(trace, calls, tracer)
    except TooDear as why:
        _do_without(why, trace, calls, tracer)
        return
    except FAILURES as error:
        if isinstance(error, KernelError):
            SESSION.budget.give_up(calls)
        recover(error, program, calls, tracer)
        return
    start = time.perf_counter()
    launch(program, calls, tracer, recorded)
    SESSION.took = time.perf_counter() - start
    tuned_on(trace, program)
    replay.keep(key, SESSION.programs.get(trace, program), calls)


def _new_program(trace: TraceShape, calls: list[Call], tracer: Tracer) -> Program:
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


def _run_known(
    known: replay.Replay,
    calls: list[Call],
    tracer: Tracer,
    recorded: Sequence[Call],
    owed: Owed = NOTHING,
) -> None:
    """Run calls by a program that is known, or by one that leaves stores for later."""
    latest = postpone.beginning(known, calls, tracer)
    if latest is not None:
        arrays = latest.arrays.values()
        try:
            program = postpone.program_of(known, arrays, calls, program_for, tracer)
        except FAILURES:  # what is known still runs
            postpone.account_of(known).hopeless = True
        else:
            launch(program, calls, tracer, recorded, owed=owed._replace(made=latest.again))
            postpone.wait(latest, calls, tracer)
            return
    launch(known.program, calls, tracer, recorded, postpone.prepared_of(known, calls), owed)


def _looked_for(calls: list[Call], tracer: Tracer) -> tuple[list[Call], replay.Looked | None]:
    """The calls to run, after runs of them were exchanged, and what is known of such calls.

    None: they run one by one. Runs are looked for only where nothing is known yet: that takes
    longer than to launch what is.
    """
    if SESSION.budget.closed(calls):
        return calls, None
    looked = replay.look(calls)
    if looked.known is not None or not roll.roll(calls, tracer):
        return calls, looked
    calls = list(tracer.calls)
    return calls, None if SESSION.budget.closed(calls) else replay.look(calls)


def _do_without(why: TooDear, trace: TraceShape, calls: list[Call], tracer: Tracer) -> None:
    """Run calls whose plan or kernels would cost more than they gain."""
    if isinstance(why, no_gain.NoGain):
        first_tier.lose(trace, calls)
        first_tier.run(calls, tracer)
    else:
        apart(calls, tracer)


def apart(calls: Sequence[Call], tracer: Tracer) -> None:
    """Run calls unfused, whose plan or kernels would cost more than they take."""
    COUNTERS.apart += len(calls)
    for call in calls:
        if (call.name, call.code) not in SESSION.apart:
            SESSION.apart.keep((call.name, call.code), call.at)
    try:
        with tracer.place or NOWHERE:
            SESSION.budget.run_apart(calls, tracer)
    except FAILURES:
        if not tracer.calls:
            raise  # a mistake ended the trace
        run_each(tracer.calls, tracer)


def launch(
    program: Program,
    calls: Sequence[Call],
    tracer: Tracer,
    recorded: Sequence[Call],
    prepared: Prepared | None = None,
    owed: Owed = NOTHING,
) -> None:
    """Launch a program on the data of calls.

    recorded: what the program called, if these stand for that. prepared, owed: see `execute`.
    """
    try:
        with remember(program, calls), tracer.place or NOWHERE, verifying(recorded, SESSION.run):
            execute(program, calls, tracer, prepared, owed=owed)
    except FAILURES as error:
        recover(error, program, [*owed.before, *calls], tracer)


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
    make = partial(compiled, trace)
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
    if doubted and no_gain.has_none(given, trace, plan):
        raise no_gain.NoGain
    make = partial(compiled, given)
    return tuned(make(trace, graph, plan, calls), make)


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
    shapes = group_shapes(trace, [group.calls for group in plan.groups])
    made_kernels = {
        s: SESSION.kernels.used(s) or stored.kernel_for(s) for s in dict.fromkeys(shapes)
    }
    kernels = [made_kernels[shape] for shape in shapes]
    sources = plan.sources()
    drafts = [Draft(trace, plan, places, shapes, kernels, sources) for places in plan.launches()]
    new = {draft.key: draft for draft in drafts if kept.used(draft.key) is None}
    made = code_for(list(new.values()), given, calls, start)
    launches = with_ends(
        given, plan, [draft.launch(made.get(draft.key) or kept[draft.key]) for draft in drafts]
    )
    for shape, kernel in made_kernels.items():
        SESSION.kernels.keep(shape, kernel)
    for key, ready in made.items():
        kept.keep(key, ready)
    graphs = graphs_for([launch.launchable for launch in launches])
    return Program(
        given, trace, graph, plan, tuple(kernels), launches, None, graphs, taken(given.calls)
    )


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


def finish(why: Reason) -> None:
    """Run what is pending, and wait until GPUs have done what they were given."""
    TRACER.flush(why)
    if USE.devices:
        from pyfuser.engine.gpu import spaces  # only where it is loaded already

        spaces.synchronize()


NOWHERE = contextlib.nullcontext()


def resume(program: Program, calls: Sequence[Call], tracer: Tracer, ran: Ran) -> None:
    """Go on where the extension could not, after the launches in `ran`."""
    try:
        execute(program, calls, tracer, None, ran)
    except FAILURES as error:
        recover(error, program, calls, tracer)


TRACER.flush_function = flush
if HOT is not None and not (SETTINGS.verify or SETTINGS.check or SETTINGS.debug or SETTINGS.sync):
    HOT.bind_flush(
        (SESSION.programs, SESSION.replays, SESSION.flushes, TRACER),
        (replay.Replay, Flush, Ran),
        (flush, listening, resume, settle, partial),
        PACKAGE,
        SESSION.flushes.limit,
    )
    TRACER.fast = HOT.flush
if SETTINGS.sync:
    from pyfuser.checks.sync import install

    install(TRACER)
