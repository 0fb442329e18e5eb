"""Sums over tiles of a box, a block of terms at a time.

An accumulator that the body only adds to becomes a term of each iteration. Terms of a block are
computed first, in a loop that vectorises like a map's, then added up in an order that depends on
the space alone; tiles of the space give partial sums, which are added in order. So a reduction's
bits do not depend on the number of threads, on the vector length or on what it is fused with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyfuser.ir.nodes import Sym
from pyfuser.nest.build import LOOP, box, local, values
from pyfuser.nest.nodes import LANES, Function, Nest, TiledSums, Trimmed
from pyfuser.nest.passes.blocks import Blocks, allocs, block_loops, blocks_of
from pyfuser.nest.passes.promote_sums import promoted
from pyfuser.nest.passes.row_sums import order_sums
from pyfuser.nest.passes.split_accumulators import groups_of, lanes_of
from pyfuser.nest.passes.split_conditions import WIDEST, inside, inside_of_sums
from pyfuser.nest.passes.split_guards import AROUND, MIDDLE
from pyfuser.nest.sums import is_sum
from pyfuser.nest.terms import Terms

TERMS = "pf_terms"
"""The function that computes the terms of a block."""

INLINE_SUMS = 8
"""With more accumulators the code for full blocks is not compiled apart from that for others."""


def tile_sums(nest: Nest) -> Nest:
    """The nest with its accumulators summed up in tiles, if they are only added to."""
    unit = nest.workunit
    sums = [a.sym for a in unit.accumulators]
    if not sums or nest.spec.pattern == "scan" or not all(is_sum(unit, sym) for sym in sums):
        return nest
    arrays = {sym: nest.fresh(f"{nest.name(sym)}_terms", sym.dtype) for sym in sums}
    kept = sum(sym.dtype.size for sym in sums)
    blocks = blocks_of(nest, kept, max(lanes_of(nest, sums), LANES))
    functions, split = _terms_functions(blocks, arrays, kept)
    groups, how = groups_of(blocks, arrays), "split-accumulators"
    if groups is None and len(functions) == 1:
        groups, how = promoted(blocks, arrays), "promote-sums"
    passes = [*blocks.passes, *([split] if split else [])]
    size, most, lanes = blocks.size, 0, LANES
    if groups is not None:
        functions, size, lanes = (*functions, groups.function), groups.block, groups.lanes
        most = groups.run
        passes.append(how)
    low, high = box(nest)
    flat = any(a.flat for a in unit.accumulators)
    inline = len(sums) <= INLINE_SUMS
    ends = values(low), values(high)
    tiled = TiledSums(*ends, TERMS, tuple(arrays.values()), size, most, lanes, flat, inline)
    functions = (*functions, Function(LOOP, low, high, body=(tiled,)))
    return replace(blocks.nest, functions=functions, passes=(*nest.passes, *passes))


def _terms_functions(
    blocks: Blocks, arrays: Mapping[Sym, Sym], kept: int
) -> tuple[tuple[Function, ...], str]:
    """What computes the terms of a block, the last one; inside, without conditions on the index.

    With it, the name of the pass that did so. A block at an end of a row has one iteration that is
    not inside. kept: bytes of the terms of an iteration.
    """
    nest = blocks.nest
    last = nest.rank - 1
    found, split = inside_of_sums(nest, last) if blocks.single else (None, "")
    if found is None:
        return (_terms_function(blocks, arrays, TERMS),), ""
    middle = blocks_of(nest.of(found.body), kept, blocks.size)
    at, count = map(local, ("at", "count"))
    names, given = (MIDDLE, AROUND), tuple(arrays.values())
    others = nest.counters[:last]
    test = inside(nest, found, last)
    trimmed = Trimmed(at, count, given, values(others), test.name, *names, WIDEST)
    params = (at.sym, count.sym, *given, *others)
    functions = (
        test,
        replace(_terms_function(blocks, arrays, AROUND), inline=False),
        _terms_function(middle, arrays, MIDDLE),
        Function(TERMS, params=params, arrays=given, body=(trimmed,), inline=True),
    )
    return functions, split


def _terms_function(blocks: Blocks, arrays: Mapping[Sym, Sym], name: str) -> Function:
    """The loops over the iterations of a block, which give each accumulator's terms.

    A body with a single loop is compiled twice: for full blocks, and the rest. Loops along columns
    are not: there are many, and they gain nothing.
    """
    nest = blocks.nest
    last = nest.rank - 1
    loops = block_loops(blocks, last, lambda: Terms(nest, arrays).body)
    given = tuple(arrays.values())
    return Function(
        name,
        params=(local("at").sym, local("count").sym, *given, *nest.counters[:last]),
        arrays=given,
        body=order_sums(nest, (*allocs(blocks), *loops)),
        straight=blocks.straight,
        segments=blocks.segments,
        passes=blocks.passes,
        inline=blocks.single and len(arrays) <= INLINE_SUMS,
        once=blocks.columns is not None,
    )
