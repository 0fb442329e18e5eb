"""Code that keeps the terms of a reduction's tiles, to be added up when all have been computed.

So several threads compute the terms of a tile; the order of additions is that of `cpu.reduce`.
"""

from __future__ import annotations

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import Context, box_bounds, function
from pyfuser.codegen.cpu.functions import Tiled
from pyfuser.codegen.cpu.tiles import next_row, row_loop, tile_box, tiling_of


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
