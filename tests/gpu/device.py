"""CUDA kernels on a real GPU, through the driver alone: what a run time has to do, in small."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from pyfuser.codegen.gpu.unit import CUDA, GpuKernel, emit
from pyfuser.codegen.kernel import spec_of
from tests.codegen.build import Case
from tests.gpu.compilers import compile_cuda
from tests.gpu.launch import Arguments, renamed, shared_bytes, unpacked

MISSING_GPU = "no NVIDIA GPU, or no driver (libcuda.so.1) for it"
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*


class DriverError(AssertionError):
    """A call of the driver failed."""


def _call(name: str, *arguments: Any) -> None:
    status = getattr(ctypes.CDLL("libcuda.so.1"), name)(*arguments)
    if status:
        raise DriverError(f"{name}: CUDA error {status}")


@cache
def architecture() -> str | None:
    """That of the first GPU, whose context becomes current: "sm_90"; None without a GPU."""
    device, context, number = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
    try:
        _call("cuInit", 0)
        _call("cuDeviceGet", ctypes.byref(device), 0)
        _call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        _call("cuCtxSetCurrent", context)
    except (OSError, DriverError):
        return None
    digits = []
    for attribute in (_MAJOR, _MINOR):
        _call("cuDeviceGetAttribute", ctypes.byref(number), attribute, device)
        digits.append(str(number.value))
    return f"sm_{''.join(digits)}"


class Memory:
    """A copy of an array's bytes on the GPU."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        pointer = ctypes.c_uint64()
        size = ctypes.c_size_t(max(array.nbytes, 1))
        _call("cuMemAlloc_v2", ctypes.byref(pointer), size)
        self.address = pointer.value
        if array.nbytes:
            _call("cuMemcpyHtoD_v2", pointer, ctypes.c_void_p(array.ctypes.data), size)

    def close(self) -> None:
        """Copy the bytes back and free the memory."""
        pointer = ctypes.c_uint64(self.address)
        if self.array.nbytes:
            size = ctypes.c_size_t(self.array.nbytes)
            _call("cuMemcpyDtoH_v2", ctypes.c_void_p(self.array.ctypes.data), pointer, size)
        _call("cuMemFree_v2", pointer)


class OnDevice:
    """The kernels of some cases, in one module on the GPU."""

    def __init__(self, cases: dict[str, Case]) -> None:
        arch = architecture()
        assert arch is not None
        self.cases = cases
        self.kernels: dict[str, GpuKernel] = {
            name: renamed(emit(spec_of(tested.kernel), CUDA), n)
            for n, (name, tested) in enumerate(cases.items())
        }
        code = compile_cuda("".join(k.source for k in self.kernels.values()), arch)
        self.module = ctypes.c_void_p()
        _call("cuModuleLoadData", ctypes.byref(self.module), code)

    def run(self, name: str) -> tuple[list[Any], tuple[Any, ...]]:
        """The arguments after a launch on them, and its results."""
        tested, kernel = self.cases[name], self.kernels[name]
        values, space = tested.arguments(), tested.kernel.space
        memory: dict[int, Memory] = {}

        def address(array: np.ndarray[Any, Any]) -> int:
            owner = _owner(array)
            if id(owner) not in memory:
                memory[id(owner)] = Memory(owner)
            return memory[id(owner)].address + array.ctypes.data - owner.ctypes.data

        results = np.zeros(kernel.launch.result_bytes, "uint8")
        workspace = np.zeros(kernel.launch.workspace_bytes(space.begin, space.end), "uint8")
        outputs = {"results": address(results), "workspace": address(workspace)}
        bounds: tuple[Sequence[int], Sequence[int]] = (space.begin, space.end)
        arguments = Arguments(kernel, bounds, values, outputs, address)
        grid = kernel.launch.grid(*bounds)
        for entry in kernel.entries if grid is not None else ():
            assert grid is not None
            function = ctypes.c_void_p()
            _call("cuModuleGetFunction", ctypes.byref(function), self.module, entry.encode())
            shape = (*grid.blocks, *grid.threads)
            shared = shared_bytes(kernel, tested, values)
            _call("cuLaunchKernel", function, *shape, shared, None, arguments.pointers, None)
        _call("cuCtxSynchronize")
        for copy in memory.values():
            copy.close()
        assert not workspace[:64].any()
        dtypes = [a.sym.dtype for a in tested.kernel.workunit.accumulators]
        return values, unpacked(results, dtypes)


def _owner(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array whose memory it is."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
