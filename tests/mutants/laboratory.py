"""Runs tests against a mutant: a copy of the package with one line broken.

The copy lies in a temporary directory together with the tests, so that nothing of the working tree
is imported.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.mutants.mutant import Mutant

ROOT = Path(__file__).resolve().parents[2]
#: What else could kill a mutant that its own test does not, the fastest first.
SUITE = ("transform", "analysis", "plan", "soundness", "fuzz")
TIME_LIMIT = 300  # seconds for one command: some mutants make endless loops
_NOTHING_RAN = (4, 5)  # pytest's statuses if there is no such test
_PRELOADED = ("pytest", "numpy", "islpy", "hypothesis")
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(list(_PRELOADED))


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
    printed, ended = place / "printed.txt", place / "status.txt"
    ended.unlink(missing_ok=True)
    process = _PROCESSES.Process(target=_test, args=(place, tests, printed, ended))
    process.start()
    process.join(TIME_LIMIT)
    if process.exitcode is None:
        os.killpg(process.pid or 0, signal.SIGKILL)
        process.join()
        return f"the limit of {TIME_LIMIT} seconds"
    # Not its exit status, which is 255 where another thread's start() asked for it first.
    if not ended.exists():
        return "a crash"
    status = int(ended.read_text(encoding="utf-8"))
    if not status:
        return ""
    output = printed.read_text(encoding="utf-8", errors="replace")
    if status in _NOTHING_RAN:
        raise ValueError(f"no such test: {' '.join(tests)}\n{output}")
    failed = re.search(r"^(?:FAILED|ERROR) tests/(\S+)", output, re.MULTILINE)
    return failed[1] if failed else output.strip().rpartition("\n")[2] or "a crash"


def _test(place: Path, tests: Sequence[str], printed: Path, ended: Path) -> None:
    """Run tests in this process, which has loaded nothing yet but `_PRELOADED`, and end it."""
    os.setsid()  # so that it can be killed with all that it starts
    os.chdir(place)
    os.environ["PYTHONPATH"] = str(place)  # for processes that tests start
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # to load them takes a second
    sys.path.insert(0, str(place))
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "pyfuser")]:
        del sys.modules[name]  # those of the working tree
    with printed.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    # Plain: to explain how long lists differ takes minutes.
    options = ("-x", "-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider")
    status = pytest.main([*options, *(f"tests/{test}" for test in tests)])
    sys.stdout.flush()
    ended.write_text(str(int(status)), encoding="utf-8")
    os._exit(status)  # whatever threads are left
