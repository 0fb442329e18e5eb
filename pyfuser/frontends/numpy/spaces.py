"""Where recorded operations run: on the host's cores, or on a GPU.

On a GPU, arrays have memory where they are used, as Views do (see `trace.images`): functions of
NumPy that are not recorded get a copy on the host, and the next kernel gets that back. So what is
done with an array that is on the device is recorded however small it is.
"""

from __future__ import annotations

from typing import Any

from pyfuser.frontends.embedded.spaces import gpu
from pyfuser.runtime.session import TRACER
from pyfuser.support.errors import ArgumentValueError
from pyfuser.trace import reason
from pyfuser.trace.call import GPU_SPACES

HOST = "OpenMP"


class Current:
    """The execution space of operations that are recorded from now on."""

    __slots__ = ("device", "execution")

    def __init__(self) -> None:
        self.execution = HOST
        self.device = False


SPACE = Current()


def set_space(space: Any) -> None:
    """Record operations for an execution space from now on: `pk.Cuda`, `pk.HIP` or `pk.OpenMP`.

    space: one of them, or its name. Raises ValueError for others, and DeviceError, a ValueError,
    too, where CuPy or a GPU is missing; nothing has changed then. What is pending runs first.
    """
    name = getattr(space, "value", space)
    if name not in (HOST, *GPU_SPACES):
        names = ", ".join(f"pk.{each}" for each in (HOST, *sorted(GPU_SPACES)))
        raise ArgumentValueError(f"set_space: {space!r} is none of {names}")
    if name != HOST:
        gpu().use(name)
    TRACER.flush(reason.STREAM)
    SPACE.execution, SPACE.device = name, name != HOST
