"""NumPy in CuPy's place, as strict as CuPy: for peers that are written in whole arrays of CuPy.

Arrays of the device do not mix with the host's, and reductions give arrays of the device, too. What
a fused kernel does beyond its function (types, broadcasting of outputs) only CuPy itself can show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

# What peers call; `test_peers_gpu` holds the names against an installed CuPy's.
FUNCTIONS = frozenset((
    "abs", "add", "arange", "bincount", "ceil", "clip", "compress", "concatenate", "copyto", "cos",
    "count_nonzero", "cumsum", "divide", "dot", "einsum", "empty", "empty_like", "exp", "full",
    "full_like", "log", "log1p", "maximum", "minimum", "multiply", "searchsorted", "sin", "sqrt",
    "stack", "subtract", "sum", "vdot", "where", "zeros_like",
))  # fmt: skip
CONSTANTS = frozenset(("pi", "int32", "int64", "uint32", "float32", "float64"))
METHODS = frozenset((
    "all", "argmax", "astype", "copy", "max", "mean", "ravel", "reshape", "sum", "var",
))  # fmt: skip


class ndarray(NDArrayOperatorsMixin):
    """An array of the device, which happens to be NumPy's."""

    def __init__(self, array: Any) -> None:
        self._array = np.asarray(array)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return on_device(getattr(ufunc, method))(*inputs, **options)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Use `.get()`.")

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "size", "ndim", "dtype"):
            return getattr(self._array, name)
        if name not in METHODS:
            raise AttributeError(f"cupy.ndarray: {name} is not among what peers call")
        return on_device(getattr(self._array, name))

    def __getitem__(self, key: Any) -> ndarray:
        return ndarray(self._array[_taken(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array[_taken(key)] = _taken(value)

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[ndarray]:
        return (ndarray(part) for part in self._array)

    def __float__(self) -> float:
        return float(self._array)

    def __int__(self) -> int:
        return int(self._array)

    @property
    def T(self) -> ndarray:
        return ndarray(self._array.T)

    def get(self) -> Any:
        return self._array.copy()


def _taken(value: Any) -> Any:
    """What is NumPy's in an argument. Raises TypeError for an array of the host."""
    if isinstance(value, ndarray):
        return value._array
    if isinstance(value, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, (tuple, list)):
        return type(value)(map(_taken, value))
    return value


def on_device(function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function for arrays of the device."""

    def called(*arguments: Any, **options: Any) -> Any:
        if isinstance(function, np.ufunc) and "where" in options:
            raise TypeError("Wrong arguments: CuPy's ufuncs take no where=")
        options = {key: _taken(value) for key, value in options.items()}
        found = function(*map(_taken, arguments), **options)
        return ndarray(found) if isinstance(found, (np.ndarray, np.generic)) else found

    return called


class StrictCuPy(ModuleType):
    """The module: `sys.modules["cupy"]` in tests."""

    ndarray = ndarray
    cuda = SimpleNamespace(Device=lambda: SimpleNamespace(synchronize=lambda: None))

    def __init__(self) -> None:
        super().__init__("cupy")

    def __getattr__(self, name: str) -> Any:
        if name in CONSTANTS:
            return getattr(np, name)
        if name in FUNCTIONS:
            return on_device(getattr(np, name))
        raise AttributeError(f"cupy.{name} is not among what peers call")

    @staticmethod
    def asarray(array: Any) -> ndarray:
        return ndarray(np.array(array))

    @staticmethod
    def fuse(function: Callable[..., Any]) -> Callable[..., Any]:
        return function
