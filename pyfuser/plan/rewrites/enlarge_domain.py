"""Which calls over boxes that differ a little run in one loop over all of them.

A program often has a call over all elements beside one over the inner ones: over [0, n) and over
[1, n - 1). No loop has both spaces, so what passes between them travels to memory. Over the hull of
the boxes, each body guarded by its own box (see `ir.guarded`), they have one space, and the law of
fusion answers for them as for any other calls.

The law of guarding itself. An iteration of the hull runs the call's iteration of that index if the
box has it, and nothing else. So the iterations are those of the program, under the same indices,
and the dependences between them, too. Iterations of a map are unordered; sums and scans, whose bits
depend on how many iterations there are, keep their space, and are met only if it is the hull. A
call that changes a scalar argument keeps its space as well.

The cost. The boxes must have most of the hull in common: there the loop has no guards (see
`nest.passes.split_guards`), elsewhere it has all of them. Loops inside the iteration are better
optimised without a guard around them. Each loop has the hull of the boxes that it holds in the end.
Of two plans that move as much, one loop beats a sweep, which walks through the caches several
times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyfuser.ir.dtypes import DType
from pyfuser.ir.guarded import Side, guarded
from pyfuser.ir.nodes import For, While, Workunit
from pyfuser.ir.visit import assigned, contains
from pyfuser.plan.legality import mergeable
from pyfuser.plan.plan import Note, Told
from pyfuser.plan.rewrite import EQUAL, Change, Changes, Option, Rewrite
from pyfuser.support.caches import cached
from pyfuser.support.records import dataclass
from pyfuser.trace.call import Space
from pyfuser.trace.shape import CallShape, ScalarShape, TraceShape
from pyfuser.tuning.thresholds import NOW


def _hull(spaces: Sequence[Space]) -> Space:
    """The least box that holds boxes of one rank; these may be empty."""
    begins, ends, executions = zip(*spaces, strict=True)
    return Space(
        tuple(map(min, zip(*begins, strict=True))),
        tuple(map(max, zip(*ends, strict=True))),
        executions[0],
    )


def _over_hulls(trace: TraceShape, hulls: Mapping[int, Space]) -> Changes:
    """Calls (their places) over larger boxes, guarded by their own."""
    calls = {n: (trace.calls[n], hull) for n, hull in hulls.items()}
    return {
        n: Change(guarded_call(call, hull), Guarded(n, len(call.arguments)))
        for n, (call, hull) in calls.items()
    }


@cached(1024)
# law
def guarded_call(call: CallShape, hull: Space) -> CallShape:
    """The call over a box that holds its own, which guards it."""
    sides: list[Side] = []
    values = []
    own = call.space
    for axis in range(len(own.begin)):
        if own.begin[axis] > hull.begin[axis]:
            sides.append((axis, False))
            values.append(own.begin[axis])
        if own.end[axis] < hull.end[axis]:
            sides.append((axis, True))
            values.append(own.end[axis])
    workunit = guarded(call.workunit, sides)
    bounds = [
        ScalarShape(call.workunit.indices[axis].dtype, value)
        for (axis, _), value in zip(sides, values, strict=True)
    ]
    return CallShape(call.pattern, hull, workunit, (*call.arguments, *bounds))


# --------------------------------------------------------------------------- may it?


# law: True
def may_guard(call: CallShape) -> bool:
    """Whether a call may run over a larger box, guarded by its own."""
    if call.pattern != "for" or not mergeable(call) or not _is_plain(call.workunit):
        return False
    return all(
        low <= begin and end <= high
        for begin, end, (low, high) in zip(
            call.space.begin, call.space.end, (d.range() for d in _types(call)), strict=True
        )
    )


@cached(1024)
# law: True
def _is_plain(workunit: Workunit) -> bool:
    """Whether a body has no loops, and leaves its scalar arguments as they are."""
    changed = assigned(workunit.body) & {param.sym for param in workunit.params}
    return not changed and not contains(workunit.body, For, While)


def _types(call: CallShape) -> tuple[DType, ...]:
    return tuple(index.dtype for index in call.workunit.indices)


# --------------------------------------------------------------------------- should it?


@dataclass(slots=True)
class _Class:
    """Spaces that may get one hull. users: the clusters that their calls have to do with."""

    spaces: list[Space]
    types: set[tuple[DType, ...]]
    users: set[int]
    hull: Space
    common: Space

    # law: not None
    def joined(self, other: _Class, fixed: set[Space]) -> _Class | None:
        """Both classes as one; None if they had better stay apart. fixed: spaces that stay."""
        if self.hull.execution != other.hull.execution or self.users.isdisjoint(other.users):
            return None
        types = self.types | other.types
        if len(types) > 1:
            return None
        hull = _hull((self.hull, other.hull))
        common = Space(
            tuple(map(max, self.common.begin, other.common.begin)),
            tuple(map(min, self.common.end, other.common.end)),
            self.hull.execution,
        )
        spaces = [*self.spaces, *other.spaces]
        if common.size < NOW.tuning.common * hull.size or any(
            s in fixed and s != hull for s in spaces
        ):
            return None
        return _Class(spaces, types, self.users | other.users, hull, common)


def _targets(trace: TraceShape, best: Option) -> Changes:
    """Calls that have to do with others over boxes much like theirs, over the hull of all."""
    distinct = list(dict(zip(trace.kinds, trace.calls, strict=True)).values())
    if len({call.space for call in distinct}) < 2:
        return {}
    fixed = {call.space for call in distinct if not may_guard(call)}
    hulls = {s: found.hull for found in _classes(distinct, fixed) for s in found.spaces}
    chosen = {
        place: hulls[call.space]
        for place, call in enumerate(trace.calls)
        if call.space in hulls and call.space != hulls[call.space]
    }
    return _over_hulls(trace, chosen)


def _classes(calls: Sequence[CallShape], fixed: set[Space]) -> Iterator[_Class]:
    """The classes of the calls' spaces, the largest spaces first."""
    own: dict[Space, _Class] = {}
    for call in calls:
        space = call.space
        if space.size:
            found = own.setdefault(space, _Class([space], set(), set(), space, space))
            found.types.add(_types(call))
            found.users |= call.clusters
    classes: list[_Class] = []
    for single in sorted(own.values(), key=lambda c: (-c.hull.size, c.hull)):
        for n, known in enumerate(classes):
            larger = known.joined(single, fixed)
            if larger is not None:
                classes[n] = larger
                break
        else:
            classes.append(single)
    yield from classes


