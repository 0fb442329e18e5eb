"""PyKokkos' Views: which memory each stands for, and that a read of it runs what is pending.

Everything that reaches a View's memory, in PyKokkos and outside, takes it from one of a few
attributes (`WATCHED`), so these are what is watched: they become properties. Who takes one may keep
the array, so from then on the memory counts as one that anybody reaches. PyKokkos' own methods
that read or write elements and keep nothing are spared that: they run what is pending first, and
the View they work on is `quiet` meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pyfuser.frontends.embedded.view_memory import READ_ONLY, view_code
from pyfuser.frontends.upstream.lifetime import note
from pyfuser.ir.dtypes import from_numpy
from pyfuser.runtime.session import TRACER
from pyfuser.support.errors import PyFuserError
from pyfuser.trace.memory import Array, Buffer, Handle, Region, region_of
from pyfuser.trace.reason import VIEW

WATCHED = ("data", "array", "xp_array", "orig_array")
MEMORY = "_pyfuser_memory"  # in a View's __dict__: its Memory


class NotOurs(PyFuserError):
    """A call that only PyKokkos itself can run; the message says why."""


class Memory:
    """What a View stands for.

    handle: shared by all Views of an allocation that nobody else reaches; it is None if the memory
    is known to others, from the start. region: None if it cannot be told; then `why` says why.
    """

    __slots__ = ("buffer", "code", "handle", "region", "why")

    def __init__(self, buffer: Buffer, handle: Handle | None, view: Any, data: Array) -> None:
        self.buffer = buffer
        self.handle = handle
        self.region: Region | None = None
        self.code = 0
        self.why = _why_not(view, data)
        if not self.why:
            element = from_numpy(data.dtype)
            assert element is not None
            offset = data.__array_interface__["data"][0] - buffer.address
            self.region = Region(buffer, offset, data.strides, data.shape, element)
            self.code = view_code(element, data.ndim)
            if not data.flags.writeable:
                self.code |= READ_ONLY


def _why_not(view: Any, data: Array) -> str:
    """Why a View's memory is not passed to our kernels; empty if it may be."""
    if view.space.name != "HostSpace":
        return f"a View in {view.space.name}"
    if view.trait.name not in ("TraitDefault", "Unmanaged"):
        return f"a View with the trait {view.trait.name}"
    return why_not_array(data, view.layout.name == "LayoutLeft")


def why_not_array(data: Array, left: bool) -> str:
    """Why our kernels would not see in an array what PyKokkos sees; empty if they do.

    PyKokkos ignores strides: it takes the memory from the first element on.
    """
    if data.ndim == 0 or data.size == 0:
        return "a View without dimensions or elements"
    if from_numpy(data.dtype) is None or data.dtype == np.bool_:
        return f"elements of type {data.dtype}"
    if not data.flags.aligned:
        return "memory that is not aligned"
    if not (data.flags.f_contiguous if left else data.flags.c_contiguous):
        return "elements that do not lie one after the other, which PyKokkos takes to do"
    return ""


# --------------------------------------------------------------------------- quiet


class _Quiet(threading.local):
    """Views of this thread whose attributes are read without consequences: some, or all."""

    views: tuple[Any, ...] = ()
    all = False


QUIET = _Quiet()


@contextmanager
def quiet(*views: Any) -> Iterator[None]:
    """A block that reads the attributes of these Views and hands out none of the arrays."""
    before = QUIET.views
    QUIET.views = (*before, *views)
    try:
        yield
    finally:
        QUIET.views = before


@contextmanager
def all_quiet() -> Iterator[None]:
    """A block in which PyKokkos runs a kernel; nothing that it needs is pending."""
    before = QUIET.all
    QUIET.all = True
    try:
        yield
    finally:
        QUIET.all = before


def _is_quiet(view: Any) -> bool:
    return QUIET.all or any(view is other for other in QUIET.views)


# --------------------------------------------------------------------------- memory


def memory_of(view: Any) -> Memory:
    """The memory of a View; one made before the hooks were installed is reached by others."""
    known: Memory | None = view.__dict__.get(MEMORY)
    return known if known is not None else _others(view)


def _others(view: Any) -> Memory:
    """Note that the memory of a View is known to others."""
    data = view.__dict__["data"]
    kept = view.__dict__.get("orig_array")
    if kept is not None and _address(kept) == _address(data) and kept.shape == data.shape:
        data = kept  # of which PyKokkos' array is a copy of the pointer
    memory = Memory(Buffer.wrap(data), None, view, data)
    view.__dict__[MEMORY] = memory
    return memory


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def made(view: Any) -> None:
    """Note that a View has new memory, of its own unless it is `Unmanaged`."""
    data: Array = view.__dict__["data"]
    contiguous = data.flags.c_contiguous or data.flags.f_contiguous
    if view.trait.name == "Unmanaged" or not contiguous:
        _others(view)
        return
    handle = Handle()
    buffer = Buffer.lend(data.reshape(-1, order="A").view(np.uint8), handle)
    view.__dict__[MEMORY] = Memory(buffer, handle, view, data)


def sliced(view: Any, parent: Any) -> None:
    """Note that a View is part of another."""
    whole = memory_of(parent)
    data: Array = view.__dict__["data"]
    if data.size and whole.handle is None:
        _others(view)
    else:
        view.__dict__[MEMORY] = Memory(whole.buffer, whole.handle, view, data)


def settle(view: Any) -> None:
    """Make a View's memory safe for the host to read and write."""
    if TRACER.calls:
        TRACER.flush_for(memory_of(view).buffer, VIEW)


class Watched:
    """An attribute of Views: to take it runs what is pending on the memory, and exposes it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, view: Any, owner: type | None = None) -> Any:
        if view is None:
            raise AttributeError(self.name)
        try:
            value = view.__dict__[self.name]
        except KeyError:
            raise AttributeError(
                f"{type(view).__name__!r} object has no attribute {self.name!r}"
            ) from None
        if not _is_quiet(view):
            settle(view)
            buffer = memory_of(view).buffer
            if not buffer.external:
                buffer.expose()
        return value

    def __set__(self, view: Any, value: Any) -> None:
        before = view.__dict__.get(self.name)
        if not (before is None or before is value or _is_quiet(view)):
            settle(view)
            memory = memory_of(view)
            memory.region, memory.why = None, f"a View whose {self.name} was set"
        view.__dict__[self.name] = value
        if self.name == "array":
            note(value)


def array_region(value: Array) -> tuple[int, Region]:
    """The code and the region of a NumPy array that is an argument.

    Raises NotOurs where PyKokkos would see something else in it.
    """
    why = why_not_array(value, bool(value.ndim > 1 and value.flags.f_contiguous))
    if why:
        raise NotOurs(f"an array with {why}")
    element = from_numpy(value.dtype)
    assert element is not None
    code = view_code(element, value.ndim)
    return (code if value.flags.writeable else code | READ_ONLY), region_of(value, element)
