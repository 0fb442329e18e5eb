"""Plans of traces that are not rewritten, and which of them hold for traces of other sizes.

Programs whose sizes change from step to step have traces that differ in iteration counts and
extents only. Such traces, of one structure, are a family, and a plan is proved for members of it
at once, by a member that is larger than all of them.

The law. Let two traces be equal but for the ends of iteration spaces, the ends of guards (see
`ir.guarded`) and the extents of regions, none of which is larger in the first; and for where the
regions of a cluster begin, all of which may be moved together, as conflicts look at differences.
Extents that a workunit asks for are equal in both. So it does in each iteration the same in both,
or nothing in the first, and iterations of the first touch elements that those of the second touch.
Each conflict of the first is then one of the second: whatever order and whatever shared loops
respect the second's conflicts respect the first's. The same holds of loops that sweep without a
distance, as maps do beside a scan: that no two of them touch an element in different steps is then
proved for the smaller sizes, too.

What is the best plan may change with sizes. So a plan is only taken over if the larger trace and
the one at hand have the same dependences, groups and sweeps, if no loops sweep at a distance, and,
where some dependence forbids a shared loop, for sizes in between alone: there the dependences are
the same, too. Sizes within a power of two count as alike. Equal sizes must stay equal, and
different ones different: that is a part of the structure.

Of traces that differ in more (known scalars, strides, offsets), but within powers of two, and have
equal dependences, the groups hold as well: they follow from these, from patterns, workunits and
links, and from which spaces and arguments are equal. Sweeps depend on distances, and are made anew.

Why neighbours do not sweep is told with the sizes of the trace that was planned.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from operator import ge, le
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pyfuser.ir.effects import measured_views
from pyfuser.ir.guarded import upper_limits
from pyfuser.plan.capabilities import Capabilities
from pyfuser.support.caches import Table, cached
from pyfuser.support.passes import left_out
from pyfuser.trace.call import Space
from pyfuser.trace.shape import ArgumentShape, CallShape, RegionShape, ScalarShape, TraceShape

if TYPE_CHECKING:
    from pyfuser.analysis.dependences import DependenceGraph
    from pyfuser.plan.plan import Plan

MAX_PLANS = 256
MAX_PROOFS = 16  # of a family
MAX_SPACES = 16  # of a trace
MIN_CALLS = 32  # of traces that are alike: to plan less takes little longer than to look

Sizes = tuple[int, ...]


class _Proof(NamedTuple):
    """A plan that holds for sizes of a family up to its key's, and is as good from `least` on."""

    least: Sizes
    graph: DependenceGraph
    plan: Plan


_Proofs = OrderedDict[Sizes, _Proof | None]

#: By structure: the proofs by the sizes of the larger trace; None where its plan is another one.
FAMILIES: Table[Hashable, _Proofs] = Table("plans for many sizes", MAX_PLANS, tuned=True)
#: By structure with rounded sizes.
ALIKE: Table[Hashable, tuple[DependenceGraph, Plan]] = Table(
    "plans of long traces", MAX_PLANS, tuned=True
)


def plan_of(trace: TraceShape, capabilities: Capabilities) -> tuple[DependenceGraph, Plan]:
    """The plan of a trace, or of one whose plan is as good for it; and the dependences of that."""
    split = _family_split(trace)
    if split is None:
        return _alike(trace, capabilities)
    key = split.structure, capabilities
    proofs = FAMILIES.used(key)
    for most, proof in (proofs or {}).items():
        if proof is not None and _between(proof.least, split.sizes, most):
            return proof.graph, proof.plan
    graph, plan = _alike(trace, capabilities)
    if proofs is None:  # that sizes change shows when they come the second time
        FAMILIES.keep(key, OrderedDict())
    elif _is_plain(plan):
        larger = _larger(trace)
        wide = _split(larger)
        if wide is not None and wide.structure == split.structure and wide.sizes != split.sizes:
            _prove(proofs, larger, capabilities, (split.sizes, wide.sizes), graph, plan)
    return graph, plan


