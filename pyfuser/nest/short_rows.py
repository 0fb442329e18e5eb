"""Strides that are constants of the code: of arrays of short vectors, and of slices.

    r[i] = x[i][0] * x[i][0] + x[i][1] * x[i][1] + x[i][2] * x[i][2]

An element's place is 3 * i + 0, 1 or 2. Where g++ knows the 3, it loads whole vectors and shuffles
them; where it does not, it gathers element by element. It has no way to shuffle rows of 5, 6 or 7,
and of 8 to 16 elements that was no faster than to gather them. It costs a kernel for each length of
rows, so rows are short ones whose elements the code names by constants, or in loops with a constant
number of trips.
"""

from __future__ import annotations

from pyfuser.ir.accesses import accesses
from pyfuser.ir.affine import number
from pyfuser.ir.nodes import Body, For, Sym
from pyfuser.ir.visit import reads, statements
from pyfuser.support.passes import left_out
from pyfuser.trace.shape import RegionShape
from pyfuser.transform.unroll import NEAR


def short_rows(body: Body, view: Sym, shape: RegionShape) -> frozenset[int]:
    """The axes of a view whose stride the code should know."""
    steps = [stride // shape.dtype.size for stride in shape.strides]
    if left_out("constant-strides") or not any(1 < step <= NEAR for step in steps):
        return frozenset()
    subscripts = [access.indices for access in accesses(body, view)]
    counted = {
        stmt.sym
        for stmt in statements(body)
        if isinstance(stmt, For) and None not in map(number, (stmt.start, stmt.stop))
    }
    found = set()
    for axis, step in enumerate(steps):
        inner = [n for n, other in enumerate(steps) if abs(other) < step]
        named = all(reads(at[n]) <= counted for at in subscripts for n in inner)
        if named and 1 < step <= NEAR:
            found.add(axis)
    return frozenset(found)
