"""Plans that hold for many sizes, proved once.

Programs whose sizes change from step to step have traces that differ in iteration counts and
extents only. Such traces, of one structure, are a family, and a plan is proved for members of it
at once, by a member that is larger than all of them.

The law. Let two traces be equal but for the ends of iteration spaces and the extents of regions,
none of which is larger in the first. A workunit that does not ask for extents does in each
iteration the same in both, so iterations of the first touch the elements that those of the second
touch, as far as they are inside. Each conflict of the first is then one of the second: whatever
order and whatever shared loops respect the second's conflicts respect the first's. That holds for
loops over calls of different boxes, too, whose iterations are those of the calls (see
`rewrites.enlarge_domain`).

The same holds of loops that sweep without a distance, as maps do beside a scan: that no two of them
touch an element in different steps is then proved for the smaller sizes, too.

What is the best plan may change with sizes. So a plan is only taken over if the larger trace and
the one at hand have the same dependences, groups and sweeps, if no loops sweep at a distance and no
calls are coarsened, and, where some dependence forbids a shared loop, for sizes in between alone:
there the dependences are the same, too. Sizes within a power of two count as alike.

Equal sizes must stay equal, and different ones different: that is a part of the structure. Traces
of which other spaces are multiples of others, and so might be coarsened, are of another family.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import replace
from operator import ge, le
from typing import NamedTuple

from pyfuser.analysis.dependences import DependenceGraph
from pyfuser.ir.nodes import Extent, Workunit
from pyfuser.ir.visit import contains
from pyfuser.plan.capabilities import Capabilities
from pyfuser.plan.plan import Plan
from pyfuser.plan.rewrites import coarsen, enlarge_domain
from pyfuser.support.caches import Table, cached
from pyfuser.support.passes import left_out
from pyfuser.trace.call import Space
from pyfuser.trace.shape import CallShape, RegionShape, TraceShape

MAX_FAMILIES = 256
MAX_PROOFS = 16  # of a family
MAX_SPACES = 16  # of a trace: all pairs are compared

Sizes = tuple[int, ...]


class _Proof(NamedTuple):
    """A plan that holds for sizes of a family up to its key's, and is as good from `least` on."""

    least: Sizes
    graph: DependenceGraph
    plan: Plan


#: By structure: the proofs by the sizes of the larger trace; None where its plan is another one.
FAMILIES: Table[Hashable, OrderedDict[Sizes, _Proof | None]] = Table(
    "plans for many sizes", MAX_FAMILIES
)


def planned(
    trace: TraceShape, capabilities: Capabilities
) -> tuple[TraceShape, DependenceGraph, Plan]:
    """The plan of a trace, or that of one whose plan is as good for it, and the trace as planned.

    The graph may hold dependences that these sizes do not have.
    """
    split = _split(trace) if _may_be_of_family(trace) else None
    if split is None:
        return enlarge_domain.planned(trace, capabilities)
    structure, multiples, sizes = split
    key = structure, multiples, capabilities
    proofs = FAMILIES.get(key)
    for most, proof in (proofs or {}).items():
        if proof is not None and _between(proof.least, sizes, most):
            known = enlarge_domain.taken_over(trace, proof.graph, proof.plan)
            if known is not None:
                return known
    found = enlarge_domain.planned(trace, capabilities)
    _, graph, plan = found
    if proofs is None:
        FAMILIES.keep(key, OrderedDict())  # that sizes change shows when they come a second time
    elif _is_plain(plan):
        larger = _larger(trace)
        wide = _split(larger)
        if wide is not None and wide.structure == structure and wide.sizes != sizes:
            most = wide.sizes
            if most in proofs:
                _extend(proofs, most, sizes, graph, plan)
            else:
                proofs[most] = _proof(larger, capabilities, sizes, most, graph, plan)
                if len(proofs) > MAX_PROOFS:
                    proofs.popitem(last=False)
    return found


def _proof(
    larger: TraceShape,
    capabilities: Capabilities,
    sizes: Sizes,
    most: Sizes,
    graph: DependenceGraph,
    plan: Plan,
) -> _Proof | None:
    """The proof of a plan by a larger trace; None if that has another."""
    fine = replace(capabilities, coarsening=False)
    _, wide_graph, wide_plan = enlarge_domain.planned(larger, fine)
    if wide_graph != graph or not _same(wide_plan, plan) or not _is_plain(wide_plan):
        return None
    return _Proof(_least(graph, sizes, most), graph, plan)


