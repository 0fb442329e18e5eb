"""The stand-in's device: memory, streams and kernels. Nothing here has a name of CuPy's."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

SIZE = 1 << 30
ALIGNMENT = 512
GARBAGE = 0xA5
PROT_NONE, PROT_READ, PROT_WRITE = 0, 1, 2
LEGACY, NON_BLOCKING = 0, 1

Operation = Callable[[], None]


class Failure(RuntimeError):
    """What a driver would call an error; `runtime` gives it CuPy's name."""


@dataclass
class Queue:
    """One stream: what it was given, and how much of that is done.

    captured: what it was given since a capture began, None if none did.
    """

    blocking: bool = True
    device: int = 0
    waiting: list[tuple[Operation, list[tuple[int, int]]]] = field(default_factory=list)
    issued: int = 0
    done: int = 0
    captured: list[Operation] | None = None


class Machine:
    """All devices (they share one memory)."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._map = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self.lock = threading.RLock()
        self._open = 0
        self._protect(PROT_NONE)
        self._next = self.base + ALIGNMENT
        self._free: dict[tuple[int, int], list[int]] = {}
        self.queues: dict[int, Queue] = {LEGACY: Queue()}
        self._handles = iter(range(0x1000, 1 << 40, 16))
        self.events: dict[int, tuple[int, int]] = {}
        self.times: dict[int, float] = {}
        self.launched = 0
        self.graphs_launched = 0
        self.seed = int(os.environ.get("FAKE_CUPY_SEED", "0"))

    def _protect(self, rights: int) -> None:
        if self._libc.mprotect(ctypes.c_void_p(self.base), ctypes.c_size_t(SIZE), rights):
            raise OSError(ctypes.get_errno(), "mprotect")

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """The memory can be read and written, as by a device."""
        with self.lock:
            self._open += 1
            if self._open == 1:
                self._protect(PROT_READ | PROT_WRITE)
            try:
                yield
            finally:
                self._open -= 1
                if not self._open:
                    self._protect(PROT_NONE)

    # ------------------------------------------------------------------- memory

    def allocate(self, size: int, stream: int) -> int:
        """Garbage; blocks that a stream gave back are its own again at once."""
        size = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        with self.lock:
            free = self._free.get((stream, size))
            if free:
                address = free.pop()
            else:
                address = self._next
                if address + size > self.base + SIZE:
                    raise MemoryError("the stand-in's memory is full")
                self._next += size
        self.enqueue(stream, lambda: ctypes.memset(address, GARBAGE, size) and None)
        return address

    def release(self, address: int, size: int, stream: int) -> None:
        size = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        with self.lock:
            self._free.setdefault((stream, size), []).append(address)

    # ------------------------------------------------------------------- streams

    def handle(self) -> int:
        return next(self._handles)

    def enqueue(self, stream: int, operation: Operation) -> None:
        """Give a stream something to do."""
        with self.lock:
            queue = self.queue(stream)
            if queue.captured is not None:
                queue.captured.append(operation)
                return
            after = []
            if stream == LEGACY:  # it and all blocking streams wait for each other
                after = [(n, q.issued) for n, q in self.queues.items() if n and q.blocking]
            elif queue.blocking:
                after = [(LEGACY, self.queues[LEGACY].issued)]
            queue.issued += 1
            queue.waiting.append((operation, after))

    def queue(self, stream: int) -> Queue:
        stream = LEGACY if stream == 1 else stream
        try:
            return self.queues[stream]
        except KeyError:
            raise Failure("cudaErrorInvalidResourceHandle: no such stream") from None

    def synchronize(self, stream: int) -> None:
        if self.queue(stream).captured is not None:
            raise Failure("cudaErrorStreamCaptureUnsupported: waiting for a stream that captures")
        self.run(stream, self.queue(stream).issued)

    def run(self, stream: int, until: int) -> None:
        """Do what a stream was given up to operation number `until`."""
        with self.lock:
            queue = self.queue(stream)
            while queue.done < until:
                operation, after = queue.waiting[0]
                for other, count in after:
                    self.run(other, count)
                if queue.done >= until:
                    return
                queue.waiting.pop(0)
                with self.opened():
                    operation()
                queue.done += 1

    def wait(self, stream: int, other: int, count: int) -> None:
        """Let a stream wait for another one's operation number `count`."""
        self.enqueue(stream, lambda: self.run(other, count))

    def synchronize_all(self) -> None:
        for stream in random.sample(list(self.queues), len(self.queues)):
            self.synchronize(stream)


MACHINE = Machine()
