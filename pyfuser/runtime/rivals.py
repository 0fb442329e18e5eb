"""Measured arbitration between plans: what the search decided by guesses is tried the other way.

Whether loops had better sweep, whether a call had better compute again what another stores, or run
a row as one iteration: the model compares bytes and operations there, and knows nothing of vectors
or of what it takes to start a loop. So where one of these was done, the plan that the search finds
without it (which may do another of them in its place) runs in turns with the first, if the model
gives it no more than LIKELY of what the first takes or should take. This comes before other trials
(`runtime.autotune_apart`, `runtime.autotune`): those cut what this one has chosen.

A program runs first for as long as it takes to plan and compile its rival; what was found is
remembered on disk. Both ways give the same bits, or there is no trial.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pyfuser.engine.ahead import Pending
from pyfuser.engine.cache import write_own
from pyfuser.plan.capabilities import Capabilities
from pyfuser.plan.cost_model import cost_model
from pyfuser.plan.plan import Note
from pyfuser.plan.rewrites import recompute
from pyfuser.plan.rewrites.coarsen import Coarsened
from pyfuser.plan.rewrites.recompute import Recomputed
from pyfuser.plan.rewrites.sink_axes import Sunk
from pyfuser.plan.rewrites.sink_outer_axis import SunkOuter
from pyfuser.plan.search import Planned, seconds
from pyfuser.plan.tile_size import BEYOND
from pyfuser.runtime.autotune import flushes_until, looks, spent
from pyfuser.runtime.autotune_apart import STEADY, Make, choice_file, doubted
from pyfuser.runtime.budget import planning
from pyfuser.runtime.duel import Duel, latest
from pyfuser.runtime.program import Program
from pyfuser.runtime.session import SESSION
from pyfuser.runtime.stored import plan_for
from pyfuser.support.errors import PyFuserError
from pyfuser.support.private_files import read_own
from pyfuser.tuning.thresholds import NOW

LIKELY = 2.0
"""Times that a rival may take, by the model, of what the best takes, or should take."""

SWEEPS = "wavefront"

UNSURE: dict[str, type[Note]] = {
    "recompute": Recomputed,
    "coarsen": Coarsened,
    "sink-axes": Sunk,
    "sink-outer-axis": SunkOuter,
}
"""Rewrites that may turn out to be losses (see `plan.rewrite.UNSURE`), with what they note."""

NAMES = (SWEEPS, *UNSURE)

FEW = 64
"""Calls of a trace that is planned in no time; a longer one runs first for as long as it takes."""

SCHEMA = 1


class Rivals:
    """Sees to the trials of one trace, before other referees do.

    open: not empty, until it is over. make: see `runtime.flush.compiled`, for the trace as it was
    given. able: what its plans may ask for. judged: the best program, with the referee that is
    asked then.
    """

    def __init__(
        self, make: Make, able: Capabilities, judged: Callable[[Program], Program]
    ) -> None:
        self.open = list(NAMES)
        self._make = make
        self._able = able
        self._judged = judged
        self._runs = 0
        self._paid = 0.0
        self._worth = NOW.running.soon
        self._first: Program | None = None
        self._without: tuple[str, ...] = ()  # what the best plan does without
        self._duel: Duel[Program] | None = None
        self._pending = Pending()

    def after(self, program: Program) -> Program:
        """The program that the next flush of the trace runs, after this one ran."""
        if self._duel is not None:
            following = self._duel.add(program, _seconds(program))
            return self._decided(self._duel) if following is None else following
        if self._pending.is_busy:
            return program
        self._runs += 1
        self._first = self._first or program
        if self._runs < STEADY or sum(map(spent, program.launches)) < self._worth:
            return program
        return self._next(program)

    def wait(self, program: Program) -> int:
        """As `autotune.Referee.wait`."""
        if self._duel is not None or self._runs < STEADY:
            return 0
        if self._pending.is_begun:
            return looks(program.launches)
        return flushes_until(self._worth, program.launches)

    def _next(self, best: Program) -> Program:
        """What runs next: a rival, or the best until that is paid for, or for good."""
        ran = sum(map(spent, best.launches))
        while self.open:
            if not _does(best, self.open[0]):
                self.open.pop(0)
                continue
            begun = self._pending.is_begun  # so it is paid for
            if not begun:
                self._worth = self._paid + _planning(best)
                if ran < self._worth:
                    return best
            rival = self._rival(best)
            if rival is not None:
                if not begun:
                    self._worth += NOW.running.trial_kernel * _new_launches(best, rival)
                    if ran < self._worth:
                        return best
                    self._paid = self._worth
                with contextlib.suppress(PyFuserError):
                    if not self._pending.has(partial(self._make.begin, *rival)):
                        return best
                    other = replace(self._make(*rival), referee=self)
                    calls = tuple(range(len(best.given.calls)))
                    self._duel = Duel((best, other), [calls], doubting=True)
                    return other
            self._pending = Pending()
            self.open.pop(0)
        with contextlib.suppress(PyFuserError, OSError):
            assert self._first is not None
            write_own(choice_file(self._first, "rivals"), f"{(SCHEMA, self._without)}\n")
        return self._judged(replace(best, referee=None))

    def _rival(self, best: Program) -> Planned | None:
        """The plan that does without what is next; None if there is nothing to try."""
        name, trace = self.open[0], best.trace
        rival = plan_for(best.given, less(self._able, (*self._without, name)))
        if (rival.trace, rival.plan.groups, rival.plan.sweeps) == (
            trace,
            best.plan.groups,
            best.plan.sweeps,
        ):
            return None
        return rival if _promises(best, rival) else None

    def _decided(self, duel: Duel[Program]) -> Program:
        """What runs after a trial."""
        self._duel = None
        name = self.open.pop(0)
        best, other = duel.programs
        if not duel.lost():
            return self._next(best)
        self._without = (*self._without, name)
        self._paid, self._worth = 0.0, 0.0
        return self._next(other)


def _seconds(program: Program) -> list[float]:
    """What the latest launches of a program took; in the first one, what was around them.

    Plans that store more need more memory, which may be new.
    """
    first, *others = latest(program)
    return [max(first, SESSION.took - sum(others)), *others]


def _planning(program: Program) -> float:
    """Seconds that planning a trace takes once more, if it is long."""
    trace = program.given
    return planning(trace) if len(trace.calls) > FEW else 0.0


def _does(program: Program, name: str) -> bool:
    """Whether a plan has done what it might do without."""
    plan = program.plan
    return bool(plan.sweeps if name == SWEEPS else plan.of(UNSURE[name]))


def _promises(best: Program, rival: Planned) -> bool:
    """Whether a plan may be better than that of a program. Of what stays in cache any may."""
    takes = sum(launch.timing.mean for launch in best.launches)
    if takes < NOW.running.briefest:
        return False
    model = cost_model(best.given)
    should = _modelled(best, Planned(best.trace, best.graph, best.plan))
    stays = model.total < BEYOND * model.machine.cache
    return stays or _modelled(best, rival) <= LIKELY * max(takes, should)


def _modelled(program: Program, planned: Planned) -> float:
    """Seconds that a plan of a program's trace takes."""
    trace, _, plan = planned
    changed = {note.call for note in plan.notes}
    return seconds(trace, plan) + recompute.again(program.given, trace, changed)


