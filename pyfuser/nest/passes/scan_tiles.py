"""A scan of tiles: each thread takes some, and totals tell where the last pass over each starts.

The tiles do not depend on the number of threads, so neither does a floating-point result. A tile's
second pass comes as soon as the totals before it are known, while its data is in cache, if no
iteration reads what another one writes; else after all first ones.
"""

from __future__ import annotations

from dataclasses import replace

from pyfuser.ir.accesses import accesses
from pyfuser.ir.nodes import Body, Read, Stmt
from pyfuser.ir.visit import assigned, map_body
from pyfuser.nest.nodes import Nest, Scan


def scan_tiles(nest: Nest) -> Nest:
    """The nest with its scan cut into tiles, unless one thread runs it."""
    if nest.spec.pattern != "scan" or nest.spec.serial:
        return nest

    def cut(stmt: Stmt) -> Stmt | Body:
        if not isinstance(stmt, Scan):
            return stmt
        (accumulator,) = nest.workunit.accumulators
        single, tile = accumulator.sym.dtype.is_integer, nest.spec.tuning.scan_tile
        return replace(stmt, tile=tile, single=single, at_once=at_once(nest))

    functions = (replace(f, body=map_body(f.body, None, cut)) for f in nest.functions)
    return replace(nest, functions=tuple(functions))


def at_once(nest: Nest) -> bool:
    """Whether a tile's last pass may come before the first pass over other tiles.

    It may if no iteration reads, in either pass, what another one writes in its last. That is so
    where whatever is written is never read, or is always named by the iteration's own index.
    """
    body = nest.workunit.body
    (index,) = nest.workunit.indices
    own = Read(index)
    if index in assigned(body):
        return False
    for sym, view in nest.views.items():
        if not view.written:
            continue
        mine = list(accesses(body, sym))
        if not any(access.reads for access in mine):
            if view.restrict:
                continue
            return False
        axes = [{n for n, at in enumerate(access.indices) if at == own} for access in mine]
        if not view.restrict or not set.intersection(*axes):
            return False
    return True
