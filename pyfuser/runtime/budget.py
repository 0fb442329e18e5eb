"""What planning and compiling may cost: programs whose traces never come back run as they are.

A trace is planned because it will come again. Where integers change each step, as in eliminations,
it does not, and a plan and kernels for each would take a thousand times what they save. So there
are two accounts, of planning and of compiling. Each begins with a credit for every workunit that
the program has called, as to run those unfused takes preparation, too, and earns SHARE of what the
traces so far have taken to run. A trace whose plan, or whose kernels, an account does not cover
runs unfused: from kernels that exist, or will serve all its steps.

Of traces of one sequence of workunits, whose sizes or integers differ, the first are planned. Once
it is known what a plan saves, another is planned only when it has come so often that this pays.

All amounts are modelled, from sizes and counts. What a program does, and what it runs, follows from
its calls alone, not from how fast a machine was: but for when a trace that was refused is looked at
again, which waits until its runs have taken that much, as measured.

The rule that total cost stays within a constant factor of the best, whatever comes, is that of ski
rental (A. Karlin et al., "Competitive snoopy caching", 1988).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING

from pyfuser.engine.launchable import RollingParams
from pyfuser.nest.spec import KernelSpec, SweepSpec
from pyfuser.runtime.ended import end_apart
from pyfuser.support.caches import Table
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import CheckError, WorkunitWarning
from pyfuser.support.extension import HOT
from pyfuser.support.lazy import lazily
from pyfuser.support.passes import left_out
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import GPU_SPACES, Call
from pyfuser.trace.gate import Ran
from pyfuser.trace.images import USE
from pyfuser.trace.shape import CallShape, TraceShape
from pyfuser.trace.tracer import Tracer, nothing_to_settle
from pyfuser.transform.kernel import Kernel
from pyfuser.tuning.thresholds import NOW

if TYPE_CHECKING:
    from pyfuser.runtime import eager
else:
    eager = lazily("pyfuser.runtime.eager")

SHARE = 0.1
"""Of what traces take to run."""

PLAN = 1.5e-3
"""Seconds that planning takes for each call of a trace that is unlike the others ..."""

PAIR = 3e-6
"""... and for each pair of such calls."""

RESIZE = 1.5e-4
"""Seconds a call that it takes to make a trace's program of one that differs in sizes."""

KERNEL = 0.15
"""Seconds that compiling a kernel takes."""

LOOK = 32
"""Flushes that run unfused between two looks at the accounts."""

LENT = 256
"""Calls that run at once where they were all of a flush each, and tiny."""

APART = 3e-5
"""Seconds a call that it takes to run a trace apart, beyond what a program that is known takes."""

PLANNED = 2
"""Traces of a sequence of workunits that get a plan before it is known what plans save."""

MAX_SPARE = 1 << 20
"""Calls of a workunit that run at once before one is recorded again."""

MAX_KINDS = 256


class TooDear(Exception):
    """The kernels of a plan cost more than the account has."""


class NoGain(TooDear):
    """Kernels would not make a trace faster than NumPy, see `no_gain`."""


class _Account:
    """Seconds that were spent on one thing, of a credit and what is earned."""

    def __init__(self, credit: tuple[float, float]) -> None:
        self.credit = credit
        self.spent = 0.0

    def has(self, seconds: float, earned: float, workunits: int) -> bool:
        first, each = self.credit
        return self.spent + seconds <= first + each * workunits + SHARE * earned


class _Refusal:
    """What an account lacked for a sequence of workunits.

    ran: how many of its calls ran apart, and took: how long, as measured. What was too dear once
    has to be earned by that, whatever the credit: the model knows no caches and no threads.
    """

    __slots__ = ("account", "ran", "seconds", "took")

    def __init__(self, account: _Account, seconds: float) -> None:
        self.account = account
        self.seconds = seconds
        self.ran = 0
        self.took = 0.0

    def earns(self, seconds: float) -> bool:
        return seconds <= SHARE * self.took


class _Passing:
    """Traces of one sequence of workunits, whose sizes or integers differ.

    planned: how many got a plan; spent: seconds that these took; share: what one of them saves, of
    `taken`; came: how often each of the others ran apart; new: how many of the latest had not come
    before.
    """

    __slots__ = ("came", "new", "planned", "share", "spent")

    def __init__(self) -> None:
        self.planned = self.new = 0
        self.spent = self.share = 0.0
        self.came: dict[TraceShape, int] = {}


