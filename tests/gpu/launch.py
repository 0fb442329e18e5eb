"""What a run time does with a `GpuKernel`: batches, and arguments as drivers take them."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pyfuser.codegen.gpu.unit import NAMESPACE, GpuKernel
from pyfuser.codegen.kernel import spec_of
from pyfuser.ir.dtypes import DType
from pyfuser.nest.passes.grid import ENTRY, TOTALS
from tests.codegen.build import Case

PointerTo = Callable[["np.ndarray[Any, Any]"], int]


def renamed(kernel: GpuKernel, n: int) -> GpuKernel:
    """The kernel with names of its own, so that one source can hold several."""
    entries = tuple(f"{e}_{n}" for e in kernel.entries)
    return replace(kernel, source=renamed_source(kernel.source, n), entries=entries)


def renamed_source(source: str, n: int) -> str:
    source = source.replace(f"namespace {NAMESPACE} {{", f"namespace {NAMESPACE}_{n} {{")
    return re.sub(rf"\b({ENTRY}|{TOTALS})\b", rf"\1_{n}", source)


def shared_bytes(kernel: GpuKernel, tested: Case, values: Sequence[Any]) -> int:
    """Dynamic shared memory of a block."""
    params = spec_of(tested.kernel).workunit.params
    pairs = list(zip(params, values, strict=True))
    shapes = {p.sym: value.shape for p, value in pairs if p.rank}
    numbers = {p.sym: int(value) for p, value in pairs if not p.rank and p.sym.dtype.is_integer}
    size = kernel.launch.shared_bytes(numbers, shapes)
    assert size is not None and size <= max(kernel.launch.room, 0)
    return size


class Arguments:
    """The arguments of one launch: `pointers` is an array of the addresses of all of them."""

    def __init__(
        self,
        kernel: GpuKernel,
        space: tuple[Sequence[int], Sequence[int]],
        values: Sequence[Any],
        outputs: dict[str, int],
        pointer_to: PointerTo,
    ) -> None:
        """`outputs`: the addresses of "workspace" and "results"."""
        self.kept: list[Any] = []
        for argument in kernel.arguments:
            if argument.kind in ("begin", "end"):
                bound: Any = np.int64(space[argument.kind == "end"][argument.axis])
            elif argument.kind in outputs:
                bound = np.int64(outputs[argument.kind])
            else:
                value = values[argument.param]
                if argument.kind == "pointer":
                    bound = np.int64(pointer_to(value))
                elif argument.kind == "stride":
                    bound = np.int64(value.strides[argument.axis] // value.itemsize)
                elif argument.kind == "extent":
                    bound = np.int64(value.shape[argument.axis])
                elif argument.kind == "address":
                    bound = np.int64(0)
                else:
                    bound = np.asarray(value).astype(argument.dtype.numpy)
            self.kept.append(np.atleast_1d(np.asarray(bound)))
        self.bounds = space
        addresses = [array.ctypes.data for array in self.kept]
        self.pointers = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)


def unpacked(results: np.ndarray[Any, Any], dtypes: Sequence[DType]) -> tuple[Any, ...]:
    """The values in the memory at "results" (as bytes)."""
    return tuple(
        results[16 * k : 16 * k + dtype.size].view(dtype.numpy)[0].item()
        for k, dtype in enumerate(dtypes)
    )
