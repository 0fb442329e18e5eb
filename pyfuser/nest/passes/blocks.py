"""Blocks of iterations along the innermost axis: a loop for each of the segments of their body."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain

from pyfuser.ir.nodes import (
    Binary,
    Body,
    Compare,
    Declare,
    Expr,
    If,
    Logical,
    Select,
    Stmt,
    Sym,
)
from pyfuser.ir.visit import assigned, map_body
from pyfuser.nest.build import iteration, iterations, local
from pyfuser.nest.cost.pipeline import cut
from pyfuser.nest.cost.straight import kept_straight
from pyfuser.nest.kept import Kept
from pyfuser.nest.nodes import Function, Kind, Loop, Nest, Over, number
from pyfuser.nest.passes import columns as of_columns
from pyfuser.nest.passes.columns import Columns, column_loops, columns_of, copying_loops
from pyfuser.nest.passes.copy_rows import AGAIN
from pyfuser.nest.passes.distribute import prepare, row_lengths
from pyfuser.nest.passes.lower_boxes import around, axis_loop, loops
from pyfuser.nest.passes.prefetch import Stream, prefetches, streams_of
from pyfuser.nest.passes.row_sums import order_sums
from pyfuser.nest.passes.split_widths import split_widths
from pyfuser.nest.passes.strips import Strips, strip_loops, strips_of
from pyfuser.nest.passes.unroll_and_jam import is_long
from pyfuser.nest.passes.unroll_and_jam import strips as strip_parts
from pyfuser.nest.segments import Segment, expansion
from pyfuser.plan.plan import STRIP
from pyfuser.support.records import dataclass

Terms = Callable[[Body], Body]


@dataclass(frozen=True, slots=True)
class Blocks:
    """The segments of a body, and what is kept between their loops.

    nest: of the body in its one segment, if it has one. size: iterations of a block. strips: how
    those of each segment take turns; None where they do not. columns: how the iterations of a body
    in one segment do, if its loops walk along columns. widths: how many segments `split_widths`
    made of others. ahead: what blocks of a body in one loop ask for. straight: see Function.
    """

    nest: Nest
    segments: tuple[Segment, ...]
    kept: Kept
    size: int
    strips: tuple[Strips | None, ...]
    columns: Columns | None = None
    parts: Blocks | None = None
    widths: int = 0
    ahead: tuple[Stream, ...] = ()
    straight: tuple[str, ...] = ()

    @property
    def single(self) -> bool:
        """Whether the body stays in one loop."""
        return self.strips == (None,) and self.columns is None

    @property
    def passes(self) -> tuple[str, ...]:
        """What was done to the body."""
        done = {
            "strip-mine": self.columns is not None,
            "copy-rows": self.columns is not None and self.columns.fits is not None,
            "distribute": len(self.segments) - self.widths > 1,
            "split-widths": self.widths > 0,
            "unroll-and-jam": any(strips is not None for strips in self.strips),
            "split-chains": self.parts is not None,
            "prefetch": bool(self.ahead),
        }
        return tuple(name for name, is_done in done.items() if is_done)


def blocks_of(nest: Nest, kept: int = 0, smallest: int = 0) -> Blocks:
    """How the nest's body is run.

    kept: bytes that are kept for each iteration besides; smallest: iterations a block has at least.
    """
    tuning = nest.spec.tuning
    block = tuning.block
    smallest = smallest or block // 4
    body = nest.workunit.body
    segments: tuple[Segment, ...] = (Segment(body, True),)
    lengths: dict[Sym, int] = {}
    columns, widths = columns_of(nest), 0
    if not nest.serial and columns is None and not _has_long_trips(nest):
        segments = prepare(body, nest.overlapping, frozenset(nest.workunit.indices), nest.fresh)
        by_width = [
            (part,)
            if nest.workunit.accumulators or cut(part.body)  # these take vectors of their own
            else split_widths(part, nest.overlapping, nest.fresh)
            for part in segments
        ]
        widths = sum(map(len, by_width)) - len(segments)
        segments = tuple(chain.from_iterable(by_width))
        lengths = row_lengths(tuple(stmt for part in segments for stmt in part.body))
        size = sum(lengths.get(sym, 1) * sym.dtype.size for sym in expansion(segments))
        if smallest * size > tuning.block_bytes:
            segments, size, widths = (Segment(body, True),), 0, 0
        kept += size
    straight = _headers(
        kept_straight(part.body) for part in segments if part.vector and not nest.serial
    )
    if len(segments) == 1:
        nest = nest.of(segments[0].body)
    arrays = _arrays(nest, segments)
    between = Kept(arrays, {sym: length for sym, length in lengths.items() if sym in arrays})
    # Where a strip's loops walk along columns, what is too short for one runs one by one: code for
    # neighbours side by side would take as long to compile as that for strips.
    apart = tuple(
        _strips(nest, segment, between) if columns is None or columns.fits is not None else None
        for segment in segments
    )
    sizes = (4 * block,) * (apart == (None,) and _is_long(nest, kept)) + (block, block // 2)
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
    if columns is not None and columns.fits is not None:
        size = max(tuning.strips[-1], smallest)  # copies stay in the first-level cache
    parts = _cut(nest, kept, size) if apart == (None,) and columns is None else None
    one_loop = apart == (None,) and columns is None and parts is None and size <= block
    ahead = streams_of(nest) if one_loop else ()
    return Blocks(nest, segments, between, size, apart, columns, parts, widths, ahead, straight)


def _cut(nest: Nest, kept: int, size: int) -> Blocks | None:
    """The loops of a body in one segment whose operations wait for each other; see `cost.pipeline`.

    kept: bytes that are kept for each iteration besides; size: iterations of a block.
    """
    if nest.serial or nest.spec.checked or nest.overlapping:
        return None
    if nest.spec.target.avx512_of_intel:  # not measured there
        return None
    segments = cut(nest.workunit.body)
    kept += sum(sym.dtype.size for sym in expansion(segments))
    if not segments or size * kept > nest.spec.tuning.block_bytes:
        return None
    between = Kept(_arrays(nest, segments), {})
    return Blocks(nest, segments, between, size, (None,) * len(segments))


def _arrays(nest: Nest, segments: tuple[Segment, ...]) -> dict[Sym, Sym]:
    """An array for each local that passes between segments."""
    return {s: nest.fresh(f"{nest.name(s)}_block", s.dtype) for s in expansion(segments)}


def _is_long(nest: Nest, kept: int) -> bool:
    """Whether a loop has more scalars than there are vector registers, and keeps little.

    It then begins by spreading them over vectors in memory: 72 of them in kernels/rk4.py, whose
    blocks have 16 vectors of iterations else. Without need, long blocks cost up to a tenth.
    """
    scalars = sum(param.rank == 0 for param in nest.workunit.params)
    tuning = nest.spec.tuning
    return scalars > tuning.scalars and kept * 4 * tuning.block <= tuning.block_bytes // 4


def _strips(nest: Nest, segment: Segment, between: Kept) -> Strips | None:
    if nest.serial:
        return None
    parts = _parts(nest, segment)
    return None if parts is None else strips_of(nest, parts, between)


def _parts(nest: Nest, segment: Segment) -> tuple[Segment, ...] | None:
    """See `passes.unroll_and_jam.strips`."""
    workunit = nest.workunit
    given = frozenset(param.sym for param in workunit.params) - assigned(workunit.body)
    sums = (accumulator.sym for accumulator in workunit.accumulators)
    others = [n for n in range(nest.rank) if n != nest.spec.order.axes[-1]]
    indices = [workunit.indices[n] for n in (*others, nest.spec.order.axes[-1])]
    return strip_parts(segment, nest.overlapping, given, sums, tuple(indices))


def _has_long_trips(nest: Nest) -> bool:
    """Whether loops take vectors of iterations: more than what is around them would gain."""
    parts = _parts(nest, Segment(nest.workunit.body, True)) or ()
    return any(part.vector and any(map(is_long, part.body)) for part in parts)


def _headers(parts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Each header once."""
    return tuple(dict.fromkeys(chain.from_iterable(parts)))


