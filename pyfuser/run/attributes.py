"""Attributes that are found by looking, without running code of the program's."""

from __future__ import annotations

from collections.abc import Mapping
from types import (
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

from pyfuser.frontends.embedded import pykokkos
from pyfuser.frontends.embedded.spaces import ExecutionSpace, Layout, MemorySpace, Trait
from pyfuser.frontends.embedded.views import Subview, View

_NUMPY_SCALARS = [k for k in np.sctypeDict.values() if issubclass(k, (np.number, np.bool_))]
SCALARS: frozenset[Any] = frozenset(
    {int, float, bool, complex, str, bytes, type(None), *_NUMPY_SCALARS}
)
_METADATA = frozenset({"shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides"})
_VIEW_METADATA = frozenset({"shape", "ndim", "size", "dtype", "layout", "space", "trait"})
_VIEW_METHODS = frozenset({"extent", "rank", "fill", "resize"})

MISSING = object()


def attribute(owner: Any, name: str) -> Any:
    """An attribute that is found without running code; `MISSING` otherwise."""
    kind: Any = type(owner)
    if kind is ModuleType or owner is pykokkos:
        return vars(owner).get(name, MISSING)
    if kind is np.ndarray:
        return getattr(owner, name) if name in _METADATA else MISSING
    if kind is View or kind is Subview:
        if name in _VIEW_METADATA:
            return getattr(owner, name)
        return getattr(owner, name) if name in _VIEW_METHODS else MISSING
    if isinstance(owner, type):
        return _class_attribute(owner, name)
    if kind.__getattribute__ is not object.__getattribute__:
        return MISSING
    found = in_type(kind, name)
    if type(found) is MemberDescriptorType:
        try:
            return found.__get__(owner)
        except AttributeError:
            return MISSING
    if is_data_descriptor(found):
        return MISSING  # a property
    own = getattr(owner, "__dict__", None) if has_plain_dict(kind) else None
    if type(own) is dict and name in own:
        return own[name]
    if type(found) is FunctionType:
        return MethodType(found, owner)
    return found if type(found) in SCALARS else MISSING


def _class_attribute(owner: type, name: str) -> Any:
    if owner in (ExecutionSpace, MemorySpace, Layout, Trait):
        return owner.__members__.get(name, MISSING)
    found = in_type(owner, name) if type(owner) is type else MISSING
    return found if type(found) in SCALARS else MISSING


def is_data_descriptor(found: Any) -> bool:
    """Whether an attribute of a type comes before those of its objects."""
    return hasattr(type(found), "__set__") or hasattr(type(found), "__delete__")


def has_plain_dict(kind: type) -> bool:
    """Whether objects keep their attributes in the usual dictionary."""
    found = in_type(kind, "__dict__")
    return type(found) is GetSetDescriptorType


def in_type(kind: type, name: str) -> Any:
    """An attribute of a type or of those it inherits from; `MISSING` if there is none."""
    for base in kind.__mro__:
        members: Mapping[str, Any] = vars(base)
        assert isinstance(members, MappingProxyType)
        if name in members:
            return members[name]
    return MISSING
