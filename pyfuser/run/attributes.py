"""Attributes that are found by looking, without running code of anybody's.

Nothing here loads an attribute of an object or of its class in the usual way before it knows what
that does: a proxy computes its `__class__`, a metaclass may have a `__getattribute__`. Types are
looked at through the descriptors of `type` itself.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from types import (
    BuiltinMethodType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

import numpy as np

from pyfuser.frontends.embedded import pykokkos
from pyfuser.frontends.embedded.spaces import ExecutionSpace, Layout, MemorySpace, Trait
from pyfuser.frontends.embedded.views import Subview, View, ViewType

_NUMPY_SCALARS = [k for k in np.sctypeDict.values() if issubclass(k, (np.number, np.bool_))]
#: Types of values that nothing can be read from but themselves.
SCALARS: frozenset[Any] = frozenset(
    {int, float, bool, complex, str, bytes, type(None), *_NUMPY_SCALARS}
)
_METADATA = frozenset({"shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides", "T"})
_VIEW_METADATA = frozenset({"shape", "ndim", "size", "dtype", "layout", "space", "trait"})
_VIEW_METHODS = frozenset({"extent", "rank", "fill", "resize"})
#: Methods of built-in types that run no code and read no element of an array, by type.
BUILTIN_METHODS: dict[type, frozenset[str]] = {
    list: frozenset({"append", "copy", "reverse"}),
    dict: frozenset({"items", "keys", "values", "copy"}),
    np.ndarray: frozenset({"reshape", "ravel", "transpose", "swapaxes", "squeeze"}),
}
_TUPLE_FIELD = type(vars(namedtuple("Pair", "first second"))["first"])

MISSING = object()
#: A property whose code is the program's own, and watches for itself.
PROPERTY = object()

mro: Callable[[type], tuple[type, ...]] = vars(type)["__mro__"].__get__
members: Callable[[type], MappingProxyType[str, Any]] = vars(type)["__dict__"].__get__


def attribute(owner: Any, name: str, is_watched: Callable[[Any], bool]) -> Any:
    """An attribute that is found without running code; `MISSING` otherwise, or `PROPERTY`.

    is_watched: whether a function is of a rewritten module.
    """
    kind: Any = type(owner)
    if kind is ModuleType or owner is pykokkos:
        return vars(owner).get(name, MISSING)
    if kind is np.ndarray:
        return getattr(owner, name) if name in _METADATA else _builtin_method(owner, name)
    if kind is View or kind is Subview:
        if name in _VIEW_METADATA:
            return getattr(owner, name)
        return getattr(owner, name) if name in _VIEW_METHODS else MISSING
    if kind is list or kind is dict:
        return _builtin_method(owner, name)
    if kind is SimpleNamespace:
        return vars(owner).get(name, MISSING)
    if issubclass(kind, type):
        return _class_attribute(owner, name)
    if in_type(kind, "__getattribute__") is not object.__getattribute__ and not (
        issubclass(kind, tuple) and in_type(kind, "__getattribute__") is tuple.__getattribute__
    ):
        return MISSING
    return _of_instance(owner, kind, name, is_watched)


def _of_instance(owner: Any, kind: type, name: str, is_watched: Callable[[Any], bool]) -> Any:
    """An attribute of an object whose type looks for attributes in the usual way."""
    found = in_type(kind, name)
    if type(found) is MemberDescriptorType or type(found) is _TUPLE_FIELD:
        try:
            return found.__get__(owner)
        except AttributeError:
            return MISSING
    if type(found) is property:
        return PROPERTY if is_watched(found.fget) else MISSING
    if is_data_descriptor(found):
        return MISSING
    own = object_dict(owner, kind)
    if own is not None and name in own:
        return own[name]
    if type(found) is FunctionType:
        return MethodType(found, owner)
    return _unbound(found, kind)


def _unbound(found: Any, owner: type) -> Any:
    """What a class's attribute is where it does not become a method of the object."""
    if type(found) is staticmethod:
        return found.__func__ if type(found.__func__) is FunctionType else MISSING
    if type(found) is classmethod:
        function = found.__func__
        return MethodType(function, owner) if type(function) is FunctionType else MISSING
    return found if type(found) in SCALARS or type(found) in (np.ndarray, View) else MISSING


def _class_attribute(owner: type, name: str) -> Any:
    if any(owner is kind for kind in (ExecutionSpace, MemorySpace, Layout, Trait)):
        return owner.__members__.get(name, MISSING)  # type: ignore[attr-defined]
    if type(owner) is not type:
        return MISSING
    found = in_type(owner, name)
    return found if type(found) is FunctionType else _unbound(found, owner)


def _builtin_method(owner: Any, name: str) -> Any:
    return getattr(owner, name) if name in BUILTIN_METHODS[type(owner)] else MISSING


def is_builtin_method(function: Any) -> bool:
    """Whether it is one of `BUILTIN_METHODS`, of an object of just that type."""
    if type(function) is not BuiltinMethodType:
        return False
    names = BUILTIN_METHODS.get(type(function.__self__))
    return names is not None and function.__name__ in names


def is_data_descriptor(found: Any) -> bool:
    """Whether an attribute of a type comes before those of its objects."""
    kind = type(found)
    return in_type(kind, "__set__") is not MISSING or in_type(kind, "__delete__") is not MISSING


def object_dict(owner: Any, kind: type) -> dict[str, Any] | None:
    """The dictionary of an object's attributes, where it is a usual one."""
    if not has_plain_dict(kind):
        return None
    own: Any = object.__getattribute__(owner, "__dict__")
    return own if type(own) is dict else None


def has_plain_dict(kind: type) -> bool:
    """Whether objects keep their attributes in the usual dictionary."""
    return type(in_type(kind, "__dict__")) is GetSetDescriptorType


def in_type(kind: type, name: str) -> Any:
    """An attribute of a type or of those it inherits from; `MISSING` if there is none."""
    for base in mro(kind):
        own = members(base)
        if name in own:
            return own[name]
    return MISSING


def is_view(owner: Any) -> bool:
    """Whether subscripts of an object are those of a View; programs derive classes from it."""
    kind = type(owner)
    if kind is View or kind is Subview:
        return True
    methods = ("__getitem__", "__setitem__")
    return issubclass(kind, ViewType) and all(
        in_type(kind, name) is vars(ViewType)[name] for name in methods
    )
