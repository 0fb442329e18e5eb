"""Code for a block of iterations along the innermost axis: a loop for each of its segments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyfuser.codegen.cost.gathers import mostly_scatters
from pyfuser.codegen.cost.pipeline import cut
from pyfuser.codegen.cost.vectorisable import is_covered
from pyfuser.codegen.cpu import columns as cpu_columns
from pyfuser.codegen.cpu import prefetch
from pyfuser.codegen.cpu import strips as cpu_strips
from pyfuser.codegen.cpu.columns import Columns, column_loops, columns_of
from pyfuser.codegen.cpu.context import Context, fresh_syms, nest_of
from pyfuser.codegen.cpu.prefetch import prefetches, streams_of
from pyfuser.codegen.cpu.strips import Strips, strip_loops, strips_of
from pyfuser.codegen.passes.distribute import Segment, expansion, prepare, row_lengths
from pyfuser.codegen.passes.prefetch import Stream
from pyfuser.codegen.passes.unroll_and_jam import is_long
from pyfuser.codegen.passes.unroll_and_jam import strips as strip_parts
from pyfuser.ir.nodes import (
    Binary,
    Body,
    Compare,
    Declare,
    DeclareArray,
    Expr,
    If,
    Load,
    Read,
    Select,
    Stmt,
    Store,
    Sym,
)
from pyfuser.ir.visit import all_expressions, assigned, declared
from pyfuser.nest.build import row
from pyfuser.nest.nodes import Alloc, Clear, Kind, Loop, Over, number
from pyfuser.nest.passes.lower_boxes import around, loops

LOCALS = cpu_strips.LOCALS | cpu_columns.LOCALS | prefetch.LOCALS | {"at", "count", "left", "step"}

Terms = Callable[[Body], Body]


@dataclass(frozen=True, slots=True)
class Blocks:
    """The segments of a body, and the arrays (by local) that carry values between their loops.

    lengths: of those locals that are arrays themselves, one for each iteration. size: iterations
    of a block. strips: how those of each segment take turns; None where they do not. columns: how
    the iterations of a body in one segment do, if its loops walk along columns. ahead: what
    blocks of a body in one loop ask for.
    """

    segments: tuple[Segment, ...]
    arrays: dict[Sym, Sym]
    lengths: dict[Sym, int]
    size: int
    strips: tuple[Strips | None, ...]
    columns: Columns | None = None
    parts: Blocks | None = None
    ahead: tuple[Stream, ...] = ()

    @property
    def single(self) -> bool:
        """Whether the body stays in one loop."""
        return self.strips == (None,) and self.columns is None


def blocks_of(context: Context, kept: int = 0, smallest: int = 0) -> tuple[Context, Blocks]:
    """How the context's body is run; the context has the body of those that stay in one loop.

    kept: bytes that are kept for each iteration besides; smallest: iterations a block has at least.
    """
    tuning = context.spec.tuning
    block = tuning.block
    smallest = smallest or block // 4
    body = context.workunit.body
    segments: tuple[Segment, ...] = (Segment(body, True),)
    lengths: dict[Sym, int] = {}
    columns = columns_of(context)
    if context.independent and columns is None and not _has_long_trips(context):
        indices = frozenset(context.workunit.indices)
        segments = prepare(body, _aliased(context), indices, fresh_syms(context))
        lengths = row_lengths(tuple(stmt for part in segments for stmt in part.body))
        size = sum(lengths.get(sym, 1) * sym.dtype.size for sym in expansion(segments))
        if smallest * size > tuning.block_bytes:
            segments, size = (Segment(body, True),), 0
        kept += size
    _name_locals(context, segments)
    if context.independent and any(_branches_again(segment) for segment in segments):
        context.uses("straight")
    if len(segments) == 1:
        context = context.of(segments[0].body)
    take, names = context.unique.take, context.names
    arrays = {s: context.array(take(f"{names[s]}_block"), s.dtype) for s in expansion(segments)}
    lengths = {sym: length for sym, length in lengths.items() if sym in arrays}
    # Where a strip's loops walk along columns, what is too short for one runs one by one: code for
    # neighbours side by side would take as long to compile as that for strips.
    apart = tuple(
        _strips(context, segment, arrays, lengths) if columns is None else None
        for segment in segments
    )
    sizes = (4 * block,) * (apart == (None,) and _is_long(context, kept)) + (block, block // 2)
    if columns is not None:
        sizes, kept = (
            (tuning.strips if not kept or columns.lengths else sizes),
            kept + columns.bytes,
        )
    room = tuning.block_bytes * (2 if columns is not None and columns.lanes else 1)
    if columns is not None and columns.lengths:
        room = tuning.rows_bytes
    fitting = (n for n in sizes if n * kept <= room)
    size = max(next(fitting, smallest), smallest)
    parts = _cut(context, kept, size) if apart == (None,) and columns is None else None
    one_loop = apart == (None,) and columns is None and parts is None and size <= block
    ahead = streams_of(context) if one_loop else ()
    return context, Blocks(segments, arrays, lengths, size, apart, columns, parts, ahead)


def _cut(context: Context, kept: int, size: int) -> Blocks | None:
    """The loops of a body in one segment whose operations wait for each other; see `cost.pipeline`.

    kept: bytes that are kept for each iteration besides; size: iterations of a block.
    """
    if not context.independent or context.spec.checked or _aliased(context):
        return None
    if context.spec.target.vector_bytes == 64:  # not measured there
        return None
    segments = cut(context.workunit.body)
    syms = expansion(segments)
    kept += sum(sym.dtype.size for sym in syms)
    if not segments or size * kept > context.spec.tuning.block_bytes:
        return None
    take, names = context.unique.take, context.names
    arrays = {s: context.array(take(f"{names[s]}_block"), s.dtype) for s in syms}
    return Blocks(segments, arrays, {}, size, (None,) * len(segments))


def _is_long(context: Context, kept: int) -> bool:
    """Whether a loop has more scalars than there are vector registers, and keeps little.

    It then begins by spreading them over vectors in memory: 72 of them in kernels/rk4.py, whose
    blocks have 16 vectors of iterations else. Without need, long blocks cost up to a tenth.
    """
    scalars = sum(param.rank == 0 for param in context.workunit.params)
    tuning = context.spec.tuning
    return scalars > tuning.scalars and kept * 4 * tuning.block <= tuning.block_bytes // 4


def _strips(
    context: Context, segment: Segment, arrays: dict[Sym, Sym], lengths: dict[Sym, int]
) -> Strips | None:
    if not context.independent:
        return None
    parts = _parts(context, segment)
    return None if parts is None else strips_of(context, parts, arrays, lengths)


def _parts(context: Context, segment: Segment) -> tuple[Segment, ...] | None:
    """See `passes.unroll_and_jam.strips`."""
    workunit = context.workunit
    given = frozenset(param.sym for param in workunit.params) - assigned(workunit.body)
    sums = (accumulator.sym for accumulator in workunit.accumulators)
    return strip_parts(segment, _aliased(context), given, sums)


def _has_long_trips(context: Context) -> bool:
    """Whether loops take vectors of iterations: more than what is around them would gain."""
    parts = _parts(context, Segment(context.workunit.body, True)) or ()
    return any(part.vector and any(map(is_long, part.body)) for part in parts)


def _aliased(context: Context) -> frozenset[Sym]:
    """The views that may overlap others."""
    pairs = zip(context.workunit.params, context.spec.views, strict=True)
    return frozenset(param.sym for param, view in pairs if view is not None and not view.restrict)


def _name_locals(context: Context, segments: tuple[Segment, ...]) -> None:
    """Names for the locals that the segments have and the workunit has not."""
    for segment in segments:
        for sym in declared(segment.body):
            if sym not in context.names:
                context.names[sym] = context.unique.take(sym.name)


def _branches_again(segment: Segment) -> bool:
    """Whether g++ has to be kept from rearranging branches (see straight.h)."""
    branches = sum(isinstance(stmt, If) for stmt in segment.body)
    found = list(all_expressions(segment.body))
    calls = any(map(is_covered, found))
    chosen = any(isinstance(e, Select) for e in found)
    vector = segment.vector and not mostly_scatters(segment.body)
    return vector and (branches > 1 or (calls and (branches > 0 or chosen)))


def allocs(context: Context, blocks: Blocks) -> Body:
    """The arrays between segments, and those within strips."""
    own = [
        Alloc(array, blocks.size * blocks.lengths.get(sym, 1))
        for sym, array in blocks.arrays.items()
    ]
    inside = (cpu_strips.allocs(strips) for strips in blocks.strips if strips is not None)
    body: Body = (*own, *(alloc for found in inside for alloc in found))
    columns = () if blocks.columns is None else cpu_columns.allocs(blocks.columns, blocks.size)
    return body + columns


def segment_loops(context: Context, blocks: Blocks, axis: int, terms: Terms) -> Body:
    """The loops over `count` iterations of an axis from `at`, one for each segment.

    terms: what becomes of the body of each.
    """
    at, count, step = map(context.local, ("at", "count", "step"))
    body: Body = prefetches(context, blocks.ahead, axis)
    for segment, apart in zip(blocks.segments, blocks.strips, strict=True):
        if apart is not None:
            body += strip_loops(context, apart, axis, terms)
            continue
        here = Binary("+", Read(at), Read(step))
        trip = context.iteration(axis, here) + _trip(segment, blocks, step, terms)
        body += (context.loop(step, number(0), Read(count), trip, kind_of(segment.body)),)
    return body


def _trip(segment: Segment, blocks: Blocks, step: Sym, terms: Terms) -> Body:
    """What an iteration does of a segment, between what it kept before and what it keeps.

    An iteration's own arrays are parts of the block's, and start at zeros.
    """
    place = Read(step)
    before: list[Stmt] = [
        row(sym, blocks.arrays[sym], place, blocks.lengths[sym])
        if sym in blocks.lengths
        else Declare(sym, Load(blocks.arrays[sym], (place,)))
        for sym in segment.arriving
    ]
    body: list[Stmt] = []
    for stmt in segment.body:
        if isinstance(stmt, DeclareArray) and stmt.sym in blocks.lengths:
            length = blocks.lengths[stmt.sym]
            before.append(row(stmt.sym, blocks.arrays[stmt.sym], place, length))
            before.append(Clear(stmt.sym, length))
        else:
            body.append(stmt)
    after = (
        Store(blocks.arrays[sym], (place,), Read(sym))
        for sym in segment.leaving
        if sym not in blocks.lengths
    )
    return (*before, *terms(tuple(body)), *after)


def kind_of(body: Body) -> Kind:
    """How the iterations of a body run."""
    return Kind.SCALAR if mostly_scatters(body) else Kind.VECTOR


def as_given(body: Body) -> Body:
    """The terms of a body without sums."""
    return body


def box_loops(context: Context, blocks: Blocks, box: Over) -> Body:
    """Loops over a box in the spec's order; of a body in parts, the innermost in blocks."""
    if blocks.parts is not None:
        return box_loops(context, blocks.parts, box)
    if blocks.ahead or not blocks.single:
        return _in_blocks(context, blocks, box)
    nest = nest_of(context, context.spec.order)
    plain = replace(box, body=context.workunit.body)
    return (loops(nest, plain, fresh_syms(context), kind_of(plain.body)),)


