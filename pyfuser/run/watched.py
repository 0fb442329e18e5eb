"""The functions of rewritten modules, whose own statements watch over pending calls.

Such a function runs what is pending on arrays before it returns to anybody, because its caller may
be a library. A twin of it, which differs in one constant of its code, does not: a statement that
is rewritten too calls the twin, and goes on watching.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

from pyfuser.lower.source import REWRITTEN

#: The constant that a function's end passes on, and those in its twins: of a function, of a method.
OUTER = "pyfuser: returns to anybody"
INNER = "pyfuser: returns to watched code"
INNER_METHOD = "pyfuser: a method returns to watched code, which holds its object"

_FUNCTION, _NOT_PLAIN = 0x1 | 0x2, 0x20 | 0x80 | 0x100 | 0x200  # CO_* flags of code objects


class Watched(NamedTuple):
    """A function's code and its twins'; `inner` is `code` if the function leaves nothing pending.

    accessor: it does nothing but return names and attributes, so it changes nothing.
    """

    code: CodeType  # kept for its id
    inner: CodeType
    inner_method: CodeType
    accessor: bool


#: By id() of a watched function's code.
WATCHED: dict[int, Watched] = {}


def _watched(function: Any) -> Watched | None:
    if type(function) is MethodType:
        function = function.__func__
    return WATCHED.get(id(function.__code__)) if type(function) is FunctionType else None


def is_watched(function: Any) -> bool:
    """Whether it is a function, or a bound method, of a rewritten module."""
    return _watched(function) is not None


def is_accessor(function: Any) -> bool:
    """Whether it is a watched function that only returns what it finds."""
    found = _watched(function)
    return found is not None and found.accessor


def twin(function: Any) -> Any:
    """What leaves calls pending when it returns; itself if it launches nothing.

    function: a function or a bound method.
    """
    found = _watched(function)
    if found is None or found.inner is found.code:
        return function
    if type(function) is MethodType:
        return MethodType(_with_code(function.__func__, found.inner_method), function.__self__)
    return _with_code(function, found.inner)


def _with_code(function: Any, code: CodeType) -> FunctionType:
    made = FunctionType(
        code,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    return made


def register(rewritten: CodeType, plain: CodeType, functions: Mapping[Place, bool]) -> None:
    """Make the functions of a rewritten module known.

    plain: what the text compiles to unchanged, for those who compare code with its source.
    functions: name and first line of those whose statements were rewritten, and whether they are
    accessors.
    """
    originals = dict(_codes(plain, ()))
    for path, code in _codes(rewritten, ()):
        original = originals.get(path)
        if original is not None:
            REWRITTEN[id(code)] = code, original
        is_plain = code.co_flags & _FUNCTION == _FUNCTION and not code.co_flags & _NOT_PLAIN
        accessor = functions.get((code.co_name, code.co_firstlineno))
        if is_plain and accessor is not None:
            inner, method = _marked(code, INNER), _marked(code, INNER_METHOD)
            WATCHED[id(code)] = Watched(code, inner, method, accessor)


def _marked(code: CodeType, mark: str) -> CodeType:
    """A function's code, whose end passes another mark on."""
    if OUTER not in code.co_consts:
        return code
    return code.replace(
        co_consts=tuple(mark if constant == OUTER else constant for constant in code.co_consts)
    )


#: Name and first line of a function.
Place = tuple[str, int]
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
