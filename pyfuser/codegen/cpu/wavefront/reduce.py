"""Code for a reduction whose iterations come a few steps at a time, from several threads.

The order of additions is that of `cpu.reduce`: a tile's terms one after the other, then the tiles.
A tile that one thread runs from beginning to end is summed up as its steps come. Of a tile that
lies across two threads' shares every thread keeps its terms, and the end of the launch sums them.
"""

from __future__ import annotations

from collections.abc import Callable

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import Context, box_bounds, function
from pyfuser.codegen.cpu.functions import Tiled
from pyfuser.codegen.cpu.tiles import (
    boxes_of_line,
    next_row,
    row_loop,
    tile_box,
    tiling_of,
)


def fold_code(context: Context, tiled: Tiled) -> str:
    """`pf_spill`, which computes the terms of a box into memory; `pf_fold`, the tiles of a launch,
    and `pf_state`, which a thread has besides.
    """
    state = ["struct pf_state {", f"{INDENT}pf_fold* common;", f"{INDENT}pf_running running;", "};"]
    return _spill(context, tiled) + _fold(context, tiled) + "\n".join([*state, "", ""])


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


def fold_steps(context: Context, tiled: Tiled) -> list[str]:
    """Statements that continue the tiles over the steps from first to last."""
    if context.spec.rank == 1:
        return _columns(context, tiled)
    return _line(context, tiled) if tiled.node.flat else _rows(context, tiled)


_STATE = [
    "pf_running& pf_sums = ((pf_state*)state)->running;",
    "pf_fold& pf_all = *((pf_state*)state)->common;",
    "const pf_tiling& pf_tiles = pf_all.tiling;",
]


def _columns(context: Context, tiled: Tiled) -> list[str]:
    loops = _part(context, tiled, "slot[1] + pf_at, slot[1] + pf_stop", "pf_at - column")
    return [
        *_STATE,
        "int64_t row, row_end, column, column_end;",
        "for (int64_t pf_at = first - slot[1]; pf_at < last - slot[1];) {",
        "    const int64_t tile = pf_at / pf_tiles.tile_columns;",
        "    pf_tiles.box(tile, row, row_end, column, column_end);",
        "    const int64_t pf_stop = last - slot[1] < column_end ? last - slot[1] : column_end;",
        *(INDENT + line for line in loops("pf_at == column", "pf_stop == column_end")),
        "    pf_at = pf_stop;",
        "}",
    ]


def _line(context: Context, tiled: Tiled) -> list[str]:
    """Rows, whose tiles are those of one axis."""
    rank = context.spec.rank
    inner = "".join(f" * (end[{axis}] - begin[{axis}])" for axis in range(1, rank))
    before = f"row * (end[{rank - 1}] - begin[{rank - 1}]) + column - pf_first"
    loops = _part(context, tiled, ", ".join(tile_box(context)[1]), before)
    return [
        *_STATE,
        "const int64_t *const begin = slot + 1, *const end = begin + " + f"{rank};",
        "int64_t row, row_end, pf_first, pf_end;",
        f"const int64_t pf_last = (last - begin[0]){inner};",
        f"for (int64_t pf_at = (first - begin[0]){inner}; pf_at < pf_last;) {{",
        "    const int64_t tile = pf_at / pf_tiles.tile_columns;",
        "    pf_tiles.box(tile, row, row_end, pf_first, pf_end);",
        "    const int64_t pf_stop = pf_last < pf_end ? pf_last : pf_end;",
        "    const int64_t column = pf_at, column_end = pf_stop;",
        *(INDENT + line for line in loops("pf_at == pf_first", "pf_stop == pf_end")),
        "    pf_at = pf_stop;",
        "}",
    ]


def _rows(context: Context, tiled: Tiled) -> list[str]:
    rank = context.spec.rank
    inner = "".join(f" * (end[{axis}] - begin[{axis}])" for axis in range(1, rank - 1))
    box = "begin, end, pf_at, pf_stop, column, column_end"
    loops = _part(context, tiled, box, "(pf_at - row) * (column_end - column)")
    return [
        *_STATE,
        "const int64_t *const begin = slot + 1, *const end = begin + " + f"{rank};",
        "int64_t row, row_end, column, column_end;",
        f"const int64_t pf_last = (last - begin[0]){inner};",
        f"for (int64_t pf_at = (first - begin[0]){inner}; pf_at < pf_last;) {{",
        "    int64_t pf_stop = pf_at;",
        "    for (int64_t pf_part = 0; pf_part < pf_tiles.across; ++pf_part) {",
        "        const int64_t tile = pf_at / pf_tiles.tile_rows * pf_tiles.across + pf_part;",
        "        pf_tiles.box(tile, row, row_end, column, column_end);",
        "        pf_stop = pf_last < row_end ? pf_last : row_end;",
        *(INDENT * 2 + line for line in loops("pf_at == row", "pf_stop == row_end")),
        "    }",
        "    pf_at = pf_stop;",
        "}",
    ]


def _part(context: Context, tiled: Tiled, box: str, before: str) -> Callable[[str, str], list[str]]:
    """Prints what runs a box of a tile: given the conditions that it begins and ends the tile.

    before: how many iterations of the tile come before the box.
    """
    sums = tiled.sums
    tail = "".join(f", {a}" for a in context.arguments)
    kept = [f"pf_all.{s.partial}.terms[tile]" for s in sums]
    terms = "".join(f", {k}{s.times(f'({before})')}" for k, s in zip(kept, sums, strict=True))
    results = ", ".join(f"({s.kind}*)(pf_all.{s.partial}.sum{s.times('tile')})" for s in sums)

    def run(text: str) -> list[str]:
        parts = boxes_of_line(context, text) if tiled.node.flat else [text]
        return [INDENT + line for line in parts]

    def lines(begins: str, ends: str) -> list[str]:
        return [
            f"if ({kept[0]}) {{",
            *run(f"pf_spill({box}{terms}{tail});"),
            "} else {",
            f"    if ({begins}) pf_sums = pf_running();",
            *run(f"pf_more(pf_sums, {box}{tail});"),
            f"    if ({ends}) pf_sums.done({results});",
            "}",
        ]

    return lines
