"""Everything else: NumPy on what has run, and our type comes back. Each use is counted."""

from __future__ import annotations

import sys
import types
from collections import Counter
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from pyfuser.frontends.numpy import apply
from pyfuser.frontends.numpy.at_once import ANY, NUMBERS, STORES, at_once

_COUNTS: Counter[tuple[str, str, int]] = Counter()
_PACKAGE = "pyfuser.frontends.numpy"


def fallbacks() -> dict[tuple[str, str, int], int]:
    """How often NumPy itself computed something, by function, file and line; the most first."""
    return dict(_COUNTS.most_common())


def count(name: str) -> None:
    """Note that NumPy computes something for the program."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame = frame.f_back
    _COUNTS[name, frame.f_code.co_filename, frame.f_lineno] += 1


def method_of(x: Any, name: str) -> Callable[..., Any]:
    """A method of NumPy's arrays on one of ours."""

    def method(*args: Any, **kwargs: Any) -> Any:
        count(f"ndarray.{name}")
        return apply.call(getattr(np.ndarray, name), (x, *args), kwargs)

    method.__name__ = name
    return method


def in_place(name: str) -> Callable[..., Any]:
    """A method that changes an array, as NumPy does it."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method_of(self, name)(*args, **kwargs)

    method.__name__ = name
    return method


_OURS = {"random": "generators", "linalg": "norm"}
"""Modules of NumPy's, and those here whose OURS stands for names of them."""

_SAFE = frozenset({
    "solve", "inv", "det", "cholesky", "eigvals", "eigvalsh", "pinv", "matrix_rank", "cond",
    "multi_dot", "qr", "svd", "eig", "eigh", "slogdet", "lstsq", "svdvals",
})  # fmt: skip
"""Functions of `linalg` that keep nothing of what they are given, nor return it."""


class Module(types.ModuleType):
    """One of NumPy's modules, whose functions take and give our arrays."""

    def __init__(self, name: str, module: Any) -> None:
        super().__init__(f"pyfuser.numpy.{name}", module.__doc__)
        self._name, self._module = name, module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if name.startswith("__") or self._name == "typing":
            return value
        full = f"{self._name}.{name}"
        if isinstance(value, types.ModuleType):
            value = Module(full, value)
        elif name in (ours := _ours(self._name)):
            value = ours[name]
        elif not isinstance(value, type) and callable(value):
            if (self._name == "linalg" and name in _SAFE) or self._name == "fft":
                value = safe_function(value, full)
            elif self._name == "random" and isinstance(
                getattr(value, "__self__", None), np.random.RandomState
            ):
                value = drawing(value, full)
            else:
                value = function_of(value, full)
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        return dir(self._module)


def _ours(module: str) -> Mapping[str, Any]:
    if module not in _OURS:
        return {}
    ours: Mapping[str, Any] = import_module(f"{_PACKAGE}.{_OURS[module]}").OURS
    return ours


def drawing(method: Callable[..., Any], name: str) -> Any:
    """A method of a generator's; of numbers alone, NumPy's with nothing around it.

    It is called once, whatever it returns: each call draws other numbers. Of numbers all results
    are new, and `shuffle` has none.
    """
    python = function_of(method, name)
    if name == "random.spawn":
        return python
    if name == "random.shuffle":
        return at_once(method, python, STORES, first=True)
    return at_once(method, python, NUMBERS, arrays=0)


class Subscripted:
    """One of NumPy's objects that make arrays of subscripts, such as `np.mgrid`."""

    def __init__(self, numpys: Any) -> None:
        self._numpys = numpys

    def __getitem__(self, key: Any) -> Any:
        return apply.call(self._numpys.__getitem__, (key,), {})


def safe_function(function: Callable[..., Any], name: str, arrays: int = 2) -> Any:
    """One that keeps nothing of what it is given, and mostly returns new arrays.

    arrays: how many of the first arguments are arrays.
    """
    return at_once(function, function_of(function, name, apply.call_safely), ANY, arrays=arrays)


def function_of(
    function: Callable[..., Any], name: str, how: Callable[..., Any] = apply.call
) -> Callable[..., Any]:
    """A function of NumPy's that takes and gives our arrays. how: `apply.call`, or like it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        count(name)
        return how(function, args, kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = getattr(function, "__doc__", None)
    call.__wrapped__ = function  # type: ignore[attr-defined]  # for those who ask for a signature
    return call
