"""Launches that come back with the same arguments, replayed as one CUDA graph.

A steady loop launches the same kernels on the same memory again and again. Once it has done so
SEEN times, the launches are captured, on a stream of our own, and from then on one call of the
driver stands for all of them. Nothing has to be known of the arguments: a graph belongs to the
bytes of all parameters, so it is replayed if and only if plain launches would have had the same.
(Loops that swap two arrays have two graphs.) Where capturing fails, as on
ROCm, launches stay plain.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import chain
from typing import Any

from pyfuser.counters import COUNTERS
from pyfuser.engine.gpu.device import Device
from pyfuser.engine.gpu.launchable import Bound, launch

SEEN = 3
"""Launches with the same arguments before they are captured: instantiating costs some of them."""

MAX_KEYS = 64
LEAST = 2
"""Kernels of a graph: replaying one takes no less time than launching it."""


class Graphs:
    """The launches of one program: each time all of them, in one order."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        #: By device and parameters: how often they came, or the graph; the latest last.
        self._known: OrderedDict[tuple[int, bytes], Any] = OrderedDict()

    def launch(self, bounds: Sequence[Bound], ran: list[Any]) -> None:
        """Give launches to the current stream; see `make_run` for `ran`."""
        first = bounds[0]
        if len(bounds) < LEAST or not first.device.captures:
            launch(bounds, first.handle, ran)
            return
        key = first.device.number, b"".join([bound.packed for bound in bounds])
        found = self._known.pop(key, 0)
        if type(found) is int:
            found += 1
            if found > SEEN:
                found = captured(first.device, bounds) or 0
        self._known[key] = found
        if len(self._known) > MAX_KEYS:
            self._known.popitem(last=False)
        if type(found) is int:
            launch(bounds, first.handle, ran)
            return
        COUNTERS.graph_launches += 1
        notes = [(0, bound.results) for bound in bounds]
        ran.extend(filter(None, chain(map(found.launch, (None,)), notes)))  # see `launch`


def captured(device: Device, bounds: Sequence[Bound]) -> Any:
    """The graph of launches; None if there is nothing to launch or capturing does not work."""
    bounds = [bound for bound in bounds if bound.shape is not None]
    if len(bounds) < LEAST:
        return None
    stream = device.capture_stream()
    try:
        stream.begin_capture()
        try:
            launch(bounds, stream.ptr, [])
        finally:
            graph = stream.end_capture()
    except Exception:  # whatever its type: launching as before is always possible
        device.captures = False
        return None
    return graph
