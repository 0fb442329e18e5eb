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

from tests.mutants.catalogue import Mutant

ROOT = Path(__file__).resolve().parents[2]
SUITE = ("tests/transform", "tests/analysis", "tests/plan", "tests/soundness", "tests/fuzz")
TIME_LIMIT = 120  # seconds for one command
_NO_TESTS = (4, 5)  # pytest's statuses for tests that do not exist


class Verdict(NamedTuple):
    """What killed a mutant (empty: nothing did), and how long that took, in seconds."""

    killer: str
    seconds: float


def mutated(text: str, mutant: Mutant) -> str:
    """The text of a file with the mutant's substitution; ValueError unless it fits exactly once."""
    found = text.count(mutant.old)
    if found != 1:
        raise ValueError(f"{mutant.name!r} fits {found} times into pyfuser/{mutant.file}")
    return text.replace(mutant.old, mutant.new)


class Laboratory:
    """A copy of the package and its tests, of which each mutant gets one of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._clean = directory / "clean"
        for name in ("pyfuser", "tests"):
            shutil.copytree(
                ROOT / name, self._clean / name, ignore=shutil.ignore_patterns("*.so", ".*")
            )
        shutil.copy2(ROOT / "setup.cfg", self._clean)

    def healthy(self, tests: Sequence[str]) -> str:
        """What fails without any mutation; must be nothing."""
        return _first_failure(self._clean, tests)

    def judge(self, mutant: Mutant, thorough: bool = True) -> Verdict:
        """Run the tests that should kill a mutant, then (thorough) all that could."""
        start = time.perf_counter()
        place = self._directory / re.sub(r"\W+", "-", mutant.name)
        shutil.copytree(self._clean, place)
        file = place / "pyfuser" / mutant.file
        text = mutated(file.read_text(encoding="utf-8"), mutant)
        file.write_text(text, encoding="utf-8")
        killer = _first_failure(place, mutant.tests) if mutant.tests else ""
        if thorough and not killer:
            killer = _first_failure(place, [t for t in SUITE if (place / t).exists()])
        shutil.rmtree(place)
        return Verdict(killer, time.perf_counter() - start)


def _first_failure(place: Path, tests: Sequence[str]) -> str:
    """The first test that fails, or the command's last words; empty if all pass."""
    try:
        result = _run(place, ("pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", *tests))
    except subprocess.TimeoutExpired:
        return f"more than {TIME_LIMIT} seconds"
    if not result.returncode:
        return ""
    if result.returncode in _NO_TESTS:
        raise ValueError(f"no such tests: {' '.join(tests)}\n{result.stdout}")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", result.stdout, re.MULTILINE)
    return failed[1] if failed else result.stdout.strip().rpartition("\n")[2] or "a crash"


def _run(place: Path, module: Sequence[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(place), "PYTHONHASHSEED": "0"}
    return subprocess.run(
        [sys.executable, "-m", *module],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )
