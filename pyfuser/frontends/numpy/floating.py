"""Floating-point warnings of recorded operations, when NumPy computes them."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

_REGISTRY: dict[Any, Any] = {}
"""What `warnings` keeps of the lines that warned, as a module's `__warningregistry__`."""


class _Warner:
    """Says where the operation was recorded."""

    __slots__ = ("file", "line", "name")

    def __init__(self, file: str, line: int, name: str) -> None:
        self.file = file
        self.line = line
        self.name = name

    def __call__(self, kind: str, flags: int) -> None:
        message = f"{kind} encountered in {self.name}"
        warnings.warn_explicit(message, RuntimeWarning, self.file, self.line, registry=_REGISTRY)


def warning_at(
    file: str, line: int, recipe: Any, state: dict[str, str] | None
) -> AbstractContextManager[Any]:
    """A block in which floating-point errors warn at a line of the program.

    state: what the program wants, if it is not the default.
    """
    wanted = state or {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
    kinds: Any = {kind: "call" if how == "warn" else how for kind, how in wanted.items()}
    ufunc = recipe.operation.ufunc
    name = "cast" if ufunc is None else ufunc.__name__
    return np.errstate(call=_Warner(file, line, name), **kinds)
