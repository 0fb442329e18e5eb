"""`x.flags` of our arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfuser.frontends.numpy.memory import layout_of

_SHORT = {
    "C": "c_contiguous", "F": "f_contiguous", "O": "owndata", "W": "writeable", "A": "aligned",
    "X": "writebackifcopy", "B": "behaved", "CA": "carray", "FA": "farray",
}  # fmt: skip


def _name_of(key: Any) -> str:
    """The attribute that a key stands for. Raises KeyError as NumPy does."""
    found = _SHORT.get(key, key.lower() if isinstance(key, str) and key.isupper() else "")
    if not hasattr(_EXAMPLE, found):
        raise KeyError("Unknown flag")
    return found


_EXAMPLE = np.zeros(1).flags


class Flags:
    """As NumPy's `flagsobj`; of memory that an array does not have yet, too."""

    __slots__ = ("_array", "_flags")

    def __init__(self, array: Any) -> None:
        object.__setattr__(self, "_array", array)
        object.__setattr__(self, "_flags", layout_of(array).flags)

    def __getattr__(self, name: str) -> Any:
        if name == "owndata":
            x = self._array
            return x._base is None and x._owner is not None
        if name == "writeable":
            return self._array._writeable
        if name in ("carray", "farray", "behaved"):
            return getattr(self._flags, name) and self._array._writeable
        return getattr(self._flags, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "writeable":
            self._array.setflags(write=value)
            return
        setattr(self._flags, name, value)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, _name_of(key))

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, _name_of(key), value)

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        names = (
            "C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA", "WRITEABLE", "ALIGNED", "WRITEBACKIFCOPY",
        )  # fmt: skip
        return "".join(f"  {name} : {self[name]}\n" for name in names)
