"""Many sums of one loop, a few at a time.

    if label[i] == k: acc += x[i]    (for k in 0 ... 7)

The terms of so many accumulators need more vector registers than there are: every one goes through
memory, and so does its running sum, once for each block of terms. Here a run of iterations computes
what comes before the sums, and keeps the locals that they read; then loops over the run take a
group of sums each, with running sums that stay in registers. That is loop distribution (see
`passes.distribute`), whose rules it follows. Each accumulator gets the terms that it got before, in
the same lanes and order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyfuser.ir import nodes
from pyfuser.ir.effects import effects_of
from pyfuser.ir.nodes import Binary, Body, Declare, Expr, Read, Stmt, Sym
from pyfuser.ir.visit import (
    all_expressions,
    contains,
    expressions,
    map_body,
    statements,
    substitute_syms,
)
from pyfuser.nest.build import iteration, iterations, local
from pyfuser.nest.cost.fp_contraction import may_contract
from pyfuser.nest.cost.vectorisable import is_covered, local_arrays, vectorises
from pyfuser.nest.cost.work import cheap_declarations
from pyfuser.nest.kept import Kept
from pyfuser.nest.nodes import LANES, RUN, Function, Kind, Nest, RunningSums, number
from pyfuser.nest.passes.blocks import Blocks
from pyfuser.nest.passes.row_sums import order_sums
from pyfuser.nest.segments import MAX_STATEMENTS, Segment, dependences, expanded, expansion
from pyfuser.nest.spec import UNIT
from pyfuser.nest.terms import Terms
from pyfuser.support.passes import left_out
from pyfuser.support.records import dataclass
from pyfuser.tuning.target import Target

SUM_BYTES = 256
"""Of the running sums of an accumulator."""


@dataclass(frozen=True, slots=True)
class Groups:
    """How a run of iterations, which stands for so many full blocks, computes its sums.

    run: iterations, at most. function: of the first iteration of a run, how many there are (a
    multiple of `lanes`), and the indices of the axes but the last. block: iterations of a block.
    """

    run: int
    function: Function
    block: int
    lanes: int = LANES


def in_registers(target: Target) -> int:
    """How many accumulators have their running sums in half of the vector registers."""
    registers = 32 if target.vector_bytes == 64 else 16
    return registers * target.vector_bytes // (2 * SUM_BYTES)


def lanes_of(nest: Nest, sums: Sequence[Sym]) -> int:
    """How many terms of each accumulator running sums take in one go.

    So many as the running sums of the narrowest have lanes; and as many as fill a vector with the
    narrowest elements that are loaded: of less g++ makes no vectors at all.
    """
    body = nest.workunit.body
    loaded = (e.dtype.size for e in all_expressions(body) if isinstance(e, nodes.Load))
    whole = nest.spec.target.vector_bytes // min(loaded, default=8)
    return max(SUM_BYTES // min(s.dtype.size for s in sums), whole)


def groups_of(blocks: Blocks, terms: Mapping[Sym, Sym]) -> Groups | None:
    """The groups of a body that has many sums, each in a statement of its own; None for others.

    terms: an array for the terms of each accumulator.
    """
    nest = blocks.nest
    spec, tuning = nest.spec, nest.spec.tuning
    sums = [a.sym for a in nest.workunit.accumulators]
    if left_out("split-accumulators"):
        return None
    fitting = in_registers(spec.target)
    fewest = min(tuning.fewest_groups, fitting + 1) if fitting > 1 else tuning.fewest_groups
    if len(sums) < fewest or any(s.dtype.size != 8 or s.dtype.is_complex for s in sums):
        return None
    if nest.serial or spec.checked or not blocks.single:
        return None
    if may_contract(nest.workunit.body) or len(nest.workunit.body) > MAX_STATEMENTS:
        return None  # g++ may contract products with the additions around them
    if nest.overlapping:
        return None
    parts = _parts(nest, sums)
    if parts is None:
        return None
    before, adding, repeated = parts
    segments = expanded(
        [before, *_grouped(adding, sums, max(tuning.group, fitting))],
        [True] * (1 + len(adding)),
        repeated,
    )
    kept = expansion(segments)
    if local_arrays(before) & set(kept):
        return None
    size = sum(sym.dtype.size for sym in kept)
    runs = (4 * tuning.block, 2 * tuning.block)
    run = next((n for n in runs if n * size <= tuning.block_bytes), None)
    if run is None:
        return None
    arrays = Kept({s: nest.fresh(f"{nest.name(s)}_run", s.dtype) for s in kept}, {})
    lanes = lanes_of(nest, sums)
    if run % lanes or blocks.size % lanes:
        lanes = LANES
    function = _run_function(nest, segments, arrays, (run, lanes), terms)
    return Groups(run, function, blocks.size, lanes)


def _parts(nest: Nest, sums: Sequence[Sym]) -> tuple[Body, list[Stmt], dict[Sym, Declare]] | None:
    """The body without the statements that add, those statements, and cheap declarations."""
    body = nest.workunit.body
    arrays, repeated = local_arrays(body), cheap_declarations(body)
    if not effects_of(body).may_interleave or not all(vectorises(stmt, arrays) for stmt in body):
        return None
    units = [s for s in body if not (isinstance(s, Declare) and s.sym in repeated)]
    added = [_added(stmt, sums) for stmt in units]
    if sorted(sym.uid for syms in added for sym in syms) != sorted(sym.uid for sym in sums):
        return None  # one accumulator in two statements, or in none
    adding = [stmt for stmt, syms in zip(units, added, strict=True) if syms]
    if not all(_only_adds(stmt) and _reads_rows(nest, stmt) for stmt in adding):
        return None
    for n, earlier in enumerate(dependences(units, frozenset())):
        if not added[n] and any(added[m] for m in earlier):
            return None  # changes what a sum has read
    rest = tuple(stmt for stmt, syms in zip(units, added, strict=True) if not syms)
    return *_narrowed(nest, rest, adding), repeated


def _added(stmt: Stmt, sums: Sequence[Sym]) -> set[Sym]:
    """The accumulators that a statement adds to."""
    found = {s.target for s in statements((stmt,)) if isinstance(s, nodes.Update) and not s.indices}
    return found & set(sums)


def _only_adds(stmt: Stmt) -> bool:
    """Whether a statement does nothing but add, perhaps under conditions."""
    parts = list(statements((stmt,)))
    if contains((stmt,), nodes.AtomicFetch) or any(map(is_covered, all_expressions((stmt,)))):
        return False
    updates = [s for s in parts if not isinstance(s, nodes.If)]
    return all(isinstance(s, nodes.Update) and not s.indices for s in updates)


def _reads_rows(nest: Nest, stmt: Stmt) -> bool:
    """Whether elements are read one after the other: every group reads them again."""
    index, views = nest.workunit.indices[-1], nest.views
    for e in all_expressions((stmt,)):
        if not isinstance(e, nodes.Load):
            continue
        view = views.get(e.view)
        if view is None or view.strides[-1] != UNIT or _plain(e.indices[-1]) != Read(index):
            return False
        if any(Read(index) in expressions(outer) for outer in e.indices[:-1]):
            return False
    return True


def _plain(e: Expr) -> Expr:
    while isinstance(e, nodes.Cast):
        e = e.operand
    return e


def _narrowed(nest: Nest, before: Body, adding: list[Stmt]) -> tuple[Body, list[Stmt]]:
    """Keep integers as narrow as the sums read them: they are converted once, and take less."""
    narrow: dict[Expr, Sym] = {}
    local = {stmt.sym for stmt in before if isinstance(stmt, Declare)}

    def change(e: Expr) -> Expr:
        if not isinstance(e, nodes.Cast) or not isinstance(e.operand, nodes.Read):
            return e
        sym = e.operand.sym
        integers = e.dtype.is_integer and sym.dtype.is_integer
        if not integers or e.dtype.size >= sym.dtype.size or sym not in local:
            return e
        if e not in narrow:
            narrow[e] = nest.fresh(nest.name(sym), e.dtype)
        return Read(narrow[e])

    changed = list(map_body(tuple(adding), change))
    return (*before, *(Declare(sym, e) for e, sym in narrow.items())), changed


def _grouped(adding: Sequence[Stmt], sums: Sequence[Sym], most: int) -> list[Body]:
    """Statements that share a loop, in order; most: sums of a group."""
    groups: list[Body] = []
    size = most
    for stmt in adding:
        own = len(_added(stmt, sums))
        if size + own > most:
            groups.append(())
            size = 0
        groups[-1] = (*groups[-1], stmt)
        size += own
    return groups


def _run_function(
    nest: Nest,
    segments: Sequence[Segment],
    kept: Kept,
    most: tuple[int, int],
    terms: Mapping[Sym, Sym],
) -> Function:
    """Runs `count` iterations from `at` on. most: so many at most, a multiple of so many."""
    run, lanes = most
    at, count = map(local, ("at", "count"))
    last = nest.rank - 1
    body = kept.allocs(run)
    for segment in segments:
        own = {sym for stmt in segment.body for sym in _added(stmt, tuple(terms))}
        if own:
            group = {sym: array for sym, array in terms.items() if sym in own}
            body += (_group(nest, segment, kept, group, lanes),)
        elif segment.body:
            body += order_sums(nest, (_first_loop(nest, segment, kept),))
    params = (at.sym, count.sym, *nest.counters[:last])
    return Function(RUN, params=params, body=body, sums=tuple(terms))


def _first_loop(nest: Nest, segment: Segment, kept: Kept) -> Stmt:
    """The loop over all that comes before the sums."""
    at, count, step = map(local, ("at", "count", "step"))
    leaving = kept.leaving(segment.leaving, lambda _: step)
    trip = (*iteration(nest, nest.rank - 1, Binary("+", at, step)), *segment.body, *leaving)
    return iterations(nest, step, number(0), count, trip, Kind.VECTOR)


def _group(
    nest: Nest, segment: Segment, kept: Kept, terms: Mapping[Sym, Sym], lanes: int
) -> RunningSums:
    """The loop of a group; g++ keeps the terms of a trip in registers where it can."""
    at, count, done, step = map(local, ("at", "count", "done", "step"))
    place = Binary("+", done, step)
    arriving = kept.arriving(segment.arriving, lambda _: place)
    here = Binary("+", Binary("+", at, done), step)
    locals_ = {sym: nest.fresh(f"{nest.name(sym)}_term", sym.dtype) for sym in terms}
    own = substitute_syms(Terms(nest, terms).body(segment.body), locals_)
    trip = (*iteration(nest, nest.rank - 1, here), *arriving, *own)
    loop = iterations(nest, step, number(0), number(lanes), trip, Kind.VECTOR)
    return RunningSums((loop,), tuple(terms), tuple(terms.values()), done.sym, count, lanes)
