"""Calls of a GPU's execution space: what they cannot be given, and which stream they run on."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfuser.frontends.embedded.foreign import has_memory, kind
from pyfuser.frontends.embedded.spaces import gpu
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.errors import ArgumentError
from pyfuser.trace import reason
from pyfuser.trace.call import Call


def enter(policy: Any, kwargs: dict[str, Any]) -> None:
    """See that a call runs on its policy's stream, or the current one, and in its order.

    What was recorded for another stream runs there first. Raises ArgumentError for arrays in the
    host's memory.
    """
    for name, value in kwargs.items():
        memory = getattr(value, "__pyfuser_memory__", None)
        if memory is not None and memory() is not None:
            continue
        if isinstance(value, np.ndarray) or has_memory(value):
            owner = "a NumPy array" if isinstance(value, np.ndarray) else f"of type {kind(value)}"
            raise ArgumentError(
                f"argument {name!r} is {owner}, in the host's memory, but the call runs on a "
                "GPU: pass cupy.asarray(array), or a View (pk.array(array) is one whose values are "
                "copied to the GPU and back)"
            )
    enter_stream(getattr(policy, "stream", None))


def enter_stream(stream: Any = None) -> None:
    """See that what is recorded next runs on a CuPy stream, or the current one, in its order."""
    place = gpu().place(stream, TRACER.place)
    if place is not TRACER.place:
        TRACER.flush(reason.STREAM)
        TRACER.place = place


def run(call: Call) -> None:
    """Run one call now, on the stream that was entered for it."""
    place: Any = TRACER.place
    if place.asked:
        with place:
            SESSION.run(call)
    else:
        SESSION.run(call)
