"""What the check of a statement knows of a value: the value itself, or a token for its kind."""

from __future__ import annotations

import ast
from types import EllipsisType
from typing import Any, TypeAlias

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


class Pairs(Token):
    """What `zip` and `enumerate` make of tuples and the like: a tuple of one element of each."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts


SCALAR = Token()  # a number, string or None: operators on it touch nothing
PASSIVE = Token()  # a range, or an iterator over what holds its elements
OPAQUE = Token()  # anything

#: What iterating over, and asking for the truth of, runs no code and reads no array.
SEQUENCES: frozenset[type] = frozenset({list, tuple, range, dict, str})
#: What iterating over runs no code and reads no array.
ITERABLES: frozenset[type] = SEQUENCES | {type({}.items()), type({}.keys()), type({}.values())}


#: What a loop gives values to: None for a name, these for several, `...` for anything else.
Targets: TypeAlias = EllipsisType | tuple["Targets", ...] | None


def targets_of(target: ast.expr) -> Targets:
    """What is assigned to."""
    if isinstance(target, ast.Name):
        return None
    if isinstance(target, (ast.Tuple, ast.List)):
        parts = tuple(map(targets_of, target.elts))
        return ... if ... in parts else parts
    return ...


def unpacks_quietly(value: Any, targets: Targets, later: bool = False) -> bool:
    """Whether to give a value to targets runs no code and reads no array.

    later: also after code has run that may change what is in lists.
    """
    if targets is None:
        return True
    if targets is ... or type(value) not in (tuple, list):
        return False
    if later and type(value) is list and any(part is not None for part in targets):
        return False
    return all(unpacks_quietly(part, to, later) for part, to in zip(value, targets, strict=False))


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
