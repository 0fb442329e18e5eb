"""PyKokkos' methods of Views, watched: see `views`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from pyfuser.frontends.upstream.views import WATCHED, Watched, made, quiet, settle, sliced
from pyfuser.trace.future import Future, plain

Method = Callable[..., Any]

#: Methods that read or write elements, and hand out no array.
TOUCHING = ("fill", "__setitem__", "__str__", "__bool__", "__index__", "__hash__")
#: Methods that take numbers.
TAKING = ("__eq__", "__add__", "__mul__", "extent")


def install(pykokkos: Any) -> None:
    """Watch the classes of Views of a PyKokkos."""
    base, view, subview = pykokkos.ViewType, pykokkos.View, pykokkos.Subview
    for name in WATCHED:
        setattr(base, name, Watched(name))
    for cls in (base, view, subview):
        for name in TOUCHING:
            _wrap(cls, name, _touching)
        for name in TAKING:
            _wrap(cls, name, _taking)
    _wrap(base, "__getitem__", _getitem)
    _wrap(base, "__iter__", _iter)
    _wrap(view, "_init_view", _making)
    _wrap(view, "resize", _remaking)
    _wrap(view, "set_precision", _remaking)
    _wrap(subview, "__init__", _slicing)


def take_plain_numbers(cls: type) -> None:
    """Let the constructor of a policy take a Future for the number it stands for."""
    _wrap(cls, "__init__", _taking)


def _wrap(cls: type, name: str, make: Callable[[Method], Method]) -> None:
    method = vars(cls).get(name)
    if method is None:
        return
    wrapped = wraps(method)(make(method))
    setattr(cls, name, wrapped)


def plain_deep(value: Any) -> Any:
    """A value without Futures, also in tuples and lists."""
    if type(value) in (tuple, list):
        return type(value)(map(plain_deep, value))
    return plain(value)


def _taking(method: Method) -> Method:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        named = {name: plain_deep(value) for name, value in kwargs.items()}
        return method(self, *map(plain_deep, args), **named)

    return call


def _touching(method: Method) -> Method:
    def call(self: Any, *args: Any) -> Any:
        args = tuple(map(plain_deep, args))
        settle(self)
        with quiet(self):
            return method(self, *args)

    return call


def _getitem(method: Method) -> Method:
    def call(self: Any, key: Any) -> Any:
        if type(key) is Future or type(key) is tuple:
            key = plain_deep(key)
        if self.ndim != 1 or isinstance(key, (slice, tuple)):
            return method(self, key)  # a row is an array; a Subview looks after itself
        settle(self)
        with quiet(self):
            return method(self, key)

    return call


def _iter(method: Method) -> Method:
    def call(self: Any) -> Iterator[Any]:
        return _elements(self) if self.ndim == 1 else method(self)

    return call


def _elements(view: Any) -> Iterator[Any]:
    """The elements one by one: the loop's body may launch kernels that write them."""
    held = vars(view)
    array = held.get("xp_array") if view.trait.name == "Unmanaged" else None
    array = held["data"] if array is None else array
    for n in range(len(array)):
        settle(view)
        yield array[n]


def _making(method: Method) -> Method:
    def call(self: Any, shape: Any, *args: Any, **kwargs: Any) -> None:
        shape = plain_deep(shape)
        with quiet(self):
            method(self, shape, *args, **kwargs)
        made(self)

    return call


def _remaking(method: Method) -> Method:
    def call(self: Any, *args: Any) -> None:
        args = tuple(map(plain_deep, args))
        settle(self)
        before = vars(self)["data"]
        with quiet(self):
            method(self, *args)
        if vars(self)["data"] is not before:
            made(self)

    return call


def _slicing(method: Method) -> Method:
    def call(self: Any, parent_view: Any, data_slice: Any) -> None:
        with quiet(self, parent_view):
            method(self, parent_view, data_slice)
        sliced(self, parent_view)

    return call