# law: True
def _is_plain(plan: Plan) -> bool:
    """Whether a plan is made of groups, and sweeps in which no loop is behind the others.

    Sweeps of guarded calls, whose hulls would have to be found anew, are not known to be.
    """
    apart = any(
        sweep.rolling or any(s.lag or s.ahead for s in sweep.stages) for sweep in plan.sweeps
    )
    return not apart and not plan.coarsened and not (plan.sweeps and plan.guarded)


def _same(plan: Plan, other: Plan) -> bool:
    return plan.groups == other.groups and plan.sweeps == other.sweeps


def _may_be_of_family(trace: TraceShape) -> bool:
    if left_out("size-generic"):
        return False
    return len(trace.calls) > 1 and not any(_asks_for_extents(c.workunit) for c in trace.calls)


# law: True
def _between(least: Sizes, sizes: Sizes, most: Sizes) -> bool:
    return all(map(le, sizes, most)) and all(map(ge, sizes, least))


def _least(graph: DependenceGraph, sizes: Sizes, most: Sizes) -> Sizes:
    """The sizes from which on nothing is known that another plan could do better."""
    if all(dependence.same_iteration for dependence in graph.dependences):
        return tuple(n // 2 + 1 if n > 1 else n for n in most)
    return sizes


def _extend(
    proofs: OrderedDict[Sizes, _Proof | None],
    most: Sizes,
    sizes: Sizes,
    graph: DependenceGraph,
    plan: Plan,
) -> None:
    """Take over a proof for smaller sizes that have the same dependences, groups and sweeps."""
    known = proofs[most]
    if known is None or known.graph != graph or not _same(known.plan, plan):
        return
    if all(map(le, sizes, known.least)):
        proofs[most] = known._replace(least=sizes)


@cached(1024)
# law: False
def _asks_for_extents(workunit: Workunit) -> bool:
    """Whether what an iteration does may depend on the extent of a view."""
    return contains(workunit.body, Extent)


class _Split(NamedTuple):
    """A trace without its sizes, and the sizes: each once, in a fixed order.

    multiples: of which pairs of spaces the first could be coarsened to the second.
    """

    structure: Hashable
    multiples: tuple[bool, ...]
    sizes: Sizes


# law: not None
def _split(trace: TraceShape) -> _Split | None:
    """The parts of a trace; None if it has too many spaces."""
    spaces: dict[Space, int] = {}
    regions: dict[RegionShape, int] = {}
    calls = [
        (
            call.pattern,
            call.workunit,
            spaces.setdefault(call.space, len(spaces)),
            tuple(
                [
                    ("view", regions.setdefault(a, len(regions)))
                    if isinstance(a, RegionShape)
                    else a
                    for a in call.arguments
                ]
            ),
        )
        for call in _distinct(trace)
    ]
    if len(spaces) > MAX_SPACES:
        return None
    multiples = [
        coarsen.factor_between(own, other) is not None for own in spaces for other in spaces
    ]
    structure = (
        trace.kinds,
        trace.clusters,
        tuple(calls),
        tuple((space.begin, space.execution) for space in spaces),
        tuple((r.cluster, r.offset, r.strides, r.dtype) for r in regions),
    )
    sizes = [n for space in spaces for n in space.end]
    sizes += [n for region in regions for n in region.shape]
    return _Split(structure, tuple(multiples), tuple(sizes))


def _distinct(trace: TraceShape) -> Iterable[CallShape]:
    """One call of each kind."""
    return dict(zip(trace.kinds, trace.calls, strict=True)).values()


def _larger(trace: TraceShape) -> TraceShape:
    """The trace with each size at the next power of two.

    Of the extents of a region only that of the largest stride grows, so that rows stay apart.
    """
    made = {
        kind: call._replace(
            space=call.space._replace(end=tuple(map(_next_power, call.space.end))),
            arguments=tuple(
                _larger_region(a) if isinstance(a, RegionShape) else a for a in call.arguments
            ),
        )
        for kind, call in zip(trace.kinds, trace.calls, strict=True)
    }
    return TraceShape(tuple(made[kind] for kind in trace.kinds), trace.clusters)


def _larger_region(region: RegionShape) -> RegionShape:
    strides = [abs(stride) for stride in region.strides]
    axis = strides.index(max(strides, default=0)) if strides else -1
    return region._replace(
        shape=tuple(_next_power(n) if k == axis else n for k, n in enumerate(region.shape))
    )


def _next_power(size: int) -> int:
    """The least power of two that is not less; sizes below 2 as they are."""
    return size if size < 2 else 1 << (size - 1).bit_length()
