"""What makes a row of a View an array in all that NumPy and Python do with arrays.

Operators and ufuncs show the memory itself only to what is `is_plain`. All else gets the array that
`data` hands out: an object with `__array_ufunc__` may keep its operands and compute later.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from pyfuser.frontends.embedded.view_memory import (
    ViewMemory,
    handed_out,
    is_plain,
    values,
    written,
)

_FIXED = frozenset({"shape", "ndim", "size", "space", "layout", "trait", "dtype", "strides"})


def _unary(operation: Callable[[Any], Any]) -> Any:
    return lambda row: operation(row._host())


def _binary(operation: Callable[[Any, Any], Any]) -> Any:
    return lambda row, other: operation(row._beside(other), values(other))


def _reflected(operation: Callable[[Any, Any], Any]) -> Any:
    return lambda row, other: operation(values(other), row._beside(other))


def _in_place(operation: Callable[[Any, Any], Any]) -> Any:
    def method(row: ViewMemory, other: Any) -> Any:
        array = row._host(True) if is_plain(other) else row.data
        result = operation(array, values(other))
        return row if result is array else result

    return method


def _of_the_array(name: str) -> property:
    return property(lambda row: getattr(row.data, name))


class ArrayLike(ViewMemory):
    """A View that is to NumPy and Python what the array of its elements is."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED:
            raise AttributeError(f"{name!r} of a View's row cannot be set; copy the row first")
        super().__setattr__(name, value)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out", ())
        if all(map(is_plain, (*inputs, *out, kwargs.get("where")))):
            read, write = values, written
        else:
            read = write = handed_out
        arguments = list(map(read, inputs))
        if method == "at":
            arguments[0] = write(inputs[0])
        for name in kwargs.keys() & {"where", "initial"}:
            kwargs[name] = read(kwargs[name])
        if not out:
            return getattr(ufunc, method)(*arguments, **kwargs)
        targets = kwargs["out"] = tuple(map(write, out))
        result = getattr(ufunc, method)(*arguments, **kwargs)
        if type(result) is not tuple:
            return out[0] if result is targets[0] else result
        given = dict(zip(map(id, targets), out, strict=True))
        return tuple(given.get(id(found), found) for found in result)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*_unwrapped(args), **_unwrapped(kwargs))

    def __contains__(self, value: Any) -> bool:
        return values(value) in self._beside(value)

    def __copy__(self) -> Any:
        return self._host().copy("K")

    def __deepcopy__(self, memo: Any) -> Any:
        return self._host().copy("K")

    __divmod__ = _binary(divmod)
    __rdivmod__ = _reflected(divmod)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._host().copy("K").__reduce_ex__(protocol)


def _unwrapped(value: Any) -> Any:
    """`handed_out` inside tuples, lists and dicts, as NumPy's functions nest their arguments."""
    if type(value) in (tuple, list):
        return type(value)(map(_unwrapped, value))
    if type(value) is dict:
        return {key: _unwrapped(item) for key, item in value.items()}
    return handed_out(value)


def complete(row: type[ArrayLike]) -> type[ArrayLike]:
    """Give a class the operators of arrays, and what other attributes they have and it lacks."""
    for name in "neg", "pos", "abs", "invert":
        setattr(row, f"__{name}__", _unary(getattr(operator, name)))
    for name in "lt", "le", "eq", "ne", "gt", "ge":
        setattr(row, f"__{name}__", _binary(getattr(operator, name)))
    for name in (
        "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift",
        "and", "or", "xor",
    ):  # fmt: skip
        operation = getattr(operator, f"__{name}__")
        setattr(row, f"__{name}__", _binary(operation))
        setattr(row, f"__r{name}__", _reflected(operation))
        setattr(row, f"__i{name}__", _in_place(getattr(operator, f"__i{name}__")))
    # One property each: a `__getattr__` would slow down every access to every attribute.
    for name in dir(np.ndarray):
        if not (name.startswith("_") or hasattr(row, name) or name in ViewMemory.__annotations__):
            setattr(row, name, _of_the_array(name))
    return row
