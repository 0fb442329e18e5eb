"""Code that calls share which run alone and differ in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyfuser.transform.kernel import Kernel
from pyfuser.transform.overwrites import is_as_long
from pyfuser.transform.widen import Proof

if TYPE_CHECKING:
    from pyfuser.engine.engine import Launchable


class SharedCode(NamedTuple):
    """Code for calls that differ in numbers, as far as the proof covers these.

    needed: the least extents of views at some places.
    """

    kernel: Kernel
    launchable: Launchable
    proof: Proof
    needed: tuple[tuple[int, tuple[int, ...]], ...] = ()

    # law: True
    def fits(self, arguments: Sequence[Any]) -> bool:
        """Whether views have what the code overwrites all along, and loads early."""
        return is_as_long(self.kernel, arguments) and all(
            has >= least
            for place, extents in self.needed
            for has, least in zip(arguments[place].shape, extents, strict=True)
        )
