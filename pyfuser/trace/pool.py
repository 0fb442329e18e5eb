"""Memory of Views that died, kept for the next View of about that size.

The kernel's page faults on fresh memory cost more than what most kernels then do with it: a
program that makes temporaries in a loop would fault its memory in at every step. Blocks have room
for a little more than what they are made for, so that Views whose size changes with the data (what
is left of some particles) find memory, too. The room costs nothing before it is touched.

Small blocks have lists of their own: making one takes longer than most kernels on it. The extension
(`hot/memory.c`) takes from these lists and gives to them, too.
"""

from __future__ import annotations

import os
import resource
import sys
from collections import deque
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

SMALLEST = 1 << 16  # bytes of the blocks in a `Pool`; below they are in `SMALL`

ALIGNMENT = 64
"""Blocks start on a cache line, which is also the widest vector: else every such load takes two."""

LARGE = 1 << 20  # bytes

UNALIGNED = 1 << 12  # bytes of blocks that are too small for that to matter


SPREAD = 37 << 12
"""Bytes between large blocks, besides. The system puts one behind the other: arrays that start
multiples of a power of two apart fall into the same sets of caches and banks of memory, which took
1.6 times as long in a loop over a dozen of them."""

MISSED = 64
"""Blocks of about a size that may be missing, at most: as many of NumPy's are kept."""

CLASSES = 8
"""Sizes of blocks between a power of two and the next."""


def capacity(size: int) -> int:
    """The bytes that a block for `size` bytes has: at most an eighth more."""
    if size < SMALLEST:
        return size
    step = (1 << (size - 1).bit_length() - 1) // CLASSES
    return -(-size // step) * step


def most_memory() -> int:
    """The bytes of memory that this process can have at most, as far as the system tells."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        whole = 1 << 32
    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    return whole if allowed < 0 else min(whole, allowed)


class Pool:
    """Blocks of bytes by capacity, together at most `limit` bytes; the oldest go first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self._blocks: dict[int, list[Array]] = {}
        self._missed: dict[int, int] = {}  # blocks of each capacity that were asked for in vain
        self._order: deque[int] = deque()  # capacities, in the order the blocks came

    def take(self, size: int) -> Array | None:
        """A block of exactly `size` bytes, with whatever is in it."""
        room = capacity(size)
        block = self._pop(room)
        if block is not None and block.nbytes == size:
            return block
        memory: Any = None if block is None else block.base
        if isinstance(memory, memoryview) and memory.nbytes >= size + ALIGNMENT:  # made here
            return _block(memory, size)
        self._missed[room] = min(self._missed.get(room, 0) + 1, MISSED)
        return None

    def _pop(self, room: int) -> Array | None:
        blocks = self._blocks.get(room)
        if not blocks:
            return None
        try:
            block = blocks.pop()
        except IndexError:  # another thread was faster
            return None
        self.held -= room
        return block

    def give(self, block: Array) -> None:
        """Keep a block that nobody else refers to; one of NumPy's in place of a missing one only.

        A program may have NumPy make any number that nobody ever takes, or of ever new sizes.
        """
        size, room = block.nbytes, capacity(block.nbytes)
        if size < SMALLEST or room > self.limit:
            return
        if not isinstance(block.base, memoryview):
            if not self._missed.get(room):
                return
            self._missed[room] -= 1
        self._blocks.setdefault(room, []).append(block)
        self._order.append(room)
        self.held += room
        while self.held > self.limit and self._order:
            self._pop(self._order.popleft())
        while len(self._order) > 4096:
            self._order.popleft()

    def clear(self) -> None:
        """Give everything back to the system."""
        self._blocks.clear()
        self._missed.clear()
        self._order.clear()
        self.held = 0


SMALL: dict[int, list[Array]] = {}
"""Blocks of fewer than SMALLEST bytes, by their size."""

SIZES, COUNT, EACH = 64, 256, 1 << 20  # sizes in SMALL at most; blocks, bytes of one size


def keep(block: Array) -> None:
    """Keep a small block that nobody else refers to."""
    size = block.nbytes
    blocks = SMALL.get(size)
    if blocks is None:
        if len(SMALL) >= SIZES:
            SMALL.clear()
        blocks = SMALL.setdefault(size, [])
    if len(blocks) < COUNT and size * len(blocks) < EACH:
        blocks.append(block)


def _kept(size: int) -> Array | None:
    try:
        return SMALL[size].pop() if size in SMALL else None
    except (IndexError, KeyError):  # there is none, or another thread was faster
        return None


POOL = Pool(most_memory() // 4)


def clear() -> None:
    """Give all blocks that are kept back to the system."""
    POOL.clear()
    SMALL.clear()


def allocate(size: int, zero: bool) -> Array:
    """`size` bytes, from the pool if it has them.

    zero: whether they must be zero. Raises MemoryError, after the pool was emptied.
    """
    block = POOL.take(size) if size >= SMALLEST else _kept(size)
    if block is not None:
        if zero:
            block.fill(0)
        return block
    try:
        return _zeros(size)
    except MemoryError:
        clear()
        return _zeros(size)


def _zeros(size: int) -> Array:
    """Fresh bytes, which the system zeroes page by page when they are first touched."""
    if size < UNALIGNED:
        return np.zeros(size, dtype=np.uint8)
    room = capacity(size) + (SPREAD if size >= LARGE else ALIGNMENT)
    return _block(np.zeros(room, dtype=np.uint8).data, size)


def _block(memory: Any, size: int) -> Array:
    """The first aligned bytes of a memoryview.

    Views of a slice, or of an array's own buffer, would refer to the array that has the memory, and
    `release` would not know of them. Those of a memoryview refer to the block.
    """
    address = np.frombuffer(memory, np.uint8).__array_interface__["data"][0]
    return np.frombuffer(memory, np.uint8, size, -address % ALIGNMENT)


def release(block: Array) -> None:
    """Keep the block of a dead buffer, passed as its attribute, if nobody else refers to it."""
    if sys.getrefcount(block) == _ALONE:
        (POOL.give if block.nbytes >= SMALLEST else keep)(block)


class _Owner:
    """Has an array that nobody else refers to."""

    def __init__(self) -> None:
        self.root = np.zeros(1, dtype=np.uint8)


def _references(block: Array) -> int:
    return sys.getrefcount(block)


_OWNER = _Owner()
#: What `release` counts then; it depends on the interpreter.
_ALONE = _references(_OWNER.root)
