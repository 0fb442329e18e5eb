"""Programs of traces that differ in sizes alone from one that ran: its code, with their numbers.

Where sizes change from step to step, no trace comes back, and each would take ten milliseconds to
look at, to plan, and to find its kernels on disk. The law: the plan is one for this very trace (see
`plan.plan_cache`), so it respects its dependences; each kernel is made anew for these sizes, in
memory alone, and where it is the code that runs already, that may run. All else takes the ordinary
way. Mistakes are looked for in the quick way (`analysis.inside`); the first LOOKED traces of a
family are looked at as all are, for what only deserves a warning.

The cost: a tenth of a millisecond a call. To try other plans needs traces that come back, so where
the program was in doubt this one is, too, from its second run on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyfuser.analysis.accesses import facts_of
from pyfuser.analysis.inside import is_inside
from pyfuser.engine.engine import ENGINE, capabilities
from pyfuser.nest.spec import KernelSpec, given_order
from pyfuser.plan.plan import Declined, Plan
from pyfuser.plan.plan_cache import family_of, plan_of
from pyfuser.runtime.budget import taken
from pyfuser.runtime.launch import Draft, Launch, Ready
from pyfuser.runtime.lifetimes import with_ends
from pyfuser.runtime.looked import LOOKED
from pyfuser.runtime.program import Program
from pyfuser.runtime.session import SESSION
from pyfuser.support.counters import COUNTERS
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import GPU_SPACES
from pyfuser.trace.shape import TraceShape
from pyfuser.transform.group import group_shapes
from pyfuser.transform.kernel import Kernel


class Family:
    """The latest program of traces that differ in sizes, and how many there were."""

    __slots__ = ("program", "seen")

    def __init__(self, program: Program) -> None:
        self.program = program
        self.seen = 1

    @property
    def has_code(self) -> bool:
        """Whether a further trace takes the code of the latest, and few others did."""
        return LOOKED <= self.seen < 2 * LOOKED


class Again:
    """Sees to it that a program in doubt is tried once its trace has come back."""

    def __init__(self, tuned: Callable[[Program], Program]) -> None:
        self.open = ["again"]
        self._tuned = tuned
        self._runs = 0

    def after(self, program: Program) -> Program:
        """The program that runs the next time."""
        self._runs += 1
        if self._runs < 2:
            return program
        self.open = []
        return self._tuned(replace(program, referee=None))

    def wait(self, program: Program) -> int:
        """As `autotune.Referee.wait`."""
        return 0


def find(trace: TraceShape) -> Family | None:
    """The family whose program a trace that is new may have, and has no mistake for sure."""
    if not SESSION.families or SETTINGS.debug or SETTINGS.engine != "native":
        return None
    key = family_of(trace)
    family = None if key is None else SESSION.families.used(key)
    if family is None or family.seen < LOOKED or not _are_inside(trace):
        return None
    now = SESSION.programs.get(family.program.given)  # another one, if it was tried and lost
    return family if now is None or _same(now.plan, family.program.plan) else None


def program_of(
    family: Family, trace: TraceShape, tuned: Callable[[Program], Program]
) -> Program | None:
    """The program of a trace, made of that of its family; None if it has another one.

    tuned: what is tried in the place of a program in doubt.
    """
    made = _with_sizes(family.program, trace)
    if made is None:
        return None
    if family.program.referee is not None:
        made = replace(made, referee=Again(tuned))
    COUNTERS.resized += 1
    return SESSION.programs.keep(trace, made)


def keep(trace: TraceShape, program: Program) -> None:
    """A trace was planned: others of its family may have its code."""
    key = family_of(trace)
    if key is None or not _is_plain(program):
        return
    family = SESSION.families.used(key)
    if family is None:
        SESSION.families.keep(key, Family(program))
    else:
        family.program = program
        family.seen += 1


# law: True
def _is_plain(program: Program) -> bool:
    """Whether calls were planned as they were recorded, and run on the host."""
    same = program.trace == program.given
    plain = all(isinstance(note, Declined) for note in program.plan.notes)
    spaces = [call.space.execution for call in program.given.calls]
    return same and plain and GPU_SPACES.isdisjoint(spaces)


# law: None
def _with_sizes(program: Program, trace: TraceShape) -> Program | None:
    """The program of another trace, if its plan and its code are those of this one."""
    from pyfuser.pipeline import kernel_of

    able = capabilities(call.space.execution for call in trace.calls)
    graph, plan = plan_of(trace, able)
    if not _same(plan, program.plan):
        return None
    shapes = group_shapes(trace, [group.calls for group in plan.groups])
    kernels = [kernel_of(shape) for shape in shapes]
    sources = plan.sources()
    launches: list[Launch] = []
    for places, old in zip(plan.launches(), program.launches, strict=True):
        draft = Draft(trace, plan, places, shapes, kernels, sources)
        final = tuple(map(ENGINE.final, draft.kernels))
        if not all(_same_code(now, before) for now, before in zip(final, old.kernels, strict=True)):
            return None
        launches.append(draft.launch(Ready(old.launchable, final)))
    ended = with_ends(trace, plan, launches)
    return Program(trace, trace, graph, plan, tuple(kernels), ended, seconds=taken(trace.calls))


def _same(plan: Plan, other: Plan) -> bool:
    return plan.groups == other.groups and plan.sweeps == other.sweeps


# law: True
def _same_code(kernel: Kernel, other: Kernel) -> bool:
    """Whether kernels of one family have the same code; the order of their loops aside."""
    return (
        _code(kernel) == _code(other)
        and kernel.slots == other.slots
        and kernel.results == other.results
    )


def _code(kernel: Kernel) -> KernelSpec:
    """What its text depends on, but for the order of loops, which is for speed."""
    from pyfuser.codegen.kernel import spec_of

    spec = spec_of(kernel)
    return replace(spec, order=given_order(spec.rank), long_rows=True)


# law: True
def _are_inside(trace: TraceShape) -> bool:
    """Whether no call has a mistake, for sure."""
    calls = dict(zip(trace.kinds, trace.calls, strict=True)).values()
    return all(is_inside(call, facts_of(call)) for call in calls)
