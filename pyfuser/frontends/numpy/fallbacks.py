"""Everything else: NumPy on what has run, and our type comes back. Each use is counted."""

from __future__ import annotations

import sys
import types
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from pyfuser.frontends.numpy import apply
from pyfuser.frontends.numpy.at_once import ANY, NUMBERS, STORES, at_once

_COUNTS: Counter[tuple[str, str, int]] = Counter()
_OURS = "pyfuser.frontends.numpy"


def fallbacks() -> dict[tuple[str, str, int], int]:
    """How often NumPy itself computed something, by function, file and line; the most first."""
    return dict(_COUNTS.most_common())


def count(name: str) -> None:
    """Note that NumPy computes something for the program."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        frame = frame.f_back
    _COUNTS[name, frame.f_code.co_filename, frame.f_lineno] += 1


def method_of(x: Any, name: str) -> Callable[..., Any]:
    """A method of NumPy's arrays on one of ours."""

    def method(*args: Any, **kwargs: Any) -> Any:
        count(f"ndarray.{name}")
        return apply.call(
            lambda a, *rest, **more: getattr(a, name)(*rest, **more), (x, *args), kwargs
        )

    method.__name__ = name
    return method


_SAFE = frozenset({
    "solve", "inv", "det", "norm", "cholesky", "eigvals", "eigvalsh", "pinv", "matrix_rank", "cond",
    "multi_dot", "qr", "svd", "eig", "eigh", "slogdet", "lstsq", "svdvals",
})  # fmt: skip
"""Functions of `linalg` that keep nothing of what they are given, nor return it."""


class Module:
    """One of NumPy's modules, whose functions take and give our arrays."""

    def __init__(self, name: str, module: Any) -> None:
        self.__name__ = name
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if isinstance(value, types.ModuleType):
            value = Module(f"{self.__name__}.{name}", value)
        elif not isinstance(value, type) and callable(value):
            full = f"{self.__name__}.{name}"
            if (self.__name__ == "linalg" and name in _SAFE) or self.__name__ == "fft":
                value = safe_function(value, full)
            elif isinstance(getattr(value, "__self__", None), np.random.RandomState):
                value = _drawing(value, full)
            else:
                value = function_of(value, full)
        elif isinstance(value, type) and name in ("RandomState", "Generator"):
            value = _maker(value)
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        return dir(self._module)


def _maker(cls: type) -> Any:
    return lambda *args, **kwargs: Drawer(cls(*args, **kwargs))


def _drawing(method: Callable[..., Any], name: str) -> Any:
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


class Drawer:
    """One of NumPy's generators of random numbers, which gives our arrays."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._generator, name)
        if not callable(value):
            return value
        found = self.__dict__[name] = _drawing(value, f"random.{name}")
        return found

    def __repr__(self) -> str:
        return repr(self._generator)


def _drawer(value: Any) -> Any:
    return Drawer(value) if isinstance(value, np.random.Generator) else value


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
        value = how(function, args, kwargs)
        if type(value) is list:
            return [_drawer(entry) for entry in value]
        return _drawer(value)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = getattr(function, "__doc__", None)
    return call
