"""Entries on disk, as processes find them, and as somebody may have changed them."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyfuser.engine.cache import KernelCache
from pyfuser.engine.store.store import Store
from pyfuser.engine.store.trim import trim
from pyfuser.support.settings import SETTINGS
from tests.processes import python
from tests.vendors import tune

PROGRAM = """
import json, sys
import pyfuser, pykokkos as pk

SHIFT = {shift}

@pk.workunit
def scale(i, y, x, a):
    y[i] = a * x[i] + SHIFT

@pk.workunit
def smooth(i, y, x):
    y[i] = x[i] + x[i + 1]

@pk.workunit
def total(i, acc, x):
    acc += x[i]

n = {n}
with pyfuser.fusing():
    x, y, z = (pk.View([n + 1], pk.double) for _ in range(3))
    pk.parallel_for(n + 1, scale, y=x, x=y, a=2.0)
    pk.parallel_for(n, smooth, y=z, x=x)
    print(float(pk.parallel_reduce(n, total, x=z)))
report = str(pyfuser.explain(source=True))
stats = pyfuser.stats()
print(json.dumps([stats.compilations, stats.loaded, stats.plans, report]))
"""

KERNELS = 2
"""That it compiles."""


class Program:
    """A program, run by one process after the other with one cache folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.script = folder / "program.py"
        self.write()

    def write(self, n: int = 1000, shift: str = "1.5") -> None:
        self.script.write_text(PROGRAM.format(n=n, shift=shift))

    def run(self, **settings: str) -> tuple[float, int, int, str, str]:
        """The result, kernels compiled, entries loaded, the report, and stderr."""
        done = python(self.script, check=True, PYFUSER_CACHE_DIR=str(self.cache), **settings)
        first, second = done.stdout.splitlines()
        compiled, loaded, _, report = json.loads(second)
        return float(first), compiled, loaded, re.sub("measured .*", "", report), done.stderr

    @property
    def entries(self) -> list[Path]:
        return sorted((self.cache / "plans").iterdir())


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Program, tuple[Any, ...]]:
    """A program, and what its first process printed, which has filled the cache."""
    program = Program(tmp_path_factory.mktemp("store"))
    first = program.run()
    shutil.copytree(program.cache, program.folder / "whole")
    return program, first


@pytest.fixture
def ran(filled: tuple[Program, tuple[Any, ...]]) -> tuple[Program, tuple[Any, ...]]:
    """The same: nothing has changed since."""
    program, _ = filled
    shutil.rmtree(program.cache)
    shutil.copytree(program.folder / "whole", program.cache)
    program.write()
    return filled


@pytest.fixture
def program(ran: tuple[Program, tuple[Any, ...]]) -> Program:
    return ran[0]


@pytest.fixture
def result(ran: tuple[Program, tuple[Any, ...]]) -> float:
    return float(ran[1][0])


def test_a_second_process_plans_and_compiles_nothing(ran: tuple[Program, tuple[Any, ...]]) -> None:
    program, (result, compiled, loaded, report, _) = ran
    assert compiled == KERNELS and loaded == 0 and program.entries
    again = program.run()
    assert again[:3] == (result, 0, len(program.entries))
    assert again[3] == report  # `explain` has nothing less


def test_it_does_without_what_plans(program: Program) -> None:
    text = program.script.read_text()
    spoiled = (
        "import pyfuser.plan.search as s, pyfuser.codegen.cpu.unit as u; s._best = u.emit = 0; "
    )
    lines = text.split("\n")
    lines[0] = spoiled  # no line moves
    program.script.write_text("\n".join(lines))
    assert program.run()[1] == 0


@pytest.mark.parametrize(
    "change", [{"n": 1001}, {"shift": "2.5"}, {"shift": "1.5  # a comment"}], ids=str
)
def test_what_a_plan_depends_on(program: Program, change: dict[str, Any]) -> None:
    program.write(**change)
    again = program.run()[0]
    shutil.rmtree(program.cache)
    assert program.run()[0] == again


def test_settings_have_plans_of_their_own(program: Program) -> None:
    count = len(program.entries)
    assert program.run(PYFUSER_WITHOUT="wavefront")[2] == 0
    assert len(program.entries) > count
    assert program.run(PYFUSER_THREADS="1")[2] == 0
    assert program.run(PYFUSER_WITHOUT="store")[2] == 0


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def rewrite(text: str) -> Callable[[Path], None]:
    """An entry with a right digest, which nobody of us wrote."""

    def write(path: Path) -> None:
        data = text.encode()
        path.write_bytes(hashlib.sha256(data).hexdigest().encode() + b"\n" + data)

    return write


