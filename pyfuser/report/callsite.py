"""What the user's program calls an argument: the text of the expression at the call."""

from __future__ import annotations

import ast
import linecache

from pyfuser.support import syntax
from pyfuser.support.caches import cached


def argument_text(file: str, line: int, name: str) -> str:
    """The expression passed as keyword `name` by the call at a line, if that is a plain name.

    `name` itself where the source is missing, the expression is more than a name, or calls on the
    line pass different ones.
    """
    texts = {
        ast.unparse(keyword.value)
        for call in _calls(file, tuple(linecache.getlines(file)))
        if call.lineno <= line <= (call.end_lineno or call.lineno)
        for keyword in call.keywords
        if keyword.arg == name and isinstance(keyword.value, (ast.Name, ast.Attribute))
    }
    return texts.pop() if len(texts) == 1 else name


@cached(64)
def _calls(file: str, lines: tuple[str, ...]) -> tuple[ast.Call, ...]:
    """The calls with keywords in a file."""
    try:
        tree = syntax.module("".join(lines))
    except (SyntaxError, ValueError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.keywords)