class Budget:
    """The accounts of a session.

    programs: gives the seconds that fused traces have taken to run; earned: those of others. Both
    are modelled.
    """

    def __init__(self, programs: Callable[[], float]) -> None:
        self._programs = programs
        self._refused: Table[tuple[int, ...], _Refusal] = Table(
            "traces that run unfused", MAX_KINDS
        )
        self._alone: Table[int, int] = Table("calls that wait for nothing", MAX_KINDS)
        self._passing: Table[tuple[int, ...], _Passing] = Table(
            "traces that did not come back", MAX_KINDS
        )
        self.forget()

    def forget(self) -> None:
        """As in a new process."""
        self.earned = 0.0
        self._trials = 0.0  # seconds of compiling what was tried
        self._looks = 1
        self._workunits: set[int] = set()  # id(); one that is used again gives no new credit
        credits = NOW.running.plan_credit, NOW.running.kernel_credit
        self._plans, self._kernels = map(_Account, credits)
        self._refused.clear()
        self._alone.clear()
        self._passing.clear()
        if HOT is not None:
            HOT.forget()

    def closed(self, calls: Sequence[Call]) -> bool:
        """Whether calls are to run as they are, without a look at them."""
        if not self._refused:
            return False
        found = self._refused.get(_sequence(calls))
        self._looks += 1
        return found is not None and not (
            self._looks % LOOK == 0
            and found.earns(found.seconds)
            and self._has(found.account, found.seconds)
        )

    def pays_trial(self, seconds: float, ran: float) -> bool:
        """Whether a program that ran for so long, as measured, may compile what it tries."""
        if self._trials + seconds > SHARE * ran:
            return False
        self._trials += seconds
        return True

    def made(self, calls: Sequence[Call]) -> None:
        """A trace has its program: it was paid for, if it was too dear before."""
        if self._refused:
            self._refused.pop(_sequence(calls), None)

    def refuses_plan(self, trace: TraceShape, calls: Sequence[Call]) -> bool:
        """Whether a trace is not worth its plan; else that is paid for."""
        if not _applies(calls):
            return False
        self._workunits.update([id(call.workunit) for call in calls])
        return self._pay(self._plans, planning(trace), calls, taken(trace.calls))

    def passes(self, trace: TraceShape, calls: Sequence[Call]) -> bool:
        """Whether a trace runs unfused, as its plan saves less than it costs.

        The first PLANNED of a sequence of workunits are planned, so what a plan saves is known (of
        one call alone: nothing); and as many as take a tenth of what it takes to compile what would
        run unfused, which stays on disk. Another is, too, once it has come so often that this has
        earned its plan, and at once if a tenth of what it takes does.
        """
        found = self._passing.get(_sequence(calls))
        if found is None or not _applies(calls):
            return False
        if len(calls) > 1 and found.planned < PLANNED:
            return False
        units = {id(call.workunit): call.workunit for call in calls}.values()
        if SHARE * KERNEL * sum(not eager.has_code(unit) for unit in units) > found.spent:
            return False
        own, came = taken(trace.calls), found.came.get(trace, 0) + 1
        saved = max(found.share * own, 0.0) + APART * len(calls)
        if max(came * saved, SHARE * own) >= planning(trace):
            return False
        found.came[trace] = came
        found.new = found.new + 1 if came == 1 else 0
        if found.new >= LOOK:  # none comes back: others need not be looked at
            self._refuse(calls, self._plans, planning(trace))
        if found.new >= LOOK or len(found.came) >= MAX_KINDS:
            found.came.clear()
        return True

    def planned(self, calls: Sequence[Call], trace: TraceShape, saved: Callable[[], float]) -> None:
        """A trace has got a plan of its own. saved: tells what it saves in each run, modelled."""
        sequence = _sequence(calls)
        found = self._passing.get(sequence) or self._passing.keep(sequence, _Passing())
        found.came.pop(trace, None)
        found.planned += 1
        found.spent += planning(trace)
        found.new = 0
        if found.planned == PLANNED and len(calls) > 1:
            found.share = saved() / taken(trace.calls)

    def refuses_resized(self, trace: TraceShape, calls: Sequence[Call]) -> bool:
        """Whether it takes too long to give a trace the program of another one.

        As its sizes have not come back so far, one run has to earn that.
        """
        seconds = RESIZE * len(set(trace.kinds))
        if not _applies(calls) or seconds <= SHARE * taken(trace.calls):
            return False
        self._refuse(calls, self._plans, seconds)
        return True

    def refuses_kernels(
        self,
        launches: Sequence[tuple[Sequence[Kernel], RollingParams]],
        trace: TraceShape,
        calls: Sequence[Call],
        known: Sequence[KernelSpec | SweepSpec] = (),
    ) -> bool:
        """Whether launches of a trace are not worth compiling; else that is paid for.

        known: specs of others, which are on disk. (That makes them no cheaper here: what runs does
        not depend on what ran before this process.)
        """
        from pyfuser.engine import native  # only who compiles needs it

        count = native.unknown(launches, known) if _applies(calls) else 0
        if not count:
            return False
        return self._pay(self._kernels, count * KERNEL, calls, taken(trace.calls))

    def _pay(self, account: _Account, seconds: float, calls: Sequence[Call], more: float) -> bool:
        """Whether an account lacks some seconds, where a trace takes `more` to run."""
        before = self._refused.get(_sequence(calls))
        if (before is None or before.earns(seconds)) and self._has(account, seconds - SHARE * more):
            account.spent += seconds
            if before is not None:
                before.took -= seconds / SHARE
            return False
        self._refuse(calls, account, seconds)
        return True

    def _refuse(self, calls: Sequence[Call], account: _Account, seconds: float) -> None:
        sequence = _sequence(calls)
        before, refusal = self._refused.get(sequence), _Refusal(account, seconds)
        if before is not None:
            refusal.ran, refusal.took = before.ran, before.took
        self._refused.keep(sequence, refusal)

    def give_up(self, calls: Sequence[Call]) -> None:
        """Run such calls as they are from now on: the compiler rejects a kernel of theirs."""
        self._refused.keep(_sequence(calls), _Refusal(self._kernels, inf))

    def _has(self, account: _Account, seconds: float) -> bool:
        return account.has(seconds, self.earned + self._programs(), len(self._workunits))

    def run_apart(self, calls: Sequence[Call], tracer: Tracer) -> None:
        """Run pending calls one by one, unfused and in order.

        Where one fails it stays pending, with those after it; a mistake in it ends the trace.
        """
        self._spare(calls)
        self.earned += taken(calls)
        ran = Ran(tracer.gate)
        tracer.settle = partial(_settle, calls, ran, tracer)
        start, compilations = perf_counter(), COUNTERS.compilations
        try:
            for call in calls:
                eager.run(call, False, ran)
        except (CheckError, WorkunitWarning) as error:
            tracer.settle()
            end_apart(error, calls, ran, tracer)
            raise
        finally:
            tracer.settle()
        refusal = self._refused.get(_sequence(calls))
        if refusal is not None and COUNTERS.compilations == compilations:
            refusal.took += perf_counter() - start

    def _spare(self, calls: Sequence[Call]) -> None:
        """Let small calls of the same workunits run at once from now on, where nothing is pending.

        To record a tiny call takes longer than to run it, and while one is pending others have to
        wait for it. As many are let as ran apart so far, so what that can lose is what was lost
        before; then some are recorded, to look at the accounts.
        """
        refusal = self._refused.get(_sequence(calls))
        if HOT is None or refusal is None:
            return
        refusal.ran += len(calls)
        counts = Counter([id(call.workunit) for call in calls])
        for workunit in {id(call.workunit): call.workunit for call in calls}.values():
            share = counts[id(workunit)] / len(calls)
            count = int(min(max(refusal.ran, LOOK * len(calls)), MAX_SPARE) * share)
            used, iterations = HOT.spare(workunit, count)
            refusal.ran += used
            seconds = used * NOW.running.launch + NOW.running.element * iterations * len(
                workunit.params
            )
            refusal.took += seconds
            self.earned += seconds

    def by_itself(self, call: Call) -> None:
        """Calls of a workunit, each as small as this one, were all of LOOK flushes.

        To record one and to find what runs for it takes longer than to run it, so the next LENT run
        at once; then one is recorded again, as the program may have changed.
        """
        if HOT is not None:
            allowed = SETTINGS.arbitrate and not left_out("lone-calls")
            HOT.lend(call.workunit, LENT if allowed else 0)

    def alone(self, call: Call) -> None:
        """A call was recorded, and ran with no other; where such are many, it had better not be."""
        workunit = call.workunit
        ran = self._alone.keep(id(workunit), self._alone.get(id(workunit), 0) + 1)
        if HOT is not None and ran >= LOOK:
            used, _ = HOT.spare(workunit, min(ran, MAX_SPARE))
            self._alone.keep(id(workunit), ran + used)


