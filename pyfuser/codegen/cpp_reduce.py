"""Code for a parallel_reduce (with the maps that were fused into it).

An accumulator that the body only adds to becomes a term of each iteration. Terms of a block are
computed first, in a loop that vectorises like a map's, then added up in an order that depends on
the space alone (`pf_sum`); tiles of the space give partial sums, which are added in order. So a
reduction's bits do not depend on the number of threads, on the vector length or on what it is
fused with. An accumulator that is used otherwise is computed by one thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyfuser.codegen.cpp_blocks import LOCALS as BLOCK_LOCALS
from pyfuser.codegen.cpp_blocks import Blocks, array_lines, blocks_of, strip_or_segments
from pyfuser.codegen.cpp_context import Bounds, Context, box_bounds, entry, function, nest
from pyfuser.codegen.cpp_groups import LANES, Groups, Lanes, groups_of, run_function
from pyfuser.codegen.cpp_groups import LOCALS as GROUP_LOCALS
from pyfuser.codegen.cpp_rows import row_lines, row_sums, totals
from pyfuser.codegen.cpp_statements import INDENT
from pyfuser.codegen.order import given_order
from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Accumulator, Body, Sym, Workunit
from pyfuser.ir.visit import all_expressions, assigned, statements

LOCALS = (
    BLOCK_LOCALS
    | GROUP_LOCALS
    | {"row", "row_end", "column", "column_end", "running", "left", "space"}
    | {"rest", "tiling", "threads", "tile"}
)

INLINE_SUMS = 8
"""With more accumulators the code for full blocks is not compiled apart from that for others."""


def emit(context: Context) -> str:
    """The loops and the entry point."""
    if all(is_sum(context.workunit, a.sym) for a in context.workunit.accumulators):
        return _tiled(context)
    return _sequential(context)


def is_sum(workunit: Workunit, sym: Sym) -> bool:
    """Whether the body does nothing with an accumulator but add to it (or subtract)."""
    if sym.dtype is DType.BOOL:
        return False
    for stmt in statements(workunit.body):
        if isinstance(stmt, nodes.Assign) and stmt.sym == sym:
            return False
        if isinstance(stmt, nodes.Update) and stmt.target == sym and stmt.op not in ("+", "-"):
            return False
    return not any(
        isinstance(e, nodes.Read) and e.sym == sym for e in all_expressions(workunit.body)
    )


# --------------------------------------------------------------------------- sequential


def _sequential(context: Context) -> str:
    context.independent = False
    accumulators = context.workunit.accumulators
    rank = context.spec.rank
    lines, bounds = box_bounds(context)
    lines = context.guard() + lines
    lines += [f"{INDENT}{a.sym.dtype.cpp} {context.names[a.sym]}{{}};" for a in accumulators]
    lines += nest(context, given_order(rank), bounds)
    for k, a in enumerate(accumulators):
        lines.append(f"{INDENT}*({a.sym.dtype.cpp}*)(results + {2 * k}) = {context.names[a.sym]};")
    parameters = ["const int64_t* begin", "const int64_t* end", "int64_t* results"]
    code = function("void pf_loop", [*parameters, *context.signature], lines)
    tail = "".join(", " + a for a in context.arguments)
    return code + entry(context, [f"pf_loop(begin, end, results{tail});", "return 0;"])


# --------------------------------------------------------------------------- tiled


class SumNames:
    """The names that belong to one accumulator."""

    def __init__(self, context: Context, accumulator: Accumulator) -> None:
        dtype = accumulator.sym.dtype
        self.kind = dtype.cpp
        self.term = context.names[accumulator.sym]
        self.terms = context.unique.take(f"{self.term}_terms")
        self.sum = context.unique.take(f"{self.term}_sum")
        self.partial = context.unique.take(f"{self.term}_partial")
        self.wide = dtype.is_complex
        self.part = {DType.COMPLEX64: "float", DType.COMPLEX128: "double"}.get(dtype, self.kind)
        self.slot = (
            f"*({self.kind}*)&{self.terms}[2 * step]" if self.wide else f"{self.terms}[step]"
        )

    def sum_type(self, block: int) -> str:
        """The type of the running sum, which holds the terms of a block."""
        return f"pf_sum<{self.part}, {block}{', 2' * self.wide}>"

    def times(self, count: str) -> str:
        """The offset of so many terms; a complex one is two numbers."""
        return f" + {'2 * ' * self.wide}{count}" if count else ""


def _tiled(context: Context) -> str:
    sums, _, code = tile_code(context)
    return code + _tile_function(context, sums) + _tile_entry(context, sums)


def tile_code(context: Context) -> tuple[list[SumNames], int, str]:
    """What computes the terms of a tile and adds them up, also a part of the tile at a time.

    The names of the accumulators, how many terms make a block, and the code of `pf_terms`,
    `pf_running` (the sums of a tile that is not complete) and `pf_more` (continues it over a box).
    """
    accumulators = context.workunit.accumulators
    sums = [SumNames(context, a) for a in accumulators]
    sizes = [a.sym.dtype.size for a in accumulators]
    single = any(a.sym.dtype is DType.FLOAT32 for a in accumulators)
    blocks = blocks_of(context, kept=sum(sizes), smallest=64 if single else 32)
    terms = _terms_function(context, sums, blocks)
    groups = groups_of(context, blocks)
    code = terms + _running(sums, blocks.size)
    if groups is not None:
        code += _run_function(context, sums, blocks.size, groups)
    code += _more_function(context, sums, blocks.size, groups)
    return sums, blocks.size, code


def tile_box(context: Context) -> tuple[list[str], list[str]]:
    """The parameters that give `pf_more` its box, and the arguments for them."""
    if context.spec.rank == 1:
        return ["int64_t column", "int64_t column_end"], ["column", "column_end"]
    parameters = ["const int64_t* begin", "const int64_t* end", *(f"int64_t {n}" for n in _BOX)]
    return parameters, ["begin", "end", *_BOX]


def _running(sums: Sequence[SumNames], block: int) -> str:
    """The state of a tile between two boxes."""
    lines = ["struct pf_running {"]
    lines += [f"{INDENT}{s.sum_type(block)} {s.sum};" for s in sums]
    lines.append(f"{INDENT}int64_t filled = 0;  // terms of the block that is not complete")
    pointers = ", ".join(f"{s.kind}* {s.partial}" for s in sums)
    lines.append(f"{INDENT}__attribute__((always_inline)) inline void done({pointers}) {{")
    for s in sums:
        lines.append(f"{INDENT * 2}{s.sum}.{_rest(sums)}(filled);")
        lines.append(f"{INDENT * 2}*{s.partial} = *(const {s.kind}*){s.sum}.total();")
    return "\n".join([*lines, f"{INDENT}}}", "};", "", ""])


def _more_function(
    context: Context, sums: Sequence[SumNames], block: int, groups: Groups | None
) -> str:
    rank = context.spec.rank
    lines, bounds = box_bounds(context) if rank > 1 else ([], [])
    lines = [*lines, *row_loop(context, bounds)]
    lines += _columns(context, sums, bounds, block, groups)
    if rank > 2:
        lines += next_row(context, bounds)
    if rank > 1:
        lines.append(f"{INDENT}}}")
    parameters = ["pf_running& running", *tile_box(context)[0], *context.signature]
    return function("void pf_more", parameters, lines, inline=True)


def _tile_function(context: Context, sums: Sequence[SumNames]) -> str:
    """One tile from its beginning to its end."""
    parameters, box = tile_box(context)
    tail = ", ".join(["running", *box, *context.arguments])
    lines = [
        "pf_running running;",
        *(
            boxes_of_line(context, f"pf_more({tail});")
            if is_flat(context)
            else [f"pf_more({tail});"]
        ),
        f"running.done({', '.join(s.partial for s in sums)});",
    ]
    parameters = [*parameters, *(f"{s.kind}* {s.partial}" for s in sums), *context.signature]
    lines = context.guard() + [INDENT + line for line in lines]
    return function("void pf_tile", parameters, lines)


def is_flat(context: Context) -> bool:
    """Whether tiles are those of one axis: parts of rows, and several rows."""
    return any(accumulator.flat for accumulator in context.workunit.accumulators)


def boxes_of_line(context: Context, run: str) -> list[str]:
    """Statements that run the boxes of a tile of one axis, from `column` to `column_end`.

    run: what runs one box.
    """
    rank = context.spec.rank
    parameters = ", ".join(f"int64_t {name}" for name in _BOX)
    length = f"end[{rank - 1}] - begin[{rank - 1}]"
    return [
        f"pf_boxes(column, column_end, {length}, [&]({parameters}) {{",
        f"{INDENT}{run}",
        "});",
    ]


_BOX = ("row", "row_end", "column", "column_end")


def tiling_of(context: Context, extents: Sequence[str]) -> str:
    """The arguments of the constructor of a space's `pf_tiling`."""
    if is_flat(context):
        return f"1, {' * '.join(extents)}"
    return f"{' * '.join(extents[:-1]) or '1'}, {extents[-1]}"


