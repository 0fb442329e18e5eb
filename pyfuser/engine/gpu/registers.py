"""What a GPU's compiler made of an entry point: registers, and what did not fit them."""

from __future__ import annotations

from typing import Any, NamedTuple

from pyfuser.engine.gpu.device import Device


class Registers(NamedTuple):
    """Registers and bytes of local memory, a thread."""

    registers: int
    spilled: int


def registers_of(device: Device, function: Any) -> Registers:
    """What the compiler made of a function."""
    driver = device.library.driver
    return Registers(
        driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_NUM_REGS, function.ptr),
        driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function.ptr),
    )
