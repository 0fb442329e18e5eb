"""Code for a block of iterations along the innermost axis: a loop for each of its segments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyfuser.codegen.c.statements import INDENT, ONE_BY_ONE
from pyfuser.codegen.cost.gathers import mostly_scatters
from pyfuser.codegen.cost.pipeline import cut
from pyfuser.codegen.cost.vectorisable import is_covered
from pyfuser.codegen.cpu import columns as cpu_columns
from pyfuser.codegen.cpu import prefetch
from pyfuser.codegen.cpu import strips as cpu_strips
from pyfuser.codegen.cpu.columns import Columns, column_loops, columns_of
from pyfuser.codegen.cpu.context import Bounds, Context, closed, fresh_syms, loop_lines, outer_loops
from pyfuser.codegen.cpu.prefetch import ahead_lines, streams_of
from pyfuser.codegen.cpu.strips import Strips, strip_loops, strips_of
from pyfuser.codegen.passes.distribute import Segment, expansion, prepare, row_lengths
from pyfuser.codegen.passes.prefetch import Stream
from pyfuser.codegen.passes.unroll_and_jam import is_long
from pyfuser.codegen.passes.unroll_and_jam import strips as strip_parts
from pyfuser.ir.nodes import Body, DeclareArray, If, Select, Stmt, Sym
from pyfuser.ir.visit import all_expressions, assigned, declared
from pyfuser.nest.nodes import Kind

LOCALS = cpu_strips.LOCALS | cpu_columns.LOCALS | prefetch.LOCALS | {"at", "count", "left", "step"}

PrintBody = Callable[[Body, int], list[str]]


@dataclass(frozen=True, slots=True)
class Blocks:
    """The segments of a body, and the arrays (by local) that carry values between their loops.

    lengths: of those locals that are arrays themselves, one for each iteration. size: iterations
    of a block. strips: how those of each segment take turns; None where they do not. columns: how
    the iterations of a body in one segment do, if its loops walk along columns. ahead: what
    blocks of a body in one loop ask for.
    """

    segments: tuple[Segment, ...]
    arrays: dict[Sym, str]
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
    arrays = {sym: take(f"{names[sym]}_block") for sym in expansion(segments)}
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
    arrays = {sym: take(f"{names[sym]}_block") for sym in syms}
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
    context: Context, segment: Segment, arrays: dict[Sym, str], lengths: dict[Sym, int]
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


def _alone(body: Body, depth: int) -> list[str]:
    """What a loop begins with that is not to become vectors."""
    return [INDENT * depth + ONE_BY_ONE] if mostly_scatters(body) else []


def array_lines(blocks: Blocks, depth: int) -> list[str]:
    """The declarations of the arrays between segments, and of those within strips."""
    lines = [
        f"{INDENT * depth}alignas(64) {sym.dtype.cpp} "
        f"{name}[{blocks.size * blocks.lengths.get(sym, 1)}];"
        for sym, name in blocks.arrays.items()
    ]
    for strips in filter(None, blocks.strips):
        lines += cpu_strips.memory_lines(strips, depth)
    if blocks.columns is not None:
        lines += cpu_columns.memory_lines(blocks.columns, blocks.size, depth)
    return lines


def segment_loops(
    context: Context, blocks: Blocks, axis: int, depth: int, print_body: PrintBody
) -> list[str]:
    """The loops over `count` iterations of an axis from `at`, one for each segment."""
    indent = INDENT * depth
    lines = ahead_lines(context, blocks.ahead, axis, depth)
    for segment, apart in zip(blocks.segments, blocks.strips, strict=True):
        if apart is not None:
            lines += strip_loops(context, apart, axis, depth, print_body)
            continue
        changed = assigned(segment.body)
        lines += context.ivdep(depth)
        lines.append(f"{indent}for (int64_t step = 0; step < count; ++step) {{")
        lines.append(f"{indent}{INDENT}const int64_t {context.counter(axis)} = at + step;")
        lines += context.narrowed(depth + 1) + _alone(segment.body, depth + 1)
        for sym in segment.arriving:
            if sym in blocks.lengths:
                lines.append(indent + INDENT + _row(context, blocks, sym))
                continue
            kind = ("" if sym in changed else "const ") + sym.dtype.cpp
            lines.append(
                f"{indent}{INDENT}{kind} {context.names[sym]} = {blocks.arrays[sym]}[step];"
            )
        body: list[Stmt] = []
        for stmt in segment.body:
            if isinstance(stmt, DeclareArray) and stmt.sym in blocks.lengths:
                lines += [indent + INDENT + line for line in _zeroed(context, blocks, stmt.sym)]
            else:
                body.append(stmt)
        lines += print_body(tuple(body), depth + 1)
        for sym in segment.leaving:
            if sym not in blocks.lengths:
                lines.append(f"{indent}{INDENT}{blocks.arrays[sym]}[step] = {context.names[sym]};")
        lines.append(f"{indent}}}")
    return lines


def _row(context: Context, blocks: Blocks, sym: Sym) -> str:
    """The declaration of an iteration's own array, which is a part of the block's."""
    array, length = blocks.arrays[sym], blocks.lengths[sym]
    return f"{sym.dtype.cpp}* const {context.names[sym]} = {array} + {length} * step;"


def _zeroed(context: Context, blocks: Blocks, sym: Sym) -> list[str]:
    """The same where the array starts, at zeros."""
    name, kind = context.names[sym], sym.dtype.cpp
    clear = f"for (int cell = 0; cell < {blocks.lengths[sym]}; ++cell) {name}[cell] = {kind}();"
    return [_row(context, blocks, sym), clear]


def blocked_nest(context: Context, blocks: Blocks, bounds: list[Bounds]) -> list[str]:
    """Loops over the axes in the spec's order; of a body in parts, the innermost in blocks."""
    order = context.spec.order
    if blocks.parts is not None:
        return blocked_nest(context, blocks.parts, bounds)
    if blocks.single:
        if blocks.ahead:
            return _in_blocks(context, blocks, bounds)
        kind = Kind.SCALAR if mostly_scatters(context.workunit.body) else Kind.VECTOR
        return loop_lines(context, order, bounds, kind)
    return _in_blocks(context, blocks, bounds)