def allocs(blocks: Blocks) -> Body:
    """The arrays between segments, and those within strips."""
    inside = (strips.own.allocs(STRIP) for strips in blocks.strips if strips is not None)
    columns = () if blocks.columns is None else of_columns.allocs(blocks.columns, blocks.size)
    return (*blocks.kept.allocs(blocks.size), *chain.from_iterable(inside), *columns)


def segment_loops(blocks: Blocks, axis: int, terms: Terms) -> Body:
    """The loops over `count` iterations of an axis from `at`, one for each segment.

    terms: what becomes of the body of each.
    """
    nest = blocks.nest
    at, count, step = map(local, ("at", "count", "step"))
    body: Body = prefetches(nest, blocks.ahead, axis, at, count)
    for segment, apart in zip(blocks.segments, blocks.strips, strict=True):
        if apart is not None:
            body += strip_loops(nest, apart, axis, terms)
            continue
        trip = iteration(nest, axis, Binary("+", at, step)) + _trip(
            segment, blocks.kept, step, terms
        )
        body += (iterations(nest, step, number(0), count, trip, Kind.VECTOR),)
    return body


def _trip(segment: Segment, kept: Kept, step: Expr, terms: Terms) -> Body:
    """What an iteration does of a segment, between what it kept before and what it keeps."""

    def place(sym: Sym) -> Expr:
        return step

    own, body = kept.in_place(segment.body, place)
    before = (*kept.arriving(segment.arriving, place), *own)
    return (*before, *terms(body), *kept.leaving(segment.leaving, place))


