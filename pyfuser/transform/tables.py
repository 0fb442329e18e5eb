"""Tallies in small tables: each thread counts in a copy of its own, and adds it up in the end.

    pk.atomic_add(count, [key[i]], 1)

The law. A view is changed by atomic updates alone, of one kind that commutes and associates, whose
old values nobody sees; nothing else in the kernel reads, writes or overlaps it. Of integers, and of
extremes, the order of such updates does not show in a single bit, so they may be made to any table
whose elements change nothing at first, and that be applied to the view afterwards, one atomic
update an element (privatization: R. Allen and K. Kennedy, "Optimizing Compilers for Modern
Architectures", 2001; OpenMP's reductions of arrays). Sums of real numbers round in another way in
another order, but several threads have no order: copies are one that they may take. One thread
makes its updates in the view itself, in order.

Beside a reduction that one thread computes, it needs neither locks nor a copy.

The cost is memory for each thread, and two passes over it; the gain is that no update locks a cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from pyfuser.ir.accesses import accesses
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Body, Sym, Update, Workunit
from pyfuser.support.caches import cached
from pyfuser.trace.call import GPU_SPACES
from pyfuser.trace.memory import contiguous
from pyfuser.trace.shape import RegionShape
from pyfuser.transform.kernel import Kernel
from pyfuser.tuning.thresholds import NOW

KINDS = {"+": "+", "-": "+", "&": "&", "|": "|", "^": "^", "min": "min", "max": "max"}
"""The operators whose updates may be made in any order, with those that they may be mixed with."""

MOST_BYTES = 4 << 20  # of a table


# law
def private_tables(kernel: Kernel) -> Kernel:
    """The kernel with the places of such views, and how many elements they have, in `tables`."""
    space = kernel.space
    if kernel.pattern not in ("for", "reduce") or space.execution in (*GPU_SPACES, "Serial"):
        return kernel
    tallied = tallied_views(kernel.workunit)
    if not tallied:
        return kernel
    tallied -= {sym for pair in kernel.overlaps for sym in pair}
    tables = tuple(
        (place, prod(shape.shape))
        for place, (param, shape) in enumerate(
            zip(kernel.workunit.params, kernel.shapes, strict=True)
        )
        if param.sym in tallied
        and isinstance(shape, RegionShape)
        and shape.strides == contiguous(shape.shape, shape.dtype.size)
        and 0 < prod(shape.shape) * shape.dtype.size <= MOST_BYTES
        and space.size >= NOW.tuning.table_share * prod(shape.shape)
    )
    return replace(kernel, tables=tables) if tables else kernel


@cached(1024)
def tallied_views(workunit: Workunit) -> frozenset[Sym]:
    """Views that may be tallied in copies, if their sizes and strides are right for it."""
    return frozenset(_tallied(workunit.body))


# law
def _tallied(body: Body) -> Iterator[Sym]:
    """Views of numbers that atomic updates of one kind alone touch; nobody sees old values."""
    kinds: dict[Sym, set[str]] = {}
    others: set[Sym] = set()
    for access in accesses(body):
        node = access.node
        if isinstance(node, Update) and node.atomic and node.op in KINDS:
            kinds.setdefault(access.view, set()).add(KINDS[node.op])
        else:
            others.add(access.view)
    for view, ops in kinds.items():
        whole = view.dtype.is_integer and view.dtype is not DType.BOOL
        real = view.dtype.is_float and ops <= {"+", "min", "max"}
        if (whole or real) and len(ops) == 1 and view not in others:
            yield view
