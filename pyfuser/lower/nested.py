"""Teams: nested patterns become loops over what a thread of a team does.

An iteration of the kernel is a team: its index is the league's rank, and one thread runs it.
A nested parallel_for, reduce or scan is a loop, `pk.single` a block, scratch memory an array of
the iteration. With several threads in a team, `lower.lockstep` runs them one after the other
between barriers.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import zip_longest

from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Body,
    Compare,
    Const,
    Declare,
    Expr,
    For,
    If,
    Read,
    Scratch,
    Stmt,
    Sym,
)
from pyfuser.lower import convert
from pyfuser.lower.annotation import Annotation, last_name, parse
from pyfuser.lower.context import Context, Variable, lowers
from pyfuser.lower.returns import without_returns
from pyfuser.lower.team import NestedFunction, Place, Shared, Team
from pyfuser.lower.views import Axis, ViewRef
from pyfuser.support.records import dataclass

_PATTERNS = {"parallel_for": "for", "parallel_reduce": "reduce", "parallel_scan": "scan"}
_RANGES = {"TeamThreadRange": True, "ThreadVectorRange": False, "TeamThreadMDRange": True}
_ONE = Const(1, DType.INT32)


@lowers(ast.FunctionDef)
def function(ctx: Context, node: ast.FunctionDef) -> None:
    """A function for nested patterns: it is lowered where one runs it."""
    if not any(isinstance(binding, Team) for scope in ctx.scopes for binding in scope.values()):
        raise ctx.error(
            node,
            "a nested function needs a team (pk.TeamPolicy) whose threads run it; one that is only "
            "called is defined outside, with @pk.function",
        )
    if node.decorator_list:
        raise ctx.error(node, "a nested function takes no decorator")
    ctx.check_new(node, node.name)
    ctx.scopes[-1][node.name] = NestedFunction(node, tuple(ctx.scopes))


def is_nested(ctx: Context, node: ast.Call, name: str) -> bool:
    """Whether a call is a nested pattern or a method of the team's member."""
    return name in _PATTERNS or name == "single" or _member(ctx, node) is not None


def call(ctx: Context, node: ast.Call, name: str) -> Expr | None:
    """Lower such a call; its value, if it has one."""
    if node.keywords:
        hint = "" if _member(ctx, node) else ", which starts no kernels: call it outside"
        raise ctx.error(node, f"{name} takes no keyword arguments in a workunit{hint}")
    team = _member(ctx, node)
    if team is not None:
        return _method(ctx, node, name, team)
    if name == "single":
        _single(ctx, node)
        return None
    return _pattern(ctx, node, _PATTERNS[name])


# --------------------------------------------------------------------------- the team's member


def _member(ctx: Context, node: ast.Call) -> Team | None:
    """The team whose member's method is called."""
    method = node.func
    owner = method.value if isinstance(method, ast.Attribute) else None
    binding = ctx.lookup(owner.id) if isinstance(owner, ast.Name) else None
    return binding if isinstance(binding, Team) else None


def _method(ctx: Context, node: ast.Call, name: str, team: Team) -> Expr | None:
    if name == "team_scratch":
        raise ctx.error(
            node,
            "team_scratch belongs into a declaration, as in "
            "s: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), n)",
        )
    if node.args:
        raise ctx.error(node, f"{name} takes no argument")
    if name == "league_rank":
        return Read(team.league_rank)
    if name == "team_size":
        return Const(team.size, DType.INT32)
    if name == "team_rank":
        return Read(team.rank) if team.size > 1 else Const(0, DType.INT32)
    if name == "team_barrier":
        if team.size > 1:
            mark = fresh("barrier", DType.INT32)
            ctx.out.append(team.barrier(mark, Place(ctx.source, node)))
        return None
    known = "league_rank, team_rank, team_size, team_barrier and team_scratch"
    hint = "; pass it as an argument of the call" if name == "league_size" else ""
    raise ctx.error(node.func, f"a team's member has no {name}: PyKokkos has {known}{hint}")


# --------------------------------------------------------------------------- patterns


@dataclass(frozen=True, slots=True)
class _Range:
    """A nested range: first and end of each axis, and whether the team's threads share it."""

    team: Team
    bounds: tuple[tuple[Expr, Expr], ...]
    shared: bool


