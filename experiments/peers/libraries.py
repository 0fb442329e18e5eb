"""Where libraries keep their arrays: the way there and back, and how to wait for kernels."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

CACHE_LINE = 64  # bytes; also the widest vector
JAX_PLATFORMS = {None: "cpu", "Cuda": "cuda", "HIP": "rocm"}


@dataclass(frozen=True, slots=True)
class Library:
    """Arrays of a library.

    place: its array with the values of a NumPy array; fetch: the way back (other values stay as
    they are); finish: return when all kernels are done that work on these values.
    """

    place: Callable[[Array], Any]
    fetch: Callable[[Any], Any]
    finish: Callable[[list[Any]], object]


def find(name: str, space: str | None) -> Library:
    """The library by that name, for an execution space (None: the host's)."""
    return {"cupy": _cupy, "jax": _jax, "numba-cuda": _numba, "torch": _torch}[name](space)


def aligned(array: Array) -> Array:
    """A copy that starts on a cache line, as experts (and we) allocate and NumPy does not."""
    raw = np.empty(array.nbytes + CACHE_LINE, np.uint8)
    start = -raw.ctypes.data % CACHE_LINE
    made: Array = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


HOST = Library(aligned, fetch=lambda value: value, finish=lambda values: None)


def _cupy(_: str | None) -> Library:
    cupy = import_module("cupy")
    return Library(
        cupy.asarray,
        lambda value: value.get() if isinstance(value, cupy.ndarray) else value,
        lambda values: cupy.cuda.Device().synchronize(),
    )


def _jax(space: str | None) -> Library:
    os.environ.update(JAX_ENABLE_X64="1", JAX_PLATFORMS=JAX_PLATFORMS[space])
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # it is not alone on the GPU
    numpy = import_module("jax.numpy")

    def finish(values: list[Any]) -> None:
        for value in values:
            if hasattr(value, "block_until_ready"):
                value.block_until_ready()

    return Library(
        numpy.asarray,
        lambda value: np.asarray(value) if hasattr(value, "block_until_ready") else value,
        finish,
    )


def _numba(_: str | None) -> Library:
    cuda = import_module("numba.cuda")
    return Library(
        cuda.to_device,
        lambda value: value.copy_to_host() if hasattr(value, "copy_to_host") else value,
        lambda values: cuda.synchronize(),
    )


def _torch(space: str | None) -> Library:
    torch = import_module("torch")
    device = "cpu" if space is None else "cuda"  # of AMD GPUs, too
    return Library(
        lambda array: torch.from_numpy(array).to(device),
        lambda value: value.cpu().numpy() if isinstance(value, torch.Tensor) else value,
        lambda values: None if space is None else torch.cuda.synchronize(),
    )