def _new_launches(best: Program, rival: Planned) -> int:
    """How many launches of a plan, at most, have to be compiled."""
    trace, _, plan = rival
    old = {tuple(best.trace.calls[n] for n in launch.calls) for launch in best.launches}
    launches = [[n for g in places for n in plan.groups[g].calls] for places in plan.launches()]
    return sum(tuple(trace.calls[n] for n in calls) not in old for calls in launches)


def less(able: Capabilities, names: tuple[str, ...]) -> Capabilities:
    """What plans may ask for, without some of it."""
    return replace(
        able,
        sweeps=able.sweeps and SWEEPS not in names,
        without=able.without | {name for name in names if name != SWEEPS},
    )


def tried(
    program: Program, make: Make, able: Capabilities, judged: Callable[[Program], Program]
) -> Program:
    """The program, or that of the plan that won, or one whose rivals will be tried.

    make, able, judged: as of `Rivals`.
    """
    if not (any(_does(program, name) for name in NAMES) and doubted(program)):
        return judged(program)
    names = parsed(read_own(choice_file(program, "rivals")) or b"")
    if names is None:
        return replace(program, referee=Rivals(make, able, judged))
    return judged(make(*plan_for(program.given, less(able, names))) if names else program)


# law: not None
def parsed(text: bytes) -> tuple[str, ...] | None:
    """What the best plan does without, from a file; None if that is broken."""
    try:
        schema, names = ast.literal_eval(text.decode())
        right = schema == SCHEMA and type(names) is tuple and {*names} <= {*NAMES}
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return names if right else None
