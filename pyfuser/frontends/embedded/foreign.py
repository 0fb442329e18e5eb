"""Arrays of other libraries in the host's memory: torch's, JAX's, pandas', array.array, ...

Whatever shows its memory by the buffer protocol, `__array_interface__`, `__array__` or DLPack is
taken as the NumPy array over that memory, which keeps it alive.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfuser.frontends.embedded.view_memory import ViewMemory
from pyfuser.support.errors import ArgumentError
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Array

_PROTOCOLS = "__array_interface__", "__array_struct__", "__array__"
_NOT_FOREIGN = ViewMemory, np.ndarray, np.generic, Future, type, str, bytes
_GPUS = frozenset({2, 10})  # DLPack's numbers for CUDA's and ROCm's devices
_HOST = frozenset({1, 3, 11})  # for the host, its pages that CUDA pinned, and those of ROCm
_OTHERWISE = "copy it, for example by np.array(...), and pass the copy"


def on_gpu(value: Any) -> bool:
    """Whether an object says that its memory is a GPU's."""
    if isinstance(value, type):
        return False
    if hasattr(value, "__cuda_array_interface__"):
        return True
    device = getattr(value, "__dlpack_device__", None)
    try:
        return device is not None and device()[0] in _GPUS
    except Exception:  # torch's "meta" device, which has no number
        return False


def has_memory(value: Any) -> bool:
    """Whether an object of another library has an array's memory on the host, or makes arrays."""
    if isinstance(value, _NOT_FOREIGN) or on_gpu(value):
        return False
    return _by_numpy(value) or hasattr(value, "__dlpack__")


def _by_numpy(value: Any) -> bool:
    if any(hasattr(value, name) for name in _PROTOCOLS):
        return True
    try:
        memoryview(value).release()
    except (TypeError, BufferError, ValueError):
        return False
    return True


def as_array(what: str, value: Any) -> Array:
    """The NumPy array of an object that `has_memory`; of some that is a copy, made for it.

    what: names it in the message. Raises ArgumentError where NumPy cannot make one.
    """
    if getattr(value, "requires_grad", False) is True:
        raise ArgumentError(
            f"{what} records gradients, which kernels do not: pass its .detach(), whose memory "
            "is the same"
        )
    try:
        if _by_numpy(value):
            return np.asarray(value)
        if value.__dlpack_device__()[0] not in _HOST:
            raise BufferError("its memory is another device's; copy it to the host first")
        return np.from_dlpack(value)
    except Exception as error:
        raise ArgumentError(
            f"{what} is of type {kind(value)}, of which NumPy cannot make an array: {error}"
        ) from error


def shared_array(what: str, value: Any) -> Array:
    """The NumPy array over the memory of an object that `has_memory`.

    Raises ArgumentError also where NumPy can only make a copy: what a kernel wrote would be lost.
    """
    array = as_array(what, value)
    again = as_array(what, value)  # the first is alive, so a copy has another address
    if _address(array) != _address(again) and array.size:
        raise ArgumentError(
            f"{what} is of type {kind(value)}, of which NumPy makes a copy each time, so that "
            f"what a kernel writes would be lost; {_OTHERWISE}"
        )
    return array


def given_array(what: str, value: Any) -> Array:
    """The NumPy array over the memory of any kind of array on the host, a View's, too.

    Raises ArgumentError for what is none.
    """
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, ViewMemory):
        return value.data
    if has_memory(value):
        return shared_array(what, value)
    raise ArgumentError(f"{what} is of type {kind(value)}; give a NumPy array, or use pk.array")


def kind(value: Any) -> str:
    """The name of an object's type, with its module."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
