"""Launches that come back with the same arguments, replayed as one CUDA graph.

A steady loop launches the same kernels on the same memory again and again. Once it has done so a
few times (`graph_launches`), the launches are captured, on a stream of our own, and from then on
one call of the driver stands for all of them. Nothing has to be known of the arguments: a graph
belongs to the bytes of all parameters, so it is replayed if and only if plain launches would have
had the same. (Loops that swap two arrays have two graphs.) Where capturing fails, as on ROCm,
launches stay plain.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import chain, compress
from typing import Any

from pyfuser.engine.gpu.device import Device
from pyfuser.engine.gpu.launchable import Bound, launch
from pyfuser.support.counters import COUNTERS
from pyfuser.trace.gate import Ran
from pyfuser.tuning.thresholds import NOW

MAX_KEYS = 64
LEAST = 2
"""Kernels of a graph: replaying one takes no less time than launching it."""


class Known:
    """Launches that came before: how often, and their graph once they are captured."""

    __slots__ = ("graph", "times")

    def __init__(self) -> None:
        self.times = 0
        self.graph: Any = None


class Graphs:
    """The launches of one program: each time all of them, in one order."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        #: By device, stream, kernels and the bytes of all parameters; the latest last.
        self._known: OrderedDict[tuple[Any, ...], Known] = OrderedDict()

    def launch(self, bounds: Sequence[Bound], ran: Ran) -> None:
        """Give launches to the current stream; see `make_run` for `ran`."""
        first = bounds[0]
        if sum(bound.shape is not None for bound in bounds) < LEAST or not first.device.captures:
            launch(bounds, first.handle, ran)
            return
        key = key_of(bounds)
        known = self._known.pop(key, None) or Known()
        self._known[key] = known
        if len(self._known) > MAX_KEYS:
            self._known.popitem(last=False)
        known.times += 1
        if known.times > NOW.running.graph_launches and known.graph is None:
            known.times = 0
            try:
                known.graph = captured(first.device, bounds)
            except Exception:  # whatever its type: launching as before is always possible
                first.device.captures = False
        if known.graph is None:
            launch(bounds, first.handle, ran)
            return
        COUNTERS.graph_launches += 1
        notes = [(0, bound.results) for bound in bounds]
        steps = chain(map(known.graph.launch, (None,)), notes)  # see `launch`
        before = len(ran)
        ran.extend(filter(None, chain.from_iterable(compress((steps,), ran.gate))))
        ran.pass_on(before)


def key_of(bounds: Sequence[Bound]) -> tuple[Any, ...]:
    """What launches of equal keys do alike: the device, the stream, the kernels, all parameters."""
    first = bounds[0]
    return first.device.number, first.handle, *((b.launchable, b.packed) for b in bounds)


def captured(device: Device, bounds: Sequence[Bound]) -> Any:
    """The graph of launches."""
    stream = device.capture_stream()
    stream.begin_capture()
    try:
        launch([bound for bound in bounds if bound.shape is not None], stream.ptr, Ran())
    finally:
        graph = stream.end_capture()
    return graph
