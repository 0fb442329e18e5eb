"""Memory of ours in the hands of others: for how long anybody may reach it.

Everything that NumPy makes of an array that was handed out (slices, transposes, memoryviews, DLPack
capsules) keeps that array alive, and the array its base, which is an `Export`. So the memory is
out of reach again when the last `Export` of a buffer dies.
"""

from __future__ import annotations

import pickle
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfuser.support.extension import HOT

if TYPE_CHECKING:
    from pyfuser.trace.memory import Buffer

Array = np.ndarray[Any, Any]

LOCK = threading.RLock()
"""Held where exports begin and end. An export may end wherever the collector runs."""

FOR_GOOD = 0
"""In place of an Export's id(): memory that stays within reach, whatever dies."""


if TYPE_CHECKING or HOT is None:

    class Export(Array):
        """The bytes of a buffer, as the base of an array that is handed out.

        As `data` of NumPy's array interface it is both of what that may be: a buffer, and for
        Python code a tuple of an address and whether the memory is read-only.
        """

        owner: Array  # what the buffer has; see `images.owner_of`
        address = 0
        _on_tuple: Callable[[], Any] | None = None
        _buffer: weakref.ref[Any] | None = None

        @classmethod
        def of(cls, memory: Array, buffer: weakref.ref[Buffer]) -> Export:
            """Of a buffer that has the memory; what NumPy derives from it belongs to none."""
            # NumPy passes over arrays whose base is an array when it sets a base; hence the pickle.
            base: Any = pickle.PickleBuffer(memory)  # type: ignore[arg-type]
            export: Export = super().__new__(cls, memory.nbytes, np.uint8, base)
            export.owner = memory
            export._buffer = buffer
            return export

        def as_data(self, address: int, on_tuple: Callable[[], Any]) -> Export:
            """The object as `data` of the array interface; see the class.

            on_tuple: called when the address is taken, which can be kept without this object.
            """
            self.address = address
            self._on_tuple = on_tuple
            return self

        def __getitem__(self, key: Any) -> Any:
            if self._on_tuple is not None:
                self._on_tuple()
            return (self.address, False)[key]

        def __iter__(self) -> Iterator[Any]:
            return iter(self[:])

        def __len__(self) -> int:
            return 2

        def __del__(self) -> None:
            buffer = None if self._buffer is None else self._buffer()
            if buffer is not None:
                buffer.withdraw(id(self))

else:
    Export = HOT.Export
