"""Which calls run with fewer, longer iterations, so that they can share a loop with others.

A program often has a call an element of a row beside calls a row: over n * c pairs of a point and a
class, then over n points. Their spaces differ, so no loop holds both, and what passes between them
travels to memory. Coarsened to one iteration a row (see `plan.rewrites.coarse_body`), the first has
the space of the second, and the law of fusion answers for the two as for any other calls.

The law of coarsening itself. Iterations of a parallel_for are unordered, so a row of them may run
one after the other. Not so where an iteration may wait for another (a loop that reads what the
workunit writes, an atomic's old value in a loop), where effects show (printf), and in sums and
scans, whose bits depend on what is one iteration. The law of fusion for the coarsened call asks
for equal rows of every pair of iterations that touch one byte; inside a row the calls keep the
order of the program.

The cost. Rows must be many, and short. Neighbours were the lanes of vectors; those of a short row
that is no number of whole vectors are none, unless it becomes a local, as rows of temporaries do:
what the arithmetic takes longer is added to what the model says. A call that finds nothing to share
its rows with stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyfuser.ir.effects import atomics, effects
from pyfuser.ir.nodes import For, While, Workunit
from pyfuser.ir.visit import assigned, statements
from pyfuser.plan.arithmetic_cost import operations
from pyfuser.plan.cost_model import cost_model, on_gpu, operation
from pyfuser.plan.legality import mergeable
from pyfuser.plan.plan import Note, Told
from pyfuser.plan.rewrite import UNSURE, Change, Changes, Option, Rewrite
from pyfuser.plan.rewrites import coarse_body
from pyfuser.support.caches import cached
from pyfuser.support.records import dataclass
from pyfuser.trace.call import Space
from pyfuser.trace.shape import CallShape, RegionShape, TraceShape, known_scalars
from pyfuser.tuning.thresholds import NOW

MAX_FACTOR = 256
"""Iterations that one may stand for; longer rows are loops worth threads of their own."""

LANES = 4
"""Doubles in a vector of 32 bytes: a row of so many needs no wider ones."""

LONG = 16
"""Iterations of a row that loses little where it ends amid a vector."""


@cached(1024)
def coarsened_call(call: CallShape, factor: int) -> CallShape:
    """The call with one iteration for `factor` of its own; those of all axes but the first."""
    begin, end, execution = call.space
    if len(begin) > 1:
        workunit = coarse_body.folded(call.workunit, tuple(zip(begin[1:], end[1:], strict=True)))
        return call._replace(space=Space(begin[:1], end[:1], execution), workunit=workunit)
    scalars = known_scalars(call.workunit, call.arguments)
    workunit = coarse_body.split(call.workunit, factor, end[0], scalars)
    return call._replace(space=Space((0,), (end[0] // factor,), execution), workunit=workunit)


# --------------------------------------------------------------------------- may it?


# law: True
def may_coarsen(call: CallShape) -> bool:
    """Whether iterations of a call may run one after the other, as one."""
    workunit = call.workunit
    return (
        call.pattern == "for"
        and mergeable(call)
        and not effects(workunit).waits
        and _begins(workunit)
    )


@cached(1024)
def _begins(workunit: Workunit) -> bool:
    """Whether an iteration leaves nothing behind in a parameter that it changes."""
    return not assigned(workunit.body) & {param.sym for param in workunit.params}


def factor_to(call: CallShape, space: Space) -> int | None:
    """How many iterations of a call one of a space would stand for; None if that is not so."""
    return factor_between(call.space, space)


# law: not None
def factor_between(own: Space, space: Space) -> int | None:
    """How many iterations of a space one of another would stand for; None if that is not so."""
    begin, end, execution = own
    if space.execution != execution or len(space.begin) != 1 or space.size < 2:
        return None
    if len(begin) > 1:
        if (begin[:1], end[:1]) != (space.begin, space.end):
            return None
        factor = own.size // space.size
    else:
        if begin != (0,) or space.begin != (0,) or end[0] % space.end[0]:
            return None
        factor = end[0] // space.end[0]
    return factor if 1 < factor <= MAX_FACTOR else None


# --------------------------------------------------------------------------- should it?


def _targets(trace: TraceShape, best: Option) -> Changes:
    """Calls that have to do with others over fewer iterations, with the factor between.

    What a call of the same space has to do with is a reason, too.
    """
    spaces = {call.space for call in trace.calls}
    coarser = {own: {s for s in spaces if factor_between(own, s) is not None} for own in spaces}
    if not any(coarser.values()):
        return {}
    users: dict[int, set[Space]] = {}  # of each cluster
    for call in trace.calls:
        for cluster in call.clusters:
            users.setdefault(cluster, set()).add(call.space)
    targets = {space: _target(space, trace, users, coarser[space]) for space in spaces}
    found: dict[int, int] = {}
    large: set[Space] = set()  # calls of one space are coarsened together, or fuse as they are
    for place, call in enumerate(trace.calls):
        target = targets[call.space]
        if target is None or not may_coarsen(call):
            continue
        factor = factor_to(call, target)
        if factor is None:
            continue
        if (
            target.size >= NOW.tuning.coarse_rows
            or cost_model(trace).traffic((place,))[0] <= NOW.tuning.coarse_bytes
        ):
            found[place] = factor
        else:
            large.add(call.space)
    return {
        place: Change(coarsened_call(trace.calls[place], factor), Coarsened(place, factor))
        for place, factor in found.items()
        if trace.calls[place].space not in large
    }


def _target(
    space: Space, trace: TraceShape, users: Mapping[int, set[Space]], coarser: set[Space]
) -> Space | None:
    """The largest of the coarser spaces whose calls share memory with those of a space."""
    found: set[Space] = set()
    for call in trace.calls if coarser else ():
        if call.space == space:
            for cluster in call.clusters:
                found |= users[cluster] & coarser
    return max(found, key=lambda s: s.size, default=None)


def _in_company(given: TraceShape, made: Option, changes: Changes) -> Changes:
    """The coarsened calls whose loop holds a call that had its space from the beginning."""
    groups = [group.calls for group in made.plan.groups]
    kept = {n for calls in groups if any(m not in changes for m in calls) for n in calls}
    return {n: change for n, change in changes.items() if n in kept}


def _lost_vectors(given: TraceShape, changes: Changes) -> float:
    """Seconds that arithmetic takes longer without vectors; threads of a GPU are no lanes."""
    if on_gpu(given):
        return 0.0
    calls = [
        given.calls[n]
        for n, change in changes.items()
        if _factor(change) % LANES
        and _factor(change) < LONG
        and _is_straight(given.calls[n].workunit)
        and _touches_memory(given, given.calls[n])
    ]
    return (LANES - 1) * sum(map(operations, calls)) * operation(given)


def _factor(change: Change) -> int:
    assert isinstance(change.note, Coarsened)
    return change.note.factor


def _touches_memory(trace: TraceShape, call: CallShape) -> bool:
    """Whether a call has arrays that others may see."""
    return any(
        isinstance(a, RegionShape) and not trace.clusters[a.cluster].temporary
        for a in call.arguments
    )


@cached(1024)
def _is_straight(workunit: Workunit) -> bool:
    """Whether neighbours may be lanes: there are no loops, and no atomics."""
    body = list(statements(workunit.body))
    return not any(isinstance(s, (For, While)) for s in body) and not any(atomics(workunit.body))


# --------------------------------------------------------------------------- the rewrite


@dataclass(frozen=True, slots=True)
class Coarsened(Note):
    """A call of which one iteration runs `factor` of the program's."""

    alone = True

    factor: int

    @classmethod
    def lines(cls, notes: Sequence[Note], told: Told) -> Iterator[str]:
        by_factor: dict[int, list[Note]] = {}
        for note in notes:
            assert isinstance(note, Coarsened)
            by_factor.setdefault(note.factor, []).append(note)
        for factor, alike in by_factor.items():
            yield f"{factor} iterations run as one: {told.names(alike)}"


REWRITE = Rewrite(
    "coarsen",
    "one iteration runs a row of the program's iterations",
    candidates=_targets,
    used=_in_company,
    gain=UNSURE,  # how a loop vectorises
    work=_lost_vectors,
)
