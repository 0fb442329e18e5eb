"""The report as JSON and as an HTML page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import pyfuser
from pyfuser.cli import main
from pyfuser.compare import serve
from pyfuser.report import Explanation, data, explanation, since
from pyfuser.report.model import CallReport, GroupReport
from pyfuser.runtime.session import SESSION
from tests.processes import python

ROOT = Path(__file__).parents[2]

SCRIPT = """\
import pykokkos as pk

@pk.workunit
def double(i, x, y):
    y[i] = 2 * x[i]

@pk.workunit
def total(i, acc, y):
    acc += y[i]

x, y = pk.View([100], pk.double), pk.View([100], pk.double)
for step in range(3):
    pk.parallel_for(100, double, x=x, y=y)
    print(float(pk.parallel_reduce(100, total, y=y)))
"""


def report_of(name: str) -> Explanation:
    """What a program's run says."""
    module = serve.load(ROOT / "kernels" / f"{name}.py")
    state = module.setup(module.SIZES["small"])
    before = SESSION.flushes[-1:]
    with pyfuser.fusing():
        module.run(state)
    return explanation(since(before))


@pytest.fixture(scope="module")
def gradients() -> Explanation:
    pyfuser.sync()  # what tests before left pending
    return report_of("cg_poisson")


# --------------------------------------------------------------------------- JSON


def test_the_tree_is_json_and_as_documented(gradients: Explanation) -> None:
    """Every key is in docs/explain.md."""
    tree = json.loads(json.dumps(gradients.tree()))
    assert tree == gradients.tree()
    documented = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8")
    assert [key for key in sorted(keys(tree)) if f"`{key}`" not in documented] == []


def keys(tree: Any) -> set[str]:
    """The keys of a tree; those of `removed_stores` and `removed_loads` are names of views."""
    if isinstance(tree, list):
        return set().union(*map(keys, tree))
    if not isinstance(tree, dict):
        return set()
    inner = (v for k, v in tree.items() if k not in ("removed_stores", "removed_loads"))
    return {*tree, *set[str]().union(*map(keys, inner))}


def test_calls_come_as_they_were_made_with_their_kernels(gradients: Explanation) -> None:
    tree = data.tree(gradients)
    assert len(tree["calls"]) == tree["summary"]["calls"] == gradients.recorded
    assert len(tree["kernels"]) == tree["summary"]["kernels"] == gradients.launches
    names = [call["name"] for call in tree["calls"]]
    assert names[4:9] == ["apply_laplacian", "dot", "advance", "reduce_residual", "norm2"]
    assert tree["calls"][4]["text"].startswith("pk.parallel_for(")
    for call in tree["calls"]:
        kernel = tree["kernels"][call["kernel"] - 1]
        assert kernel["number"] == call["kernel"] and kernel["run"] == call["run"]
        loops = tree["codes"][kernel["code"]]["loops"]
        assert call["name"] in [each["name"] for loop in loops for each in loop["calls"]]


def test_runs_that_look_alike_are_named_on_the_time_line(gradients: Explanation) -> None:
    labels = re.findall('<div class="run"><span class="quiet">(.*?)</span>', gradients.html())
    turns = ["runs 2, 4 ... 14 (7 times)", "runs 3, 5 ... 15 (7 times)"]
    assert labels == ["run 1", *turns, "run 16", "run 17"]


def test_equal_kernels_share_their_code(gradients: Explanation) -> None:
    tree = data.tree(gradients)
    assert len(tree["codes"]) == 5 < len(tree["kernels"])
    assert sum(code["times"] for code in tree["codes"]) == len(tree["kernels"])
    units = [unit["name"] for code in tree["codes"] for unit in code["loops"][0]["workunits"]]
    assert "apply_laplacian" in units
    assert all("pf_kernel" in code["generated"] for code in tree["codes"])


def test_workunits_of_changed_calls_come_with_their_source() -> None:
    """Whatever the plan made of the calls."""
    tree = data.tree(report_of("euler1d"))
    for code in tree["codes"]:
        for loop in code["loops"]:
            written = {unit["name"] for unit in loop["workunits"]}
            assert written == {call["name"] for call in loop["calls"]}
            assert all(unit["source"].startswith("def ") for unit in loop["workunits"])


# --------------------------------------------------------------------------- HTML


class Page(HTMLParser):
    """The text, the attributes and the unclosed tags of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.open: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag != "meta":
            self.open.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src")]
        self.ids |= {value for name, value in attrs if name == "id"}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", ["cg_poisson", "harris", "tone_mapping"])
def test_the_page_needs_nothing_else(name: str) -> None:
    report = report_of(name)
    html = report.html()
    page = Page(html)
    assert page.open == [] and html.startswith("<!DOCTYPE html>")
    assert page.links and {link[1:] for link in page.links if link[0] == "#"} == page.ids
    assert all(link.startswith("#") for link in page.links)
    for outside in ("<link", "<script", "@import", "url("):
        assert outside not in html
    squeezed = "".join(page.text.split())
    for loop in report.groups:
        assert "".join(loop.source.split()) in squeezed
    for kernel in report.kernels:
        assert "".join(kernel.generated.split()) in squeezed


def test_links_lead_to_their_own_report(gradients: Explanation) -> None:
    first, second = (Page(gradients._repr_html_()) for _ in range(2))
    assert first.ids and first.ids.isdisjoint(second.ids)


def test_a_page_of_nothing() -> None:
    page = Page(Explanation().html())
    assert page.open == [] and "nothing has been recorded yet" in page.text


def test_what_looks_like_html_is_shown_as_it_is() -> None:
    call = CallReport("<b>&", '<i>"', 1)
    page = Page(Explanation((GroupReport((call,), source="a < b"),), (), 1, ends=(1,)).html())
    assert page.open == [] and "<b>& (<i>" in page.text and "a < b" in page.text


# --------------------------------------------------------------------------- the command


def test_explain_writes_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = str(ROOT / "kernels" / "heat2d.py")
    files = tmp_path / "r.json", tmp_path / "r.html"
    assert main(["explain", program, "--json", str(files[0]), "--html", str(files[1])]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("24 calls ran as ")
    tree = json.loads(files[0].read_text(encoding="utf-8"))
    assert tree["summary"]["calls"] == 24
    assert tree["headline"][0] == printed.split("\n")[0]
    assert files[1].read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_json_on_stdout_is_alone_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(ROOT / "kernels" / "heat2d.py"), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["calls"] == 24


def test_times_are_those_of_warm_launches(capsys: pytest.CaptureFixture[str]) -> None:
    main(["explain", str(ROOT / "kernels" / "heat2d.py"), "--json", "-"])
    kernels = json.loads(capsys.readouterr().out)["kernels"]
    assert all(kernel["measured"] > 0 and kernel["first"] is None for kernel in kernels)


def test_a_file_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "none" / "r.html"
    missing.parent.touch()  # a file
    assert main(["explain", str(ROOT / "kernels" / "heat2d.py"), "--html", str(missing)]) == 2
    assert f"--html {missing}: cannot be written: " in capsys.readouterr().err


def test_a_script_s_report_has_each_kind_of_flush(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = "-m", "pyfuser", "explain", "script.py", "--json", "r.json", "--html", "r.html"
    done = python(*command, cwd=tmp_path, check=True)
    assert done.stdout == "0.0\n0.0\n0.0\n" and "kernel 1" in done.stderr
    tree = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert {call["name"] for call in tree["calls"]} == {"double", "total"}
    assert "double" in (tmp_path / "r.html").read_text(encoding="utf-8")