def link(path: Path) -> None:
    other = path.with_name("other")
    path.rename(other)
    path.symlink_to(other)


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "flipped": flip,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "empty": lambda path: path.write_bytes(b""),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b" "),
    "garbage": lambda path: path.write_bytes(bytes(range(256))),
    "a link": link,
    "writable by others": lambda path: path.chmod(0o666),
    "a pickle": lambda path: path.write_bytes(b"cos\nsystem\n(S'touch pwned'\ntR."),
    "a digest of nonsense": rewrite("nonsense"),
    "a digest of another call": rewrite('[9, [["os:system", 0], 9]]'),
    "another table": rewrite("[0, [1, 0]]"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_an_entry_that_is_not_ours_is_ignored(
    kind: str, ran: tuple[Program, tuple[Any, ...]]
) -> None:
    program, (result, _, _, report, _) = ran
    whole = {path: path.read_bytes() for path in program.entries}
    for path in program.entries:
        DAMAGE[kind](path)
    again = program.run()
    assert again[:3] == (result, 0, 0) and again[3] == report
    assert {path: path.read_bytes() for path in whole} == whole  # made anew
    assert not list(program.folder.rglob("pwned"))


def test_one_line_of_the_log_says_what_is_ignored(program: Program) -> None:
    program.script.write_text(
        "import logging; logging.basicConfig(level=10)" + program.script.read_text()
    )
    for path in program.entries:
        flip(path)
    said = program.run()[4].splitlines()
    assert len([line for line in said if "is ignored: not what was written" in line]) == len(
        program.entries
    )


def test_many_kinds_of_damage(program: Program, result: float) -> None:
    """Whatever byte is changed: the result is right, and no process dies."""
    rng = random.Random(3)
    for _ in range(6):
        for path in program.entries:
            data = bytearray(path.read_bytes())
            for _ in range(rng.choice((1, 5))):
                data[rng.randrange(len(data))] = rng.randrange(256)
            path.write_bytes(data)
        assert program.run()[0] == result


def test_a_folder_that_others_can_write_is_not_read(program: Program, result: float) -> None:
    (program.cache / "plans").chmod(0o777)
    assert program.run()[:3] == (result, 0, 0)


def test_a_library_that_is_gone_is_compiled_again(program: Program, result: float) -> None:
    for path in (program.cache / "kernels").glob("*.so"):
        path.unlink()
    assert program.run()[:2] == (result, KERNELS)
    assert program.run()[:2] == (result, 0)


def test_a_folder_that_cannot_be_written_is_read(program: Program, result: float) -> None:
    count = len(program.entries)
    folders = [program.cache, *(path for path in program.cache.rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        found = program.run()
        assert found[:3] == (result, 0, count) and not found[4]
    finally:
        for path in folders:
            path.chmod(stat.S_IRWXU)


def test_a_folder_is_of_use_without_a_compiler(program: Program, result: float) -> None:
    bare = program.folder / "bin"
    bare.mkdir()
    assert program.run(PATH=str(bare))[:2] == (result, 0)
    assert program.run(PATH=str(bare), PYFUSER_WITHOUT="store")[:2] == (result, 0)  # kernels alone
    program.write(shift="7.25 * 3")
    with pytest.raises(AssertionError, match=r"no C\+\+ compiler found"):
        program.run(PATH=str(bare))


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    for kind, suffix in (("kernels", ".so"), ("plans", "")):
        (tmp_path / kind).mkdir()
        for number in range(10):
            path = tmp_path / kind / f"{number}{suffix}"
            path.write_bytes(bytes(100))
            os.utime(path, (number, number))
    (tmp_path / "kernels" / "abc.lock").write_bytes(bytes(5000))
    assert trim(tmp_path, 2000) == 0
    assert trim(tmp_path, 1000) == 13  # until three quarters are left
    assert sorted(path.name for path in (tmp_path / "plans").iterdir()) == ["6", "7", "8", "9"]
    assert len(list((tmp_path / "kernels").iterdir())) == 4


def test_a_process_that_writes_trims(program: Program) -> None:
    path = program.cache / "plans" / "old"
    path.write_bytes(bytes(3 << 20))
    os.utime(path, (1, 1))
    program.write(n=2000)
    assert program.run(PYFUSER_CACHE_SIZE="1")[1] == 0 and not path.exists()


def test_an_entry_that_is_used_is_dated(program: Program) -> None:
    for path in (*program.entries, *(program.cache / "kernels").glob("*.so")):
        os.utime(path, (1000, 1000))
    program.run()
    for path in (*program.entries, *(program.cache / "kernels").glob("*.so")):
        assert path.stat().st_mtime > 1000


def test_a_process_writes_so_many_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, written_plans=3)
    store = Store(tmp_path / "plans")
    for number in range(5):
        entry = store.entry("kind", number)
        assert entry is not None and entry.read() is None
        entry.write(("value", number))
    assert len(list((tmp_path / "plans").iterdir())) == 3
    found = store.entry("kind", 2)
    assert found is not None and found.read() == ("value", 2)
    other = store.entry("another", 2)
    assert other is not None and other.read() is None


def test_processes_that_start_together(program: Program) -> None:
    shutil.rmtree(program.cache)
    environment = {**os.environ, "PYFUSER_CACHE_DIR": str(program.cache)}
    running = [
        subprocess.Popen(
            [sys.executable, str(program.script)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    found = [process.communicate()[0].splitlines() for process in running]
    assert len({first for first, _ in found}) == 1
    assert sum(json.loads(second)[0] for _, second in found) == KERNELS  # each once


def test_the_compiler_that_filled_a_folder_is_noted(tmp_path: Path) -> None:
    kept = KernelCache(tmp_path)
    assert kept.compiler() is None
    kept.filled_by("g++ /usr/bin/g++:1:2")
    assert KernelCache(tmp_path).compiler() == "g++ /usr/bin/g++:1:2"
    (tmp_path / "compiler.txt").chmod(0o666)
    assert KernelCache(tmp_path).compiler() is None
    assert SETTINGS.cache_size == 1024
