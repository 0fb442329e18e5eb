"""NumPy's array, whose operations are recorded and fused; `compiled.py` makes `ndarray` of it."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from pyfuser.frontends.numpy import apply
from pyfuser.frontends.numpy.as_program import as_program
from pyfuser.frontends.numpy.fallbacks import method_of
from pyfuser.frontends.numpy.flags import Flags
from pyfuser.frontends.numpy.indexing import Indexing
from pyfuser.frontends.numpy.layout import is_c_order
from pyfuser.frontends.numpy.memory import (
    READ,
    export,
    expose,
    host,
    is_selected,
    layout_of,
    region_of,
    share,
)  # fmt: skip
from pyfuser.frontends.numpy.operations import COPY
from pyfuser.frontends.numpy.operators import Operators
from pyfuser.frontends.numpy.record import record
from pyfuser.frontends.numpy.wrap import KIND, adopt, view
from pyfuser.runtime.session import TRACER
from pyfuser.support.caches import cached
from pyfuser.trace.images import USE
from pyfuser.trace.memory import Array as NumpyArray
from pyfuser.trace.memory import Handle, Region

_FORMAT = 4
"""Of what a buffer is asked for (PyBUF_FORMAT): that it tells the type of elements."""


@cached(64)
def _has_format(dtype: Any) -> bool:
    """Whether an array made of a buffer over such elements has the same type."""
    try:
        found = np.asarray(memoryview(np.zeros(1, dtype))).dtype  # type: ignore[arg-type]
        return bool(found == dtype and found.isalignedstruct == dtype.isalignedstruct)
    except (ValueError, RuntimeError):
        return False


def _of_layout(name: str) -> Any:
    return property(lambda x: getattr(layout_of(x), name))


def _view_method(name: str) -> Any:
    """A method that makes a view, whatever the elements are."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return view(self, getattr(layout_of(self), name)(*args, **kwargs))

    return method


