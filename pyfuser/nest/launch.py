"""How kernels for GPUs are launched: everything a run time needs besides code and data.

It depends on the extents of the space, and never on the device: a result does not change with the
number of its processors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

from pyfuser.analysis.intervals import interval
from pyfuser.ir.nodes import Const, Expr, Extent, Sym
from pyfuser.ir.visit import map_expression
from pyfuser.support.records import dataclass
from pyfuser.tuning.thresholds import Tuning

WORKSPACE_HEAD = 64
"""Bytes at the start of a workspace that hold the ticket of is_last.h."""

LANES = 32
"""Threads that share a loop in a shared loop: no more than a warp of any GPU has."""

SHARED_BYTES = 48 << 10
"""Shared memory of a block that every GPU has without being asked."""

MAX_BLOCKS_YZ = 65535
"""What both languages allow along the other two dimensions."""

_RESULT_BYTES = 16

Dimensions = tuple[int, int, int]


class Space(NamedTuple):
    """Shared memory that is known when the kernel runs: extents and the bytes of an element.

    The extents are made of the kernel's whole-number parameters and the extents of its views.
    """

    sym: Sym
    extents: tuple[Expr, ...]
    itemsize: int


@dataclass(frozen=True, slots=True)
class Grid:
    """Blocks, and threads of each block, along x, y and z."""

    blocks: Dimensions
    threads: Dimensions


@dataclass(frozen=True, slots=True)
class Launch:
    """How the functions of a nest are launched, one after the other with the same grid.

    rule: "map", "reduce", "scan", "team" or "one" (one thread). order: the axes of the space,
    slowest first. results: the number of accumulators; each value takes 16 bytes of the memory at
    "results". threads: of a block, at most. spaces: what is in the dynamic shared memory of a
    block; room: how many bytes it may have. inline: whether the code that joins a block's values is
    repeated for each accumulator.

    The memory at "workspace" has to be zero when it is allocated; every launch leaves its head so.
    Launches that may overlap in time need one each.
    """

    rule: str
    order: tuple[int, ...]
    results: int
    threads: int
    tuning: Tuning
    spaces: tuple[Space, ...] = ()
    room: int = 0
    inline: bool = True

    def grid(self, begin: Sequence[int], end: Sequence[int]) -> Grid | None:
        """The grid for the box `begin <= index < end`.

        None for an empty box: nothing is to be launched, and all results are zero.
        """
        extents = [max(last - first, 0) for first, last in zip(begin, end, strict=True)]
        count, tuning, threads = prod(extents), self.tuning, self.threads
        if not count:
            return None
        if self.rule == "map":
            return _map_grid([extents[axis] for axis in self.order], tuning)
        of_a_block, most = {
            "one": (count, 1),
            "team": (1, tuning.gpu_blocks if self.results else tuning.gpu_grid),
            "reduce": (threads * tuning.gpu_terms, tuning.gpu_blocks),
            "scan": (threads * tuning.gpu_items, count),
        }[self.rule]
        return Grid((min(_ceiling(count, of_a_block), most), 1, 1), (threads, 1, 1))

    def workspace_bytes(self, begin: Sequence[int], end: Sequence[int]) -> int:
        """How large the memory at "workspace" has to be for this box, at least."""
        grid = self.grid(begin, end)
        if grid is None or not self.results or self.rule == "one":
            return 0
        cells = self.threads + 1 if self.rule == "scan" else self.results
        return WORKSPACE_HEAD + grid.blocks[0] * cells * _RESULT_BYTES

    @property
    def result_bytes(self) -> int:
        """The size of the memory at "results"."""
        return _RESULT_BYTES * self.results

    def shared_bytes(
        self, numbers: Mapping[Sym, int], shapes: Mapping[Sym, Sequence[int]]
    ) -> int | None:
        """Bytes that `spaces` take at most, for whole numbers and views' shapes that are known.

        None: a number that they are made of does not fit its type.
        """
        points = {sym: (number, number) for sym, number in numbers.items()}

        def with_shapes(e: Expr) -> Expr:
            return Const(shapes[e.view][e.axis], e.dtype) if isinstance(e, Extent) else e

        total = 0
        for space in self.spaces:
            size = space.itemsize
            for extent in space.extents:
                known = interval(map_expression(extent, with_shapes), points)
                if known is None:
                    return None
                size *= max(known[1], 0)
            total += (size + 15) // 16 * 16
        return total


def _map_grid(extents: Sequence[int], tuning: Tuning) -> Grid:
    """The last axis along x, the one before along y, all others along z.

    A block is as wide as the last axis, or 64 threads where there are others to share it with.
    """
    width, height = extents[-1], extents[-2] if len(extents) > 1 else 1
    depth, threads = prod(extents[:-2]), tuning.gpu_threads
    x = threads if len(extents) == 1 else min(_power_of_two(width), tuning.gpu_row)
    y = min(_power_of_two(height), threads // x)
    z = min(_power_of_two(depth), threads // (x * y), 64)
    if x == tuning.gpu_row:  # what short axes leave over goes to the longest
        x = min(_power_of_two(width), threads // (y * z))
    blocks = (
        min(_ceiling(width, x), tuning.gpu_grid),
        min(_ceiling(height, y), MAX_BLOCKS_YZ),
        min(_ceiling(depth, z), MAX_BLOCKS_YZ),
    )
    return Grid(blocks, (x, y, z))


def _ceiling(count: int, size: int) -> int:
    return -(-count // size)


def _power_of_two(count: int) -> int:
    """The least power of two that is not less."""
    return 1 << max(count - 1, 0).bit_length()
