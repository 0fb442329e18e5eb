"""How emitted GPU kernels are launched: everything a run time needs besides the data.

It depends on the extents of the space, and never on the device: a result does not change with the
number of its processors.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyfuser.codegen.gpu.context import WORKSPACE_HEAD, Argument
from pyfuser.codegen.gpu.team_analysis import TEAM, Space
from pyfuser.support.records import dataclass
from pyfuser.tuning.thresholds import DEFAULT, Tuning

MAX_BLOCKS_YZ = 65535
"""What both languages allow along the other two dimensions."""

_RESULT_BYTES = 16

Dimensions = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Grid:
    """Blocks, and threads of each block, along x, y and z."""

    blocks: Dimensions
    threads: Dimensions


@dataclass(frozen=True, slots=True)
class GpuKernel:
    """A kernel as source text, and how it is launched.

    source: a complete translation unit, in the language of the dialect it was emitted for.
    entries: the entry points, to be launched one after the other with the same grid and arguments.
    arguments: their parameters, in order; each pointer is 8 bytes, each scalar an element of its
    dtype. rule: "map", "reduce", "scan", "team" or "one" (one thread). order: the axes of the
    space, slowest first. results: the number of accumulators; each value takes 16 bytes of the
    memory at "results". options: what every compiler must be told. spaces: what is in the
    dynamic shared memory of a block (see `gpu.team_analysis.room_for`); room: how many bytes it may
    have. team: the threads of a block that stands for a team. tuning: the numbers that it was
    emitted with.

    The memory at "workspace" has to be zero when it is allocated; every launch leaves its head so.
    Launches that may overlap in time need one each.
    """

    source: str
    entries: tuple[str, ...]
    arguments: tuple[Argument, ...]
    rule: str
    order: tuple[int, ...]
    results: int
    options: tuple[str, ...]
    spaces: tuple[Space, ...] = ()
    room: int = 0
    team: int = TEAM
    tuning: Tuning = DEFAULT

    def grid(self, begin: Sequence[int], end: Sequence[int]) -> Grid | None:
        """The grid for the box `begin <= index < end`.

        None for an empty box: nothing is to be launched, and all results are zero.
        """
        extents = [max(last - first, 0) for first, last in zip(begin, end, strict=True)]
        count = _product(extents)
        if not count:
            return None
        if self.rule == "one":
            return Grid((1, 1, 1), (1, 1, 1))
        tuning, threads = self.tuning, (self.tuning.gpu_threads, 1, 1)
        if self.rule == "team":
            most = tuning.gpu_blocks if self.results else tuning.gpu_grid
            return Grid((min(count, most), 1, 1), (self.team, 1, 1))
        if self.rule == "reduce":
            blocks = min(_ceiling(count, threads[0] * tuning.gpu_terms), tuning.gpu_blocks)
            return Grid((blocks, 1, 1), threads)
        if self.rule == "scan":
            return Grid((_ceiling(count, threads[0] * tuning.gpu_items), 1, 1), threads)
        return _map_grid([extents[axis] for axis in self.order], self.tuning)

    def workspace_bytes(self, begin: Sequence[int], end: Sequence[int]) -> int:
        """How large the memory at "workspace" has to be for this box, at least."""
        grid = self.grid(begin, end)
        if grid is None or not self.results or self.rule == "one":
            return 0
        cells = self.tuning.gpu_threads + 1 if self.rule == "scan" else self.results
        return WORKSPACE_HEAD + grid.blocks[0] * cells * _RESULT_BYTES

    @property
    def result_bytes(self) -> int:
        """The size of the memory at "results"."""
        return _RESULT_BYTES * self.results


def _map_grid(extents: Sequence[int], tuning: Tuning) -> Grid:
    """The last axis along x, the one before along y, all others along z.

    A block is as wide as the last axis, or 64 threads where there are others to share it with.
    """
    width, height = extents[-1], extents[-2] if len(extents) > 1 else 1
    depth, threads = _product(extents[:-2]), tuning.gpu_threads
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


def _product(numbers: Sequence[int]) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


def _ceiling(count: int, size: int) -> int:
    return -(-count // size)


def _power_of_two(count: int) -> int:
    """The least power of two that is not less."""
    return 1 << max(count - 1, 0).bit_length()
