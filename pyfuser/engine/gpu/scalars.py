"""Scalars that change between replays of a graph: in memory, set anew before each replay.

A kernel sets them, whose parameters they are: the driver keeps those until it has run, and what
was given to its stream before has read the old ones by then. So nobody waits, and nothing is
overwritten too early.
"""

from __future__ import annotations

import ctypes
from typing import Any

from pyfuser.codegen.gpu.scalars import ENTRY, WORDS, emit
from pyfuser.engine.gpu.compiler import machine_code
from pyfuser.engine.gpu.device import Device

__all__ = ["WORDS", "Scalars"]

_FUNCTIONS: dict[int, tuple[Any, Any]] = {}  # by device: the module, and the kernel


class Scalars:
    """Memory for WORDS scalars that launches of one stream read: of 8 bytes each.

    Made when that stream is the current one. Raises MemoryError, KernelError or CacheError.
    """

    __slots__ = (
        "_block", "_driver", "_function", "_handle", "_known", "_owner", "_pointers", "_start",
        "address",
    )  # fmt: skip

    def __init__(self, device: Device, handle: int) -> None:
        if device.number not in _FUNCTIONS:
            module = device.cuda.Module()
            module.load(machine_code(emit(device.library.dialect), device))
            _FUNCTIONS[device.number] = module, module.get_function(ENTRY)
        self._driver = device.library.driver
        self._function = _FUNCTIONS[device.number][1].ptr
        self._handle = handle
        self._owner, self.address = device.allocate(8 * WORDS, zero=False)
        self._block = ctypes.create_string_buffer(8 + 8 * WORDS)
        ctypes.c_uint64.from_buffer(self._block).value = self.address
        self._start = ctypes.addressof(self._block)
        self._pointers = (ctypes.c_void_p * 2)(self._start, self._start + 8)
        self._known = b""

    # law
    def set(self, words: bytes) -> None:
        """What is given to the stream from now on reads these."""
        if words == self._known:
            return
        ctypes.memmove(self._start + 8, words, len(words))
        pointers = ctypes.addressof(self._pointers)
        start = self._driver.launchKernel
        start(self._function, 1, 1, 1, WORDS, 1, 1, 0, self._handle, pointers, 0)
        self._known = words
