"""The order in which a TiledSums adds up the terms of a box, for the interpreter of nests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, product
from typing import Any

import numpy as np

from pyfuser.ir.arithmetic import OPERATIONS
from pyfuser.nest.nodes import TiledSums
from pyfuser.tuning.thresholds import Tuning

_BYTES = 256  # of all lanes

Piece = tuple[tuple[int, ...], int, int]
"""A part of a row: its place along the outer axes, and from where to where it goes."""


class Lanes:
    """A running sum: lane by lane, and at the end in halves."""

    def __init__(self, kind: str) -> None:
        dtype = np.dtype(kind)
        self._lanes = np.zeros(_BYTES // dtype.itemsize, dtype)
        self._parts: list[list[Any]] = []

    def room(self, count: int) -> list[Any]:
        """An array for so many terms of a block."""
        self._parts.append([OPERATIONS["uninitialised"]] * count)
        return self._parts[-1]

    def add(self, terms: Sequence[Any] | None = None) -> None:
        """Add terms, by default those of the block."""
        found = [*chain.from_iterable(self._parts)] if terms is None else terms
        count = -(-len(found) // len(self._lanes)) * len(self._lanes)
        padded = np.zeros(count, self._lanes.dtype)
        padded[: len(found)] = found
        with np.errstate(all="ignore"):
            for part in padded.reshape(-1, len(self._lanes)):
                self._lanes += part
        self._parts = []

    def total(self) -> Any:
        found = self._lanes
        with np.errstate(all="ignore"):
            while len(found) > 1:
                found = found[: len(found) // 2] + found[len(found) // 2 :]
        return found[0]


def tiled_sums(
    terms: Callable[..., None],
    run: Callable[..., None] | None,
    box: tuple[Sequence[int], Sequence[int]],
    node: TiledSums,
    tuning: Tuning,
    shuffle: Callable[[list[Any]], None],
) -> list[Any]:
    """The sums over a box, whose tiles are shuffled."""
    kinds = [array.dtype.value for array in node.arrays]
    found = list(enumerate(_tiles(*box, node.flat, tuning)))
    shuffle(found)
    totals = {}
    for place, pieces in found:
        sums = [Lanes(kind) for kind in kinds]
        space = node.block
        for row, first, last in pieces:
            at = first
            while at < last:
                if node.most and last - at >= node.lanes and space == node.block:
                    assert run is not None
                    count = min((last - at) // node.lanes * node.lanes, node.most)
                    run(*sums, at, count, *row)
                else:
                    count = min(last - at, space)
                    terms(at, count, *[one.room(count) for one in sums], *row)
                    space -= count
                if not space:
                    for one in sums:
                        one.add()
                    space = node.block
                at += count
        for one in sums:
            one.add()
        totals[place] = [one.total() for one in sums]
    results = [np.zeros(1, kind) for kind in kinds]
    with np.errstate(all="ignore"):
        for place in range(len(totals)):
            results = [a + b for a, b in zip(results, totals[place], strict=True)]
    return [one[0].item() for one in results]


def _tiles(
    low: Sequence[int], high: Sequence[int], flat: bool, tuning: Tuning
) -> Iterator[list[Piece]]:
    """The parts of rows of each tile, as `pf_tiling` cuts a box."""
    extents = [max(b - a, 0) for a, b in zip(low, high, strict=True)]
    *outer, length = extents
    points = list(product(*(range(a, a + n) for a, n in zip(low, outer, strict=False))))
    rows, columns = (1, math.prod(extents)) if flat else (len(points), length)
    size = -(-rows * columns // tuning.tiles)
    size = min(-(-size // tuning.smallest_tile) * tuning.smallest_tile, tuning.tile)
    if not size:
        return
    many = max(size // columns, 1)
    for row, column in product(range(0, rows, many), range(0, columns, size)):
        stop = min(column + size, columns)
        if flat:
            yield list(_of_line(points, low[-1], length, column, stop))
            continue
        first, last = low[-1] + column, low[-1] + stop
        yield [(point, first, last) for point in points[row : row + many]]


def _of_line(
    points: Sequence[tuple[int, ...]], low: int, length: int, at: int, stop: int
) -> Iterator[Piece]:
    """The parts of rows from one iteration to another, numbered row by row."""
    while at < stop:
        row, column = divmod(at, length)
        end = min(length, column + stop - at)
        yield points[row], low + column, low + end
        at += end - column
