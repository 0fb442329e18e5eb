"""See README.md."""

from __future__ import annotations

from typing import Any

import numpy as np

from cupy import cuda
from cupy.cuda import _machine as machine

__version__ = "14.0.0"


class ndarray:
    """An array in the device's memory."""

    def __init__(
        self,
        shape: Any,
        dtype: Any = float,
        memptr: Any = None,
        strides: Any = None,
        order: str = "C",
    ) -> None:
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.dtype = np.dtype(dtype)
        self.ndim = len(self.shape)
        self.size = int(np.prod(self.shape, dtype=int))
        self.nbytes = self.size * self.dtype.itemsize
        if strides is None:
            strides = np.empty(self.shape, np.dtype("V1"), order=order).strides  # type: ignore[call-overload]
            strides = tuple(s * self.dtype.itemsize for s in strides)
        self.strides = tuple(strides)
        self.data = cuda.alloc(max(self.nbytes, 1)) if memptr is None else memptr

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "data": (self.data.ptr, False),
            "shape": self.shape,
            "strides": self.strides,
            "typestr": self.dtype.str,
            "descr": self.dtype.descr,
            "version": 3,
            "stream": cuda.get_current_stream().ptr or 1,
        }

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Use `.get()`.")

    def _window(self) -> Any:
        """The memory as NumPy sees it; only for operations that a stream executes."""
        interface = {
            "data": (self.data.ptr, False), "shape": self.shape, "strides": self.strides,
            "typestr": self.dtype.str, "version": 3,
        }  # fmt: skip
        return np.asarray(type("Window", (), {"__array_interface__": interface})())

    def get(self) -> Any:
        """A copy on the host."""
        found: list[Any] = []
        stream = cuda.get_current_stream()
        machine.MACHINE.enqueue(stream.ptr, lambda: found.append(self._window().copy()))
        stream.synchronize()
        return found[0]

    def set(self, arr: Any) -> None:
        """Copy values from the host."""
        values = np.array(arr, self.dtype)
        machine.MACHINE.enqueue(
            cuda.get_current_stream().ptr, lambda: self._window().__setitem__(..., values)
        )

    def fill(self, value: Any) -> None:
        """Set all elements."""
        machine.MACHINE.enqueue(cuda.get_current_stream().ptr, lambda: self._window().fill(value))

    def __getitem__(self, key: Any) -> ndarray:
        low = np.lib.stride_tricks.as_strided(np.empty(1, self.dtype), self.shape, self.strides)
        part = low[key]
        if not isinstance(part, np.ndarray):
            part = low[tuple(slice(k, k + 1) for k in (key if isinstance(key, tuple) else (key,)))]
            part = part.reshape(())
        start = part.__array_interface__["data"][0] - low.__array_interface__["data"][0]
        return ndarray(part.shape, self.dtype, self.data + start, part.strides)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, np.ndarray):
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")
        values = value.get() if isinstance(value, ndarray) else value
        machine.MACHINE.enqueue(
            cuda.get_current_stream().ptr, lambda: self._window().__setitem__(key, values)
        )

    @property
    def T(self) -> ndarray:
        return ndarray(self.shape[::-1], self.dtype, self.data, self.strides[::-1])


def asarray(a: Any, dtype: Any = None) -> ndarray:
    """An array on the device; one that is there already as it is."""
    if isinstance(a, ndarray):
        return a
    values = np.asarray(a, dtype)
    order = "F" if values.flags.f_contiguous and not values.flags.c_contiguous else "C"
    made = ndarray(values.shape, values.dtype, order=order)
    made.set(values)
    return made


def from_dlpack(array: Any) -> ndarray:
    """The array that another library offers; the stand-in takes its own ones only."""
    made = array.__dlpack__()
    assert isinstance(made, ndarray)
    return made


def asnumpy(a: Any) -> Any:
    """A copy on the host."""
    return a.get() if isinstance(a, ndarray) else np.asarray(a)


def empty(shape: Any, dtype: Any = float) -> ndarray:
    """An array of garbage."""
    return ndarray(shape, dtype)


def zeros(shape: Any, dtype: Any = float) -> ndarray:
    """An array of zeros."""
    made = ndarray(shape, dtype)
    made.fill(0)
    return made


def get_default_memory_pool() -> Any:
    """The pool of `cuda.alloc`."""
    return cuda._POOL
