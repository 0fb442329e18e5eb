"""The tracer holds the calls that were recorded and not yet run."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyfuser.trace.call import Call
from pyfuser.trace.memory import Buffer, Region

MAX_CALLS = 512
MAX_BYTES_KEPT = 1 << 30  # of memory that only the trace keeps alive


class Tracer:
    """An ordered list of pending calls, bounded in length and in the memory it keeps alive.

    One tracer serves the process; its lock serialises threads. `flush_function` is given by the
    driver: it runs the pending calls and removes each from `calls` as soon as it has run, so that
    an error neither loses a call nor runs one twice.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.lock = threading.RLock()
        self.flush_function: Callable[[Tracer], None] | None = None
        self.recorded = 0
        self._raw = 0  # pending arguments whose memory other arrays may reach
        self._bytes = 0

    def record(self, call: Call) -> None:
        """Append a call; flush first if the trace is full."""
        with self.lock:
            if len(self.calls) >= MAX_CALLS or self._bytes > MAX_BYTES_KEPT:
                self.flush()
            call.position = self.recorded
            self.recorded += 1
            self.calls.append(call)
            for argument in call.arguments:
                if type(argument) is Region:
                    buffer = argument.buffer
                    if buffer.external:
                        self._raw += 1
                    if not buffer.pending:
                        self._bytes += buffer.nbytes
                    buffer.pending += 1

    def remove(self, done: list[Call]) -> None:
        """Forget calls that have run."""
        if len(done) == len(self.calls):
            self.calls = []
        else:
            gone = set(map(id, done))
            self.calls = [call for call in self.calls if id(call) not in gone]
        for call in done:
            for argument in call.arguments:
                if type(argument) is Region:
                    buffer = argument.buffer
                    buffer.pending -= 1
                    if buffer.external:
                        self._raw -= 1
                    if not buffer.pending:
                        self._bytes -= buffer.nbytes
        if not self.calls:
            self._raw = self._bytes = 0

    def touches(self, buffer: Buffer) -> bool:
        """Whether a pending call may read or write the buffer's memory."""
        return buffer.pending > 0 or (buffer.external and self._raw > 0)

    def flush(self) -> None:
        """Run everything that is pending, in an order its dependences allow."""
        if not self.calls:
            return
        with self.lock:
            if self.calls and self.flush_function is not None:
                self.flush_function(self)

    def flush_for(self, buffer: Buffer) -> None:
        """Make the buffer's memory safe for the host to read and write."""
        if self.calls and self.touches(buffer):
            self.flush()
