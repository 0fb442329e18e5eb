"""Calls over the elements of a table, by one index: they run over its rows and columns.

Many programs write `x[i // m][i % m]` over [0, n * m). With one index such a call shares no loop
with those over (n, m), its stencils are steps of single elements apart, and each iteration divides.
Over (n, m) it is a call like any other: the quotient is the first index, the remainder the second
(see `plan.rewrites.coarse_body.boxed`).

The law. Iterations of a parallel_for are unordered, so they may be named by two numbers as well as
by one. The bits of a sum depend on how its space is cut into parts: it keeps those of one axis
(`Accumulator.flat`).

The cost. It pays where some view is used by row and column, or guards ask for both: a quotient and
a remainder cost more than a pass over memory. Calls of the same range that do something else with
their index, on the same memory, follow if all of them can: `y[i]` is `y[row * m + column]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyfuser.analysis.structural import structural_scalars
from pyfuser.ir.accesses import accesses
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Binary,
    Body,
    Compare,
    Declare,
    For,
    Load,
    Read,
    Sym,
    Workunit,
)
from pyfuser.ir.visit import (
    all_expressions,
    assigned,
    child_expressions,
    expressions,
    reads,
    statements,
)
from pyfuser.plan.legality import mergeable
from pyfuser.plan.plan import Note, Told
from pyfuser.plan.rewrite import Change, Changes, Option, Rewrite
from pyfuser.plan.rewrites.coarse_body import Splitter, boxed
from pyfuser.support.caches import cached
from pyfuser.support.records import dataclass
from pyfuser.trace.call import GPU_SPACES, Space
from pyfuser.trace.shape import CallShape, ScalarShape, TraceShape, known_scalars

SHORTEST = 8
"""Columns below which a sum goes by rows only beside others that do: a row starts a loop."""

NARROWEST = 32
"""Columns that a GPU wants at least: its blocks are boxes, whose rows are threads of a warp."""


def over_rows_and_columns(trace: TraceShape, best: Option | None = None) -> Changes:
    """The calls that get two indices: wherever that pays."""
    alone = {place: made for place, call in enumerate(trace.calls) if (made := _alone(call))}
    every = alone | _followers(trace, alone) if alone else {}
    return {place: Change(call, Delinearized(place)) for place, call in every.items()}


# law
def _followers(trace: TraceShape, changed: Mapping[int, CallShape]) -> dict[int, CallShape]:
    """Calls that use what others, which had their space, now use by rows and columns.

    None of a space of which some cannot follow: they would share a loop no more.
    """
    found: dict[int, CallShape] = {}
    lengths: dict[tuple[Space, int], int] = {}  # of rows, by space and cluster
    new = dict(changed)
    while new:
        for place, made in new.items():
            space = trace.calls[place].space
            lengths |= {(space, cluster): made.space.end[1] for cluster in made.clusters}
        new = {}
        for place, call in enumerate(trace.calls):
            near = {lengths.get((call.space, cluster)) for cluster in call.clusters} - {None}
            columns = near.pop() if len(near) == 1 else None
            if columns and place not in changed and place not in found:
                made_too = _beside_others(call, columns)
                new |= {place: made_too} if made_too else {}
        found |= new
    used = {
        (trace.calls[n].space, cluster) for n, made in found.items() for cluster in made.clusters
    }
    torn = {
        call.space
        for place, call in enumerate(trace.calls)
        if place not in changed and place not in found
        if any((call.space, cluster) in used for cluster in call.clusters)
    }
    return {place: made for place, made in found.items() if trace.calls[place].space not in torn}


# --------------------------------------------------------------------------- one call


@cached(1024)
# law: not None
def _alone(call: CallShape) -> CallShape | None:
    """The call over rows and columns, if that pays whatever is beside it."""
    columns = row_length(call) if len(call.space.begin) == 1 else None
    if columns is None or call.space.end[0] % columns:
        return None
    if call.pattern == "reduce" and columns < SHORTEST:
        return None
    if call.space.execution in GPU_SPACES and columns < NARROWEST:
        return None
    made = _beside_others(call, columns)
    if made is None or not by_cell(made.workunit, call.workunit.indices[0]):
        return None
    return made


@cached(1024)
# law: not None
def _beside_others(call: CallShape, columns: int) -> CallShape | None:
    """The call over rows and columns, if it loses nothing by that."""
    if not _fits(call):
        return None
    made = in_box(call, columns)
    return made if _is_linear(made.workunit, call.workunit.indices[0]) else None


# law: True
def _fits(call: CallShape) -> bool:
    """Whether a call has one index that may be two."""
    workunit, space = call.workunit, call.space
    return (
        space.begin == (0,)  # and one index
        and workunit.indices[0].dtype is DType.INT32
        and workunit.indices[0] not in assigned(workunit.body)
        and mergeable(call)
    )


# law: not None
def row_length(call: CallShape) -> int | None:
    """The number by which a call divides its index, if it is one number only, and known."""
    workunit = call.workunit
    (index,) = workunit.indices
    extent = call.space.end[0]
    splitter = Splitter(index, index, index, 0, extent, _known(call))
    lengths = {
        splitter.value(e.right)
        for e in all_expressions(workunit.body)
        if isinstance(e, Binary) and e.op in "/%" and splitter.is_index(e.left)
    }
    length = lengths.pop() if len(lengths) == 1 else None
    return length if length is not None and 1 < length < extent else None


def _known(call: CallShape) -> dict[Sym, int]:
    """The scalars of a call that have one value."""
    changing = assigned(call.workunit.body)
    scalars = known_scalars(call.workunit, call.arguments)
    return {sym: value for sym, value in scalars.items() if sym not in changing}


@cached(1024)
# law
def in_box(call: CallShape, columns: int) -> CallShape:
    """The call over rows of so many columns. Of scalars that only divided no value is kept."""
    (extent,) = call.space.end
    workunit = boxed(call.workunit, columns, extent, _known(call))
    matters = structural_scalars(workunit)
    arguments = [
        ScalarShape(shape.dtype, None)
        if isinstance(shape, ScalarShape) and place not in matters
        else shape
        for place, shape in enumerate(call.arguments)
    ]
    space = Space((0, 0), (extent // columns, columns), call.space.execution)
    return call._replace(space=space, workunit=workunit, arguments=tuple(arguments))


def _is_linear(workunit: Workunit, index: Sym) -> bool:
    """Whether an index is only added, multiplied by something and compared."""
    return not any(
        isinstance(e, Binary) and e.op not in "+-*" and Read(index) in expressions(e)
        for e in all_expressions(workunit.body)
    )


# --------------------------------------------------------------------------- does it pay?


def by_cell(workunit: Workunit, whole: Sym) -> bool:
    """Whether a view has subscripts for row and column, or guards ask for both."""
    body = workunit.body
    row, column = (_following(body, sym, whole) for sym in workunit.indices)
    rest = column | _following(body, whole, whole)  # `i - (i // m) * m` is a column
    views = {param.sym for param in workunit.params if param.rank > 1}
    for view, subscripts, *_ in accesses(body):
        if view not in views:
            continue
        by_row = {n for n, e in enumerate(subscripts) if row & reads(e)}
        by_column = {n for n, e in enumerate(subscripts) if rest & reads(e)}
        if by_row and by_column and len(by_row | by_column) > 1:
            return True
    asked = [
        reads(e)
        for e in all_expressions(body)
        if isinstance(e, Compare) and not any(isinstance(part, Load) for part in expressions(e))
    ]
    return any(row & syms for syms in asked) and any(column & syms for syms in asked)


def _following(body: Body, first: Sym, whole: Sym) -> set[Sym]:
    """A Sym, and the locals that are computed from it; `whole`, which is of all, aside."""
    found, size = {first}, 0
    while size != len(found):
        size = len(found)
        for stmt in statements(body):
            if (
                isinstance(stmt, (Declare, For))
                and stmt.sym != whole
                and any(reads(e) & found for e in child_expressions(stmt))
            ):
                found.add(stmt.sym)
    return found


# --------------------------------------------------------------------------- the rewrite


@dataclass(frozen=True, slots=True)
class Delinearized(Note):
    """A call over one index that is planned over rows and columns."""

    alone = True

    @classmethod
    def lines(cls, notes: Sequence[Note], told: Told) -> Iterator[str]:
        yield f"the one index runs as rows and columns: {told.names(notes)}"


REWRITE = Rewrite(
    "delinearize",
    "i // m and i % m become two indices",
    candidates=over_rows_and_columns,
    gain=None,
)
