"""Runs tests against a mutant: a copy of the package with one line broken.

The copy lies in a temporary directory together with the tests, so that nothing of the working tree
is imported.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mutants.mutant import Mutant

ROOT = Path(__file__).resolve().parents[2]
#: What else could kill a mutant that its own test does not, the fastest first.
SUITE = ("transform", "analysis", "plan", "soundness", "fuzz")
TIME_LIMIT = 300  # seconds for one command: some mutants make endless loops
_NOTHING_RAN = (4, 5)  # pytest's statuses if there is no such test


class Verdict(NamedTuple):
    """What killed a mutant (empty: nothing did), and how long that took, in seconds."""

    killer: str
    seconds: float


class Laboratory:
    """A copy of the package and its tests, of which each mutant gets one of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._clean = directory / "clean"
        half_written = shutil.ignore_patterns("*.pyc.*")  # byte code, by another process
        for name in ("pyfuser", "tests"):
            shutil.copytree(ROOT / name, self._clean / name, ignore=half_written)
        shutil.copy2(ROOT / "setup.cfg", self._clean)

    def healthy(self, tests: Sequence[str]) -> str:
        """Which of the tests fails without any mutation; must be none."""
        return _first_failure(self._clean, tests)

    def judge(self, mutant: Mutant, thorough: bool = True) -> Verdict:
        """Run the test that should kill a mutant, then (thorough) all that could."""
        start = time.perf_counter()
        place = self._directory / re.sub(r"\W+", "-", mutant.name)
        shutil.copytree(self._clean, place, copy_function=os.link)
        file = place / "pyfuser" / mutant.file
        text = mutant.applied(file.read_text(encoding="utf-8"))
        file.unlink()  # this name, not the file that others have, too
        file.write_text(text, encoding="utf-8")
        killer = _first_failure(place, [mutant.test])
        if thorough and not killer:
            killer = _first_failure(place, SUITE)
        shutil.rmtree(place)
        return Verdict(killer, time.perf_counter() - start)


def _first_failure(place: Path, tests: Sequence[str]) -> str:
    """The first of the tests (below tests/) that fails there; empty if all pass."""
    # Plain: to explain how long lists differ takes minutes.
    options = ("-x", "-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider")
    without_plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # to load them takes a second
    try:
        result = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *(f"tests/{test}" for test in tests)],
            cwd=place,
            env={**os.environ, **without_plugins, "PYTHONPATH": str(place)},
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the limit of {TIME_LIMIT} seconds"
    if not result.returncode:
        return ""
    if result.returncode in _NOTHING_RAN:
        raise ValueError(f"no such test: {' '.join(tests)}\n{result.stdout}")
    failed = re.search(r"^(?:FAILED|ERROR) tests/(\S+)", result.stdout, re.MULTILINE)
    return failed[1] if failed else result.stdout.strip().rpartition("\n")[2] or "a crash"
