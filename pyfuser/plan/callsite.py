"""What the user's program calls an argument: the text of the expression at the call."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache


def argument_text(file: str, line: int, name: str) -> str:
    """The expression passed as keyword `name` by the call at a line, if that is a plain name.

    `name` itself where the source is missing or the expression is more than a name.
    """
    for call in _calls(file, tuple(linecache.getlines(file))):
        if call.lineno <= line <= (call.end_lineno or call.lineno):
            for keyword in call.keywords:
                if keyword.arg == name and isinstance(keyword.value, (ast.Name, ast.Attribute)):
                    return ast.unparse(keyword.value)
    return name


@lru_cache(maxsize=64)
def _calls(file: str, lines: tuple[str, ...]) -> tuple[ast.Call, ...]:
    """The calls in a file, the innermost of nested ones first."""
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return ()
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.keywords]
    return tuple(reversed(calls))