def _pattern(ctx: Context, node: ast.Call, pattern: str) -> Expr | None:
    if len(node.args) == 3 and pattern != "for" and _is_zero(node.args[2]):
        pass  # the initial value, which Kokkos ignores
    elif len(node.args) != 2:
        raise ctx.error(
            node, f"a nested parallel_{pattern} takes a range and a function, and starts at 0"
        )
    extent = _range(ctx, node.args[0])
    nested = _function(ctx, node.args[1])
    rank = len(extent.bounds)
    names, annotations = _parameters(ctx, nested, pattern, rank)
    indices = [fresh(name, ctx.shared.index_dtype) for name in names[:rank]]
    scope = {name: Variable(s, "index") for name, s in zip(names[:rank], indices, strict=True)}
    total = None
    before: tuple[Stmt, ...] = ()
    if pattern != "for":
        total = _accumulator(ctx, nested, names[rank], annotations[rank])
        # A scan reads its sum, so the order of the additions matters: it is a local like others.
        kind = "accumulator" if pattern == "reduce" else "local"
        scope[names[rank]] = Variable(total, kind)
    if pattern == "scan":
        last = fresh(names[rank + 1], DType.BOOL)
        before = (Declare(last, Const(True, DType.BOOL)),)
        scope[names[rank + 1]] = Variable(last, "last pass")
    body = (*before, *_body(ctx, node, nested, scope, parallel=True))
    ctx.out.append(_loops(indices, extent.bounds, body, shared=pattern != "scan"))
    if extent.shared and extent.team.size > 1:
        extent.team.loops[indices[0]] = Shared(Place(ctx.source, node), total)
    return None if total is None else Read(total)


def _loops(
    indices: Sequence[Sym], bounds: Sequence[tuple[Expr, Expr]], body: Body, shared: bool
) -> For:
    for sym, (start, stop) in reversed(list(zip(indices, bounds, strict=True))):
        body = (For(sym, convert.cast(start, sym.dtype), stop, _ONE, body, shared),)
    (loop,) = body
    assert isinstance(loop, For)
    return loop


def _range(ctx: Context, node: ast.expr) -> _Range:
    name = last_name(node.func) if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or name not in _RANGES or node.keywords or not node.args:
        raise ctx.error(
            node,
            "nested parallelism needs a range written here: pk.TeamThreadRange(team_member, n), "
            "pk.ThreadVectorRange(team_member, n) or pk.TeamThreadMDRange(team_member, n, m)",
        )
    team = _team(ctx, node.args[0])
    values = []
    for argument, value in zip(node.args[1:], ctx.ordered(node.args[1:]), strict=True):
        if not value.dtype.is_integer:
            raise ctx.error(argument, f"{name} needs integers, not {value.dtype.value}")
        values.append(_fixed(ctx, value))
    zero: Expr = Const(0, DType.INT32)
    if "MD" in name:
        if len(values) < 2:
            raise ctx.error(node, f"{name} takes the team's member and two or more extents")
        return _Range(team, tuple((zero, value) for value in values), _RANGES[name])
    if not 1 <= len(values) <= 2:
        raise ctx.error(node, f"{name} takes the team's member and a count (or begin and end)")
    start = values[0] if len(values) == 2 else zero
    return _Range(team, ((start, values[-1]),), _RANGES[name])


def _fixed(ctx: Context, value: Expr) -> Expr:
    """The value in a form that the pattern cannot change: its range is fixed when it starts."""
    if isinstance(value, Read):
        for scope in ctx.scopes:
            for name, binding in scope.items():
                is_it = isinstance(binding, Variable) and binding.sym == value.sym
                if is_it and name not in ctx.source.assigned_names:
                    return value
    return ctx.stable(value, "count")


def _team(ctx: Context, node: ast.expr) -> Team:
    binding = ctx.lookup(node.id) if isinstance(node, ast.Name) else None
    if not isinstance(binding, Team):
        raise ctx.error(
            node,
            f"{ast.unparse(node)!r} is no team's member: nested parallelism needs a TeamPolicy, "
            "whose workunits take a pk.TeamMember first",
        )
    return binding


def _function(ctx: Context, node: ast.expr) -> NestedFunction:
    binding = ctx.lookup(node.id) if isinstance(node, ast.Name) else None
    if not isinstance(binding, NestedFunction):
        raise ctx.error(
            node,
            "a nested pattern runs a function that is defined in the workunit before it, "
            "as in `def inner(i: int): ...`",
        )
    return binding


def _parameters(
    ctx: Context, nested: NestedFunction, pattern: str, rank: int
) -> tuple[list[str], list[Annotation | None]]:
    """The names and annotations of a nested function's parameters, as many as it must have."""
    arguments = nested.node.args
    nodes = [*arguments.posonlyargs, *arguments.args]
    count = rank + {"single": 0, "for": 0, "reduce": 1, "scan": 2}[pattern]
    if len(nodes) != count or arguments.vararg or arguments.kwonlyargs or arguments.kwarg:
        extra = {"reduce": " and an accumulator", "scan": ", an accumulator and a bool"}
        wanted = f"{rank} ind{'ex' if rank == 1 else 'ices'}{extra.get(pattern, '')}"
        raise ctx.error(
            nested.node,
            f"{nested.node.name!r} must take {wanted if count else 'no parameters'}",
        )
    annotations: list[Annotation | None] = []
    for place, node in enumerate(nodes):
        found = None if node.annotation is None else parse(node.annotation)
        dtype = None if found is None else found.dtype
        if place < rank and node.annotation is not None and dtype is not DType.INT32:
            raise ctx.error(node, f"the index {node.arg!r} must be annotated int")
        annotations.append(found)
    return [node.arg for node in nodes], annotations


