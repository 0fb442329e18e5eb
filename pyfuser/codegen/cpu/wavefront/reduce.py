"""Code for a reduction whose iterations come a few steps at a time, from several threads.

The order of additions is that of `cpu.reduce`: a tile's terms one after the other, then the tiles.
A tile that one thread runs from beginning to end is summed up as its steps come. Of a tile that
lies across two threads' shares every thread keeps its terms, and the end of the launch sums them.
"""

from __future__ import annotations

from collections.abc import Callable

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import Context
from pyfuser.codegen.cpu.functions import Tiled
from pyfuser.codegen.cpu.tiles import boxes_of_line, tile_box

STATE = f"struct pf_state {{\n{INDENT}pf_fold* common;\n{INDENT}pf_running running;\n}};\n\n"
"""What a thread has, beside the tiles of a launch."""


def fold_steps(context: Context, tiled: Tiled) -> list[str]:
    """Statements that continue the tiles over the steps from first to last."""
    if context.spec.rank == 1:
        return _columns(context, tiled)
    return _line(context, tiled) if tiled.node.flat else _rows(context, tiled)


_SUMS_OF_STATE = [
    "pf_running& pf_sums = ((pf_state*)state)->running;",
    "pf_fold& pf_all = *((pf_state*)state)->common;",
    "const pf_tiling& pf_tiles = pf_all.tiling;",
]


def _columns(context: Context, tiled: Tiled) -> list[str]:
    loops = _part(context, tiled, "slot[1] + pf_at, slot[1] + pf_stop", "pf_at - column")
    return [
        *_SUMS_OF_STATE,
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
        *_SUMS_OF_STATE,
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
        *_SUMS_OF_STATE,
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
