"""The value of a reduction or scan that has not run yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyfuser.ir.dtypes import DType


class Future:
    """Stands for a number: any use of it but as a kernel's argument runs what is pending.

    Placeholder for the numeric protocol, which `trace/future.py` must have in full.
    """

    __slots__ = ("__weakref__", "_error", "_force", "_value", "dtype")

    def __init__(self, dtype: DType, force: Callable[[], None]) -> None:
        self.dtype = dtype
        self._value: Any = None
        self._force = force

    @property
    def ready(self) -> bool:
        return self._value is not None

    def set(self, value: int | float | complex) -> None:
        """Called by the driver once the kernel that computes it has run."""
        self._value = value

    def result(self) -> Any:
        """The value as a Python number; runs the pending calls if it must."""
        if self._value is None:
            self._force()
        return self._value
