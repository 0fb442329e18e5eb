"""What stands in for a trace's shape where it is only to be found again: cheap, and never coarser.

The law: `key_of(a) == key_of(b)` implies `shape_of(a) == shape_of(b)`, as long as what the key
names by id() (workunits, execution spaces, dtypes) is alive. The converse does not hold: equal
arrays of NumPy's that are two buffers, or workunits that are equal and not the same, make another
key, which costs planning nothing but a look at the shape.

Why it holds. The *words* have, call by call, the workunit, the space and the pattern (so the types
of scalars, too); of a view the number of its buffer, by first use, and strides, shape, dtype, and
how far behind the buffer's first view it begins; the value of a scalar that matters to the
analysis; of a Future the call that computes it. The *facts* have of each buffer, by number, all
else that `shape_of` looks at: for memory of ours whether it is a temporary and whether it is fresh,
and if it is either, where the first view begins; where memory of others is among them, the
clusters themselves. So `shape_of` can be computed from a key, and from nothing else does it follow.
What moves on in an array, as its rows do in a loop, has one key, as it has one shape. (Calls that
wait, `others`, are none here: whoever has some has no key.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pyfuser.ir.nodes import Workunit
from pyfuser.trace.call import Call
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Buffer, Region
from pyfuser.trace.shape import ANYBODYS, RegionShape, TraceShape, clusters_of


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
        regions = [word for word in self.words if type(word) is tuple and len(word) > 1]
        shapes = [a for call in trace.calls for a in call.arguments if type(a) is RegionShape]
        if buffers:
            known, bases = self.facts[buffers:], self.facts[:buffers]
        else:
            known = tuple([fact[:2] for fact in self.facts])
            bases = tuple([(n, _base(regions, n, fact)) for n, fact in enumerate(self.facts)])
        return known == clusters and [(at, offset) for at, offset, *_ in regions] == [
            (at, shape.offset - bases[at][1])
            for (at, *_), shape in zip(regions, shapes, strict=True)
            if shape.cluster == bases[at][0]
        ]


def _base(regions: Sequence[tuple[Any, ...]], number: int, fact: tuple[Any, ...]) -> int:
    """What is added to the offsets of a cluster of ours, by the words of all regions."""
    if fact[:2] != ANYBODYS:
        return int(fact[2])
    return -min(int(offset) for at, offset, *_ in regions if at == number)


def key_of(calls: Sequence[Call], structural: Callable[[Workunit], frozenset[int]]) -> Key | None:
    """The key of recorded calls; None if an earlier flush has left a Future's value on a device.

    structural: see `shape_of`; it is asked once for each workunit.
    """
    words: list[Any] = []
    numbers: dict[int, int] = {}  # by id(): the buffers, in the order of `buffers`
    buffers: list[Buffer] = []
    firsts: list[int] = []  # of each the offset of its first view
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
                        firsts.append(offset)
                    behind = offset - firsts[at]
                    word = known[id(argument)] = at, behind, strides, shape, id(dtype)
                words.append(word)
            elif kind is Future and id(argument) in producers:
                words.append((producers[id(argument)],))
            elif kind is Future and not argument.ready:  # type: ignore[union-attr]
                return None
            elif n in matters:
                words.append(int(argument))  # type: ignore[arg-type]
        if call.result is not None:
            producers[id(call.result)] = place
    return Key(tuple(words), _facts(calls, buffers, firsts))


def _facts(
    calls: Sequence[Call], buffers: Sequence[Buffer], firsts: Sequence[int]
) -> tuple[Any, ...]:
    facts = []
    for buffer, first in zip(buffers, firsts, strict=True):
        if buffer.external:
            return clusters_of(calls, buffers, firsts)
        temporary, fresh = buffer._handle() is None, buffer.root is None and buffer.image is None
        facts.append((temporary, fresh, first if temporary or fresh else 0))
    return tuple(facts)
