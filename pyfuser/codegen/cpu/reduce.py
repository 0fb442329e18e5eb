"""Code for a parallel_reduce (with the maps that were fused into it).

Its sums are tiled (see `nest.passes.tile_sums`), or one thread computes them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import (
    Bounds,
    Context,
    box_bounds,
    entry,
    function,
)
from pyfuser.codegen.cpu.functions import LOCALS as FUNCTION_LOCALS
from pyfuser.codegen.cpu.functions import SumNames, Tiled, functions_code
from pyfuser.codegen.cpu.tables import copies_of
from pyfuser.codegen.cpu.tiles import (
    boxes_of_line,
    next_row,
    row_loop,
    tile_box,
    tiling_of,
)
from pyfuser.nest.abi import NO_MEMORY
from pyfuser.nest.locals import OF_BLOCKS, OF_GROUPS
from pyfuser.nest.nodes import RUN, Nest, TiledSums
from pyfuser.nest.shares import Varying

LOCALS = (
    OF_BLOCKS
    | OF_GROUPS
    | FUNCTION_LOCALS
    | {"row", "row_end", "column", "column_end", "running", "left", "space"}
    | {"rest", "run", "tiling", "threads", "tile"}
)

SHARES = 4
"""Tiles for each thread that keep all of them busy."""


def emit(context: Context) -> str:
    """The loops and the entry point."""
    nest = context.nest
    tiled = tile_code(context, nest)
    if tiled is not None:
        kept = kept_terms(context, tiled) if _is_heavy(context) else ""
        return tiled.code + kept + _tile_function(context, tiled) + _tile_entry(context, tiled)
    tail = "".join(", " + a for a in context.arguments)
    lines = [f"pf_loop(begin, end, results{tail});", "return 0;"]
    return functions_code(context, nest, nest.functions) + entry(context, lines)


def tile_code(context: Context, nest: Nest) -> Tiled | None:
    """What sums up a tile of a nest, also a part of the tile at a time."""
    *functions, last = nest.functions
    node = last.body[0]
    if not isinstance(node, TiledSums):
        return None
    context.uses("sum")
    accumulators = context.workunit.accumulators
    sums = [
        SumNames(context, a, terms, node.block)
        for a, terms in zip(accumulators, node.arrays, strict=True)
    ]
    tiled = Tiled(node, sums, "")
    named = {a.sym: names for a, names in zip(accumulators, sums, strict=True)}
    terms = [f for f in functions if f.name != RUN]
    runs = [f for f in functions if f.name == RUN]
    code = functions_code(context, nest, terms, named) + _running(tiled)
    code += functions_code(context, nest, runs, named) + _more_function(context, tiled)
    return tiled._replace(code=code)


def _running(tiled: Tiled) -> str:
    """The state of a tile between two boxes."""
    sums = tiled.sums
    lines = ["struct pf_running {"]
    lines += [f"{INDENT}{s.type} {s.sum};" for s in sums]
    lines.append(f"{INDENT}int64_t filled = 0;  // terms of the block that is not complete")
    pointers = ", ".join(f"{s.kind}* {s.partial}" for s in sums)
    lines.append(f"{INDENT}__attribute__((always_inline)) inline void done({pointers}) {{")
    for s in sums:
        lines.append(f"{INDENT * 2}{s.sum}.{_rest(tiled)}(filled);")
        lines.append(f"{INDENT * 2}*{s.partial} = *(const {s.kind}*){s.sum}.total();")
    return "\n".join([*lines, f"{INDENT}}}", "};", "", ""])


def _more_function(context: Context, tiled: Tiled) -> str:
    rank = context.spec.rank
    lines, bounds = box_bounds(context) if rank > 1 else ([], [])
    lines = [*lines, *row_loop(context, bounds)]
    lines += _columns(context, tiled, bounds)
    if rank > 2:
        lines += next_row(context, bounds)
    if rank > 1:
        lines.append(f"{INDENT}}}")
    parameters = ["pf_running& running", *tile_box(context)[0], *context.signature]
    return function("void pf_more", parameters, lines, inline=True)


def _tile_function(context: Context, tiled: Tiled) -> str:
    """One tile from its beginning to its end."""
    parameters, box = tile_box(context)
    tail = ", ".join(["running", *box, *context.arguments])
    lines = [
        "pf_running running;",
        *(
            boxes_of_line(context, f"pf_more({tail});")
            if tiled.node.flat
            else [f"pf_more({tail});"]
        ),
        f"running.done({', '.join(s.partial for s in tiled.sums)});",
    ]
    parameters = [*parameters, *(f"{s.kind}* {s.partial}" for s in tiled.sums), *context.signature]
    lines = context.guard() + [INDENT + line for line in lines]
    return function("void pf_tile", parameters, lines)


def _rest(tiled: Tiled) -> str:
    """The method that adds the terms of a block where that happens once or twice a tile."""
    return "add" if tiled.node.inline else "rest"


def _columns(context: Context, tiled: Tiled, bounds: list[Bounds]) -> list[str]:
    """The loop over blocks of the innermost axis.

    A full block has a constant number of iterations, which vectorises without a remainder; of
    sums in groups so has a run, which takes the place of all full blocks.
    """
    rank, sums = context.spec.rank, tiled.sums
    size, most, lanes = tiled.node.block, tiled.node.most, tiled.node.lanes
    base = "" if rank == 1 else f"{bounds[-1][0]} + "
    outer = [context.counter(axis) for axis in range(rank - 1)]
    tail = "".join(", " + a for a in [*outer, *context.arguments])

    def block(count: str, filled: str) -> str:
        terms = "".join(f", running.{s.sum}.term{s.times(filled)}" for s in sums)
        return f"pf_terms(at, {count}{terms}{tail});"

    if not most:
        full = [
            f"    if (left >= {size} && space == {size}) {{",
            f"        {block(str(size), '')}",
            *(f"        running.{s.sum}.add({size});" for s in sums),
            f"        at += {size};",
        ]
    else:
        full = [
            f"    if (left >= {lanes} && space == {size}) {{",
            f"        const int64_t run = left < {most} ? left & -{lanes} : {most};",
            f"        {RUN}(running, at, run{tail});",
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
        *(f"        running.{s.sum}.{_rest(tiled)}({size});" for s in sums),
        "        running.filled = 0;",
        "    }",
        "}",
    ]
    depth = 1 if rank == 1 else 2
    return [INDENT * depth + line for line in lines]


def _tile_entry(context: Context, tiled: Tiled) -> str:
    rank, sums = context.spec.rank, tiled.sums
    context.uses("extent")
    extents = [f"pf_extent(begin[{axis}], end[{axis}])" for axis in range(rank)]
    tiling = tiling_of(tiled.node.flat, extents)
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
        *_team(context),
        *(_few_tiles(context, tiled) if _is_heavy(context) else []),
        "if (tiling.count == 1) {",
        f"{INDENT}tiling.box(0, row, row_end, column, column_end);",
        f"{INDENT}pf_tile({box}{''.join(', ' + r for r in results)}{tail});",
        f"{INDENT}return 0;",
        "}",
    ]
    few = context.spec.tuning.tiles
    for s in sums:
        memory = f"({s.kind}*)__builtin_malloc(tiling.count * sizeof({s.kind}))"
        lines += [
            f"{s.kind} {s.few}[{few}];",
            f"{s.kind}* {s.partial} = tiling.count <= {few} ? {s.few} : {memory};",
        ]
    lines.append(f"if ({' || '.join('!' + s.partial for s in sums)}) return -1;")
    lines += _tile_loop(context, [box, *(f"{s.partial} + tile" for s in sums)])
    for s, result in zip(sums, results, strict=True):
        lines += [
            f"{s.kind} {s.term}{{}};",
            f"for (int64_t tile = 0; tile < tiling.count; ++tile) {s.term} += {s.partial}[tile];",
            f"*{result} = {s.term};",
            f"if ({s.partial} != {s.few}) __builtin_free({s.partial});",
        ]
    lines.append("return 0;")
    return entry(context, lines)


def _is_heavy(context: Context) -> bool:
    """Whether less than a tile is worth another thread."""
    shares = context.nest.shares
    if shares is None:
        return False
    return isinstance(shares.least, Varying) or shares.least < context.spec.tuning.smallest_tile


def _team(context: Context) -> list[str]:
    shares = context.nest.shares
    return [] if shares is None else [context.team(shares, "tiling.rows * tiling.columns")]


def _few_tiles(context: Context, tiled: Tiled) -> list[str]:
    """Statements for fewer tiles than keep the threads busy: they share the iterations of each,
    along rows if a tile may have several, and the terms are added up in the end.
    """
    rank, sums, flat = context.spec.rank, tiled.sums, tiled.node.flat
    low = "row" if rank > 1 and not flat else "column"
    before = "(row - pf_first) * (column_end - column)" if low == "row" else "column - pf_first"
    if flat:
        before = f"row * (end[{rank - 1}] - begin[{rank - 1}]) + {before}"
    terms = [f"pf_all.{s.partial}.terms[tile]{s.times(f'({before})')}" for s in sums]
    box = tile_box(context)[1]
    if rank == 1:
        box = [f"begin[0] + {end}" for end in box]

    def run(arguments: Sequence[str]) -> list[str]:
        spill = f"pf_spill({', '.join([*box, *terms, *arguments])});"
        return [
            "const auto run = [&](int64_t pf_at) {",
            f"{INDENT}const int64_t tile = pf_at / pf_each, pf_part = pf_at % pf_each;",
            f"{INDENT}int64_t row, row_end, column, column_end;",
            f"{INDENT}tiling.box(tile, row, row_end, column, column_end);",
            f"{INDENT}const int64_t pf_first = {low}, pf_size = {low}_end - pf_first;",
            f"{INDENT}{low} = pf_first + pf_cut(pf_size, pf_part, pf_each, threads);",
            f"{INDENT}{low}_end = pf_first + pf_cut(pf_size, pf_part + 1, pf_each, threads);",
            *(INDENT + line for line in (boxes_of_line(context, spill) if flat else [spill])),
            "};",
        ]

    loop = "for (int64_t pf_at = 0; pf_at < tiling.count * pf_each; ++pf_at) run(pf_at);"
    ahead, region = _parallel(context, run, loop)
    lines = [
        f"const int64_t pf_each = {SHARES} * threads / tiling.count + 1;",
        *ahead,
        "pf_fold pf_all;",
        f"const bool pf_open = pf_all.open(slot) && pf_all.keep(slot, slot[1], slot[{1 + rank}]);",
        "if (pf_open) {",
        *(INDENT + line for line in region),
        "}",
        "pf_all.close(pf_open, results);",
        f"return pf_open ? 0 : {NO_MEMORY};",
    ]
    return [
        f"if (threads > 1 && tiling.count < {SHARES} * threads) {{",
        *(INDENT + line for line in lines),
        "}",
    ]


def _tile_loop(context: Context, given: Sequence[str]) -> list[str]:
    """All tiles, among threads; given: what each gets beside the arguments."""

    def run(arguments: Sequence[str]) -> list[str]:
        return [
            "const auto run = [&](int64_t tile) {",
            f"{INDENT}int64_t row, row_end, column, column_end;",
            f"{INDENT}tiling.box(tile, row, row_end, column, column_end);",
            f"{INDENT}pf_tile({', '.join([*given, *arguments])});",
            "};",
        ]

    loop = "for (int64_t tile = 0; tile < tiling.count; ++tile) run(tile);"
    alone = [*run(context.arguments), loop]
    if context.nest.shares is None:
        return alone
    ahead, region = _parallel(context, run, loop)
    return [
        "if (threads > 1) {",
        *(INDENT + line for line in [*ahead, *region]),
        "} else {",
        *(INDENT + line for line in alone),
        "}",
    ]


def _parallel(
    context: Context, run: Callable[[Sequence[str]], list[str]], loop: str
) -> tuple[Sequence[str], list[str]]:
    """Statements in front of a parallel loop, and the loop.

    run: declares what the loop calls, given the arguments.
    """
    shares = context.nest.shares
    if shares is None or not shares.tables:
        head = "#pragma omp parallel for num_threads(threads)"
        return (), [*run(context.arguments), head, loop]
    copies = copies_of(context, shares)
    inside = [*copies.begin, *run(copies.arguments), "#pragma omp for nowait", loop, *copies.end]
    head = "#pragma omp parallel num_threads(threads)"
    return copies.before, [head, "{", *(INDENT + line for line in inside), "}"]


def kept_terms(context: Context, tiled: Tiled) -> str:
    """`pf_spill`, which computes the terms of a box into memory, and `pf_fold`, which has the tiles
    of a launch: it opens, keeps those of some steps and closes with the results.
    """
    return _spill(context, tiled) + _fold(context, tiled)


def _spill(context: Context, tiled: Tiled) -> str:
    rank, sums, block = context.spec.rank, tiled.sums, tiled.node.block
    lines, bounds = box_bounds(context) if rank > 1 else ([], [])
    lines = [*lines, *row_loop(context, bounds)]
    base = "" if rank == 1 else f"{bounds[-1][0]} + "
    outer = [context.counter(axis) for axis in range(rank - 1)]
    terms = ", ".join([*(s.terms for s in sums), *outer, *context.arguments])
    indent = INDENT * (1 if rank == 1 else 2)
    lines += [
        f"{indent}for (int64_t at = {base}column; at < {base}column_end;) {{",
        f"{indent}    const int64_t left = {base}column_end - at;",
        f"{indent}    const int64_t count = left < {block} ? left : {block};",
        f"{indent}    pf_terms(at, count, {terms});",
        *(f"{indent}    {s.terms} += {'2 * ' * s.wide}count;" for s in sums),
        f"{indent}    at += count;",
        f"{indent}}}",
    ]
    if rank > 2:
        lines += next_row(context, bounds)
    if rank > 1:
        lines.append(f"{INDENT}}}")
    parameters = [*tile_box(context)[0], *(f"{s.part}* {s.terms}" for s in sums)]
    return function("void pf_spill", [*parameters, *context.signature], lines)


def _fold(context: Context, tiled: Tiled) -> str:
    rank, sums, block = context.spec.rank, tiled.sums, tiled.node.block
    context.uses("extent", "partial_sums")
    extents = [f"pf_extent(slot[{1 + axis}], slot[{1 + rank + axis}])" for axis in range(rank)]
    flat = tiled.node.flat
    inner = " * ".join(extents[1:] if flat else extents[1:-1]) or "1"
    parts = [f"pf_parts<{s.part}, {block}, {1 + s.wide}> {s.partial};" for s in sums]
    opened = " && ".join(f"{s.partial}.open(tiling.count)" for s in sums)
    kept = " && ".join(f"{s.partial}.keep(tiling, tile)" for s in sums)
    closed = [
        f"{s.partial}.close(tiling, complete, results + {2 * k});" for k, s in enumerate(sums)
    ]
    steps = "tiling.columns" if rank == 1 else f"{extents[0]}"
    first, last = "first - slot[1]", "last - slot[1]"
    strip = f"tiling.tile_{'columns' if rank == 1 or flat else 'rows'}"
    across = "" if rank == 1 or flat else " * tiling.across"
    lines = [
        "struct pf_fold {",
        "    pf_tiling tiling{0, 0};",
        *(f"    {part}" for part in parts),
        "    bool open(const int64_t* slot) {",
        f"        tiling = pf_tiling({tiling_of(flat, extents)});",
        f"        return {opened};",
        "    }",
        "    // Keep the terms of all tiles that the steps from first to last are in, or cut.",
        "    bool keep(const int64_t* slot, int64_t first, int64_t last) {",
        f"        first = first > slot[1] ? ({first}) * {inner} / {strip}{across} : 0;",
        f"        last = last - slot[1] < {steps} ? (({last}) * {inner} + {strip} - 1) / "
        f"{strip}{across} : tiling.count;",
        "        bool enough = true;",
        "        for (int64_t tile = first; tile < last && enough; ++tile)",
        f"            enough = {kept};",
        "        return enough;",
        "    }",
        "    void close(bool complete, int64_t* results) {",
        *(f"        {line}" for line in closed),
        "    }",
        "};",
    ]
    return "\n".join([*lines, "", ""])
