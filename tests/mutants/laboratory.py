"""Runs tests against mutants: pytest collects once, and each mutant is a fork of that process.

In the child the code of one function is replaced in place, so everybody who holds the function, has
imported it by name or wraps it in a cache, calls the mutant. Nothing on disk changes.
"""

from __future__ import annotations

import gc
import importlib
import json
import math
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import FrameType, FunctionType
from typing import NamedTuple

import pytest

from tests.mutants.generated import PRODUCT, Law, Mutant

Functions = dict[tuple[str, str, int], list[FunctionType]]

TEST_LIMIT = 20  # seconds of the processor for one test: some mutants make endless loops
MOST_MEMORY = 16 << 30
TIME_LIMIT = 600.0  # seconds for one mutant, if that did not help
MISPLACED = "no test ran against"
_OPTIONS = ("-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist")


class Job(NamedTuple):
    """A mutant, the tests that should kill it, and those that could."""

    mutant: Mutant
    known: Sequence[str]
    others: Sequence[str]


class Verdict(NamedTuple):
    """What killed a mutant (empty: nothing did), and how long that took, in seconds."""

    mutant: Mutant
    killer: str
    seconds: float


class _Watcher:
    """A plugin that knows how the last test went."""

    def __init__(self) -> None:
        self.failed = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed


