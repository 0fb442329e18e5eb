"""What a parameter is bound to, and the type of a Python number."""

from __future__ import annotations

import numpy as np

from pyfuser.ir.dtypes import DType, from_numpy
from pyfuser.support.records import dataclass

CLASSTYPE = "__pk_classtype__"  # what `@pk.classtype` sets in a class


@dataclass(frozen=True, slots=True)
class ViewType:
    """A view of `rank` dimensions; atomic: updates of its elements (`x[i] += e`) are atomic."""

    dtype: DType
    rank: int
    atomic: bool = False

    def __str__(self) -> str:
        return f"a {self.rank}-D view of {self.dtype.value}"


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A number."""

    dtype: DType

    def __str__(self) -> str:
        return f"a scalar of type {self.dtype.value}"


@dataclass(frozen=True, slots=True)
class RandomPoolType:
    """A pool of random number generators: its seed, a number."""

    dtype: DType = DType.UINT64

    def __str__(self) -> str:
        return "a pool of random numbers"


BoundType = ViewType | ScalarType | RandomPoolType

_PYTHON = {bool: DType.BOOL, float: DType.FLOAT64, complex: DType.COMPLEX128}


def scalar_dtype(value: object) -> DType | None:
    """The type that PyKokkos infers for a number; None if it is none, or exceeds 64 bits."""
    kind = type(value)
    if kind is int:
        bits = value.bit_length()  # type: ignore[attr-defined]
        return DType.INT32 if bits <= 31 else DType.INT64 if bits <= 63 else None
    dtype = _PYTHON.get(kind)
    if dtype is None and isinstance(value, np.generic):
        dtype = from_numpy(value.dtype)
    return dtype
