"""Loop interchange and blocking: in which order a map's loops walk through its space.

The law. Iterations of a parallel_for over several axes are unordered, so every order of its loops
is legal, also one that goes block by block, and each iteration computes what it did. Not so where
an order may show: sums and scans (bits depend on the order of additions), serial spaces, printf,
fences, atomics, and loops that wait for other iterations.

The cost. What an iteration brings in while the innermost loop runs: of each array the step along
that axis, a cache line at most; twice for stores, which read a line first. Where two axes together
suit the arrays much better than either (a transpose: `b[i, j] = a[j, i]`), both are cut into
blocks, so that what a line holds besides is used before the line is gone (M. Lam, E. Rothberg and
M. Wolf, "The Cache Performance and Optimizations of Blocked Algorithms", 1991).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pyfuser.analysis.accesses import Mode, accesses
from pyfuser.analysis.layout import address
from pyfuser.ir.effects import effects
from pyfuser.nest.spec import LoopOrder, given_order
from pyfuser.support.passes import left_out
from pyfuser.trace.shape import CallShape, RegionShape
from pyfuser.transform.kernel import Kernel

SERIAL_SPACES = frozenset({"Serial"})
"""Execution spaces whose iterations run one after the other."""

BLOCK = 64
"""Iterations of a block along the outer one of its two axes; for the other: `thresholds.along`.

So many lines of each array stay in cache, also where they lie a power of two apart.
"""

_LINE = 64  # bytes

_SHORT = 16
"""An axis of no more iterations, if others are much longer, keeps its lines in cache."""

_ONE_BY_ONE = 4
"""What lies in lines that stay in cache, but not side by side, is no vector: it counts as so many
elements."""

_GAIN = 0.8
"""Interchanged loops must bring in at most this part of what the given order does."""

_BLOCK_GAIN = 0.6
"""Blocked loops have shorter runs, so they must save more."""


class Walk(NamedTuple):
    """How an access of parameter `param` moves: bytes along each axis of the space.

    rows: whether a loop of the iteration takes the rest of each line that it brings in.
    """

    param: int
    writes: bool
    size: int
    strides: tuple[int, ...]
    rows: bool = False

    def unit(self, axis: int) -> bool:
        """Whether neighbours along the axis are neighbours in memory."""
        return abs(self.strides[axis]) == self.size


def loop_order(kernel: Kernel) -> LoopOrder:
    """The order that brings in least, or the given one if no other is much better."""
    rank = len(kernel.space.begin)
    given = given_order(rank)
    if rank == 1 or left_out("loop-order") or not may_reorder(kernel):
        return given
    found = walks(kernel)
    shapes = list(zip(kernel.space.begin, kernel.space.end, strict=True))
    short = _short([end - begin for begin, end in shapes])
    costs = [sum(_cost(walk, axis, axis in short) for walk in found) for axis in range(rank)]
    long = [axis for axis, (begin, end) in enumerate(shapes) if end - begin != 1]
    best = min(long or [rank - 1], key=lambda axis: (costs[axis], -axis))
    if costs[best] > _GAIN * costs[-1]:
        best = rank - 1
    across = _across(found, best, short, rank)
    outer = [axis for axis in _by_stride(found, rank) if axis != best]
    if across is not None and _both(found, best, across, short) <= _BLOCK_GAIN * costs[best]:
        return LoopOrder((*(axis for axis in outer if axis != across), across, best), BLOCK)
    if best == rank - 1:
        return given
    return LoopOrder((*outer, best))


def walks(kernel: Kernel) -> tuple[Walk, ...]:
    """How a kernel's accesses with known subscripts move, one of those that move alike."""
    call = CallShape(kernel.pattern, kernel.space, kernel.workunit, kernel.shapes)
    rank = len(kernel.space.begin)
    found: dict[tuple[int, tuple[int, ...]], Walk] = {}
    for access in accesses(call):
        region = kernel.shapes[access.param]
        assert isinstance(region, RegionShape)
        index = address(region, access.relation.indices)
        if index is not None:
            terms = dict(index.terms)
            strides = tuple(terms.get(axis, 0) for axis in range(rank))
            size, inner = region.dtype.size, (terms[term] for term in terms if term >= rank)
            key = access.param, strides
            writes = access.mode is not Mode.READ or (key in found and found[key].writes)
            rows = any(abs(step) == size for step in inner)
            found[key] = Walk(access.param, writes, size, strides, rows)
    return tuple(found.values())


def _short(extents: Sequence[int]) -> frozenset[int]:
    longest = max(extents)
    return frozenset(
        axis
        for axis, extent in enumerate(extents)
        if extent <= _SHORT and _SHORT // 2 * extent <= longest
    )


def _cost(walk: Walk, axis: int, short: bool) -> int:
    """Bytes an iteration brings in while the loop over an axis is the innermost."""
    least = walk.size if walk.rows else _ONE_BY_ONE * walk.size if short else _LINE
    return min(abs(walk.strides[axis]), least) * (1 + walk.writes)


def _across(found: Iterable[Walk], best: int, short: frozenset[int], rank: int) -> int | None:
    """The axis along which most of what suits the innermost one badly is contiguous."""
    if best in short:
        return None
    others = [axis for axis in range(rank) if axis != best and axis not in short]
    bad = [walk for walk in found if abs(walk.strides[best]) >= _LINE]
    weight = {axis: sum(_cost(w, best, False) for w in bad if w.unit(axis)) for axis in others}
    return max((axis for axis in others if weight[axis]), key=weight.__getitem__, default=None)


def _both(found: Iterable[Walk], first: int, second: int, short: frozenset[int]) -> int:
    """Bytes an iteration brings in where blocks of two axes are run."""
    return sum(
        min(cost for cost in (_cost(walk, first, False), _cost(walk, second, False)))
        if walk.unit(second)
        else _cost(walk, first, first in short)
        for walk in found
    )


def _by_stride(found: Sequence[Walk], rank: int) -> list[int]:
    """The axes, those of the longest steps first; equal ones as given."""
    return sorted(range(rank), key=lambda axis: -sum(abs(walk.strides[axis]) for walk in found))


# law: True
def may_reorder(kernel: Kernel) -> bool:
    """Whether no result depends on the order of the iterations."""
    if kernel.pattern != "for" or kernel.space.execution in SERIAL_SPACES:
        return False
    return not effects(kernel.workunit).observable