class Array(Operators, Indexing):
    """An array with NumPy's values, types, shapes, strides and aliasing."""

    __slots__ = ()
    __array_priority__ = 0.0

    # ------------------------------------------------------------------- attributes

    ndim = _of_layout("ndim")
    size = _of_layout("size")
    itemsize = _of_layout("itemsize")
    nbytes = _of_layout("nbytes")

    @property
    def shape(self) -> Any:
        region = self._region
        return self._array.shape if region is None else region.shape  # type: ignore[union-attr]

    @shape.setter
    def shape(self, value: Any) -> None:
        self._become(np.reshape(layout_of(self), value, copy=False))

    @property
    def dtype(self) -> Any:
        if is_selected(self):
            return self._selection.dtype
        array = self._array
        return self._region.dtype.numpy if array is None else array.dtype  # type: ignore[union-attr]

    @dtype.setter
    def dtype(self, value: Any) -> None:
        self._become(layout_of(self).view(value))

    @property
    def strides(self) -> Any:
        region = self._region
        return self._array.strides if region is None else region.strides  # type: ignore[union-attr]

    def _become(self, part: NumpyArray) -> None:
        """Be what `view` makes of the array."""
        share(self)
        new = view(self, part)
        self._array, self._region = new._array, new._region
        self._owner = new._owner

    @property
    def flags(self) -> Flags:
        return Flags(self)

    def setflags(self, write: Any = None, align: Any = None, uic: Any = None) -> None:
        if write is None:
            layout_of(self).setflags(align=align, uic=uic)
            return
        base = self._base
        if write and (self._owner is None or (base is not None and not base._writeable)):
            array = self._array if self._owner is None else np.broadcast_to(np.zeros(1), (1,))
            assert array is not None
            array.setflags(write=True)  # may raise
        if self._array is not None:
            self._array.flags.writeable = bool(write)
        self._writeable = bool(write)

    @property
    def base(self) -> Any:
        if self._base is not None or self._owner is not None:
            return self._base
        return None if self._array is None else self._array.base

    @property
    def T(self) -> Any:
        return view(self, layout_of(self).T)

    @property
    def mT(self) -> Any:
        return view(self, layout_of(self).mT)

    @property
    def real(self) -> Any:
        return view(self, layout_of(self).real) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Any:
        if self.dtype.kind != "c":
            noughts = apply.call(getattr, (self, "imag"), {})
            noughts.setflags(write=False)
            return noughts
        return view(self, layout_of(self).imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        self.imag[...] = value

    @property
    def flat(self) -> Any:
        return export(self).flat

    @flat.setter
    def flat(self, value: Any) -> None:
        array: Any = export(self)
        array.flat = value

    # ------------------------------------------------------------------- views

    transpose = _view_method("transpose")
    swapaxes = _view_method("swapaxes")
    squeeze = _view_method("squeeze")
    diagonal = _view_method("diagonal")

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        if type is KIND.array:
            return self.view() if dtype is None else self.view(dtype)
        if type is not None or np.ndarray in getattr(dtype, "__mro__", ()):
            given = {"dtype": dtype, "type": type}
            given = {name: value for name, value in given.items() if value is not None}
            return apply.call(lambda a: a.view(**given), (self,), {})
        if dtype is None or dtype is KIND.array:
            return view(self, layout_of(self).view())
        return view(self, layout_of(self).view(dtype))

    def reshape(self, *shape: Any, order: Any = "C", copy: Any = None) -> Any:
        extents = shape[0] if len(shape) == 1 else shape
        if copy is not True:
            try:
                return view(self, np.reshape(layout_of(self), extents, order, copy=False))
            except ValueError:
                if copy is False:
                    raise
        return adopt(np.reshape(host(self), extents, order, copy=True))

    def ravel(self, order: Any = "C") -> Any:
        flags = layout_of(self).flags
        if (flags.c_contiguous and order in ("C", "A", "K")) or (
            flags.f_contiguous and order == "F"
        ):
            return self.reshape(-1, order=order)
        return apply.call(np.ravel, (self, order), {})

    # ------------------------------------------------------------------- copies

    def astype(
        self,
        dtype: Any,
        order: Any = "K",
        casting: Any = "unsafe",
        subok: Any = True,
        copy: Any = True,
    ) -> Any:
        target = np.dtype(dtype)
        if order == "K" and np.can_cast(self.dtype, target, casting):
            if not copy and target == self.dtype:
                return self
            found = record(COPY, (self,), signature=target)
            if found is not None:
                return found
        value = as_program(host(self).astype, (target, order, casting, subok, copy), {})
        return self if value is self._array else adopt(value)

    def copy(self, order: Any = "C") -> Any:
        if order == "K" or (order == "C" and is_c_order(self.shape, self.strides)):
            found = record(COPY, (self,))
            if found is not None:
                return found
        return adopt(host(self).copy(order))

    def flatten(self, order: Any = "C") -> Any:
        if order == "C" and layout_of(self).flags.c_contiguous:
            return self.reshape(-1).copy()
        return adopt(host(self).flatten(order))

    def __copy__(self) -> Any:
        return self.copy("K")

    def __deepcopy__(self, memo: Any) -> Any:
        return apply.call(lambda a: a.__deepcopy__(memo), (self,), {})

    def __reduce__(self) -> Any:
        return _restored, (host(self).copy("K"),)

    def fill(self, value: Any) -> None:
        if type(value) in apply.SCALARS:
            self[...] = value
            return
        objects = self.dtype.kind == "O"
        value = value if objects else apply.without(value)
        as_program(np.ndarray.fill, (host(self, True), value), {})

    def __sizeof__(self) -> int:
        owned: int = self.nbytes if self.flags.owndata else 0
        return np.empty((0,) * self.ndim).__sizeof__() + owned

    # ------------------------------------------------------------------- reads

    def item(self, *args: Any) -> Any:
        if USE.devices and len(args) == self.ndim and all(type(arg) is int for arg in args):
            return self[args].item()
        return host(self).item(*args)

    def tolist(self) -> Any:
        return host(self).tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        return host(self).tobytes(order)

    def __repr__(self) -> str:
        return repr(host(self))

    def __str__(self) -> str:
        return str(host(self))

    def __format__(self, spec: str) -> str:
        return format(host(self), spec)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NumpyArray:
        if copy:
            return np.array(host(self), dtype=dtype)
        array = export(self)
        if dtype is None or array.dtype == dtype:
            return array
        return np.asarray(array, dtype=dtype, copy=copy)

    def __buffer__(self, flags: int) -> memoryview:
        array = export(self)
        if array.dtype.kind in "mMV":
            if not flags & _FORMAT:
                array = array.view(f"V{array.dtype.itemsize}")
            elif not _has_format(array.dtype):
                raise BufferError(f"no format of buffers tells of elements of type {array.dtype}")
        return memoryview(array)  # type: ignore[arg-type]

    def __release_buffer__(self, buffer: memoryview) -> None:
        """Nothing; it is there so that `numpy.frombuffer` keeps the export, not this array."""

    def __bytes__(self) -> bytes:
        return host(self).tobytes()

    @property
    def __array_interface__(self) -> Any:
        region = region_of(self) if self._writeable and self.size else None
        if region is None:
            return self._told("biufcmMSU").__array_interface__
        with TRACER.lock:
            TRACER.flush_for(region.buffer, READ)
            return region.interface()  # who takes the address from it may keep that

    @property
    def __array_struct__(self) -> Any:
        return self._told("biufc").__array_struct__

    def _told(self, kinds: str) -> NumpyArray:
        """The array for an interface that tells all of such types; NumPy asks `__array__` next."""
        array = export(self)
        if array.dtype.kind not in kinds:
            raise AttributeError(f"it does not tell all of elements of type {array.dtype}")
        return array

    @property
    def data(self) -> memoryview:
        return memoryview(export(self))  # type: ignore[arg-type]

    @property
    def ctypes(self) -> Any:
        expose(self)  # who takes the address may keep it
        return export(self).ctypes

    def __dlpack__(self, **options: Any) -> Any:
        return export(self).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __array_namespace__(self, *, api_version: Any = None) -> Any:
        np.empty(0).__array_namespace__(api_version=api_version)  # may raise
        return importlib.import_module("pyfuser.numpy")

    @property
    def device(self) -> str:
        return "cpu"

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__":
            return apply.apply(ufunc, inputs, kwargs)
        return apply.call(getattr(ufunc, method), inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return apply.call(function, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            return super().__getattr__(name)
        if hasattr(np.ndarray, name):
            return method_of(self, name)
        raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")

    def __pyfuser_memory__(self) -> tuple[Region, Handle | None, bool] | None:
        """Region, handle and whether it is writeable, for calls of workunits; None: foreign."""
        region = region_of(self)
        return None if region is None else (region, share(self), self._writeable)


def _restored(array: NumpyArray) -> Any:
    """An array that was pickled."""
    return adopt(array if array.base is None else array.copy("K"))
