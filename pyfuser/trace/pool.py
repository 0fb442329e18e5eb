"""Memory of Views that died, kept for the next View of that size.

The kernel's page faults on fresh memory cost more than what most kernels then do with it: a
program that makes temporaries in a loop would fault its memory in at every step.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

SMALLEST = 1 << 16  # bytes; below, the allocator has its own lists

ALIGNMENT = 64
"""Blocks start on a cache line, which is also the widest vector: else every such load takes two."""

UNALIGNED = 1 << 12  # bytes of blocks that are too small for that to matter


def _limit() -> int:
    """A quarter of the machine's memory."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    except (ValueError, OSError, AttributeError):
        return 1 << 30


class Pool:
    """Blocks of bytes by size, together at most `limit` bytes; the oldest go first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self._blocks: dict[int, list[Array]] = {}
        self._order: deque[int] = deque()  # sizes, in the order the blocks came

    def take(self, size: int) -> Array | None:
        """A block of exactly `size` bytes, with whatever is in it."""
        blocks = self._blocks.get(size)
        if not blocks:
            return None
        try:
            block = blocks.pop()
        except IndexError:  # another thread was faster
            return None
        self.held -= size
        return block

    def give(self, block: Array) -> None:
        """Keep a block that nobody else refers to."""
        size = block.nbytes
        if not SMALLEST <= size <= self.limit:
            return
        self._blocks.setdefault(size, []).append(block)
        self._order.append(size)
        self.held += size
        while self.held > self.limit and self._order:
            self.take(self._order.popleft())
        while len(self._order) > 4096:
            self._order.popleft()

    def clear(self) -> None:
        """Give everything back to the system."""
        self._blocks.clear()
        self._order.clear()
        self.held = 0


POOL = Pool(_limit())


def allocate(size: int, zero: bool) -> Array:
    """`size` bytes, from the pool if it has them.

    zero: whether they must be zero. Raises MemoryError, after the pool was emptied.
    """
    block = POOL.take(size) if size >= SMALLEST else None
    if block is not None:
        if zero:
            block.fill(0)
        return block
    try:
        return _zeros(size)
    except MemoryError:
        POOL.clear()
        return _zeros(size)


def _zeros(size: int) -> Array:
    """Fresh bytes, which the system zeroes page by page when they are first touched."""
    if size < UNALIGNED:
        return np.zeros(size, dtype=np.uint8)
    memory = np.zeros(size + ALIGNMENT, dtype=np.uint8)
    start = -memory.__array_interface__["data"][0] % ALIGNMENT
    # Views of a slice, or of an array's own buffer, refer to `memory` alone: `release` would not
    # know of them. Those of a memoryview refer to the block.
    return np.frombuffer(memory.data, np.uint8, size, start)


def release(block: Array) -> None:
    """Keep the block of a dead buffer, passed as its attribute, if nobody else refers to it."""
    if sys.getrefcount(block) == _ALONE:
        POOL.give(block)


class _Owner:
    """Has an array that nobody else refers to."""

    def __init__(self) -> None:
        self.root = np.zeros(1, dtype=np.uint8)


def _references(block: Array) -> int:
    return sys.getrefcount(block)


_OWNER = _Owner()
#: What `release` counts then; it depends on the interpreter.
_ALONE = _references(_OWNER.root)
