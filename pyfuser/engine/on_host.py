"""What kernels that run on the host have in common, whatever engine runs them."""

from __future__ import annotations

from typing import Any

from pyfuser.trace.future import Future
from pyfuser.trace.memory import Box, Region


class OnHost:
    """The part of `engine.Launchable` that is about where a kernel runs."""

    __slots__ = ()
    on_device = False

    def number(self, future: Future) -> Any:
        """The value of a Future that is an argument."""
        return future.result()

    def registers(self, space: tuple[Any, ...]) -> tuple[()]:
        """Of a CPU there is nothing to say."""
        return ()

    def allocate(self, region: Region, box: Box) -> None:
        """Make memory of which `run` overwrites a box."""
        region.allocate(box)
