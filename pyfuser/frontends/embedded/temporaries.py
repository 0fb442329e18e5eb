"""Warns of results that a call writes to an array which ends with the call.

`y[places]`, `y.astype(...)` and `np.array(y)` are new arrays: what a kernel writes there is lost.
An array that only the call refers to is such a one. `y.copy()` and `np.zeros(n)` are not mentioned,
as trials that compile a kernel are made so; nor is what the workunit itself reads, as room that it
works in, if the call has another result.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterable

import numpy as np

from pyfuser.ir.nodes import Load, Workunit
from pyfuser.ir.visit import all_expressions, written
from pyfuser.support.errors import WorkunitWarning, warn
from pyfuser.support.extension import HOT
from pyfuser.support.settings import SETTINGS
from pyfuser.support.tracebacks import users_line
from pyfuser.trace.memory import Buffer, Region

_COPIES = frozenset({
    "array", "asarray", "ascontiguousarray", "astype", "compress", "flatten", "ravel", "reshape",
    "sort", "sorted", "take", "where",
})  # fmt: skip
"""Functions whose name does not say that it makes an array of its own."""


def warn_of_temporaries(workunit: Workunit, names: Iterable[str], values: Iterable[object]) -> None:
    """Look at the arguments of a call that is being made, in the order of the parameters."""
    lost = {
        param.sym: name
        for param, name, value in zip(workunit.params, names, values, strict=True)
        if isinstance(value, Region)
        and value.buffer.wraps_array
        and _only_the_call_refers_to(value.buffer)
    }
    if not lost:
        return
    body = workunit.body
    changed = written(body) & {param.sym for param in workunit.params}
    if workunit.accumulators or not changed <= lost.keys():
        changed -= {e.view for e in all_expressions(body) if isinstance(e, Load)}
    for sym, name in lost.items():
        if sym in changed:
            _warn(workunit, name)


def _references(buffer: Buffer) -> int:
    return sys.getrefcount(buffer.root)


def _only_the_call_refers_to(buffer: Buffer) -> bool:
    array = buffer.root
    assert array is not None
    return array.base is None and _references(buffer) <= _TEMPORARY + 1  # and `array`


def _probe(**arguments: np.ndarray[tuple[int], np.dtype[np.float64]]) -> int:
    """How many references an array has that only a call's keywords and a Buffer refer to."""
    (buffer,) = map(Buffer.wrap, arguments.values())
    return _references(buffer)


# Who calls the extension keeps the arguments until it returns (see `hot.compiled`).
_TEMPORARY = _probe(x=np.zeros(1)) + (HOT is not None and not SETTINGS.sync)


def _warn(workunit: Workunit, name: str) -> None:
    file, line = users_line()
    given = _given(file, line, name)
    if given is None or not _looks_shared(given):
        return
    warn(
        f"workunit {workunit.name!r} writes to {name!r}, and `{name}={ast.unparse(given)}` is a "
        "new array that nobody else has, so what it writes is lost: give the array a name before "
        "the call, and use it after",
        file,
        line,
        WorkunitWarning,
    )


def _given(file: str, line: int, name: str) -> ast.expr | None:
    """What the call in a line of the program gives as an argument; None without its source."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None
    found: list[tuple[int, ast.expr]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or 0):
            found += [(node.lineno, k.value) for k in node.keywords if k.arg == name]
    return max(found, key=lambda entry: entry[0])[1] if found else None


def _looks_shared(given: ast.expr) -> bool:
    """Whether whoever writes an expression may take it for memory that somebody has."""
    if isinstance(given, ast.Call):
        function = given.func
        word = function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
        if word == "copy" and isinstance(function, ast.Attribute):  # y.ravel().copy(), say
            return isinstance(function.value, ast.Call) and _looks_shared(function.value)
        return word in _COPIES
    return isinstance(given, (ast.Subscript, ast.BinOp))
