"""What the check of a statement knows of a value: the value itself, or a token for its kind."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from pyfuser.run.attributes import SCALARS


class Touches(Exception):
    """An expression may touch arrays; the text says what in it."""


class Token:
    """Stands for a value that was not computed."""


class Row(Token):
    """A row of a View, of so many dimensions."""

    def __init__(self, ndim: int, kind: str) -> None:
        self.ndim = ndim
        self.kind = kind


class Part(Token):
    """An array that basic indexing gave, of so many dimensions, or a new one (`ndim` is None)."""

    def __init__(self, ndim: int | None) -> None:
        self.ndim = ndim


SCALAR = Token()  # a number, string or None: operators on it touch nothing
PASSIVE = Token()  # a range, or an iterator over what holds its elements
OPAQUE = Token()  # anything

#: What iterating over, and asking for the truth of, runs no code and reads no array.
SEQUENCES: frozenset[type] = frozenset({list, tuple, range, dict, str})
#: What iterating over runs no code and reads no array.
ITERABLES: frozenset[type] = SEQUENCES | {type({}.items()), type({}.keys()), type({}.values())}


def is_token(value: Any) -> bool:
    """Whether a value was not computed. (`isinstance` would ask a proxy for its `__class__`.)"""
    return issubclass(type(value), Token)


def is_scalar(value: Any) -> bool:
    """Whether it is a number, a string or None."""
    return value is SCALAR or type(value) in SCALARS


def is_array(value: Any) -> bool:
    """Whether it is a plain NumPy array."""
    return type(value) is np.ndarray or type(value) is Part


def text(node: ast.AST) -> str:
    """An expression's text, shortened."""
    whole = ast.unparse(node)
    return whole if len(whole) <= 40 else whole[:37] + "..."
