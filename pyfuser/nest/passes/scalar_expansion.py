"""The parts of a body that the iterations of a strip take in turn, and what passes between them.

Scalar expansion: see `passes.strip_mine`, which cuts a body into parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pyfuser.ir.nodes import Declare, DeclareArray, Expr, For, Scratch, Stmt, Sym
from pyfuser.ir.visit import declared
from pyfuser.nest.segments import Segment, is_zero, mentioned, needed
from pyfuser.support.records import dataclass

MOST_KEPT = 8192
"""Bytes of the arrays that an iteration keeps between parts."""


@dataclass(frozen=True, slots=True)
class Sums:
    """What a loop adds to, in an order of its own if it is long (see `passes.row_sums`).

    totals: for each accumulator or local what the trips of a long loop add up to. `added` adds
    that, and `plain` has the loop for its short form.
    """

    totals: tuple[tuple[Sym, Sym], ...]
    added: Segment
    plain: Segment


@dataclass(frozen=True, slots=True)
class Trips:
    """A loop that the iterations of a strip run together; its body is in `parts`."""

    loop: For
    parts: tuple[Part, ...]
    sums: Sums | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """A side of an If with such loops in it.

    test: a condition that is the same for all iterations. Else a part before it has found which
    iterations take this side, and the segments in `parts` have that as their guard; `plain` is the
    side as it was written, for strips of which few iterations take it.
    """

    test: Expr | None
    taken: Sym | None
    parts: tuple[Part, ...]
    plain: Segment | None


Part = Segment | Trips | Branch

_ARRAYS = (DeclareArray, Scratch)
_LOCALS = (Declare, *_ARRAYS)


def segments_of(parts: Sequence[Part], plain: bool = True) -> Iterator[Segment]:
    """The parts that are no loops over trips, in order; plain: also those of the plain forms."""
    for part in parts:
        if isinstance(part, Segment):
            yield part
            continue
        yield from segments_of(part.parts, plain)
        if isinstance(part, Branch):
            if plain and part.plain is not None:
                yield part.plain
        elif part.sums is not None:
            yield part.sums.added
            if plain:
                yield part.sums.plain


def has_trips(parts: Sequence[Part]) -> bool:
    """Whether there is a loop that the iterations of a strip run together."""
    return any(
        isinstance(part, Trips) or (isinstance(part, Branch) and has_trips(part.parts))
        for part in parts
    )


def unfit(parts: Sequence[Part]) -> set[Sym]:
    """The local arrays that parts pass on and of which a strip cannot have one for each iteration.

    That is scratch memory, and arrays that do not begin with zeros, or are large together.
    """
    kept = _kept(parts)
    arrays = [s for part in segments_of(parts) for s in part.body if isinstance(s, _ARRAYS)]
    found: set[Sym] = set()
    size = 0
    for stmt in arrays:
        if stmt.sym not in kept:
            continue
        if isinstance(stmt, Scratch) or not all(map(is_zero, stmt.values)):
            found.add(stmt.sym)
            continue
        size += len(stmt.values) * stmt.sym.dtype.size
        if size > MOST_KEPT:
            found.add(stmt.sym)
    return found


def expanded(parts: Sequence[Part], repeated: Mapping[Sym, Declare]) -> tuple[Part, ...]:
    """The parts with the locals that pass between them, each of which gets an array.

    repeated: declarations that each part makes again.
    """
    return _with_kept(parts, _kept(parts), repeated)


def _kept(parts: Sequence[Part]) -> set[Sym]:
    """The locals that are used in other parts than that which declares them."""
    home: dict[Sym, int] = {}
    used: dict[Sym, set[int]] = {}
    for n, segment in enumerate(segments_of(parts)):
        for stmt in segment.body:
            if isinstance(stmt, _LOCALS):
                home[stmt.sym] = n
        inside = _nested(segment)
        for sym in {segment.guard}.union(*mentioned(segment.body)) - inside:
            if sym is not None:
                used.setdefault(sym, set()).add(n)
    return {sym for sym, n in home.items() if used[sym] != {n}}


def _nested(segment: Segment) -> set[Sym]:
    """What a segment declares inside of its statements, maybe as another part does itself."""
    own = {stmt.sym for stmt in segment.body if isinstance(stmt, _LOCALS)}
    return set(declared(segment.body)) - own


def _with_kept(
    parts: Sequence[Part], kept: set[Sym], repeated: Mapping[Sym, Declare]
) -> tuple[Part, ...]:
    result: list[Part] = []
    for part in parts:
        if isinstance(part, Segment):
            result.append(_arrived(part, kept, repeated))
        elif isinstance(part, Branch):
            inside = _with_kept(part.parts, kept, repeated)
            plain = None if part.plain is None else _arrived(part.plain, kept, repeated)
            result.append(replace(part, parts=inside, plain=plain))
        else:
            result.append(_trips(part, kept, repeated))
    return tuple(result)


def _trips(part: Trips, kept: set[Sym], repeated: Mapping[Sym, Declare]) -> Trips:
    sums, inside = part.sums, kept
    if sums is not None:
        inside = kept - {sym for sym, _ in sums.totals}  # each trip's own
        added, plain = (_arrived(s, kept, repeated) for s in (sums.added, sums.plain))
        sums = replace(sums, added=added, plain=plain)
    return replace(part, parts=_with_kept(part.parts, inside, repeated), sums=sums)


def _arrived(part: Segment, kept: set[Sym], repeated: Mapping[Sym, Declare]) -> Segment:
    nested = _nested(part)
    kept = kept - nested
    reads, writes = mentioned(part.body)
    own = {stmt.sym for stmt in part.body if isinstance(stmt, Declare)}
    arriving = sorted(((reads | writes) & kept) - own, key=lambda sym: sym.uid)
    leaving = sorted(writes & kept, key=lambda sym: sym.uid)
    again = {sym: stmt for sym, stmt in repeated.items() if sym not in nested}
    body: tuple[Stmt, ...] = (*needed(part.body, again), *part.body)
    return replace(part, body=body, arriving=tuple(arriving), leaving=tuple(leaving))


def kept_between(parts: Sequence[Part]) -> tuple[Sym, ...]:
    """The locals that become arrays."""
    found = (
        sym
        for part in segments_of(parts)
        for sym in (*part.arriving, *part.leaving, *((part.guard,) * (part.guard is not None)))
    )
    return tuple(dict.fromkeys(sym for sym in found if sym is not None))


def sums_of(parts: Sequence[Part]) -> Iterator[Sums]:
    """The sums of loops in an order of their own."""
    return (part.sums for part in parts if isinstance(part, Trips) and part.sums is not None)


def shared(parts: Sequence[Part], apart: frozenset[Sym]) -> dict[Sym, Sym]:
    """For each kept scalar, `apart` from others, the one whose array it has, which is dead by then.

    A local lives from the outermost part that first uses it to that which last does. Where one
    part is no loop, what it takes from an array is read before what it leaves there is written.
    """
    first: dict[Sym, int] = {}
    last: dict[Sym, int] = {}
    for n, part in enumerate(parts):
        for sym in frozenset(kept_between((part,))) - apart:
            first.setdefault(sym, n)
            last[sym] = n
    owners: list[tuple[Sym, Sym]] = []  # the first local of an array, and the latest
    result: dict[Sym, Sym] = {}
    for sym in sorted(first, key=lambda sym: (first[sym], sym.uid)):
        for place, (owner, latest) in enumerate(owners):
            if owner.dtype is sym.dtype and _may_follow(parts, sym, latest, first, last):
                owners[place], result[sym] = (owner, sym), owner
                break
        else:
            owners.append((sym, sym))
            result[sym] = sym
    return result


# law: True
def _may_follow(
    parts: Sequence[Part], sym: Sym, before: Sym, first: dict[Sym, int], last: dict[Sym, int]
) -> bool:
    if last[before] != first[sym]:
        return last[before] < first[sym]
    part = parts[first[sym]]
    return isinstance(part, Segment) and before not in part.leaving