def _in_blocks(context: Context, blocks: Blocks, bounds: list[Bounds]) -> list[str]:
    order = context.spec.order
    loops, depth, (first, last) = outer_loops(context, order, bounds)
    lines, left, size = array_lines(blocks, 1) + loops, f"{last} - at", blocks.size
    lines += [
        f"{INDENT * depth}for (int64_t at = {first}; at < {last}; at += {size}) {{",
        f"{INDENT * depth}{INDENT}const int64_t count = {left} < {size} ? {left} : {size};",
    ]
    print_body = context.statements.print
    lines += strip_or_segments(context, blocks, order.axes[-1], depth + 1, lambda: print_body)
    return lines + closed(depth)


def strip_or_segments(
    context: Context,
    blocks: Blocks,
    axis: int,
    depth: int,
    printer: Callable[[], PrintBody],
) -> list[str]:
    """`segment_loops`; where loops walk along columns, for a strip of iterations if it is long."""
    if blocks.parts is not None:
        parts = segment_loops(context, blocks.parts, axis, depth, printer())
        return [*array_lines(blocks.parts, depth), *parts]
    usual = segment_loops(context, blocks, axis, depth, printer())
    if blocks.columns is None:
        return usual
    indent = INDENT * depth
    return [
        f"{indent}{cpu_columns.IF_LONG}{context.spec.tuning.fewest_columns}) {{",
        *column_loops(context, blocks.columns, blocks.size, axis, depth + 1, printer()),
        f"{indent}}} else {{",
        *(INDENT + line for line in usual),
        f"{indent}}}",
    ]
