"""The element types of the language and C++'s rules for mixing them."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np


class DType(Enum):
    """A scalar type; `value` is its NumPy name."""

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    COMPLEX64 = "complex64"
    COMPLEX128 = "complex128"

    # Enum hashes the name through Python code; dtypes are hashed on every recorded call.
    __hash__ = object.__hash__

    numpy: np.dtype[Any]
    size: int  #: bytes of one element
    is_float: bool
    is_complex: bool
    is_integer: bool  #: whether it is an integer type; `bool` counts, as in C++
    is_signed: bool
    _range: tuple[int, int]

    def __init__(self, name: str) -> None:
        # Plain attributes: they are asked for at every node of every kernel.
        self.numpy = np.dtype(name)
        self.size = self.numpy.itemsize
        kind = self.numpy.kind
        self.is_float, self.is_complex = kind == "f", kind == "c"
        self.is_integer, self.is_signed = kind in "biu", kind == "i"
        low = -(1 << 8 * self.size - 1) if self.is_signed else 0
        self._range = (0, 1) if kind == "b" else (low, low + (1 << 8 * self.size) - 1)

    @property
    def cpp(self) -> str:
        """The C++ spelling in emitted code (fixed-width names come from `<stdint.h>`)."""
        return _CPP.get(self, f"{self.value}_t")

    def range(self) -> tuple[int, int]:
        """The least and greatest value of an integer type."""
        return self._range


_CPP = {
    DType.BOOL: "bool",
    DType.FLOAT32: "float",
    DType.FLOAT64: "double",
    DType.COMPLEX64: "pf_complex<float>",
    DType.COMPLEX128: "pf_complex<double>",
}
_FROM_NUMPY = {dtype.numpy: dtype for dtype in DType}


def from_numpy(dtype: np.dtype[Any]) -> DType | None:
    """The DType of a NumPy dtype, or None where the language has none (or bytes are swapped)."""
    return _FROM_NUMPY.get(dtype) if dtype.isnative else None


def integral_promotion(dtype: DType) -> DType:
    """C++ integral promotion: types narrower than int become int."""
    if dtype.is_integer and (dtype is DType.BOOL or dtype.size < 4):
        return DType.INT32
    return dtype


def common_type(left: DType, right: DType) -> DType:
    """C++'s usual arithmetic conversions; `complex<T>` takes the wider of the component types."""
    if left.is_complex or right.is_complex:
        wide = DType.FLOAT64 if {left, right} & _DOUBLE_WIDE else DType.FLOAT32
        return DType.COMPLEX128 if wide is DType.FLOAT64 else DType.COMPLEX64
    if left.is_float or right.is_float:
        if DType.FLOAT64 in (left, right):
            return DType.FLOAT64
        return DType.FLOAT32
    left, right = integral_promotion(left), integral_promotion(right)
    if left is right:
        return left
    if left.size != right.size:
        return left if left.size > right.size else right
    return right if left.is_signed else left  # equal width: unsigned wins


_DOUBLE_WIDE = {DType.COMPLEX128, DType.FLOAT64}
