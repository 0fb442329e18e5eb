"""Kernels that are compiled while the program goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyfuser.engine import ahead
from pyfuser.engine.ahead import Ahead, Pending, Piece

WAIT = 30.0


@pytest.fixture(autouse=True)
def compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "left_out", lambda name: False)


class Work:
    """Pieces that end when they may, and what was taken."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.taken: list[str] = []

    def piece(self, name: str, command: str | None = None) -> Piece:
        directory = self.path / f"build {name}"
        directory.mkdir()

        def take() -> None:
            self.taken.append((directory / "made").read_text())

        wait = f"while ! test -e ../may-end; do sleep 0.01; done; printf {name} > made"
        return Piece(directory, ["sh", "-c", command or wait], take)

    def may_end(self) -> None:
        (self.path / "may-end").touch()


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Work]:
    made = Work(tmp_path)
    yield made
    made.may_end()


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_running(group: int) -> bool:
    """Whether a group has processes that are not dead."""
    command = ["ps", "-eo", "pgid=,stat="]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in found.splitlines()]
    return any(int(pgid) == group and not stat.startswith("Z") for pgid, stat in lines)


def parents_of(group: int) -> set[int]:
    """Of the processes of a group."""
    command = ["ps", "-eo", "pgid=,ppid="]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in found.splitlines()]
    return {int(parent) for pgid, parent in lines if int(pgid) == group}


def test_nobody_waits_for_it(work: Work) -> None:
    begun: list[Ahead] = []

    def begin() -> Ahead:
        begun.append(Ahead([work.piece("a"), work.piece("b")]))
        return begun[-1]

    pending = Pending()
    assert not pending.is_begun and not pending.is_busy
    assert not pending.has(begin) and not pending.has(begin)
    assert pending.is_begun and pending.is_busy and not work.taken
    work.may_end()
    until(lambda: not pending.is_busy)
    assert pending.is_begun and work.taken == ["a", "b"]
    assert pending.has(begin) and not pending.is_begun  # taken
    assert len(begun) == 1 and not list(work.path.glob("build*"))


def test_what_fails_is_done_by_who_needs_it(work: Work) -> None:
    work.may_end()
    begun = Ahead([work.piece("a", "exit 1"), work.piece("b")])
    until(lambda: begun.is_done)
    assert work.taken == ["b"]


def test_what_was_killed_is_done(work: Work) -> None:
    begun = Ahead([work.piece("a")])
    assert not begun.is_done
    os.killpg(begun._group, 9)
    until(lambda: begun.is_done)
    assert not work.taken and not list(work.path.glob("build*"))


def test_it_gives_up_when_it_is_told_to(work: Work) -> None:
    begun = Ahead([work.piece("a"), work.piece("b")])
    assert is_running(begun._group)
    begun.give_up()
    assert begun.is_done and not work.taken and not list(work.path.glob("build*"))
    until(lambda: not is_running(begun._group))


def test_without_a_shell_who_needs_it_does_it(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(pieces: object) -> int:
        raise FileNotFoundError("/bin/sh")

    monkeypatch.setattr(ahead, "_started", fails)
    assert Ahead([work.piece("a")]).is_done


def test_nothing_to_do_or_the_pass_left_out(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Ahead().is_done and Pending().has(Ahead)
    monkeypatch.setattr(ahead, "left_out", lambda name: name == "compile-ahead")
    pending = Pending()
    assert pending.has(lambda: Ahead([work.piece("a")])) and not pending.is_begun


def test_a_fork_has_nothing_to_do_with_it(work: Work) -> None:
    begun = Ahead([work.piece("a")])
    child = os.fork()
    if child == 0:
        begun.give_up()
        ahead._end()
        os._exit(0 if begun.is_done else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not begun.is_done and is_running(begun._group)
    assert os.getpid() not in parents_of(begun._group)  # `os.wait()` would return it
    work.may_end()
    until(lambda: begun.is_done)
    assert work.taken == ["a"]


def test_what_nobody_takes_goes(work: Work) -> None:
    """The process that began it has ended, by os._exit()."""
    child = os.fork()
    if child == 0:
        Ahead([work.piece("a")])
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert list(work.path.glob("build*"))
    work.may_end()
    until(lambda: not list(work.path.glob("build*")))


PROGRAM = """
import sys, pyfuser, pykokkos as pk
from pyfuser.engine import native

@pk.workunit
def scale(i: int, x: pk.View1D[pk.double]):
    x[i] = x[i] * 0.123

prepare = native.prepare_launches

def both(launches):
    both.begun = native.begin(launches)
    print(both.begun.is_done, both.begun._group, flush=True)
    return prepare(launches)

native.prepare_launches = both
x = pk.View([10], pk.double)
with pyfuser.fusing():
    pk.parallel_for(10, scale, x=x)
"""

COMPILER = """#!/bin/sh
case "$(ps -o nice= -p $$ | tr -d ' ')/$*" in
10/*kernel.cpp*) sleep 60 ;;
esac
exec g++ "$@"
"""


def test_the_end_of_a_program_ends_its_compilers(tmp_path: Path) -> None:
    """... which would run for a minute. Who needs the kernel compiles it."""
    compiler, program = tmp_path / "slow-g++", tmp_path / "program.py"
    compiler.write_text(COMPILER)
    compiler.chmod(0o700)
    program.write_text(PROGRAM)
    env = {**os.environ, "PYFUSER_CXX": str(compiler), "PYFUSER_CACHE_DIR": str(tmp_path / "cache")}
    command = ["nice", "-n", "0", sys.executable, "-W", "error", str(program)]
    start = time.monotonic()
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=50, check=True)
    assert time.monotonic() - start < 40.0
    is_done, group = done.stdout.split()
    assert is_done == "False" and not done.stderr
    until(lambda: not is_running(int(group)))
    kept = tmp_path / "cache" / "kernels"
    assert list(kept.glob("*.so")) and not list(kept.glob("build-*"))


def test_what_was_compiled_ahead_is_found(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    waits = """
    import time
    deadline = time.monotonic() + 30.0
    while not both.begun.is_done and time.monotonic() < deadline: time.sleep(0.01)
    before = pyfuser.stats().compilations
    made = prepare(launches)
    print(pyfuser.stats().compilations - before)
    return made
"""
    program.write_text(PROGRAM.replace("    return prepare(launches)\n", waits))
    env = {**os.environ, "PYFUSER_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, str(program)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=50, check=True)
    assert done.stdout.split()[-1] == "0", done