class Laboratory:
    """The tests below some paths, collected; `work` is called with this, and may fork."""

    def __init__(self, paths: Sequence[str], work: Callable[[Laboratory], None]) -> None:
        self._work = work
        self._watcher = _Watcher()
        self._functions: Functions = {}
        self.items: dict[str, pytest.Item] = {}
        self._directory = Path(tempfile.mkdtemp(prefix="pyfuser-mutants-"))
        os.environ["PYFUSER_CACHE_DIR"] = str(self._directory / "kernels")
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        try:
            status = pytest.main([*_OPTIONS, *paths], plugins=[self, self._watcher])
        finally:
            shutil.rmtree(self._directory, ignore_errors=True)
        if status:
            raise RuntimeError(f"pytest ended with {status}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = {item.nodeid.removeprefix("tests/"): item for item in session.items}
        session.config.pluginmanager.unregister(name="terminalreporter")  # children are quiet
        self._functions = functions_of_the_product()
        gc.freeze()  # so that forks share the memory
        self._work(self)
        return True

    def named(self, names: Sequence[str]) -> list[str]:
        """The tests of these names (a name without parameters: all of them) that there are."""
        found: dict[str, None] = {}
        for name in names:
            if name in self.items:
                found[name] = None
            else:
                found |= {item: None for item in self.items if item.split("[")[0] == name}
        return list(found)

    def first_failure(self, names: Sequence[str], patience: float = TIME_LIMIT) -> str:
        """The first of the tests that fails in this process, before patience (CPU seconds) ends."""
        self._watcher.failed = False
        for name in names:
            if time.process_time() > patience:
                break
            self._run(name)
            if self._watcher.failed:
                return name
        return ""

    def _run(self, name: str) -> None:
        item = self.items[name]
        previous = signal.signal(signal.SIGVTALRM, _stop)
        signal.setitimer(signal.ITIMER_VIRTUAL, TEST_LIMIT)
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, previous)

    def judged(self, jobs: Sequence[Job], workers: int, patience: float) -> Iterator[Verdict]:
        """Run for each mutant the tests known to kill or named so, others while patience lasts.

        Raises RuntimeError for a mutant that was not put in place.
        """
        for file in {job.mutant.law.file for job in jobs}:  # of some nobody has asked for yet
            importlib.import_module(f"pyfuser.{file.removesuffix('.py').replace('/', '.')}")
        self._functions = {**functions_of_the_product(), **self._functions}
        tasks = [partial(self._judge, job, patience) for job in jobs]
        for job, (killer, seconds) in zip(jobs, self._forked(tasks, workers), strict=True):
            if killer.startswith(MISPLACED):
                raise RuntimeError(killer)
            yield Verdict(job.mutant, killer, seconds)

    def sick(self, tests: Sequence[str]) -> str:
        """Those of the tests that fail without a mutant."""
        tasks = [partial(self.first_failure, [test]) for test in tests]
        return " ".join(text for text, _ in self._forked(tasks, 1) if text)

    def reaching(self, laws: Sequence[Law]) -> dict[str, list[str]]:
        """For each law the tests that call it, the fastest first."""
        ((text, _),) = self._forked([partial(self._reaching, laws)], 1, math.inf)
        return dict(json.loads(text))

    def _reaching(self, laws: Sequence[Law]) -> str:
        names = {(str(PRODUCT / law.file), law.node.name): law.name for law in laws}
        seen: set[str] = set()
        found: dict[str, list[tuple[float, str]]] = {law.name: [] for law in laws}

        def watch(frame: FrameType, event: str, _: object) -> None:
            if event == "call":
                seen.add(names.get((frame.f_code.co_filename, frame.f_code.co_name), ""))

        for test in self.items:
            seen.clear()
            start = time.process_time()
            sys.setprofile(watch)
            self._run(test)
            sys.setprofile(None)
            for law in seen & found.keys():
                found[law].append((time.process_time() - start, test))
        return json.dumps({law: [test for _, test in sorted(found[law])] for law in found})

    def _judge(self, job: Job, patience: float) -> str:
        try:
            replace_code(job.mutant, self._functions)
        except ValueError as error:
            return f"{MISPLACED} {job.mutant.name}: {error}"
        return self.first_failure(job.known) or self.first_failure(job.others, patience)

    def _forked(
        self, tasks: Sequence[Callable[[], str]], workers: int, limit: float = TIME_LIMIT
    ) -> Iterator[tuple[str, float]]:
        """The texts of tasks and their seconds, in order; each runs in a fork of this process."""
        running: dict[int, tuple[int, int, float]] = {}
        done: dict[int, tuple[str, float]] = {}
        texts: dict[int, bytes] = {}
        waiting, next_ = 0, 0
        while next_ < len(tasks):
            while len(running) < workers and waiting < len(tasks):
                pipe, process = self._fork(tasks[waiting])
                running[pipe] = waiting, process, time.perf_counter()
                texts[waiting] = b""
                waiting += 1
            ready, _, _ = select.select(list(running), [], [], 0.5)
            now = time.perf_counter()
            for pipe, (task, process, start) in list(running.items()):
                late = now - start > limit
                read = os.read(pipe, 1 << 20) if pipe in ready else b"" if late else None
                if read:
                    texts[task] += read
                    continue
                if read is None:
                    continue
                if late:
                    os.killpg(process, signal.SIGKILL)
                os.waitpid(process, 0)
                os.close(pipe)
                del running[pipe]
                text = f"the limit of {TIME_LIMIT:.0f} s" if late else texts[task].decode()
                done[task] = text, now - start
            while next_ in done:
                yield done.pop(next_)
                next_ += 1

    def _fork(self, task: Callable[[], str]) -> tuple[int, int]:
        read, write = os.pipe()
        sys.stdout.flush()
        process = os.fork()
        if process:
            os.close(write)
            return read, process
        text = "a crash"
        try:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
            place = Path(tempfile.mkdtemp(dir=self._directory))
            os.environ["PYTEST_DEBUG_TEMPROOT"] = str(place)
            text = task()
            shutil.rmtree(place, ignore_errors=True)
        finally:
            os.write(write, text.encode())
            os._exit(0)


def _stop(*_: object) -> None:
    raise TimeoutError(f"more than {TEST_LIMIT} seconds")


def replace_code(mutant: Mutant, functions: Functions) -> None:
    """Every function object of the law gets the mutant's code."""
    code = mutant.code()
    found = functions.get((code.co_filename, code.co_name, code.co_firstlineno), ())
    for function in found:
        cells = function.__code__.co_freevars
        # The cell of `super()` may have gone with its only use; no other cells are known.
        function.__code__ = code if code.co_freevars else code.replace(co_freevars=cells)
    if not found:
        raise ValueError(f"nobody imports {mutant.law.name}")


def functions_of_the_product() -> Functions:
    """Every function object of the product, decorated ones, too, by file, name and first line."""
    found: Functions = {}
    for function in gc.get_objects():
        if isinstance(function, FunctionType):
            code = function.__code__
            if code.co_filename.startswith(str(PRODUCT)):
                key = code.co_filename, code.co_name, code.co_firstlineno
                found.setdefault(key, []).append(function)
    return found