def _of_groups(given: TraceShape, made: Option, changes: Changes) -> Changes:
    """The calls whose loop holds a box that is larger than theirs, each over that loop's box."""
    hulls: dict[int, Space] = {}
    for group in made.plan.groups:
        spaces = [given.calls[call].space for call in group.calls]
        if len(set(spaces)) > 1:
            hull = _hull(spaces)
            own = zip(group.calls, spaces, strict=True)
            hulls |= {call: hull for call, space in own if space != hull}
    return _over_hulls(given, hulls)


# --------------------------------------------------------------------------- the rewrite


@dataclass(frozen=True, slots=True)
class Guarded(Note):
    """A call that runs over a larger box, guarded by its own.

    given: how many arguments it has without the bounds of that, which are numbers.
    """

    alone = True

    given: int

    def source(self, place: int) -> tuple[int, int] | None:
        """What the call had before; nothing for a bound."""
        return (self.call, place) if place < self.given else None

    @classmethod
    def lines(cls, notes: Sequence[Note], told: Told) -> Iterator[str]:
        names = told.names(notes)
        if told.split:
            yield f"the loop is split where the ranges of these begin and end: {names}"
        else:
            yield f"inside an `if`, as their ranges are smaller than the loop's: {names}"


REWRITE = Rewrite(
    "enlarge-domain",
    "calls over boxes that differ a little share a loop, with guards",
    candidates=_targets,
    used=_of_groups,
    regroups=False,
    gain=EQUAL,  # of two that move as much, one loop beats a sweep
)
