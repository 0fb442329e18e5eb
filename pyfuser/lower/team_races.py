"""Elements that several threads of a team change at the same time, for sure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from pyfuser.ir.nodes import AtomicFetch, Body, DeclareArray, Expr, For, If, Sym, Update, While
from pyfuser.ir.visit import (
    assigned,
    bodies,
    child_expressions,
    declared,
    expressions,
    statements,
    sym_of,
)
from pyfuser.lower.team import Team
from pyfuser.support.errors import WorkunitWarning, warn


def warn_of_lost_changes(body: Body, team: Team, own: Set[Sym]) -> None:
    """Warn of `v[j] += x` that all threads of a team do to one element.

    own: locals that may differ between the threads of a team.
    """
    lists = {s.sym for s in statements(body) if isinstance(s, DeclareArray)}
    for stmt, loop in _by_several(body, team, own, None):
        if stmt.target in lists or stmt.location is None:
            continue
        who = f"all {team.size} threads of a team" if loop is None else "threads of a team"
        way = (
            "let one of them do it, in pk.single(pk.PerTeam(team), ...)"
            if loop is None
            else "add up with a nested parallel_reduce, or use pk.atomic_add"
        )
        place = stmt.location
        message = (
            f"workunit {place.function!r}: {who} change one element of {stmt.target.name!r} at the "
            f"same time, so that changes get lost: {way}"
        )
        warn(message, place.file, place.line, WorkunitWarning)


def _by_several(
    body: Body, team: Team, own: Set[Sym], loop: For | None
) -> Iterator[tuple[Update, For | None]]:
    """The changes of one element that all threads make, or, in a loop that they share, its trips.

    What stands where only some get (`if rank == 0`) is left out.
    """
    for stmt in body:
        if isinstance(stmt, Update):
            if stmt.indices and not stmt.atomic and _is_same(stmt.indices, own):
                yield stmt, loop
        elif isinstance(stmt, For) and stmt.sym in team.loops:
            apart = own | {stmt.sym} | set(assigned(stmt.body)) | set(declared(stmt.body))
            yield from _by_several(stmt.body, team, apart, stmt)
        elif isinstance(stmt, (If, For, While)) and _is_same(child_expressions(stmt), own):
            for inner in bodies(stmt):
                yield from _by_several(inner, team, own, loop)


def _is_same(values: Iterable[Expr], own: Set[Sym]) -> bool:
    """Whether expressions have one value in all threads, or trips."""
    return not any(
        isinstance(e, AtomicFetch) or sym_of(e) in own
        for value in values
        for e in expressions(value)
    )
