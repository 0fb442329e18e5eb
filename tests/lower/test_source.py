from __future__ import annotations

import functools
import linecache
from pathlib import Path
from typing import Any

import pytest

from pyfuser.lower.source import source_of, unwrap
from pyfuser.support.errors import WorkunitError


def define(text: str, file: str, name: str = "w") -> Any:
    """Run a program whose text `linecache` knows, as a notebook does with a cell."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": "cell"}
    exec(compile(text, file, "exec"), namespace)
    return namespace[name]


def plain(i, a):
    a[i] = 1


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


@decorated
@decorated
def wrapped(i, a):
    a[i] = 2


def test_nodes_keep_the_lines_of_the_file() -> None:
    source = source_of(plain)
    assert source.node.name == "plain"
    assert source.node.lineno == plain.__code__.co_firstlineno
    assert source.location(source.node.body[0]).line == plain.__code__.co_firstlineno + 1


def test_decorators_are_unwrapped() -> None:
    assert source_of(unwrap(wrapped)).node.name == "wrapped"


def test_nested_definitions_are_found() -> None:
    def inner(i, a):
        a[i] = 3

    assert source_of(inner).node.col_offset == 4


def test_a_notebook_cell_is_found() -> None:
    assert source_of(define("def w(i, a):\n    a[i] = 1\n", "<cell 1>")).node.name == "w"


def test_equal_bytecode_with_other_annotations_is_not_confused() -> None:
    first = define("def w(i, a):\n    x: int = a[i]\n    a[i] = x\n", "<cell 2>")
    second = define("def w(i, a):\n    x: float = a[i]\n    a[i] = x\n", "<cell 3>")
    annotations = [source_of(f).node.body[0].annotation.id for f in (first, second)]
    assert annotations == ["int", "float"]


def test_without_source_the_error_says_what_to_do() -> None:
    namespace: dict[str, Any] = {}
    exec("def w(i, a):\n    a[i] = 1\n", namespace)
    with pytest.raises(WorkunitError, match="define it in a file"):
        source_of(namespace["w"])


def test_a_file_changed_after_its_import_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("def w(i, a):\n    a[i] = 1\n")
    namespace: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    path.write_text("def w(i, a):\n    a[i] = 1000000\n")
    with pytest.raises(WorkunitError, match="changed after its import"):
        source_of(namespace["w"])


def test_a_reloaded_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    for value in (1, 1000000):
        path.write_text(f"def w(i, a):\n    a[i] = {value}\n")
        namespace: dict[str, Any] = {}
        exec(compile(path.read_text(), str(path), "exec"), namespace)
        assert source_of(namespace["w"]).node.body[0].value.value == value


class Owner:
    def method(self, i):
        pass


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (Owner().method, "not a function"),
        (3, "not a function"),
        (len, "not a function"),
    ],
)
def test_what_is_no_function_is_refused(thing: Any, message: str) -> None:
    with pytest.raises(WorkunitError, match=message):
        unwrap(thing)


def test_errors_show_the_line_and_a_caret() -> None:
    source = source_of(plain)
    error = source.error(source.node.body[0].targets[0], "wrong")
    line = plain.__code__.co_firstlineno + 1
    assert str(error) == f"{__file__}:{line}: wrong\n        a[i] = 1\n        ^"
