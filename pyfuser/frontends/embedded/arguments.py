"""A call's keyword arguments as types (small integers for cache keys) and values for a `Call`.

Types follow from the values as PyKokkos infers them: an `int` of up to 31 bits is int32, a longer
one int64, a `float` double; NumPy scalars and arrays have their own type.
"""

from __future__ import annotations

import numbers
import operator
from typing import Any

import numpy as np

from pyfuser.frontends.embedded.data_types import complex64, complex128
from pyfuser.frontends.embedded.foreign import has_memory, kind, on_gpu, shared_array
from pyfuser.frontends.embedded.random import RandomPool
from pyfuser.frontends.embedded.spaces import gpu
from pyfuser.frontends.embedded.view_memory import (
    ATOMIC,
    DTYPES,
    READ_ONLY,
    refuse_misaligned,
    scalar_code,
    view_code,
)
from pyfuser.frontends.embedded.views import Row, Subview, View, ViewType
from pyfuser.ir.dtypes import DType, from_numpy
from pyfuser.lower.types import BoundType, RandomPoolType, ScalarType
from pyfuser.lower.types import ViewType as BoundView
from pyfuser.support.errors import ArgumentError
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Region, region_of

FUTURE = 1 << 17  # set in the code of a Future that is not known yet
RANDOM = 1 << 18  # in the code of a pool of random numbers
INT32_LIMIT = 1 << 31

FLOAT64 = scalar_code(DType.FLOAT64)
INT32 = scalar_code(DType.INT32)
INT64 = scalar_code(DType.INT64)
_BOOL = scalar_code(DType.BOOL)
_COMPLEX64 = scalar_code(DType.COMPLEX64)
_COMPLEX128 = scalar_code(DType.COMPLEX128)
_VIEWS = frozenset({View, Subview, Row})

HARMLESS = _VIEWS | {bool, np.ndarray, Future, RandomPool, *np.sctypeDict.values()}
"""Types that `classify` can be called twice for: it calls no code of others."""

_ARRAY = "; make it an array before the call, as in {name} = np.array({name})"
_HINTS: dict[type, str] = {
    list: _ARRAY,
    set: "; make it an array before the call, as in {name} = np.array(sorted({name}))",
    tuple: _ARRAY,
    range: "; make it an array: np.arange(...)",
    bytes: "; make it an array: np.frombuffer(...)",
    str: "; give a number for each choice, or float({name}) for a text that is one",
    type(None): "; did a function that made it forget to return it?",
    dict: "; pass each entry as an argument of its own",
}

Coded = tuple[int, Any]


def bound_type(code: int) -> BoundType:
    """The type that a code stands for."""
    if code & RANDOM:
        return RandomPoolType()
    dtype = DTYPES[code & 31]
    rank = (code & (READ_ONLY - 1)) >> 5
    return BoundView(dtype, rank, bool(code & ATOMIC)) if rank else ScalarType(dtype)


def classify(name: str, value: Any) -> Coded:
    """The code and the value of an argument, for any kind of value.

    Raises ArgumentError for what a kernel cannot take.
    """
    kind = type(value)
    if kind in _VIEWS:
        return value._code, value._region
    if kind is float:
        return FLOAT64, value
    if kind is int:
        return (INT32 if -INT32_LIMIT < value < INT32_LIMIT else INT64), value
    if kind is np.ndarray:
        return _array(name, value)
    if kind is bool:
        return _BOOL, value
    if kind is Future:
        return _future(name, value)
    return _unusual(name, value)


def _array(name: str, value: Any) -> Coded:
    dtype = from_numpy(value.dtype)
    if dtype is None:
        raise ArgumentError(
            f"argument {name!r}: arrays of {value.dtype!r} are not supported; "
            + _instead(name, value)
        )
    if value.ndim == 0:
        value = value.reshape(1)
    code = view_code(dtype, value.ndim)
    flags = value.flags
    if not flags.writeable:
        code |= READ_ONLY
    if not flags.aligned:
        refuse_misaligned(f"argument {name!r}", value)
    return code, region_of(value, dtype)


