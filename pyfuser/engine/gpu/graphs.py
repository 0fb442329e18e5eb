"""Launches that come back with the same arguments, replayed as one CUDA graph.

A steady loop launches the same kernels on the same memory again and again. Once it has done so
SEEN times, the launches are captured, on a stream of our own, and from then on one call of the
driver stands for all of them. Nothing has to be known of the arguments: a graph belongs to the
bytes of all parameters, so it is replayed if and only if plain launches would have had the same.
(Loops that swap two arrays have two graphs.) Where capturing fails, as on
ROCm, launches stay plain.

Floating-point scalars may change from one time to the next, as steps of time do: a graph of
CHANGING launches or more is captured so that its kernels read those that were seen to change from
memory (`scalars`), which is set before a replay. All others still have to be the same: if one of
them changes later, the graph is captured again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import chain, compress
from typing import Any, NamedTuple

from pyfuser.engine.gpu.device import Device
from pyfuser.engine.gpu.launchable import Bound, Launchable, launch
from pyfuser.engine.gpu.scalars import WORDS, Scalars
from pyfuser.support.counters import COUNTERS
from pyfuser.trace.gate import Ran

SEEN = 3
"""Launches with the same arguments before they are captured: instantiating costs some of them."""

MAX_KEYS = 64
LEAST = 2
"""Kernels of a graph: replaying one takes no less time than launching it."""

CHANGING = 4
"""The same, where scalars change: setting them is a launch, too."""


class Place(NamedTuple):
    """A floating-point scalar: the launch, and where its bytes are in all launches' together.

    own: where they are in those of the launch. The address to read it from is behind them.
    """

    launch: int
    own: int
    start: int
    end: int

    @property
    def mask(self) -> int:
        """Its bits."""
        return ((1 << 8 * (self.end - self.start)) - 1) << 8 * self.start


class Known:
    """Launches that differ from those before in floating-point scalars alone, if at all.

    bits: the parameters of one of them. changing: those that have changed. times: how often they
    came since another one did. graph: None until they are captured; scalars: what it reads.
    """

    __slots__ = ("bits", "changing", "graph", "mask", "scalars", "times")

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.changing: tuple[Place, ...] = ()
        self.mask = 0
        self.times = 0
        self.graph: Any = None
        self.scalars: Scalars | None = None

    # law
    def came(self, bits: int, places: Sequence[Place]) -> None:
        """They came again; `places`: the scalars that may change."""
        other = (bits ^ self.bits) & ~self.mask
        if other:
            self.changing = tuple(p for p in places if (self.mask | other) & p.mask)
            self.mask = sum(place.mask for place in self.changing)
            self.bits, self.times, self.graph, self.scalars = bits, 0, None, None
        self.times += 1

    def words(self, packed: bytes) -> bytes:
        """The changing scalars, 8 bytes for each."""
        return b"".join([packed[p.start : p.end].ljust(8, b"\0") for p in self.changing])


class Graphs:
    """The launches of one program: each time all of them, in one order."""

    __slots__ = ("_known", "_layouts")

    def __init__(self) -> None:
        #: By device, stream, kernels and the parameters that may not change; the latest last.
        self._known: OrderedDict[tuple[Any, ...], Known] = OrderedDict()
        #: By kernels (all of the program's, or some that follow each other): see `layout`.
        self._layouts: dict[tuple[Launchable, ...], tuple[tuple[Place, ...], int]] = {}

    def launch(self, bounds: Sequence[Bound], ran: Ran) -> None:
        """Give launches to the current stream; see `make_run` for `ran`."""
        first = bounds[0]
        if len(bounds) < LEAST or not first.device.captures:
            launch(bounds, first.handle, ran)
            return
        packed = b"".join([bound.packed for bound in bounds])
        bits = int.from_bytes(packed, "little")
        kernels = tuple([bound.launchable for bound in bounds])
        if kernels not in self._layouts:
            self._layouts[kernels] = layout(bounds)
        places, fixed = self._layouts[kernels]
        key = first.device.number, first.handle, kernels, bits & fixed
        known = self._known.pop(key, None) or Known(bits)
        self._known[key] = known
        if len(self._known) > MAX_KEYS:
            self._known.popitem(last=False)
        known.came(bits, places)
        if known.times > SEEN and known.graph is None:
            capture(known, bounds)
        if known.graph is None:
            launch(bounds, first.handle, ran)
            return
        if known.scalars is not None:
            known.scalars.set(known.words(packed))
        COUNTERS.graph_launches += 1
        notes = [(0, bound.results) for bound in bounds]
        steps = chain(map(known.graph.launch, (None,)), notes)  # see `launch`
        before = len(ran)
        ran.extend(filter(None, chain.from_iterable(compress((steps,), ran.gate))))
        ran.pass_on(before)


def layout(bounds: Sequence[Bound]) -> tuple[tuple[Place, ...], int]:
    """The scalars of launches that may change, and the bits of all their other parameters."""
    places: list[Place] = []
    total = 0
    for number, bound in enumerate(bounds):
        if bound.packed:  # else nothing is launched
            places += (Place(number, b, total + b, total + e) for b, e in bound.launchable.scalars)
        total += len(bound.packed)
    if sum(bound.shape is not None for bound in bounds) < CHANGING:
        places = []
    return tuple(places), ~sum(place.mask for place in places)


def capture(known: Known, bounds: Sequence[Bound]) -> None:
    """Make the graph of launches, whose scalars that change are read from memory.

    There is none if there is nothing to launch, too much changes, or capturing does not work.
    """
    known.times = 0
    if len(known.changing) > WORDS or sum(b.shape is not None for b in bounds) < LEAST:
        return
    device, parts = bounds[0].device, [bytearray(bound.packed) for bound in bounds]
    try:
        scalars = Scalars(device, bounds[0].handle) if known.changing else None
        if scalars is not None:
            for n, (number, own, start, end) in enumerate(known.changing):
                behind = own + end - start
                parts[number][behind : behind + 8] = (scalars.address + 8 * n).to_bytes(8, "little")
        pairs = zip(bounds, parts, strict=True)
        known.graph = captured(device, [b._replace(packed=bytes(part)) for b, part in pairs])
        known.scalars = scalars
    except Exception:  # whatever its type: launching as before is always possible
        device.captures = False


def captured(device: Device, bounds: Sequence[Bound]) -> Any:
    """The graph of launches."""
    stream = device.capture_stream()
    stream.begin_capture()
    try:
        launch([bound for bound in bounds if bound.shape is not None], stream.ptr, Ran())
    finally:
        graph = stream.end_capture()
    return graph