def _rest(sums: Sequence[SumNames]) -> str:
    """The method that adds the terms of a block where that happens once or twice a tile."""
    return "add" if len(sums) <= INLINE_SUMS else "rest"


def row_loop(context: Context, bounds: list[Bounds]) -> list[str]:
    """The loop over rows, which are the outer axes taken together."""
    rank = context.spec.rank
    if rank == 1:
        return []
    i, (first, _) = context.counter(0), bounds[0]
    if rank == 2:
        loop = f"for (int64_t {i} = {first} + row; {i} < {first} + row_end; ++{i}) {{"
        return [INDENT + loop]
    lines = [f"{INDENT}int64_t rest = row;"]
    for axis in reversed(range(1, rank - 1)):
        low, high = bounds[axis]
        lines.append(f"{INDENT}int64_t {context.counter(axis)} = {low} + rest % ({high} - {low});")
        lines.append(f"{INDENT}rest /= {high} - {low};")
    lines.append(f"{INDENT}int64_t {i} = {first} + rest;")
    lines.append(f"{INDENT}for (; row < row_end; ++row) {{")
    return lines


def next_row(context: Context, bounds: list[Bounds]) -> list[str]:
    """Step the outer axes like an odometer."""
    rank, lines = context.spec.rank, []
    for axis in reversed(range(1, rank - 1)):
        indent = INDENT * (rank - axis)
        i, (low, high) = context.counter(axis), bounds[axis]
        lines.append(f"{indent}if (++{i} == {high}) {{")
        lines.append(f"{indent}{INDENT}{i} = {low};")
    lines.append(f"{INDENT * rank}++{context.counter(0)};")
    lines += [f"{INDENT * (rank - axis)}}}" for axis in range(1, rank - 1)]
    return lines


