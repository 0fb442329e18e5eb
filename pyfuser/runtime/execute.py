"""Launching the kernels of a program on the data of calls."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from pyfuser.engine.launchable import team
from pyfuser.nest.abi import DIVIDED
from pyfuser.runtime.ended import end_trace
from pyfuser.runtime.launch import (
    forgettable,
    give_results,
    raise_failed,
    results_of,
    run_launch,
    run_together,
)
from pyfuser.runtime.lifetimes import let_go
from pyfuser.runtime.owed import NOTHING, Owed
from pyfuser.runtime.program import Program
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import DivisionError
from pyfuser.trace.call import Call, buffers_of
from pyfuser.trace.gate import Ran
from pyfuser.trace.images import USE, give_to_host
from pyfuser.trace.tracer import Tracer, nothing_to_settle


class Prepared(Protocol):
    """See `runtime.prepared`."""

    def run(self, tracer: Tracer, calls: Sequence[Call], ran: Ran, threads: int) -> bool:
        """Run launches; whether all ran, and their calls are forgotten. `ran` has what did else."""


def execute(
    program: Program,
    calls: Sequence[Call],
    tracer: Tracer,
    prepared: Prepared | None = None,
    ran: Ran | None = None,
    owed: Owed = NOTHING,
) -> None:
    """Launch a program's kernels in order on the calls' data.

    prepared: its launches, compiled: what they leave undone is done here. ran: what ran already,
    which `tracer.settle` knows. owed: the calls that wait, as `runtime.postpone` has it.
    """
    if ran is None:
        ran = Ran(tracer.gate)
        tracer.settle = partial(settle, program, calls, ran, tracer, owed)
    try:
        if prepared is not None:
            settled = prepared.run(tracer, calls, ran, team.count)
            COUNTERS.launches += len(program.launches) if settled else _succeeded(ran)
            if settled:
                return
        if ran and ran[-1][0]:
            raise_failed(program.launches[len(ran) - 1], calls, ran)
        before = time.perf_counter()
        if program.graphs is not None:
            left = program.launches[len(ran) :]
            run_together(left, calls, program.graphs, ran)
            COUNTERS.launches += len(left)
            return
        for launch in program.launches[len(ran) :]:
            run_launch(launch, calls, ran)
            if launch.ends and not USE.devices:
                let_go(launch, calls)
            now = time.perf_counter()
            if not launch.launchable.on_device:  # which runs on when a launch returns
                launch.timing.add(now - before)
            before = now
            COUNTERS.launches += 1
    except DivisionError as error:
        if error.ran:
            tracer.settle()
            failed = program.launches[len(ran) - 1]
            end_trace(error, [calls[n] for n in failed.calls], calls, tracer)
        raise
    finally:
        tracer.settle()
        if USE.devices:
            give_to_host(buffers_of(calls))


def _succeeded(ran: Sequence[Any]) -> int:
    return sum(not status for status, _ in ran)


def settle(
    program: Program,
    calls: Sequence[Call],
    ran: Ran,
    tracer: Tracer,
    owed: Owed = NOTHING,
) -> None:
    """Forget the calls whose kernels are in `ran` (see `make_run`), and see to their results.

    Interrupted by a signal handler, it can be called again.
    """
    done: list[int] = []
    for launch, (status, result) in zip(program.launches, ran, strict=False):
        if status not in (0, DIVIDED):
            break
        results = results_of(launch, calls) if not status else []
        if results and not all(future.ready for future in results):
            give_results(results, launch.launchable.values(result))
        done += launch.calls
    done = forgettable(program.plan, done)
    made = {id(calls[n]): owed.made[n] for n in done if n in owed.made}
    tracer.remove([*(calls[n] for n in done), *owed.overwritten(done)], made)
    tracer.settle = nothing_to_settle
