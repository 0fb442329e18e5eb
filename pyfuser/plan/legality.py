"""May two calls share a loop? The law of fusion, for whole calls."""

from __future__ import annotations

from dataclasses import replace

from pyfuser.analysis.dependences import Dependence, DependenceGraph, Kind
from pyfuser.analysis.sums import added_along
from pyfuser.ir import nodes
from pyfuser.ir.canonical import MAX_WORKUNITS
from pyfuser.ir.effects import effects, only_combines
from pyfuser.ir.nodes import Stmt, Workunit
from pyfuser.ir.visit import map_body, written
from pyfuser.plan.plan import Rejection
from pyfuser.support.caches import cached
from pyfuser.trace.call import GPU_SPACES
from pyfuser.trace.shape import CallShape, FutureShape, TraceShape

_UNKNOWN = "unknown-access"


class Legality:
    """Answers for one trace. Sets of calls are bit sets of their positions.

    predecessors[c]: calls that must run before c, or in c's loop before c (links; their transitive
    closure is the order). compatible[c]: calls, c included, that may share a loop with c as far as
    the two alone decide; a group also needs that no path leaves it and comes back.
    """

    def __init__(self, trace: TraceShape, graph: DependenceGraph) -> None:
        self._trace = trace
        size = len(trace.calls)
        self._forbidding = _forbidding(graph)
        links = _links(trace)
        self.predecessors = [0] * size
        for dependence in graph.dependences:
            self.predecessors[dependence.sink] |= 1 << dependence.source
        forbidden = [0] * size
        for source, sink in self._forbidding.keys() | links.keys():
            self.predecessors[sink] |= 1 << source
            forbidden[sink] |= 1 << source
        self._reasons = links
        distinct = dict(zip(trace.kinds, trace.calls, strict=True))
        self._mergeable = {kind: mergeable(call) for kind, call in distinct.items()}
        self._apart = _paths_that_separate(self.predecessors, forbidden)
        self.compatible = self._compatible()

    def may_share_loop(self, first: int, second: int) -> Rejection | None:
        """None if they may, else why not; first < second."""
        reason = self.reason(first, second)
        if reason is None:
            return None
        own = self._own_reason(first, second)
        dependence = None if own else self._forbidding.get((first, second))
        return Rejection(first, second, reason, dependence)

    def reason(self, first: int, second: int) -> str | None:
        """The reason of the rejection, if there is one."""
        if self.compatible[second] >> first & 1:
            return None
        reason = self._own_reason(first, second)
        if reason:
            return reason
        dependence = self._forbidding.get((first, second))
        if dependence is None:
            return "cycle"
        return _UNKNOWN if dependence.unknown else dependence.kind.value

    def _own_reason(self, first: int, second: int) -> str | None:
        """A reason that is no dependence."""
        return self._reasons.get((first, second)) or self._kinds_differ(first, second)

    def _kinds_differ(self, first: int, second: int) -> str | None:
        a, b = self._trace.calls[first], self._trace.calls[second]
        kinds = self._trace.kinds
        if not (self._mergeable[kinds[first]] and self._mergeable[kinds[second]]):
            prints = effects(a.workunit).output or effects(b.workunit).output
            return "opaque" if prints else "pattern"
        if a.space != b.space:
            return "space"
        if _threads(a) != _threads(b):
            return "threads"
        orders = _order(a), _order(b)
        return "order" if None not in orders and orders[0] != orders[1] else None

    # law
    def _compatible(self) -> list[int]:
        size = len(self._trace.calls)
        result = [1 << n for n in range(size)]
        members: dict[object, int] = {}
        sums: dict[object, dict[object, int]] = {}  # by space and order of additions
        kinds = self._trace.kinds
        for position, call in enumerate(self._trace.calls):
            if not self._mergeable[kinds[position]]:
                continue
            space = call.space, _threads(call)
            same = members.get(space, 0)
            members[space] = same | 1 << position
            earlier = same & ~self._apart[position]
            order = _order(call)
            if order is not None:
                orders = sums.setdefault(space, {})
                for other_order, others in orders.items():
                    earlier &= ~others if other_order != order else -1
                orders[order] = orders.get(order, 0) | 1 << position
            result[position] |= earlier
            while earlier:
                other = earlier.bit_length() - 1
                earlier ^= 1 << other
                result[other] |= 1 << position
        return result


