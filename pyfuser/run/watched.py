"""The functions of rewritten modules, whose own statements watch over pending calls.

Such a function runs what is pending on arrays before it returns to anybody, because its caller may
be a library. A twin of it, which differs in one constant of its code, does not: a statement that
is rewritten too calls the twin, and goes on watching.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from types import CodeType, FunctionType, MethodType
from typing import Any

from pyfuser.lower.source import REWRITTEN

#: The constant with which a function's exit asks for a flush, and the one in its twin.
OUTER, INNER = "pyfuser: returns to anybody", "pyfuser: returns to watched code"

_FUNCTION, _NOT_PLAIN = 0x1 | 0x2, 0x20 | 0x80 | 0x100 | 0x200  # CO_* flags of code objects
#: By id() of a watched function's code: that code, kept for its id, and its twin's.
TWINS: dict[int, tuple[CodeType, CodeType]] = {}


def is_watched(function: Any) -> bool:
    """Whether it is a function, or a bound method, of a rewritten module."""
    if type(function) is MethodType:
        function = function.__func__
    return type(function) is FunctionType and id(function.__code__) in TWINS


def twin(function: FunctionType) -> FunctionType:
    """The function that leaves calls pending when it returns; itself if it launches nothing."""
    found = TWINS.get(id(function.__code__))
    if found is None or found[1] is function.__code__:
        return function
    made = FunctionType(
        found[1],
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    return made


def register(rewritten: CodeType, plain: CodeType, watched: AbstractSet[tuple[str, int]]) -> None:
    """Make the functions of a rewritten module known.

    plain: what the text compiles to unchanged, for those who compare code with its source.
    watched: name and first line of the functions whose statements were rewritten.
    """
    originals = dict(_codes(plain, ()))
    for path, code in _codes(rewritten, ()):
        original = originals.get(path)
        if original is not None:
            REWRITTEN[id(code)] = code, original
        is_plain = code.co_flags & _FUNCTION == _FUNCTION and not code.co_flags & _NOT_PLAIN
        if is_plain and (code.co_name, code.co_firstlineno) in watched:
            TWINS[id(code)] = code, _inner(code)


def _inner(code: CodeType) -> CodeType:
    if OUTER not in code.co_consts:
        return code
    return code.replace(
        co_consts=tuple(INNER if constant == OUTER else constant for constant in code.co_consts)
    )


_Path = tuple[tuple[str, int, int], ...]


def _codes(code: CodeType, path: _Path) -> Iterator[tuple[_Path, CodeType]]:
    """All code objects below one, each with a path of names, lines and counts of such siblings."""
    seen: dict[tuple[str, int], int] = {}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            key = constant.co_name, constant.co_firstlineno
            seen[key] = seen.get(key, 0) + 1
            below = (*path, (*key, seen[key]))
            yield below, constant
            yield from _codes(constant, below)
