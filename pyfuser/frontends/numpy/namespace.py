"""What `pyfuser.numpy` has: names of ours, ufuncs, NumPy's types and constants, and all else."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from pyfuser.frontends.numpy import functions, rearranged, ufuncs
from pyfuser.frontends.numpy.array import ndarray
from pyfuser.frontends.numpy.fallbacks import Module, fallbacks, function_of

_VIEWERS = (
    "transpose", "swapaxes", "squeeze", "moveaxis", "rollaxis", "expand_dims", "diagonal",
    "permute_dims", "matrix_transpose", "flip", "flipud", "fliplr", "broadcast_to",
)  # fmt: skip
_CREATORS = ("arange", "linspace", "logspace", "geomspace", "eye", "identity", "tri", "fromstring")
_ATTRIBUTES = (
    "shape", "ndim", "size", "iscomplexobj", "isrealobj", "may_share_memory", "isscalar",
    "result_type", "can_cast", "broadcast_shapes", "min_scalar_type", "promote_types",
)  # fmt: skip
_METHODS = (
    "sum", "prod", "mean", "std", "var", "min", "max", "any", "all", "argmin", "argmax", "cumsum",
    "cumprod", "reshape", "ravel",
)  # fmt: skip
_ALIASES = {"amin": "min", "amax": "max"}
_REARRANGED = ("concatenate", "stack", "roll", "diff")
_FUNCTIONS = (
    "asarray", "array", "zeros", "empty", "ones", "full", "zeros_like", "ones_like", "empty_like",
    "full_like", "where", "clip", "copy", "copyto", "shares_memory",
)  # fmt: skip


def _own() -> dict[str, Any]:
    names: dict[str, Any] = {"ndarray": ndarray, "ufunc": ufuncs.ufunc, "fallbacks": fallbacks}
    names |= {name: getattr(functions, name) for name in _FUNCTIONS}
    names |= {name: getattr(rearranged, name) for name in _REARRANGED}
    for maker, group in (
        (functions.viewer, _VIEWERS),
        (functions.creator, _CREATORS),
        (functions.attribute, _ATTRIBUTES),
        (functions.method, _METHODS),
    ):
        names |= {name: _made(maker, name) for name in group if hasattr(np, name)}
    names["vectorize"] = vectorize
    names |= {alias: names[name] for alias, name in _ALIASES.items()}
    return names


def vectorize(pyfunc: Any = None, *args: Any, **kwargs: Any) -> Any:
    """As NumPy's, also as a decorator with arguments."""
    if pyfunc is None:
        return lambda function: vectorize(function, *args, **kwargs)
    return function_of(np.vectorize(pyfunc, *args, **kwargs), "vectorize")


def _made(maker: Callable[[str], Any], name: str) -> Any:
    return maker(name)


NAMES: dict[str, Any] = _own()


def find(name: str) -> Any:
    """A name that the module is asked for and has not yet. Raises AttributeError as NumPy does."""
    if name in NAMES:
        return NAMES[name]
    value = getattr(np, name)
    if isinstance(value, np.ufunc):
        return ufuncs.of(value)
    if isinstance(value, types.ModuleType):
        return Module(name, value)
    if isinstance(value, type) or not callable(value):
        return value
    return function_of(value, name)