def _columns(
    context: Context,
    sums: Sequence[SumNames],
    bounds: list[Bounds],
    size: int,
    groups: Groups | None,
) -> list[str]:
    """The loop over blocks of the innermost axis.

    A full block has a constant number of iterations, which vectorises without a remainder; of
    sums in groups so has a run, which takes the place of all full blocks.
    """
    rank = context.spec.rank
    base = "" if rank == 1 else f"{bounds[-1][0]} + "
    outer = [context.counter(axis) for axis in range(rank - 1)]
    tail = "".join(", " + a for a in [*outer, *context.arguments])

    def block(count: str, filled: str) -> str:
        terms = "".join(f", running.{s.sum}.term{s.times(filled)}" for s in sums)
        return f"pf_terms(at, {count}{terms}{tail});"

    if groups is None:
        full = [
            f"    if (left >= {size} && space == {size}) {{",
            f"        {block(str(size), '')}",
            *(f"        running.{s.sum}.add({size});" for s in sums),
            f"        at += {size};",
        ]
    else:
        full = [
            f"    if (left >= {LANES} && space == {size}) {{",
            f"        const int64_t run = left < {groups.run} ? left & -{LANES} : {groups.run};",
            f"        pf_run(running, at, run{tail});",
            "        at += run;",
        ]
    lines = [
        f"for (int64_t at = {base}column; at < {base}column_end;) {{",
        f"    const int64_t left = {base}column_end - at, space = {size} - running.filled;",
        *full,
        "        continue;",
        "    }",
        "    const int64_t count = left < space ? left : space;",
        f"    {block('count', 'running.filled')}",
        "    at += count;",
        "    running.filled += count;",
        f"    if (running.filled == {size}) {{",
        *(f"        running.{s.sum}.{_rest(sums)}({size});" for s in sums),
        "        running.filled = 0;",
        "    }",
        "}",
    ]
    depth = 1 if rank == 1 else 2
    return [INDENT * depth + line for line in lines]


def _terms_function(context: Context, sums: Sequence[SumNames], blocks: Blocks) -> str:
    """The loops over the iterations of a block, which give each accumulator's terms.

    A body with a single loop is compiled twice: for full blocks, and for the rest.
    """
    last = context.spec.rank - 1
    lines = array_lines(blocks, 1)
    named = _by_sym(context, sums)
    lines += strip_or_segments(context, blocks, last, 1, lambda: _Terms(context, named).lines)
    parameters = ["int64_t at", "int64_t count", *(f"{s.part}* {s.terms}" for s in sums)]
    parameters += [f"const int64_t {context.counter(axis)}" for axis in range(last)]
    inline = blocks.single and len(sums) <= INLINE_SUMS
    return function("void pf_terms", [*parameters, *context.signature], lines, inline)


def _by_sym(context: Context, sums: Sequence[SumNames]) -> dict[Sym, SumNames]:
    return {a.sym: s for a, s in zip(context.workunit.accumulators, sums, strict=True)}


def _run_function(context: Context, sums: Sequence[SumNames], block: int, groups: Groups) -> str:
    """The loops over a run of iterations, where the sums are in groups."""
    named = _by_sym(context, sums)
    lanes = {sym: Lanes(s.kind, s.terms, s.sum, s.sum_type(block)) for sym, s in named.items()}

    def terms(body: Body, depth: int) -> list[str]:
        own = assigned(body)
        return _Terms(context, {s: n for s, n in named.items() if s in own}).lines(body, depth)

    return run_function(context, groups, lanes, terms)


