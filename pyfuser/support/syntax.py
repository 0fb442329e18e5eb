"""Python source to syntax trees, whichever thread asks.

CPython counts how deep a tree is in a place that all threads share (its issue 106905), so that
`ast.parse` may raise SystemError where another thread parses as well. One thread at a time does so
here; where code of others does, it is tried again.
"""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable
from typing import TypeVar

TRIES = 20

_LOCK = threading.RLock()

Tree = TypeVar("Tree")


def module(source: str | bytes, file: str = "<unknown>") -> ast.Module:
    """The tree of a file's text. Raises what `ast.parse` does, but for SystemError."""
    return _tried(lambda: ast.parse(source, file))


def expression(source: str) -> ast.expr:
    """The tree of an expression. Raises what `ast.parse` does, but for SystemError."""
    return _tried(lambda: ast.parse(source, mode="eval").body)


def _tried(parse: Callable[[], Tree]) -> Tree:
    with _LOCK:
        for _ in range(TRIES - 1):
            try:
                return parse()
            except SystemError:
                continue
        return parse()
