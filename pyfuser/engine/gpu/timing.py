"""What launches take on the device, by its own clock; nobody waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyfuser.engine.gpu.device import Device
from pyfuser.engine.gpu.launchable import Bound, launch
from pyfuser.trace.gate import Ran


class Span:
    """The time between two places in a stream."""

    __slots__ = ("_device", "_handle", "_start", "_stop")

    def __init__(self, device: Device, handle: int) -> None:
        """It begins once the stream has come so far."""
        self._device = device
        self._handle = handle
        self._stop: Any = None
        self._start = self._event()

    def _event(self) -> Any:
        event = self._device.cuda.Event()
        self._device.runtime.eventRecord(event.ptr, self._handle)
        return event

    def end(self) -> None:
        """It ends once the stream has come so far."""
        self._stop = self._event()

    @property
    def done(self) -> bool:
        """Whether its end has come: only then `seconds` may be asked for."""
        return self._stop is not None and bool(self._stop.done)

    @property
    def seconds(self) -> float:
        """How long it took."""
        return 1e-3 * float(self._device.cuda.get_elapsed_time(self._start, self._stop))


def launch_timed(bounds: Sequence[Bound], marks: Sequence[list[Any] | None], ran: Ran) -> None:
    """Launches, one by one; those that have a list of marks append a Span to it."""
    for bound, spans in zip(bounds, marks, strict=True):
        if spans is None:
            launch((bound,), bound.handle, ran)
            continue
        span = Span(bound.device, bound.handle)
        launch((bound,), bound.handle, ran)
        span.end()
        spans.append(span)
