"""Sources are parsed, though CPython fails when several threads do so."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from pyfuser.support import syntax


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The parser fails as often as this says."""
    times = [0]
    parse = ast.parse

    def fails(*args: Any, **kwargs: Any) -> Any:
        if times[0]:
            times[0] -= 1
            raise SystemError("AST constructor recursion depth mismatch (before=48, after=43)")
        return parse(*args, **kwargs)

    monkeypatch.setattr(syntax.ast, "parse", fails)
    return times


def test_what_fails_for_other_threads_is_tried_again(failing: list[int]) -> None:
    failing[0] = 3
    assert ast.unparse(syntax.module("a = 1", "a.py")) == "a = 1"
    failing[0] = 3
    assert ast.unparse(syntax.expression("a + 1")) == "a + 1"
    assert not failing[0]


def test_what_always_fails_fails(failing: list[int]) -> None:
    failing[0] = 10 * syntax.TRIES
    with pytest.raises(SystemError):
        syntax.module("a = 1")
    assert failing[0] == 9 * syntax.TRIES


def test_errors_of_the_source_are_errors() -> None:
    with pytest.raises(SyntaxError) as caught:
        syntax.module("a =", "a.py")
    assert caught.value.filename == "a.py"
    with pytest.raises(SyntaxError):
        syntax.expression("a = 1")
