"""Lowering: a workunit's Python function, for given argument types, becomes ir."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from types import FunctionType, MappingProxyType
from typing import Any

from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Accumulator, Declare, Param, Read, Sym, Workunit
from pyfuser.lower import calls, control, expressions, names, statements
from pyfuser.lower.accumulators import check_effect, check_order, check_use
from pyfuser.lower.annotation import Annotation
from pyfuser.lower.atomics import with_traits
from pyfuser.lower.context import Context, Record, Shared, Variable
from pyfuser.lower.convert import cast
from pyfuser.lower.free import root, unchanged, unwrapped
from pyfuser.lower.lockstep import in_lockstep
from pyfuser.lower.random import first_state
from pyfuser.lower.records import declared_types
from pyfuser.lower.returns import without_returns
from pyfuser.lower.signature import Signature, real_type, signature
from pyfuser.lower.source import unwrap
from pyfuser.lower.team import Team
from pyfuser.lower.types import BoundType, RandomPoolType, ScalarType, ViewType, scalar_dtype
from pyfuser.lower.unassigned import refuse_unassigned
from pyfuser.lower.views import whole
from pyfuser.support.records import dataclass

__all__ = [
    "BoundType",
    "Lowered",
    "ScalarType",
    "Signature",
    "ViewType",
    "free_values_unchanged",
    "lower",
    "scalar_dtype",
    "signature",
]

_HANDLERS = (calls, control, expressions, names, statements)  # they register what they lower


USUAL_TEAM = 128
"""Threads that a block of a GPU has for a smaller team, too: their ranges are mostly longer."""

LARGEST_BLOCK = 1024
"""Threads of a block, on all GPUs."""


@dataclass(frozen=True)
class Lowered:
    """A lowered workunit.

    names: the argument names, in the order of `workunit.params`.
    free: what the workunit took from outside, by dotted name, and classes: those of its objects
    (see `lower.free`).
    """

    workunit: Workunit
    names: tuple[str, ...]
    free: tuple[tuple[str, object], ...] = field(default=(), compare=False)
    classes: Mapping[str, type] = field(default_factory=dict, compare=False)


def lower(
    function: Callable[..., Any],
    pattern: str,
    rank: int,
    types: Mapping[str, BoundType],
    index_dtype: DType = DType.INT32,
    objects: Mapping[str, type] = MappingProxyType({}),
    team_size: int = 0,
) -> Lowered:
    """Lower a workunit.

    pattern: "for", "reduce" or "scan"; rank: the number of policy indices; types: what each
    further parameter is bound to. objects: classes of the objects that the workunit is a method of
    (by the name of its first parameter) or holds in its closure, of which `types` has the members,
    as `self.x`. Other names of `types` that are no parameters are variables of its closure, or, as
    `outer_name` has them, numbers from outside that are arguments.
    team_size: of a TeamPolicy, whose league is the (one) dimension, how many threads a team has.

    Raises WorkunitError for what the language does not have, and ArgumentError where `types` do
    not fit the parameters.
    """
    plain = unwrap(function)
    header = signature(plain)
    if header.names[:1] and header.names[0] in objects:
        header = header.of_method()
    _check_members(header, pattern, rank, team_size)
    check_order(header, pattern, rank)
    outer = _outer(plain, types, objects)
    bound = header.bind(pattern, rank, types, outer)
    annotated = {name: outer.get(name) or header.annotations.get(name) for name in bound}
    shared = Shared(index_dtype, active=[plain.__code__], real=real_type(bound, annotated))
    context = Context(plain, header.source, shared)
    for name, cls in objects.items():
        context.scopes[0][name] = context.receiver = Record(cls, root(name), {})
    params = tuple(_parameter(context, name, bound[name]) for name in bound)
    context.scopes.append({})  # in C++ arguments are fields, which a local may shadow
    team = _team(context, header, index_dtype, team_size) if team_size else None
    indices = (team.league_rank,) if team else _indices(context, header, rank, index_dtype)
    accumulators = _accumulators(context, header, pattern, rank)
    for node in header.source.node.body:
        context.statement(node)
    refuse_unassigned(context, header.source.node.body)
    state, pool = context.shared.random_state, context.shared.pool
    if state is not None and pool is not None:
        if team_size > 1:
            raise header.source.error(
                header.source.node, "random numbers need teams of one thread: use pk.AUTO"
            )
        context.out[:0] = first_state(state, pool, indices)
    body = without_returns(with_traits(tuple(context.out), context.shared.atomic))
    check_use(header, rank, accumulators, body)
    check_effect(header, pattern, body)
    if team is not None and team.size > 1:
        body = in_lockstep(body, team, {a.sym for a in accumulators})
    workunit = Workunit(
        plain.__name__,
        indices,
        params,
        body,
        accumulators,
        header.source.location(header.source.node),
        block_threads(team_size),
    )
    classes = {root(name): cls for name, cls in objects.items()}
    return Lowered(workunit, tuple(bound), tuple(context.shared.free.items()), classes)


def block_threads(team_size: int) -> int:
    """`Workunit.threads` for teams of a size: the next power of two, if that is large; else 0."""
    if team_size <= USUAL_TEAM:
        return 0
    return min(1 << (team_size - 1).bit_length(), LARGEST_BLOCK)


def _outer(
    function: FunctionType, types: Mapping[str, BoundType], objects: Mapping[str, type]
) -> dict[str, Annotation | None]:
    """The names of `types` that are members of objects or variables of the closure."""
    known = {name: declared_types(cls) for name, cls in objects.items()}
    result: dict[str, Annotation | None] = {}
    for name in types:
        owner, dot, member = name.partition(".")
        if dot:
            result[name] = known[owner].get(member)
        elif name in function.__code__.co_freevars or name.startswith("<"):
            result[name] = None
    return result


def outer_name(name: str) -> str:
    """How `types` has a number from outside: no parameter can be called so."""
    return f"<{name}>"


def free_values_unchanged(function: Callable[..., Any], lowered: Lowered) -> bool:
    """Whether all that a lowered workunit took from outside is still so."""
    free = lowered.free
    return not free or unchanged(unwrapped(function), free, lowered.classes)


def _indices(context: Context, header: Signature, rank: int, dtype: DType) -> tuple[Sym, ...]:
    """The policy's indices.

    One that the body assigns to, or of another type than `int`, is a local that starts as it.
    """
    names = header.names[:rank]
    indices = tuple(fresh(name, dtype) for name in names)
    changed = context.source.assigned_names.intersection(names)
    for name, index in zip(names, indices, strict=True):
        annotation = header.annotations.get(name)
        wanted = annotation.dtype if annotation else None
        if wanted in (None, DType.INT32):
            wanted = dtype
        assert wanted is not None
        if name in changed or wanted is not dtype:
            copy = fresh(name, wanted)
            context.out.append(Declare(copy, cast(Read(index), wanted)))
            context.scopes[-1][name] = Variable(copy, "local")
        else:
            context.scopes[-1][name] = Variable(index, "index")
    return indices


def _check_members(header: Signature, pattern: str, rank: int, team_size: int) -> None:
    """Refuse a workunit for teams without a TeamPolicy, and the other way round."""
    node = header.source.node
    if team_size and pattern == "scan":
        raise header.source.error(node, "parallel_scan over a TeamPolicy: Kokkos has none")
    for place, name in enumerate(header.names[:rank]):
        annotation = header.annotations.get(name)
        is_member = annotation is not None and annotation.kind == "team"
        if is_member and not team_size:
            raise header.source.error(
                node, f"{name!r} is a pk.TeamMember: the workunit needs a pk.TeamPolicy"
            )
        if team_size and place == 0 and annotation is not None and not is_member:
            raise header.source.error(
                node, f"with a TeamPolicy {name!r} is a team's member: annotate it pk.TeamMember"
            )


def _team(context: Context, header: Signature, dtype: DType, size: int) -> Team:
    team = Team(size, fresh("league_rank", dtype), fresh("team_rank", DType.INT32))
    context.scopes[-1][header.names[0]] = team
    return team


def _accumulators(
    context: Context, header: Signature, pattern: str, rank: int
) -> tuple[Accumulator, ...]:
    if pattern == "for":
        return ()
    name = header.names[rank]
    annotation = header.annotations.get(name)
    if annotation is not None and annotation.kind not in ("accumulator", "scalar"):
        place = next(a for a in header.source.node.args.args if a.arg == name)
        raise header.source.error(
            place, f"{name!r} is the accumulator: annotate it pk.Acc[pk.double]"
        )
    real = context.shared.real
    dtype = (annotation.with_real(real).dtype if annotation else None) or DType.FLOAT64
    accumulator = fresh(name, dtype)
    context.scopes[-1][name] = Variable(accumulator, "accumulator")
    if pattern == "reduce":
        return (Accumulator(accumulator),)
    last = fresh(header.names[rank + 1], DType.BOOL)
    context.scopes[-1][last.name] = Variable(last, "last pass")
    return (Accumulator(accumulator, last),)


def _parameter(context: Context, name: str, bound: BoundType) -> Param:
    owner, dot, member = name.partition(".")
    scope = context.scopes[0]
    if dot:
        record = scope[owner]
        assert isinstance(record, Record)
        scope, name = record.fields, member
    name = name.strip("<>")
    sym = fresh(name, bound.dtype)
    if isinstance(bound, ViewType):
        scope[name] = whole(sym, bound.rank)
        if bound.atomic:
            context.shared.atomic.add(sym)
        return Param(sym, bound.rank)
    scope[name] = Variable(sym, "scalar")
    if isinstance(bound, RandomPoolType) and context.shared.pool is None:
        context.shared.pool = sym
    return Param(sym)