def _in_blocks(context: Context, blocks: Blocks, box: Over) -> Body:
    nest, axis = nest_of(context, context.spec.order), context.spec.order.axes[-1]
    at, count = context.local("at"), context.local("count")
    size = number(blocks.size)

    def inner(first: Expr, last: Expr) -> Stmt:
        left = Binary("-", last, Read(at))
        fewer = Select(Compare("<", left, size), left, size)
        body = (Declare(count, fewer), *block_loops(context, blocks, axis, lambda: as_given))
        return Loop(at, first, last, size, body, context.independent)

    return (*allocs(context, blocks), around(nest, box, fresh_syms(context), inner))


def block_loops(context: Context, blocks: Blocks, axis: int, terms: Callable[[], Terms]) -> Body:
    """`segment_loops`; where loops walk along columns, for a strip of iterations if it is long."""
    if blocks.parts is not None:
        parts = segment_loops(context, blocks.parts, axis, terms())
        return (*allocs(context, blocks.parts), *parts)
    usual = segment_loops(context, blocks, axis, terms())
    if blocks.columns is None:
        return usual
    strip = column_loops(context, blocks.columns, blocks.size, axis, terms())
    long = Compare(">=", Read(context.local("count")), number(context.spec.tuning.fewest_columns))
    return (If(long, strip, usual),)
