"""The documentation: its example does what it prints, and its links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "experiments" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
LINK = re.compile(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
TIME = re.compile(r"\b[0-9.]+ (us|ms|s)\b")


def test_the_first_example_prints_its_report(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    program = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    report = re.search(r"<!-- The report .*?-->\n(.*?)<!--", text, re.DOTALL)
    assert program is not None and report is not None
    (tmp_path / "norm.py").write_text(program[1])
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "PYFUSER_CALIBRATION": "0", "COLUMNS": "80",
        "PYFUSER_FRONTEND": "embedded", "PYFUSER_CHECK": "", "PYFUSER_VERIFY": "0",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "norm.py"],
        capture_output=True, text=True, check=True, cwd=tmp_path, env=environment,
    )  # fmt: skip
    shown = re.sub("^    ", "", report[1], flags=re.MULTILINE)
    assert TIME.sub("TIME", done.stdout) == TIME.sub("TIME", shown)


def anchors(page: Path) -> set[str]:
    """The names of a page's headings in links."""
    words = (title.lower() for title in HEADING.findall(page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w -]", "", title).replace(" ", "-") for title in words}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in map("".join, LINK.findall(page.read_text(encoding="utf-8"))):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


def test_the_help_of_make_fits_a_terminal() -> None:
    done = subprocess.run(["make"], capture_output=True, text=True, check=True, cwd=ROOT)
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_readme_is_short() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 141


def test_the_readme_fits_80_columns() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if len(line) > 80 and not line.startswith("<")]