def _instead(name: str, array: Any) -> str:
    """What to give in place of an array whose type kernels do not have."""
    if array.dtype.names:
        field = f"{name}[{array.dtype.names[0]!r}]"
        return f"pass its fields, each as an argument of its own, as in {field}"
    return "convert it with astype, for example to np.float64"


def _future(name: str, value: Future) -> Coded:
    # The type inferred for an int depends on its value, so an unknown one has to be computed.
    if value.ready or not value.dtype.is_float:
        return classify(name, value.result())
    return FLOAT64 | FUTURE, value


def _unusual(name: str, value: Any) -> Coded:
    if isinstance(value, ViewType):
        return value._code, value._region
    if hasattr(value, "__pyfuser_memory__"):
        return _lazy(name, value)
    if isinstance(value, RandomPool):
        return RANDOM | scalar_code(DType.UINT64), operator.index(value.seed) % 2**64
    if isinstance(value, np.generic):
        dtype = from_numpy(value.dtype)
        if dtype is not None:
            return scalar_code(dtype), value.item()
    elif isinstance(value, np.ndarray):
        if not hasattr(value, "mask"):  # a masked array's mask would be lost
            return _array(name, value.view(np.ndarray))
    elif on_gpu(value):
        has_address = hasattr(value, "__cuda_array_interface__")
        return device_array(name, value if has_address else gpu().from_dlpack(value))
    elif isinstance(value, (complex, complex64, complex128)):
        return _COMPLEX64 if isinstance(value, complex64) else _COMPLEX128, complex(value)
    elif isinstance(value, (int, float)):  # a subclass, such as an IntEnum member
        return classify(name, int(value) if isinstance(value, int) else float(value))
    elif has_memory(value):
        return _array(name, shared_array(f"argument {name!r}", value))
    raise ArgumentError(
        f"argument {name!r} is {_described(value)}: a kernel takes Views, arrays and numbers"
        f"{_hint(name, value)}"
    )


def _hint(name: str, value: Any) -> str:
    """What to give in place of something that a kernel does not take."""
    first = value[0] if isinstance(value, (list, tuple)) and value else None
    if isinstance(first, (ViewType, np.ndarray)):
        return "; pass each array as an argument of its own"
    if isinstance(value, np.ma.MaskedArray):
        return f"; a kernel sees no mask: pass {name}.filled(0), or {name}.data and {name}.mask"
    kind = type(value)  # whose instances are left alone
    if issubclass(kind, numbers.Number):
        return f"; pass float({name})"
    if kind.__dictoffset__ and kind not in _HINTS:
        return f"; pass what is used of it, each as an argument of its own, as in dt={name}.dt"
    return _HINTS.get(kind, "").format(name=name)


def _lazy(name: str, value: Any) -> Coded:
    """An array whose memory is a buffer's, as a View's is: see `frontends.numpy`."""
    memory = value.__pyfuser_memory__()
    if memory is None:  # somebody else's
        return _array(name, value.__array__())
    region, _, writeable = memory
    if not region.shape:
        region = Region(region.buffer, region.offset, (region.dtype.size,), (1,), region.dtype)
    code = view_code(region.dtype, len(region.shape))
    return code if writeable else code | READ_ONLY, region


def device_array(name: str, value: Any) -> Coded:
    """An array in a GPU's memory, of CuPy or torch or any library with CUDA's array interface."""
    region, writeable = gpu().region_of_array(name, value)
    code = view_code(region.dtype, len(region.shape))
    return code if writeable else code | READ_ONLY, region


def _described(value: Any) -> str:
    if isinstance(value, np.generic):
        return f"a NumPy {value.dtype}"
    return f"of type {kind(value)}"
