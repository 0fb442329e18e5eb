"""A kernel ready to be emitted: code, and where each argument comes from. It holds no data."""

from __future__ import annotations

from typing import TypeAlias

from pyfuser.analysis.affine import Interval
from pyfuser.ir.nodes import Sym, Workunit
from pyfuser.ir.visit import assigned
from pyfuser.support.records import dataclass
from pyfuser.trace.call import Space
from pyfuser.trace.shape import ArgumentShape, known_scalars

Axes: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """The argument at place `argument` of the group's call number `call`."""

    call: int
    argument: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """The fused workunit of a group.

    `slots[k]` and `shapes[k]` belong to `workunit.params[k]`; `results[k]` is the call (its
    place in the group) whose result `workunit.accumulators[k]` computes. `overlaps` has every pair
    of different view parameters whose memory may overlap, and each one that may overlap itself.
    `dead` are views whose contents nobody reads afterwards; `fresh` are views of zeros only when
    the kernel starts. `overwrites` are places of views that are written at the indices in every
    iteration and not read; `along` has for each of them the index that is the subscript of each
    axis, -1 where it is written all along the axis. `tables` are places of views that threads tally
    in copies of their own, with the numbers of their elements (see `transform.tables`). `passes`
    are the names of those that changed the code.
    """

    pattern: str
    space: Space
    workunit: Workunit
    slots: tuple[Slot, ...]
    shapes: tuple[ArgumentShape, ...]
    results: tuple[int, ...] = ()
    overlaps: frozenset[frozenset[Sym]] = frozenset()
    dead: frozenset[Sym] = frozenset()
    fresh: frozenset[Sym] = frozenset()
    overwrites: tuple[int, ...] = ()
    along: tuple[Axes, ...] = ()
    tables: tuple[tuple[int, int], ...] = ()
    passes: tuple[str, ...] = ()

    # law
    def ranges(self) -> dict[Sym, Interval]:
        """The values of indices, and of scalars that are known, if nothing changes them."""
        workunit, space = self.workunit, self.space
        found = {
            sym: (low, max(low, high - 1))
            for sym, low, high in zip(workunit.indices, space.begin, space.end, strict=True)
        }
        for sym, value in known_scalars(workunit, self.shapes).items():
            found[sym] = (value, value)
        changing = assigned(workunit.body)
        return {sym: known for sym, known in found.items() if sym not in changing}
