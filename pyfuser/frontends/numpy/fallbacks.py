"""Everything else: NumPy on what has run, and our type comes back. Each use is counted."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from pyfuser.frontends.numpy import apply

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


def function_of(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function of NumPy's that takes and gives our arrays."""

    def call(*args: Any, **kwargs: Any) -> Any:
        count(name)
        return apply.call(function, args, kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return call
