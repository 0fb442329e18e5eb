"""`%load_ext pyfuser`, `%%fuse`, and reports as HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import pyfuser

CHAIN = """
import pykokkos as pk

@pk.workunit
def double(i, x, y):
    y[i] = 2 * x[i]

@pk.workunit
def total(i, acc, y):
    acc += y[i]

x = pk.View([1000], pk.double)
x.fill(1.5)
y = pk.View([1000], pk.double)
pk.parallel_for(1000, double, x=x, y=y)
"""


@pytest.fixture
def shell() -> Iterator[Any]:
    """An IPython shell of its own, with the extension loaded."""
    interactive = pytest.importorskip("IPython.core.interactiveshell", reason="needs IPython")
    pyfuser.sync()  # what tests before left pending
    shell = interactive.InteractiveShell()
    shell.run_cell("%load_ext pyfuser").raise_error()
    yield shell
    shell.run_cell("%unload_ext pyfuser").raise_error()


def run(shell: Any, cell: str) -> Any:
    """The value of a cell; raises what it raises."""
    done = shell.run_cell(cell, store_history=True)
    done.raise_error()
    return done.result


def test_a_cell_is_fused(shell: Any) -> None:
    before = pyfuser.stats().launches
    value = run(shell, f"%%fuse\n{CHAIN}\npk.parallel_reduce(1000, total, y=y)")
    assert float(value) == 3000.0
    assert pyfuser.stats().launches - before == 1
    assert not pyfuser.pending()


def test_a_cell_without_the_magic_is_not(shell: Any) -> None:
    before = pyfuser.stats().launches
    assert run(shell, f"{CHAIN}\npk.parallel_reduce(1000, total, y=y)") == 3000.0
    assert pyfuser.stats().launches - before >= 2


def test_what_a_cell_defines_stays(shell: Any) -> None:
    run(shell, f"%%fuse\n{CHAIN}")
    assert np.all(np.asarray(run(shell, "y")) == 3.0)
    run(shell, "%%fuse\npk.parallel_for(1000, double, x=y, y=x)")
    assert run(shell, "x[7]") == 6.0


def test_a_redefined_workunit_counts(shell: Any) -> None:
    run(shell, f"%%fuse\n{CHAIN}")
    again = CHAIN.replace("2 * x[i]", "5 * x[i]")
    assert run(shell, f"%%fuse\n{again}\ny[3]") == 7.5


def test_an_error_is_the_cells(shell: Any) -> None:
    """It ends the cell as without the magic; what was recorded before it has run."""
    done = shell.run_cell(f"%%fuse\n{CHAIN}\n1 / 0")
    assert isinstance(done.error_in_exec, ZeroDivisionError)
    assert not pyfuser.pending()
    assert run(shell, "y[0]") == 3.0
    assert isinstance(shell.run_cell("%%fuse\n1 +").error_in_exec, SyntaxError)


def test_mistakes_are_in_the_cell_that_has_them(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from IPython import get_ipython

    if get_ipython() is not shell:
        monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    run(shell, CHAIN.replace("2 * x[i]", "nothing(x[i])").rsplit("\n", 2)[0])
    number = len(shell.user_ns["In"]) - 1
    done = shell.run_cell("pk.parallel_for(1000, double, x=x, y=y)")
    assert str(done.error_in_exec).startswith(f"In[{number}]:5: function 'nothing'")


def test_the_report_is_displayed(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    run(shell, f"%%fuse -e\n{CHAIN}\nprint(float(pk.parallel_reduce(1000, total, y=y)))")
    run(shell, "%%fuse --source\npk.parallel_for(1000, double, x=y, y=x)")
    run(shell, "%%fuse -e\n2 + 2")
    first, second, third = shown
    assert (first.recorded, first.launches) == (2, 1)
    assert second.recorded == 1 and second.show_source
    assert third.recorded == 0


def test_wrong_options_are_said_in_a_line(shell: Any) -> None:
    done = shell.run_cell("%%fuse --wrong\n2 + 2")
    assert type(done.error_in_exec).__name__ == "UsageError"  # IPython shows no traceback
    assert "--wrong; its options are -e" in str(done.error_in_exec)


def test_cells_are_called_as_ipython_does(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from IPython import get_ipython

    if get_ipython() is not shell:
        monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    shown: list[Any] = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    run(shell, CHAIN)
    run(shell, "%%fuse -e\npk.parallel_for(1000, double, x=x, y=y)")
    text = str(shown[0])
    number = len(shell.user_ns["In"]) - 1
    assert f"double (In[{number}]:1)" in text
    assert "launched at the end of a cell of %%fuse" in text


class _Tags(HTMLParser):
    """Collects the text, and checks that tags close in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_says_what_the_text_says() -> None:
    """Every fact and every source of the text, with nothing that HTML would swallow."""
    with pyfuser.fusing():
        _two_apart()
    report = pyfuser.explain(source=True)
    page = _Tags(report._repr_html_())
    assert page.open == []
    squeezed = "".join(page.text.split()).lower()
    for line in str(report).split("\n"):
        assert "".join(line.split()).lower().rstrip(":") in squeezed, line
    assert "i<3" in squeezed  # escaped in the page
    assert "dependence" in squeezed


def _two_apart() -> None:
    import pykokkos as pk

    @pk.workunit
    def guarded(i: int, x: pk.View1D[pk.double]) -> None:
        if i < 3:
            x[i] = 1

    @pk.workunit
    def reversed_(i: int, n: int, x: pk.View1D[pk.double], y: pk.View1D[pk.double]) -> None:
        y[i] = x[n - 1 - i]

    x, y = pk.View([10], pk.double), pk.View([10], pk.double)
    pk.parallel_for(10, guarded, x=x)
    pk.parallel_for(10, reversed_, n=10, x=x, y=y)
    pyfuser.sync(y)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("pk.parallel_for(10, double, x=x)", "missing argument 'y'"),
        ("y[1.5]", "an index of a View is an integer"),
        ("y + y", "A View computes in workunits"),
    ],
)
def test_errors_show_no_frames_of_ours(shell: Any, cell: str, message: str, capsys: Any) -> None:
    run(shell, CHAIN)
    capsys.readouterr()
    shell.run_cell(cell)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert message in shown and cell in shown
    assert not any(f"pyfuser/{name}" in shown for name in ("frontends", "lower", "runtime"))


def test_other_errors_are_shown_whole(shell: Any, capsys: Any) -> None:
    shell.run_cell("import json\njson.loads('{')")
    assert "json/decoder" in capsys.readouterr().out.replace(chr(92), "/")
