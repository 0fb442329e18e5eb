"""Lowering: a workunit's Python function, for given argument types, becomes ir."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Accumulator, Declare, Param, Read, Sym, Workunit
from pyfuser.lower import calls, expressions, names, statements  # they register what they lower
from pyfuser.lower.context import Context, Shared, Variable
from pyfuser.lower.free import unchanged, unwrapped
from pyfuser.lower.lockstep import in_lockstep
from pyfuser.lower.returns import without_returns
from pyfuser.lower.signature import Signature, signature
from pyfuser.lower.source import unwrap
from pyfuser.lower.team import Team
from pyfuser.lower.types import BoundType, ScalarType, ViewType, scalar_dtype
from pyfuser.lower.views import whole

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

_HANDLERS = (calls, expressions, names, statements)


@dataclass(frozen=True)
class Lowered:
    """A lowered workunit.

    names: the argument names, in the order of `workunit.params`.
    free: what the workunit took from outside, by dotted name (see `lower.free`).
    """

    workunit: Workunit
    names: tuple[str, ...]
    free: tuple[tuple[str, object], ...] = field(default=(), compare=False)


def lower(
    function: Callable[..., Any],
    pattern: str,
    rank: int,
    types: Mapping[str, BoundType],
    index_dtype: DType = DType.INT32,
    team_size: int = 0,
) -> Lowered:
    """Lower a workunit.

    pattern: "for", "reduce" or "scan"; rank: the number of policy indices; types: what each
    further parameter is bound to; team_size: of a TeamPolicy, whose league is the (one) dimension,
    how many threads a team has, else 0.

    Raises WorkunitError for what the language does not have, and ArgumentError where `types` do
    not fit the parameters.
    """
    plain = unwrap(function)
    header = signature(plain)
    bound = header.bind(pattern, rank, types)
    context = Context(plain, header.source, Shared(index_dtype, active=[plain.__code__]))
    params = tuple(_parameter(context, name, bound[name]) for name in bound)
    context.scopes.append({})  # in C++ arguments are fields, which a local may shadow
    _check_members(header, rank, team_size)
    team = None
    if team_size:
        team = _team(context, header.names[0], index_dtype, team_size)
        indices: tuple[Sym, ...] = (team.league_rank,)
    else:
        indices = _indices(context, header.names[:rank], index_dtype)
    accumulators = _accumulators(context, header, pattern, rank)
    for node in header.source.node.body:
        context.statement(node)
    body = without_returns(tuple(context.out))
    if team is not None and team.size > 1:
        body = in_lockstep(body, team, {a.sym for a in accumulators})
    workunit = Workunit(
        plain.__name__,
        indices,
        params,
        body,
        accumulators,
        header.source.location(header.source.node),
    )
    return Lowered(workunit, tuple(bound), tuple(context.shared.free.items()))


def free_values_unchanged(function: Callable[..., Any], lowered: Lowered) -> bool:
    """Whether all that a lowered workunit took from outside is still so."""
    free = lowered.free
    return not free or unchanged(unwrapped(function), free)


def _indices(context: Context, names: tuple[str, ...], dtype: DType) -> tuple[Sym, ...]:
    """The policy's indices. One that the body assigns to is a local that starts as the index."""
    indices = tuple(fresh(name, dtype) for name in names)
    changed = context.source.assigned_names.intersection(names)
    for name, index in zip(names, indices, strict=True):
        if name in changed:
            copy = fresh(name, dtype)
            context.out.append(Declare(copy, Read(index)))
            context.scopes[-1][name] = Variable(copy, "local")
        else:
            context.scopes[-1][name] = Variable(index, "index")
    return indices


def _check_members(header: Signature, rank: int, team_size: int) -> None:
    """Refuse a workunit for teams without a TeamPolicy, and the other way round."""
    node = header.source.node
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


def _team(context: Context, name: str, dtype: DType, size: int) -> Team:
    team = Team(size, fresh("league_rank", dtype), fresh("team_rank", DType.INT32))
    context.scopes[-1][name] = team
    return team


def _accumulators(
    context: Context, header: Signature, pattern: str, rank: int
) -> tuple[Accumulator, ...]:
    if pattern == "for":
        return ()
    name = header.names[rank]
    annotation = header.annotations.get(name)
    if annotation is not None and annotation.kind not in ("accumulator", "scalar"):
        raise header.source.error(
            header.source.node, f"{name!r} is the accumulator: annotate it pk.Acc[pk.double]"
        )
    dtype = (annotation.dtype if annotation else None) or DType.FLOAT64
    accumulator = fresh(name, dtype)
    context.scopes[-1][name] = Variable(accumulator, "accumulator")
    if pattern == "reduce":
        return (Accumulator(accumulator),)
    last = fresh(header.names[rank + 1], DType.BOOL)
    context.scopes[-1][last.name] = Variable(last, "last pass")
    return (Accumulator(accumulator, last),)


def _parameter(context: Context, name: str, bound: BoundType) -> Param:
    sym = fresh(name, bound.dtype)
    if isinstance(bound, ViewType):
        context.scopes[0][name] = whole(sym, bound.rank)
        return Param(sym, bound.rank)
    context.scopes[0][name] = Variable(sym, "scalar")
    return Param(sym)