def _sequence(calls: Sequence[Call]) -> tuple[int, ...]:
    return tuple([id(call.workunit) for call in calls])


def _settle(calls: Sequence[Call], ran: Ran, tracer: Tracer) -> None:
    """Forget the calls that are in `ran`, and see to their results."""
    for call, (status, result) in zip(calls, ran, strict=False):
        if not status and call.result is not None and not call.result.ready:
            found = eager.known(call)
            assert found is not None
            call.result.give(found[1].values(result)[0])
    tracer.remove(list(calls[: len(ran)]))
    tracer.settle = nothing_to_settle


def planning(trace: TraceShape) -> float:
    """Seconds that it takes to plan a trace, modelled."""
    distinct = len(set(trace.kinds))
    return (PLAN + PAIR * distinct) * distinct


def _applies(calls: Sequence[Call]) -> bool:
    """Whether calls may run as they are: a setting may look at them."""
    return (
        SETTINGS.arbitrate
        and SETTINGS.engine == "native"
        and not (SETTINGS.verify or SETTINGS.debug or SETTINGS.sync or USE.devices)
        and not left_out("budget")
        and GPU_SPACES.isdisjoint([call.space.execution for call in calls])
    )


def taken(calls: Sequence[Call] | Sequence[CallShape]) -> float:
    """Seconds that calls take to run one by one, modelled."""
    return sum(
        [
            NOW.running.launch + NOW.running.element * call.space.size * len(call.arguments)
            for call in calls
        ]
    )