def reasons(trace: TraceShape, graph: DependenceGraph) -> Legality:
    """What legality needs to know of a trace, worked out once."""
    return Legality(trace, graph)


def _forbidding(graph: DependenceGraph) -> dict[tuple[int, int], Dependence]:
    """For each pair of calls that a dependence keeps apart, the most telling dependence."""
    found: dict[tuple[int, int], Dependence] = {}
    for dependence in graph.dependences:
        if dependence.same_iteration:
            continue
        key = dependence.source, dependence.sink
        old = found.get(key)
        if old is None or _weight(dependence) < _weight(old):
            found[key] = dependence
    return found


_KINDS = {Kind.FLOW: 0, Kind.ANTI: 1, Kind.OUTPUT: 2}


def _weight(dependence: Dependence) -> tuple[bool, int]:
    return dependence.unknown, _KINDS[dependence.kind]


# law
def _links(trace: TraceShape) -> dict[tuple[int, int], str]:
    """Pairs that are ordered, and kept apart, by something else than memory."""
    links: dict[tuple[int, int], str] = {}
    printed = -1
    known: dict[
        int, tuple[list[int], bool]
    ] = {}  # by kind: producers, and whether it has an effect
    for position, (kind, call) in enumerate(zip(trace.kinds, trace.calls, strict=True)):
        if kind not in known:
            futures = [a.producer for a in call.arguments if isinstance(a, FutureShape)]
            known[kind] = futures, effects(call.workunit).output
        producers, effect = known[kind]
        for producer in producers:
            links[producer, position] = "scalar"
        if effect:
            if printed >= 0:
                links.setdefault((printed, position), "opaque")
            printed = position
    return links


# law
def _paths_that_separate(predecessors: list[int], forbidden: list[int]) -> list[int]:
    """For each call the earlier ones from which a path with a forbidding link leads to it."""
    before: list[int] = []
    apart: list[int] = []
    for links, forbids in zip(predecessors, forbidden, strict=True):
        ordered = separate = 0
        rest = links
        while rest:
            source = rest.bit_length() - 1
            rest ^= 1 << source
            ordered |= 1 << source | before[source]
            separate |= apart[source]
            if forbids >> source & 1:
                separate |= 1 << source | before[source]
        before.append(ordered)
        apart.append(separate)
    return apart


# law: True
def mergeable(call: CallShape) -> bool:
    """Whether a call may share a loop with any other at all."""
    workunit = call.workunit
    if call.pattern not in ("for", "reduce") or effects(workunit).output:
        return False
    return not workunit.accumulators or _is_sum(workunit)


def is_scan(call: CallShape) -> bool:
    """Whether a call is a scan that may run in tiles beside maps.

    It shows in memory and its result only, and in memory in its last pass only.
    """
    unit = call.workunit
    return call.pattern == "scan" and not effects(unit).output and not _writes_early(unit)


@cached(1024)
# law: False
def _writes_early(workunit: Workunit) -> bool:
    """Whether a scan writes memory outside of `if last_pass:`, and so perhaps twice."""
    views = {param.sym for param in workunit.params}
    flags = [nodes.Read(a.last_pass) for a in workunit.accumulators if a.last_pass is not None]

    def early(stmt: Stmt) -> Stmt:
        if isinstance(stmt, nodes.If) and stmt.condition in flags:
            return replace(stmt, then=())
        return stmt

    return not views.isdisjoint(written(map_body(workunit.body, None, early)))


@cached(MAX_WORKUNITS)
def _is_sum(workunit: Workunit) -> bool:
    """Whether accumulators only ever are added to."""
    sums = [a.sym for a in workunit.accumulators if a.last_pass is None]
    return len(sums) == len(workunit.accumulators) and only_combines(workunit.body, sums, "+")


# law
def _threads(call: CallShape) -> int:
    """The size of a GPU's blocks for teams, on which the bits of their sums depend."""
    return call.workunit.threads if call.space.execution in GPU_SPACES else 0


# law
def _order(call: CallShape) -> tuple[bool, int | None] | None:
    """Whether a sum has the parts of one axis, whatever its space, and along which a GPU adds up.

    None if there is no sum.
    """
    accumulators = call.workunit.accumulators
    return (accumulators[0].flat, added_along(call)) if accumulators else None