def as_given(body: Body) -> Body:
    """The terms of a body without sums."""
    return body


def box_loops(blocks: Blocks, box: Over) -> Body:
    """Loops over a box in the spec's order; of a body in parts, the innermost in blocks."""
    if blocks.parts is not None:
        return box_loops(blocks.parts, box)
    if blocks.ahead or not blocks.single:
        return _in_blocks(blocks, box)
    plain = replace(box, body=blocks.nest.workunit.body)
    return (loops(blocks.nest, plain),)


def lower_blocks(nest: Nest) -> Nest:
    """The nest with loops in place of boxes, whose bodies may run in blocks."""

    def lower(f: Function) -> Function:
        found: list[Blocks] = []

        def loops_of(stmt: Stmt) -> Stmt | Body:
            if not isinstance(stmt, Over):
                return stmt
            found.append(blocks_of(nest.of(stmt.body)))
            return box_loops(found[-1], stmt)

        body = order_sums(nest, map_body(f.body, None, loops_of))
        if not found:
            return f
        return replace(
            f,
            body=body,
            straight=_headers(blocks.straight for blocks in found),
            segments=tuple(segment for blocks in found for segment in blocks.segments),
            passes=tuple(name for blocks in found for name in blocks.passes),
        )

    functions = tuple(map(lower, nest.functions))
    passes = dict.fromkeys((*nest.passes, *(name for f in functions for name in f.passes)))
    return replace(nest, functions=functions, passes=tuple(passes))


def _in_blocks(blocks: Blocks, box: Over) -> Body:
    nest, size = blocks.nest, number(blocks.size)
    at, count = local("at"), local("count")

    def inner(first: Expr, last: Expr) -> Stmt:
        left = Binary("-", last, at)
        fewer = Select(Compare("<", left, size), left, size)
        axis = nest.spec.order.axes[-1]
        body = (Declare(count.sym, fewer), *block_loops(blocks, axis, lambda: as_given))
        return Loop(at.sym, first, last, size, body, not nest.serial)

    if blocks.columns is not None and blocks.columns.outer is not None:
        return (*allocs(blocks), _after_copies(blocks, blocks.columns, box))
    return (*allocs(blocks), around(nest, box, inner))


def _after_copies(blocks: Blocks, columns: Columns, box: Over) -> Stmt:
    """Loops over a box in which the second innermost axis is run through for each strip."""
    nest, size = blocks.nest, number(blocks.size)
    *outer, across, last = nest.spec.order.axes
    bounds = list(zip(box.low, box.high, strict=True))
    at, count = local("at"), local("count")
    left = Binary("-", bounds[last][1], at)
    low, high = bounds[across]

    def each(body: Body) -> Stmt:
        return axis_loop(nest, across, (low, high), body)

    strip = column_loops(nest, columns, blocks.size, last, as_given)
    copying = copying_loops(nest, columns, blocks.size, last)
    again = Compare(">=", Binary("-", high, low), number(AGAIN))
    body = (
        Declare(count.sym, Select(Compare("<", left, size), left, size)),
        If(
            Logical("&&", again, _is_strip(nest, columns)),
            (*copying, each(strip)),
            (each(segment_loops(blocks, last, as_given)),),
        ),
    )
    stmt: Stmt = Loop(at.sym, *bounds[last], size, body, not nest.serial)
    for axis in reversed(outer):
        stmt = axis_loop(nest, axis, bounds[axis], (stmt,))
    return stmt


def _is_strip(nest: Nest, columns: Columns) -> Expr:
    """Whether so many iterations run column by column."""
    long = Compare(">=", local("count"), number(nest.spec.tuning.fewest_columns))
    return long if columns.fits is None else Logical("&&", long, columns.fits)


def block_loops(blocks: Blocks, axis: int, terms: Callable[[], Terms]) -> Body:
    """`segment_loops`; where loops walk along columns, for a strip of iterations if it is long."""
    if blocks.parts is not None:
        return (*allocs(blocks.parts), *segment_loops(blocks.parts, axis, terms()))
    usual = segment_loops(blocks, axis, terms())
    if blocks.columns is None:
        return usual
    nest = blocks.nest
    strip = column_loops(nest, blocks.columns, blocks.size, axis, terms())
    return (If(_is_strip(nest, blocks.columns), strip, usual),)
