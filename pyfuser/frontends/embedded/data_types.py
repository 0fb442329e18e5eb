"""PyKokkos' data types: `pk.int8` ... `pk.complex128`, and their meaning in the language."""

from __future__ import annotations

import builtins
from contextlib import suppress
from enum import Enum
from typing import Any, ClassVar

import numpy as np

from pyfuser.ir.dtypes import DType, from_numpy
from pyfuser.support.errors import ArgumentError


class DataType(Enum):
    """All data types; `float32` and `float64` are aliases of `float` and `double`."""

    int8 = "int8"
    int16 = "int16"
    int32 = "int32"
    int64 = "int64"
    uint8 = "uint8"
    uint16 = "uint16"
    uint32 = "uint32"
    uint64 = "uint64"
    float = "float"
    double = "double"
    float32 = "float"  # noqa: PIE796
    float64 = "double"  # noqa: PIE796
    real = None
    bool = "bool"
    complex64 = "complex64"
    complex128 = "complex128"

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's data type; `np.dtype(member)` finds it here."""
        return resolve(self)[1].numpy


class DataTypeClass:
    """The base of the data types; `np_equiv` is NumPy's scalar type.

    NumPy, and what asks NumPy, makes a `np.dtype` of a class that has one as its `dtype`.
    """

    value: str | None = None
    np_equiv: Any = None
    dtype: ClassVar[np.dtype[Any]]

    def __init_subclass__(cls) -> None:
        if cls.np_equiv is not None:
            cls.dtype = np.dtype(cls.np_equiv)


def _made(name: str, np_equiv: Any, value: str = "") -> type[DataTypeClass]:
    """The class of a data type; `value` is its name in DataType, if that is another."""
    return type(name, (DataTypeClass,), {"value": value or name, "np_equiv": np_equiv})


int8 = _made("int8", np.int8)
int16 = _made("int16", np.int16)
int32 = _made("int32", np.int32)
int64 = _made("int64", np.int64)
uint8 = _made("uint8", np.uint8)
uint16 = _made("uint16", np.uint16)
uint32 = _made("uint32", np.uint32)
uint64 = _made("uint64", np.uint64)
float = _made("float", np.float32)
double = _made("double", np.float64)
float32 = _made("float32", np.float32, "float")
float64 = _made("float64", np.float64, "double")
bool = _made("bool", np.bool_)


class real(DataTypeClass):
    """The default precision at the time a View is made."""


class _Complex(DataTypeClass):
    """A complex number of a fixed width; arithmetic is between numbers of the same width only."""

    __slots__ = ("_number",)

    def __init__(self, real: Any, imaginary: builtins.float = 0.0) -> None:
        number = real if isinstance(real, builtins.complex) else complex(real, imaginary)
        self._number = builtins.complex(self.np_equiv(number))

    def _other(self, other: Any) -> builtins.complex:
        if type(other) is not type(self):
            raise TypeError(f"cannot combine {type(self).__name__} and {type(other).__name__}")
        return other._number

    def __add__(self, other: Any) -> Any:
        return type(self)(self._number + self._other(other))

    def __sub__(self, other: Any) -> Any:
        return type(self)(self._number - self._other(other))

    def __mul__(self, other: Any) -> Any:
        return type(self)(self._number * self._other(other))

    def __truediv__(self, other: Any) -> Any:
        return type(self)(self._number / self._other(other))

    def __eq__(self, other: object) -> Any:
        if isinstance(other, _Complex):
            other = other._number
        return self._number == other

    def __hash__(self) -> int:
        return hash(self._number)

    def __complex__(self) -> builtins.complex:
        return self._number

    def __repr__(self) -> str:
        return f"({self.real}, {self.imag})"

    @property
    def real(self) -> builtins.float:
        return self._number.real

    @property
    def imag(self) -> builtins.float:
        return self._number.imag


class complex64(_Complex):
    value = "complex64"
    np_equiv = np.complex64


class complex128(_Complex):
    value = "complex128"
    np_equiv = np.complex128


