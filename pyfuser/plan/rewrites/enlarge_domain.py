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
`codegen.passes.split_guards`), elsewhere it has all of them. Loops inside the iteration are better
optimised without a guard around them. Both plans are made: in the guarded one each loop has the
hull of the boxes that it holds in the end. It is taken unless it costs more; of two that move as
much, one loop beats a sweep, which walks through the caches several times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyfuser.analysis.dependences import DependenceGraph, dependences
from pyfuser.ir.dtypes import DType
from pyfuser.ir.guarded import Side, guarded
from pyfuser.ir.nodes import For, While, Workunit
from pyfuser.ir.visit import assigned, contains
from pyfuser.plan.capabilities import ALL, Capabilities
from pyfuser.plan.cost_model import cost_model
from pyfuser.plan.legality import mergeable
from pyfuser.plan.plan import Guarded, Plan
from pyfuser.plan.plan_cache import partitioned
from pyfuser.plan.rewrites import coarsen
from pyfuser.plan.rewrites.coarsen import Planned
from pyfuser.plan.wavefront import search
from pyfuser.support.caches import cached
from pyfuser.support.passes import left_out
from pyfuser.trace.call import Space
from pyfuser.trace.shape import CallShape, RegionShape, ScalarShape, TraceShape

COMMON = 0.75
"""What of the hull all boxes must have in common."""

EQUAL = 1.01
"""Costs that differ by no more are equal."""


def planned(trace: TraceShape, capabilities: Capabilities = ALL) -> Planned:
    """The plan of a trace, with the trace as planned: calls may be coarsened, or guarded."""
    fine = coarsen.planned(trace, capabilities)
    trace, _, before = fine
    wanted = capabilities.guards and not left_out("enlarge-domain")
    chosen = _targets(trace) if wanted else {}
    if not chosen:
        return fine
    wide = over_hulls(trace, chosen)
    graph = dependences(wide)
    plan = partitioned(wide, graph, replace(capabilities, sweeps=False))
    hulls = _hulls_of_groups(trace, plan)
    if not hulls:
        return fine
    changed = over_hulls(trace, hulls)
    plan = _noted(trace, replace(plan, coarsened=before.coarsened), hulls)
    if capabilities.sweeps:
        found, declined = search(changed, plan.groups, cost_model(changed))
        plan = replace(plan, sweeps=found, declined=declined)
    return (changed, graph, plan) if _pays(fine, changed, plan) else fine


# law: not None
def taken_over(trace: TraceShape, graph: DependenceGraph, plan: Plan) -> Planned | None:
    """The plan of a larger trace of equal begins for this one, and this one as planned.

    The calls of each group run over the hull of their boxes. None if one of them may not. (No loop
    of the plan sweeps.)
    """
    hulls = _hulls_of_groups(trace, plan) if plan.guarded else {}
    if not all(may_guard(trace.calls[call]) for call in hulls):
        return None
    return over_hulls(trace, hulls) if hulls else trace, graph, _noted(trace, plan, hulls)


def _hulls_of_groups(trace: TraceShape, plan: Plan) -> dict[int, Space]:
    """The calls whose loop holds a box that is larger than theirs, each with that loop's box."""
    hulls: dict[int, Space] = {}
    for group in plan.groups:
        spaces = [trace.calls[call].space for call in group.calls]
        if len(set(spaces)) > 1:
            hull = _hull(spaces)
            own = zip(group.calls, spaces, strict=True)
            hulls |= {call: hull for call, space in own if space != hull}
    return hulls


def _noted(trace: TraceShape, plan: Plan, hulls: Mapping[int, Space]) -> Plan:
    notes = tuple(Guarded(call, len(trace.calls[call].arguments)) for call in sorted(hulls))
    return plan if plan.guarded == notes else replace(plan, guarded=notes)


def _hull(spaces: Sequence[Space]) -> Space:
    """The least box that holds boxes of one rank; these may be empty."""
    begins, ends, executions = zip(*spaces, strict=True)
    return Space(
        tuple(map(min, zip(*begins, strict=True))),
        tuple(map(max, zip(*ends, strict=True))),
        executions[0],
    )


def over_hulls(trace: TraceShape, hulls: Mapping[int, Space]) -> TraceShape:
    """The trace with calls (their places) over larger boxes, guarded by their own."""
    return trace.with_calls({n: guarded_call(trace.calls[n], hull) for n, hull in hulls.items()})


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
        if common.size < COMMON * hull.size or any(s in fixed and s != hull for s in spaces):
            return None
        return _Class(spaces, types, self.users | other.users, hull, common)


def _targets(trace: TraceShape) -> dict[int, Space]:
    """Calls that have to do with others over boxes much like theirs, each with the hull of all."""
    distinct = list(dict(zip(trace.kinds, trace.calls, strict=True)).values())
    if len({call.space for call in distinct}) < 2:
        return {}
    fixed = {call.space for call in distinct if not may_guard(call)}
    hulls = {s: found.hull for found in _classes(distinct, fixed) for s in found.spaces}
    return {
        place: hulls[call.space]
        for place, call in enumerate(trace.calls)
        if call.space in hulls and call.space != hulls[call.space]
    }


def _classes(calls: Sequence[CallShape], fixed: set[Space]) -> Iterator[_Class]:
    """The classes of the calls' spaces, the largest spaces first."""
    own: dict[Space, _Class] = {}
    for call in calls:
        space = call.space
        if space.size:
            found = own.setdefault(space, _Class([space], set(), set(), space, space))
            found.types.add(_types(call))
            found.users |= {a.cluster for a in call.arguments if isinstance(a, RegionShape)}
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


def _pays(fine: Planned, changed: TraceShape, plan: Plan) -> bool:
    """Whether the guarded trace costs no more."""
    old, new = coarsen.compared(fine, changed, plan)
    return new <= EQUAL * old
