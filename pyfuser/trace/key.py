"""What stands in for a trace's shape where it is only to be found again: cheap, and never coarser.

The law: `key_of(a) == key_of(b)` implies `shape_of(a) == shape_of(b)`, as long as what the key
names by id() (workunits, execution spaces, dtypes) is alive. The converse does not hold: equal
arrays of NumPy's that are two buffers, or workunits that are equal and not the same, make another
key, which costs planning nothing but a look at the shape.

Why it holds. The *words* have, call by call, the workunit, the space and the pattern (so the types
of scalars, too); of a view the number of its buffer, by first use, and offset, strides, shape and
dtype; the value of a scalar that matters to the analysis; of a Future the call that computes it.
The *facts* have of each buffer, by number, all else that `shape_of` looks at: for memory of ours
whether it is a temporary and whether it is fresh; where memory of others is among them, the
clusters themselves. So `shape_of` can be computed from a key, and from nothing else does it follow.
(Calls that wait, `others`, are none here: whoever has some has no key.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pyfuser.ir.nodes import Workunit
from pyfuser.trace.call import Call
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Buffer, Region
from pyfuser.trace.shape import ANYBODYS, ClusterShape, RegionShape, TraceShape, clusters_of


class Key(NamedTuple):
    """words: what was called on what. facts: what is known of the memory when it runs."""

    words: tuple[Any, ...]
    facts: tuple[Any, ...]

    # law: False
    def fits(self, trace: TraceShape) -> bool:
        """Whether a shape of the same calls was computed from the same facts.

        Another thread may have dropped a View between the two.
        """
        clusters = trace.clusters
        buffers = len(self.facts) - len(clusters)
        if self.facts[buffers:] != clusters:
            return False
        regions = [word for word in self.words if type(word) is tuple and len(word) > 1]
        shapes = [a for call in trace.calls for a in call.arguments if type(a) is RegionShape]
        bases = self.facts[:buffers]
        if not buffers:
            bases = tuple([(n, -_lowest(regions, n, known)) for n, known in enumerate(clusters)])
        return [(at, offset) for at, offset, *_ in regions] == [
            (at, shape.offset - bases[at][1])
            for (at, *_), shape in zip(regions, shapes, strict=True)
            if shape.cluster == bases[at][0]
        ]


def _lowest(regions: Sequence[tuple[Any, ...]], number: int, known: ClusterShape) -> int:
    """From where the offsets of a cluster count, by the words of all regions."""
    if known != ANYBODYS:
        return 0
    return min(int(offset) for at, offset, *_ in regions if at == number)


def key_of(calls: Sequence[Call], structural: Callable[[Workunit], frozenset[int]]) -> Key | None:
    """The key of recorded calls; None if an earlier flush has left a Future's value on a device.

    structural: see `shape_of`; it is asked once for each workunit.
    """
    words: list[Any] = []
    numbers: dict[int, int] = {}  # by id(): the buffers, in the order of `buffers`
    buffers: list[Buffer] = []
    known: dict[int, tuple[Any, ...]] = {}  # by id() of a region
    producers: dict[int, int] = {}
    positions: dict[int, frozenset[int]] = {}
    for place, call in enumerate(calls):
        number = id(call.workunit)
        matters = positions.get(number)
        if matters is None:
            matters = positions[number] = structural(call.workunit)
        words += number, id(call.space), call.pattern
        for n, argument in enumerate(call.arguments):
            kind = type(argument)
            if kind is Region:
                word = known.get(id(argument))
                if word is None:
                    region: Any = argument
                    buffer, offset, strides, shape, dtype = region
                    at = numbers.setdefault(id(buffer), len(buffers))
                    if at == len(buffers):
                        buffers.append(buffer)
                    word = known[id(argument)] = at, offset, strides, shape, id(dtype)
                words.append(word)
            elif kind is Future and id(argument) in producers:
                words.append((producers[id(argument)],))
            elif kind is Future and not argument.ready:  # type: ignore[union-attr]
                return None
            elif n in matters:
                words.append(int(argument))  # type: ignore[arg-type]
        if call.result is not None:
            producers[id(call.result)] = place
    return Key(tuple(words), _facts(calls, buffers))


def _facts(calls: Sequence[Call], buffers: Sequence[Buffer]) -> tuple[Any, ...]:
    facts = []
    for buffer in buffers:
        if buffer.external:
            return clusters_of(calls, buffers)
        facts.append((buffer._handle() is None, buffer.root is None and buffer.image is None))
    return tuple(facts)
