"""Tiles of a reduction's space, as C++: rows, which are all axes but the innermost, and columns."""

from __future__ import annotations

from collections.abc import Sequence

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import Bounds, Context

_BOX = ("row", "row_end", "column", "column_end")


def tile_box(context: Context) -> tuple[list[str], list[str]]:
    """The parameters that give `pf_more` its box, and the arguments for them."""
    if context.spec.rank == 1:
        return ["int64_t column", "int64_t column_end"], ["column", "column_end"]
    parameters = ["const int64_t* begin", "const int64_t* end", *(f"int64_t {n}" for n in _BOX)]
    return parameters, ["begin", "end", *_BOX]


def boxes_of_line(context: Context, run: str) -> list[str]:
    """Statements that run the boxes of a tile of one axis, from `column` to `column_end`.

    run: what runs one box.
    """
    rank = context.spec.rank
    context.uses("boxes")
    parameters = ", ".join(f"int64_t {name}" for name in _BOX)
    length = f"end[{rank - 1}] - begin[{rank - 1}]"
    return [
        f"pf_boxes(column, column_end, {length}, [&]({parameters}) {{",
        f"{INDENT}{run}",
        "});",
    ]


def tiling_of(flat: bool, extents: Sequence[str]) -> str:
    """The arguments of the constructor of a space's `pf_tiling`."""
    if flat:
        return f"1, {' * '.join(extents)}"
    return f"{' * '.join(extents[:-1]) or '1'}, {extents[-1]}"


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
