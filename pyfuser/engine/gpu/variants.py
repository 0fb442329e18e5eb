"""Which of a map's two kernels is launched: the one that loads vectors, if these three agree.

1. There are enough iterations to fill the GPU with fewer threads, and rows are long enough for a
   warp: `is_worth_vectors`.
2. The compiler needed no more registers for it than fit as many threads as before, and spilled no
   more: `costs_more`, once for each device.
3. All vectors are aligned: `make_aligned`. That depends on nothing but the bytes of a launch's
   parameters, which are the key of `graphs`, too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

from pyfuser.codegen.gpu.packed import chooser
from pyfuser.codegen.gpu.unit import GpuKernel
from pyfuser.engine.gpu.device import Device
from pyfuser.tuning import gpu as tuning_gpu

LEAST = 1 << 18
"""Threads that must be left: about as many as an H100 has at a time."""

ROW = 32
"""Threads that a row must occupy: those of a warp load memory that hangs together, as before."""


class Registers(NamedTuple):
    """What the compiler made of an entry point: registers and bytes of local memory, a thread."""

    registers: int
    spilled: int


def registers_of(device: Device, function: Any) -> Registers:
    """What the compiler made of a function."""
    driver = device.library.driver
    return Registers(
        driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_NUM_REGS, function.ptr),
        driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function.ptr),
    )


def costs_more(vectors: Registers, plain: Registers) -> bool:
    """Whether vectors cost threads, or memory for what does not fit the registers."""
    slower = tuning_gpu.slowdown(vectors.registers) > tuning_gpu.slowdown(plain.registers)
    return slower or vectors.spilled > plain.spilled


def is_worth_vectors(kernel: GpuKernel, begin: Sequence[int], end: Sequence[int]) -> bool:
    """Whether a kernel has vectors, and a box, which is not empty, iterations enough."""
    if kernel.vectors is None:
        return False
    lanes, along = kernel.vectors.lanes, kernel.order[-1]
    extents = [last - first for first, last in zip(begin, end, strict=True)]
    return prod(extents) >= LEAST * lanes and extents[along] >= ROW * lanes


def make_aligned(kernel: GpuKernel, offsets: Sequence[int]) -> Callable[[bytes], bool]:
    """The function that says for the bytes of all parameters whether vectors are aligned.

    offsets: where each parameter is.
    """
    if kernel.vectors is None:
        return lambda packed: False
    aligned = chooser(kernel.vectors)
    code, place = "=", 0
    for position in kernel.vectors.needed:
        code += f"{offsets[position] - place}xq"
        place = offsets[position] + 8
    unpack = struct.Struct(code).unpack_from
    return lambda packed: aligned(*unpack(packed))
