"""From recorded calls to launched kernels: the whole flow on one page.

A trace's shape decides everything but the data, so the program made for a shape is kept and run
again when the same shape comes back. So is the kernel of a group, which traces may share.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from pyfuser.analysis.structural import structural_scalars
from pyfuser.runtime import first_tier, postpone, replay, roll
from pyfuser.runtime.budget import NoGain, TooDear
from pyfuser.runtime.checked import run_all
from pyfuser.runtime.execute import Prepared, execute, settle
from pyfuser.runtime.owed import NOTHING, Owed
from pyfuser.runtime.program import Flush, Program, remember
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.runtime.verify import verifying
from pyfuser.support import signals
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import FAILURES, KernelError
from pyfuser.support.extension import HOT
from pyfuser.support.lazy import lazily
from pyfuser.support.progress import listening
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import Call
from pyfuser.trace.gate import Ran
from pyfuser.trace.images import USE
from pyfuser.trace.reason import PACKAGE, Reason
from pyfuser.trace.shape import TraceShape, shape_of
from pyfuser.trace.tracer import Tracer

if TYPE_CHECKING:
    from pyfuser.runtime import building, following, isolate, tune
    from pyfuser.runtime.followers import Following
else:
    building = lazily("pyfuser.runtime.building")
    following = lazily("pyfuser.runtime.following")
    isolate = lazily("pyfuser.runtime.isolate")
    tune = lazily("pyfuser.runtime.tune")


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
            (first_tier.run if first_tier.are_direct(calls) else isolate.run_each)(calls, tracer)
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


def _run(recorded: list[Call], tracer: Tracer, followed: bool = False) -> None:
    """Run calls by the program of their trace, which is made if there is none.

    followed: the last ones are those that `runtime.following` expects.
    """
    calls, looked = _looked_for(recorded, tracer)
    if looked is None:
        apart(calls, tracer)
        return
    if looked.known is not None:
        postpone.account_of(looked.known)
        if not followed and _run_with_followers(looked.known, calls, tracer):
            return
    key, known = looked.key, replay.found(looked, calls)
    if known is not None:
        _run_known(known, calls, tracer, recorded)
        if not followed and known.following is not None:
            following.learn(known, calls, tracer)
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
        program = program or building.new_program(trace, calls, tracer)
    except TooDear as why:
        _do_without(why, trace, calls, tracer)
        return
    except FAILURES as error:
        if isinstance(error, KernelError):
            SESSION.budget.give_up(calls)
        isolate.recover(error, program, calls, tracer)
        return
    start = time.perf_counter()
    launch(program, calls, tracer, recorded)
    SESSION.took = time.perf_counter() - start
    if program.referee is not None:
        tune.tuned_on(trace, program)
    replay.keep(key, SESSION.programs.get(trace, program), calls)


def _run_with_followers(known: replay.Replay, calls: list[Call], tracer: Tracer) -> bool:
    """Run calls and the sums that always follow them, if any do."""
    if known.following is None or (known.following and known.following.pending.is_busy):
        return False
    held = following.calls_after(known, calls, tracer)
    more = [call for _, call in held]
    if not more or not tracer.exchange(calls, [*calls, *more]):
        return False
    ready = False
    try:
        ready = _are_compiled([*calls, *more], known.following)
    finally:
        if not ready:
            tracer.remove(more)
    if not ready:
        return False
    following.expect(held, tracer)
    try:
        _run([*calls, *more], tracer, followed=True)
    except FAILURES:  # of which the program may never call one
        known.following = None
        tracer.remove(more)
        if not tracer.calls:
            raise
        _run(list(tracer.calls), tracer)
    except BaseException:  # Ctrl-C, or a signal handler has run some of them
        tracer.remove(more)
        raise
    else:
        following.hold(tracer)
    return True


def _are_compiled(calls: list[Call], known: Following) -> bool:
    """Whether calls, with those that are known to follow, may run now: or else what they lack is
    compiled first.
    """
    if not known.is_compiled:
        try:
            known.is_compiled = first_tier.may_run(calls) or building.is_compiled(
                shape_of(calls, structural_scalars), known.pending
            )
        except FAILURES:  # it is told, or run another way, by who runs them
            known.is_compiled = True
    return known.is_compiled


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
            program = postpone.program_of(known, arrays, calls, building.when_compiled, tracer)
        except FAILURES:  # what is known still runs
            postpone.account_of(known).hopeless = True
            program = None
        if program is not None:
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
    if isinstance(why, NoGain):
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
        isolate.run_each(tracer.calls, tracer)


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
        isolate.recover(error, program, [*owed.before, *calls], tracer)


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
        isolate.recover(error, program, calls, tracer)


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
