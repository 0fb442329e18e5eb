"""CuPy, imported when a program first asks for a GPU."""

from __future__ import annotations

import importlib
from typing import Any

from pyfuser.codegen.gpu.unit import CUDA, HIP, Dialect
from pyfuser.support.caches import once
from pyfuser.support.errors import DeviceError

_INSTALL = {
    "Cuda": "pip install cupy-cuda13x (or cupy-cuda12x, as the driver is)",
    "HIP": "build it for your ROCm: https://docs.cupy.dev/en/stable/install.html",
}


class Library:
    """What we use of CuPy, under the names it has there.

    dialect: the language of its compiler.
    """

    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy
        self.cuda = cupy.cuda
        self.runtime = cupy.cuda.runtime
        self.driver = cupy.cuda.driver
        self.nvrtc = cupy.cuda.nvrtc
        self.dialect: Dialect = HIP if self.runtime.is_hip else CUDA

    @property
    def space(self) -> str:
        """The execution space that it makes possible."""
        return "HIP" if self.dialect is HIP else "Cuda"

    @property
    def description(self) -> str:
        """Versions, of which the code of kernels depends on the compiler's."""
        compiler = ".".join(map(str, self.nvrtc.getVersion()))
        return f"CuPy {self.cupy.__version__}, runtime compiler {compiler}"


@once
def _library() -> Library:
    return Library(importlib.import_module("cupy"))


def library(space: str) -> Library:
    """CuPy for an execution space. Raises DeviceError if it, or a device, is missing."""
    try:
        found = _library()
    except ImportError as error:
        raise _missing(space, f"it needs CuPy ({error}): {_INSTALL[space]}") from None
    if found.space != space:
        raise _missing(space, f"the installed CuPy is for pk.{found.space}")
    try:
        count = found.runtime.getDeviceCount()
    except Exception as error:  # CUDARuntimeError is no type to be had before CuPy is
        raise _missing(space, f"CuPy finds no GPU that it can use: {error}") from None
    if not count:
        raise _missing(space, "this machine has no GPU, or none is visible")
    return found


def _missing(space: str, why: str) -> DeviceError:
    return DeviceError(f"Execution space {space} is not available: {why}")


def loaded() -> Library:
    """CuPy, where a device is already in use."""
    return _library()
