"""Names that annotate a workunit's parameters; they hold no data."""

from __future__ import annotations

import math
from types import GenericAlias
from typing import Any, Generic, TypeVar

import numpy as np

from pyfuser.frontends.embedded.data_types import resolve

T = TypeVar("T")


class Acc(Generic[T]):
    """A reduction's accumulator; as an object, what a workunit gets in the Debug space."""

    def __init__(self, val: Any) -> None:
        self.val = val

    def __iadd__(self, other: Any) -> Acc[T]:
        self.val += _number(other)
        return self

    def __isub__(self, other: Any) -> Acc[T]:
        self.val -= _number(other)
        return self

    def __imul__(self, other: Any) -> Acc[T]:
        self.val *= _number(other)
        return self

    def __add__(self, other: Any) -> Any:
        return self.val + _number(other)

    __radd__ = __add__

    def __float__(self) -> float:
        return float(self.val)

    def __index__(self) -> int:
        return int(self.val)


def _number(value: Any) -> Any:
    """A number as Python's, which grows as sums do; NumPy's have the size of the element."""
    return value.item() if isinstance(value, np.generic) else value


class _View:
    """A View of as many dimensions as the name of its subclass says."""

    __class_getitem__: Any = classmethod(GenericAlias)


View1D, View2D, View3D, View4D, View5D, View6D, View7D, View8D = (
    type(f"View{rank}D", (_View,), {}) for rank in range(1, 9)
)


class ScratchMemory(int):
    """What `team.team_scratch(level)` is in the Debug space."""


class ScratchView:
    """Memory that a team's threads share; only kernels make such views.

    In the Debug space it is a NumPy array, of Python's numbers where no type is given.
    """

    dtype: np.dtype[Any] | None = None

    def __new__(cls, *args: Any) -> Any:
        if not args or type(args[0]) is not ScratchMemory:
            raise NotImplementedError("a scratch view can only be made in a kernel")
        return np.zeros(args[1:], object if cls.dtype is None else cls.dtype)

    def __class_getitem__(cls, dtype: Any) -> type[ScratchView]:
        return type(cls.__name__, (cls,), {"dtype": resolve(dtype)[1].numpy})

    @classmethod
    def shmem_size(cls, *extents: int) -> int:
        """The bytes that a scratch view of these extents takes, in whole words of 8 bytes."""
        element = 8 if cls.dtype is None else cls.dtype.itemsize
        return -(-math.prod(extents) * element // 8) * 8


(
    ScratchView1D,
    ScratchView2D,
    ScratchView3D,
    ScratchView4D,
    ScratchView5D,
    ScratchView6D,
    ScratchView7D,
    ScratchView8D,
) = (type(f"ScratchView{rank}D", (ScratchView,), {}) for rank in range(1, 9))