class _Terms:
    """Prints the segments of a body, in order, with each accumulator a local."""

    def __init__(self, context: Context, sums: Mapping[Sym, SumNames]) -> None:
        self.context = context
        self.sums = sums
        self.direct = _single_updates(context.workunit.body, tuple(sums))
        self.started: set[Sym] = set()

    def lines(self, body: Body, depth: int) -> list[str]:
        """A segment: accumulators start at zero, or where the segments before left them."""
        indent = INDENT * depth
        updated = assigned(body)
        lines, ends = [], []
        for sym, s in self.sums.items():
            if sym in self.direct or (sym in self.started and sym not in updated):
                continue
            start = f" = {s.slot}" if sym in self.started else "{}"
            lines.append(f"{indent}{s.kind} {s.term}{start};")
            ends.append(f"{indent}{s.slot} = {s.term};")
            self.started.add(sym)
        for stmt in body:
            if isinstance(stmt, nodes.Update) and stmt.target in self.direct and not stmt.indices:
                value = self.context.expressions.text(stmt.value)
                lines.append(f"{indent}{self.sums[stmt.target].slot} = {value};")
                continue
            rows = row_sums(stmt, self.sums)
            if rows:
                rows += row_sums(stmt, dict.fromkeys(totals(stmt, self.sums)))
            if rows and isinstance(stmt, nodes.For):
                lines += row_lines(self.context, stmt, rows, depth)
            else:
                lines += self.context.statements.print((stmt,), depth)
        return lines + ends


def _single_updates(body: Body, syms: Sequence[Sym]) -> set[Sym]:
    """Accumulators with one unconditional `+=` of their own type: its value is the term.

    The zero that it would be added to changes only -0.0, and the sum has a zero to add it to.
    """
    updates = [s for s in statements(body) if isinstance(s, nodes.Update) and not s.indices]
    result = set()
    for sym in syms:
        own = [u for u in updates if u.target == sym]
        if len(own) != 1 or not any(own[0] is stmt for stmt in body):
            continue
        if own[0].op == "+" and own[0].value.dtype is sym.dtype:
            result.add(sym)
    return result


def _tile_entry(context: Context, sums: Sequence[SumNames]) -> str:
    rank = context.spec.rank
    tiling = tiling_of(context, [f"pf_extent(begin[{axis}], end[{axis}])" for axis in range(rank)])
    box = "begin[0] + column, begin[0] + column_end"
    box = box if rank == 1 else "begin, end, row, row_end, column, column_end"
    tail = "".join(", " + a for a in context.arguments)
    results = [
        f"({s.kind}*){f'(results + {2 * k})' if k else 'results'}" for k, s in enumerate(sums)
    ]
    lines = [
        f"const pf_tiling tiling({tiling});",
        "if (tiling.rows * tiling.columns == 0) return 0;  // the caller zeroed the results",
        "int64_t row, row_end, column, column_end;",
        "if (tiling.count == 1) {",
        f"{INDENT}tiling.box(0, row, row_end, column, column_end);",
        f"{INDENT}pf_tile({box}{''.join(', ' + r for r in results)}{tail});",
        f"{INDENT}return 0;",
        "}",
    ]
    for s in sums:
        size = f"tiling.count * sizeof({s.kind})"
        lines.append(f"{s.kind}* {s.partial} = ({s.kind}*)__builtin_malloc({size});")
    lines.append(f"if ({' || '.join('!' + s.partial for s in sums)}) return -1;")
    if not context.spec.serial:
        size = "tiling.rows * tiling.columns"
        lines += [
            f"const int64_t threads = pf_team(slot[0], {size}, {context.grain()});",
            "#pragma omp parallel for if (threads > 1) num_threads(threads) "
            "private(row, row_end, column, column_end)",
        ]
    partials = "".join(f", {s.partial} + tile" for s in sums)
    lines += [
        "for (int64_t tile = 0; tile < tiling.count; ++tile) {",
        f"{INDENT}tiling.box(tile, row, row_end, column, column_end);",
        f"{INDENT}pf_tile({box}{partials}{tail});",
        "}",
    ]
    for s, result in zip(sums, results, strict=True):
        lines += [
            f"{s.kind} {s.term}{{}};",
            f"for (int64_t tile = 0; tile < tiling.count; ++tile) {s.term} += {s.partial}[tile];",
            f"*{result} = {s.term};",
            f"__builtin_free({s.partial});",
        ]
    lines.append("return 0;")
    return entry(context, lines)