def _accumulator(
    ctx: Context, nested: NestedFunction, name: str, annotation: Annotation | None
) -> Sym:
    """The declared sum of a nested reduction or scan."""
    if annotation is not None and annotation.kind != "accumulator":
        raise ctx.error(nested.node, f"{name!r} is the accumulator: annotate it pk.Acc[pk.double]")
    dtype = (annotation.dtype if annotation else None) or DType.FLOAT64
    zero = 0j if dtype.is_complex else 0.0 if dtype.is_float else 0
    value = False if dtype is DType.BOOL else zero
    return ctx.temporary(name, dtype, Const(value, dtype))


def _body(
    ctx: Context,
    node: ast.Call,
    nested: NestedFunction,
    scope: dict[str, Variable],
    parallel: bool,
) -> Body:
    """A nested function's statements, run here; it sees the names around its definition."""
    with ctx.nested(node, nested, scope, parallel), ctx.hoisted() as out:
        for statement in nested.node.body:
            ctx.statement(statement)
    return without_returns(tuple(out))


def _single(ctx: Context, node: ast.Call) -> None:
    """`pk.single(pk.PerTeam(team), f)`: by the first thread; PerThread: by each, once."""
    policy = node.args[0] if len(node.args) == 2 else None
    name = last_name(policy.func) if isinstance(policy, ast.Call) else None
    if not isinstance(policy, ast.Call) or name not in ("PerTeam", "PerThread"):
        raise ctx.error(node, "single takes pk.PerTeam(team) or pk.PerThread(team) and a function")
    if len(policy.args) != 1 or policy.keywords:
        raise ctx.error(policy, f"{name} takes the team's member")
    team = _team(ctx, policy.args[0])
    nested = _function(ctx, node.args[1])
    _parameters(ctx, nested, "single", 0)
    body = _body(ctx, node, nested, {}, parallel=False)
    if name == "PerTeam" and team.size > 1:
        first = Compare("==", Read(team.rank), Const(0, DType.INT32))
        body = (If(first, body),)
    ctx.out.extend(body)


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


# --------------------------------------------------------------------------- scratch memory


def scratch(ctx: Context, node: ast.AnnAssign, name: str, annotation: Annotation) -> None:
    """`s: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), n)`."""
    made = node.value
    maker = made.func if isinstance(made, ast.Call) else None
    if isinstance(maker, ast.Subscript):
        maker = maker.value
    wanted = f"ScratchView{annotation.rank}D"
    if not isinstance(made, ast.Call) or maker is None or last_name(maker) != wanted:
        raise ctx.error(node, f"scratch memory is made by pk.{wanted}(team.team_scratch(0), ...)")
    if len(made.args) not in (1, 1 + annotation.rank) or made.keywords:
        raise ctx.error(made, f"{wanted} takes a team's scratch and {annotation.rank} extent(s)")
    team = _scratch_of(ctx, made.args[0])
    if ctx.captured:
        raise ctx.error(
            node, "scratch memory is declared in the workunit itself, not in a nested function"
        )
    assert annotation.dtype is not None
    extents = ctx.ordered(made.args[1:])
    for argument, extent in zip(made.args[1:], extents, strict=True):
        if not extent.dtype.is_integer:
            raise ctx.error(argument, f"an extent is an integer, not {extent.dtype.value}")
    extents = extents or [Const(0, DType.INT32)] * annotation.rank  # Kokkos' default
    sym = fresh(name, annotation.dtype)
    team.scratch[sym] = Place(ctx.source, node)
    extents = [
        extent if _is_kept(ctx, argument) else ctx.stable(extent, f"{name}_extent")
        for argument, extent in zip_longest(made.args[1:], extents)
    ]
    ctx.out.append(Scratch(sym, tuple(extents)))
    lengths = [convert.cast(extent, DType.INT64) for extent in extents]
    ctx.scopes[-1][name] = ViewRef(sym, tuple(Axis(length=length) for length in lengths))


def _is_kept(ctx: Context, node: ast.expr | None) -> bool:
    """Whether an extent is a local that keeps its value as long as the scratch memory is known."""
    return isinstance(node, ast.Name) and node.id not in ctx.source.assigned_names


def _scratch_of(ctx: Context, node: ast.expr) -> Team:
    """The team of `team_member.team_scratch(level)`."""
    team = _member(ctx, node) if isinstance(node, ast.Call) else None
    if team is None or not isinstance(node, ast.Call) or last_name(node.func) != "team_scratch":
        raise ctx.error(node, "the first argument of a scratch view is team_member.team_scratch(0)")
    level = node.args[0] if len(node.args) == 1 else None
    if not isinstance(level, ast.Constant) or level.value not in (0, 1):
        raise ctx.error(node, "team_scratch takes the level, 0 or 1")
    return team