def _prove(
    proofs: _Proofs,
    larger: TraceShape,
    capabilities: Capabilities,
    sizes: tuple[Sizes, Sizes],
    graph: DependenceGraph,
    plan: Plan,
) -> None:
    """See whether the plan of a trace is that of a larger one. sizes: those of both.

    If that is known, it is for these sizes, too, that the plan is as good.
    """
    least, most = sizes
    if most in proofs:
        known = proofs[most]
        alike = known is not None and known.graph == graph and _same(known.plan, plan)
        if known is not None and alike and all(map(le, least, known.least)):
            proofs[most] = known._replace(least=least)
        return
    wide_graph, wide_plan = plan_anew(larger, capabilities)
    holds = wide_graph == graph and _same(wide_plan, plan) and _is_plain(wide_plan)
    if holds and all(dependence.same_iteration for dependence in graph.dependences):
        least = tuple(n // 2 + 1 if n > 1 else n for n in most)
    proofs[most] = _Proof(least, graph, plan) if holds else None
    if len(proofs) > MAX_PROOFS:
        proofs.popitem(last=False)


def plan_anew(trace: TraceShape, capabilities: Capabilities) -> tuple[DependenceGraph, Plan]:
    """The dependences of a trace, and its plan."""
    from pyfuser.analysis.dependences import dependences  # only who plans needs it
    from pyfuser.plan.partition import partition

    graph = dependences(trace)
    return graph, partition(trace, graph, capabilities)


# law
def _alike(trace: TraceShape, capabilities: Capabilities) -> tuple[DependenceGraph, Plan]:
    """The dependences of a trace, and its plan or that of one that is alike."""
    if len(trace.calls) < MIN_CALLS:
        return plan_anew(trace, capabilities)
    from pyfuser.analysis.dependences import dependences
    from pyfuser.plan.cost_model import machine_for
    from pyfuser.plan.partition import partition

    graph = dependences(trace)
    key = _rounded_structure(trace), capabilities, machine_for(trace)
    found = ALIKE.used(key)
    if found is not None and found[0] == graph:
        return graph, found[1]
    plan = partition(trace, graph, capabilities)
    if not plan.sweeps:
        ALIKE.keep(key, (graph, plan))
    return graph, plan


# law: True
def _is_plain(plan: Plan) -> bool:
    """Whether a plan is made of groups, and sweeps in which no loop is behind the others."""
    return not any(
        sweep.rolling or any(s.lag or s.ahead for s in sweep.stages) for sweep in plan.sweeps
    )


def _same(plan: Plan, other: Plan) -> bool:
    return plan.groups == other.groups and plan.sweeps == other.sweeps


def _may_be_of_family(trace: TraceShape) -> bool:
    if left_out("size-generic"):
        return False
    return len(trace.calls) > 1


# law: True
def _between(least: Sizes, sizes: Sizes, most: Sizes) -> bool:
    return all(map(le, sizes, most)) and all(map(ge, sizes, least))


# --------------------------------------------------------------------------- structure and sizes


class _Limit(NamedTuple):
    """A known scalar that does nothing but end a guard."""

    scalar: ScalarShape


class _Measured(NamedTuple):
    """A view whose extents the code asks for, so that they are numbers of the code as others."""

    region: RegionShape


_Part: TypeAlias = ArgumentShape | _Limit | _Measured


class _Split(NamedTuple):
    """A trace without its sizes, and the sizes: each once, in a fixed order."""

    structure: Hashable
    sizes: Sizes


def family_of(trace: TraceShape) -> Hashable | None:
    """What traces have in common whose plans are tried on each other; None if nothing is.

    Their sizes are equal when rounded, so that what is the best plan is alike.
    """
    split = _family_split(trace)
    return None if split is None else (split.structure, _rounded(split.sizes))


# law
def _lowest(trace: TraceShape) -> dict[int, int]:
    """Where the lowest region of each cluster begins."""
    lowest: dict[int, int] = {}
    for call in dict(zip(trace.kinds, trace.calls, strict=True)).values():
        for argument in call.arguments:
            if isinstance(argument, RegionShape):
                cluster, offset = argument.cluster, argument.offset
                lowest[cluster] = min(offset, lowest.get(cluster, offset))
    return lowest


@cached(16)
def _family_split(trace: TraceShape) -> _Split | None:
    """The parts of a trace that may be of a family: several ask for them in turn."""
    return _split(trace) if _may_be_of_family(trace) else None


def _split(trace: TraceShape) -> _Split | None:
    """The parts of a trace; None if it has too many spaces."""
    sizes: list[int] = []
    lowest = _lowest(trace)

    def without_end(space: Space) -> Hashable:
        sizes.extend(space.end)
        return space.begin, space.execution

    def without_extents(argument: _Part) -> Hashable:
        if isinstance(argument, _Measured):
            cluster, offset = argument.region[:2]
            return argument.region._replace(offset=offset - lowest[cluster])
        if isinstance(argument, RegionShape):
            sizes.extend(argument.shape)
            cluster, offset, strides, _, dtype = argument
            return cluster, offset - lowest[cluster], strides, dtype
        if isinstance(argument, _Limit):
            assert argument.scalar.value is not None
            sizes.append(argument.scalar.value)
            return argument.scalar.dtype
        return argument

    structure = _structure(trace, without_end, without_extents)
    return None if structure is None else _Split(structure, tuple(sizes))


def _rounded_structure(trace: TraceShape) -> Hashable:
    """A trace with its sizes up to the next power of two."""
    return _structure(trace, _rounded_space, _rounded_argument, most=len(trace.calls))


# law
def _structure(
    trace: TraceShape,
    of_space: Callable[[Space], Hashable],
    of_argument: Callable[[_Part], Hashable],
    most: int = MAX_SPACES,
) -> Hashable | None:
    """What a trace is made of, and what is equal to what; None if it has more than `most` spaces.

    of_space, of_argument: what is kept of each distinct one.
    """
    spaces: dict[Space, int] = {}
    arguments: dict[_Part, int] = {}
    calls = [
        (
            call.pattern,
            call.workunit,
            spaces.setdefault(call.space, len(spaces)),
            tuple([arguments.setdefault(a, len(arguments)) for a in _arguments(call)]),
        )
        for call in dict(zip(trace.kinds, trace.calls, strict=True)).values()
    ]
    if len(spaces) > most:
        return None
    return (
        trace.kinds,
        trace.clusters,
        tuple(calls),
        tuple([of_space(space) for space in spaces]),
        tuple([of_argument(argument) for argument in arguments]),
    )


# law
def _arguments(call: CallShape) -> Iterable[_Part]:
    limits, measured = upper_limits(call.workunit), measured_views(call.workunit)
    if not (limits or measured):
        return call.arguments
    parts: list[_Part] = list(call.arguments)
    for n, argument in enumerate(call.arguments):
        if isinstance(argument, RegionShape):
            if n in measured:
                parts[n] = _Measured(argument)
        elif n in limits and isinstance(argument, ScalarShape) and argument.value is not None:
            parts[n] = _Limit(argument)
    return parts


def _rounded_space(space: Space) -> Hashable:
    return _rounded(space.begin), _rounded(space.end), space.execution


def _rounded_argument(argument: _Part) -> Hashable:
    if isinstance(argument, _Measured):
        argument = argument.region
    if isinstance(argument, RegionShape):
        cluster, offset, strides, shape, dtype = argument
        return cluster, _rounded((offset, *strides, *shape)), dtype
    scalar = argument.scalar if isinstance(argument, _Limit) else argument
    if isinstance(scalar, ScalarShape) and scalar.value is not None:
        return scalar.dtype, _rounded((scalar.value,))
    return argument


def _rounded(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Numbers up to the next power of two, with their signs."""
    return tuple([n.bit_length() if n > 0 else -n.bit_length() for n in sizes])


def _larger(trace: TraceShape) -> TraceShape:
    """The trace with each size at the next power of two.

    Of the extents of a region only that of the largest stride grows, so that rows stay apart.
    """
    made = {
        kind: call._replace(
            space=call.space._replace(end=tuple(map(_next_power, call.space.end))),
            arguments=tuple([_larger_argument(argument) for argument in _arguments(call)]),
        )
        for kind, call in zip(trace.kinds, trace.calls, strict=True)
    }
    return TraceShape(tuple(made[kind] for kind in trace.kinds), trace.clusters)


def _larger_argument(argument: _Part) -> ArgumentShape:
    if isinstance(argument, _Measured):
        return argument.region
    if isinstance(argument, _Limit):
        dtype, value = argument.scalar
        assert value is not None
        return ScalarShape(dtype, min(_next_power(value), dtype.range()[1]))
    if not isinstance(argument, RegionShape):
        return argument
    strides = [abs(stride) for stride in argument.strides]
    axis = strides.index(max(strides, default=0)) if strides else -1
    return argument._replace(
        shape=tuple(_next_power(n) if k == axis else n for k, n in enumerate(argument.shape))
    )


def _next_power(size: int) -> int:
    """The least power of two that is not less; sizes below 2 as they are."""
    return size if size < 2 else 1 << (size - 1).bit_length()