#: The class that a View's `dtype` attribute has for an element type of the language.
CLASS_OF: dict[DType, type[DataTypeClass]] = {
    DType.BOOL: bool,
    DType.INT8: int8,
    DType.INT16: int16,
    DType.INT32: int32,
    DType.INT64: int64,
    DType.UINT8: uint8,
    DType.UINT16: uint16,
    DType.UINT32: uint32,
    DType.UINT64: uint64,
    DType.FLOAT32: float32,
    DType.FLOAT64: float64,
    DType.COMPLEX64: complex64,
    DType.COMPLEX128: complex128,
}

_BY_NAME = {kind.__name__: dtype for dtype, kind in CLASS_OF.items()}
_BY_NAME |= {"float": DType.FLOAT32, "double": DType.FLOAT64}
_BY_PYTHON_TYPE: dict[Any, type[DataTypeClass]] = {
    builtins.int: int32,
    builtins.float: float64,
    builtins.bool: bool,
}

_AMBIGUOUS = {"float": 'float32" or "float64', "int": 'int32" or "int64'}


class Precision:
    """The data type that `pk.real` stands for."""

    default: type[DataTypeClass] = double


def get_default_precision() -> type[DataTypeClass]:
    """The data type that `pk.real` stands for."""
    return Precision.default


def set_default_precision(precision: type[DataTypeClass]) -> None:
    """Let `pk.real` stand for another data type; existing Views keep theirs."""
    if not (isinstance(precision, type) and issubclass(precision, DataTypeClass)):
        raise ArgumentError(f"set_default_precision: {precision!r} is not a PyKokkos data type")
    Precision.default = precision


def resolve(dtype: Any) -> tuple[Any, DType]:
    """A View's `dtype` attribute and its element type, for what the constructor was given.

    Takes a data type class, a member of DataType, `int` (32 bits) or `float` (64 bits), and what
    NumPy has for them: np.float64, a np.dtype, "float64".

    Raises ArgumentError for anything else.
    """
    dtype = _BY_PYTHON_TYPE.get(dtype, dtype) if isinstance(dtype, type) else dtype
    if dtype is real or dtype is DataType.real:
        dtype = DataType[Precision.default.__name__]
    name = ""
    if isinstance(dtype, DataType):
        name = dtype.name
    elif isinstance(dtype, type) and issubclass(dtype, DataTypeClass):
        name = dtype.__name__
    element = _BY_NAME.get(name)
    if element is None:
        element = _of_numpy(dtype)
        dtype = CLASS_OF[element]
    if element.is_float:  # four spellings, two types: programs compare with `is`
        return CLASS_OF[element], element
    return dtype, element


def _of_numpy(dtype: Any) -> DType:
    """The element type of NumPy's name or object for one.

    Not of "float" and "int", which have other widths in PyKokkos. Raises ArgumentError.
    """
    element, use = None, "one such as pk.double, pk.float, pk.int32, np.float64, int or float"
    is_scalar = isinstance(dtype, type) and issubclass(dtype, np.generic)
    if isinstance(dtype, str) and dtype in _AMBIGUOUS:
        use = f'"{_AMBIGUOUS[dtype]}", as `{dtype}` has another width in NumPy than here'
    elif is_scalar or isinstance(dtype, (np.dtype, str)):
        with suppress(TypeError):
            element = from_numpy(np.dtype(dtype))
    if element is None:
        raise ArgumentError(f"{dtype!r} is not a data type of PyKokkos; use {use}")
    return element


def result_type(*dtypes: Any) -> Any:
    """The widest of data types of one kind (unsigned, signed or floating point).

    Raises NotImplementedError for Views and for types of different kinds, as PyKokkos does.
    """
    elements = []
    for dtype in dtypes:
        if not isinstance(dtype, (DataType, type)):
            raise NotImplementedError("type promotion is only defined for data types, not Views")
        elements.append(resolve(dtype)[1])
    if len({element.numpy.kind for element in elements}) != 1 or elements[0].is_complex:
        raise NotImplementedError("no casting rule for data types of different kinds")
    widest = max(range(len(elements)), key=lambda n: elements[n].size)
    return dtypes[widest]
