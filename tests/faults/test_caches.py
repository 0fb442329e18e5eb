"""Cache entries that are damaged, foreign or planted, and directories that cannot be trusted."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import pyfuser
from pyfuser.engine import cache, compiler
from pyfuser.engine.cache import intact, seal
from pyfuser.runtime.session import SESSION
from pyfuser.support.errors import CacheError
from tests.faults.conftest import NOBODY, REAL, Machine, Program

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def entries(machine: Machine) -> list[Path]:
    return sorted((machine.cache / "kernels").glob("*.so"))


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def _replace_by_another(path: Path) -> None:
    """Another library, with the digest that makes it look intact."""
    source = path.with_suffix(".c")
    source.write_text("int other;")
    subprocess.run([REAL, "-shared", "-fPIC", source, "-o", path], check=True)
    source.unlink()
    seal(path)


def _link(path: Path) -> None:
    away = path.parents[2] / f"away-{path.name}"
    os.replace(path, away)
    path.symlink_to(away)


def _share(path: Path) -> None:
    path.chmod(0o766)


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _give_away(path: Path) -> None:
    os.chown(path, NOBODY, NOBODY)


DAMAGES = [_truncate, _flip, _link, _share, _fifo]


@pytest.mark.parametrize("damage", [*DAMAGES, pytest.param(_give_away, marks=root_only)])
def test_an_entry_that_is_not_ours_or_not_whole(
    damage: Callable[[Path], None], machine: Machine, program: Program
) -> None:
    """It is compiled again, in its place."""
    program.check_done()
    made = entries(machine)
    for path in made:
        # A library that is loaded stays mapped: change a copy of it.
        shutil.copy2(path, path.with_suffix(".new"))
        os.replace(path.with_suffix(".new"), path)
        damage(path)
    before = machine.compilations
    machine.restart()
    Program().check_done()
    assert machine.compilations == before + len(made)
    assert entries(machine) == made
    for path in made:
        assert intact(path) and stat.S_ISREG(path.lstat().st_mode)
    assert machine.left() == {".lock", ".so"}


def test_an_entry_that_is_intact_but_no_kernel(machine: Machine, program: Program) -> None:
    """It is compiled again by a process that finds it. (Here the good one is still loaded.)"""
    program.check_done()
    made = entries(machine)
    path = made[0]
    shutil.copy2(path, path.with_suffix(".new"))
    _replace_by_another(path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)
    before = machine.compilations
    for expected in (1, 0):
        assert machine.output("x, y, sum = program(); print(sum, x[0], y[0])")[0] == "100.0 1.0 1.0"
        assert machine.compilations == before + expected
        before += expected
    assert entries(machine) == made


def test_another_processor_has_its_own_entries(machine: Machine, program: Program) -> None:
    program.check_done()
    made = entries(machine)
    machine.patch.setattr(compiler, "cpu_identity", lambda: "another processor")
    machine.restart()
    Program().check_done()
    assert len(entries(machine)) == 2 * len(made) == machine.compilations


def test_another_compiler_has_its_own_entries(machine: Machine, program: Program) -> None:
    program.check_done()
    made = entries(machine)
    machine.break_compiler('# a later version\nexec "$real" "$@"')
    machine.restart()
    Program().check_done()
    assert len(entries(machine)) == 2 * len(made) == machine.compilations


def _world_writable(machine: Machine) -> None:
    machine.cache.chmod(0o777)


def _kernels_writable_by_group(machine: Machine) -> None:
    (machine.cache / "kernels").chmod(0o770)


def _somebody_elses(machine: Machine) -> None:
    os.chown(machine.cache / "kernels", NOBODY, NOBODY)


def _linked_to_somebody_elses(machine: Machine) -> None:
    away = machine.folder / "away"
    os.rename(machine.cache / "kernels", away)
    os.chown(away, NOBODY, NOBODY)
    (machine.cache / "kernels").symlink_to(away)


def _replaceable(machine: Machine) -> None:
    machine.folder.chmod(0o777)


def _below_somebody_elses(machine: Machine) -> None:
    os.chown(machine.folder, NOBODY, NOBODY)


DISTRUSTED = {
    _world_writable: "can be written by others.*chmod go-w",
    _kernels_writable_by_group: "can be written by others.*chmod go-w",
    _replaceable: "lies in .*, which can be written by others: they could put another directory",
}
FOREIGN = {
    _somebody_elses: f"belongs to user {NOBODY}",
    _linked_to_somebody_elses: f"away belongs to user {NOBODY}",
    _below_somebody_elses: f"lies in .*, which belongs to user {NOBODY}",
}


@pytest.mark.parametrize(
    "change", [*DISTRUSTED, *(pytest.param(change, marks=root_only) for change in FOREIGN)]
)
def test_a_place_where_others_could_put_code(
    change: Callable[[Machine], None], machine: Machine, program: Program
) -> None:
    """Refused, with the reason; not even a kernel that is intact there is loaded."""
    program.check_done()
    before = machine.compilations
    change(machine)
    machine.restart()
    program = Program()
    with pytest.raises(CacheError, match={**DISTRUSTED, **FOREIGN}[change]):
        pyfuser.sync()
    program.check_untouched()
    assert machine.compilations == before
    machine.cache = machine.folder / "mine"
    machine.folder.chmod(0o700)
    os.chown(machine.folder, os.getuid(), os.getgid())
    machine.restart()
    program.check_done()
    assert machine.compilations == 2 * before


def test_the_sticky_bit_keeps_others_away(machine: Machine, program: Program) -> None:
    """As in /tmp: others can write there, but not rename what is ours."""
    machine.folder.chmod(0o1777)
    program.check_done()
    assert machine.left() == {".lock", ".so"}


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o077])
def test_the_directory_is_private_whatever_the_umask(mask: int, machine: Machine) -> None:
    machine.cache = machine.folder / "a" / "b"
    machine.restart()
    old = os.umask(mask)
    try:
        program = Program()
        program.check_done()
        before = machine.compilations
        machine.restart()
        Program().check_done()
    finally:
        os.umask(old)
    assert machine.compilations == before
    for path in (machine.folder / "a", machine.cache, machine.cache / "kernels"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_directory_that_is_removed_meanwhile(machine: Machine, program: Program) -> None:
    """`rm -rf ~/.cache` while the program runs: it is made again."""
    program.check_done()
    before = machine.compilations
    shutil.rmtree(machine.cache)
    SESSION.clear()  # the same KernelCache, asked for another kernel
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Program().check_done()
    assert machine.compilations == 2 * before
    assert machine.left() == {".lock", ".so"}


def test_a_file_system_without_locks(
    machine: Machine, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: int, operation: int) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(cache.fcntl, "flock", refuse)
    program.check_done()
    assert machine.left() == {".lock", ".so"}


def test_what_killed_builds_left_is_removed_in_time(machine: Machine, program: Program) -> None:
    kernels = machine.cache / "kernels"
    kernels.mkdir(0o700, parents=True)
    machine.cache.chmod(0o700)
    for name in ("build-old", "build-new"):
        (kernels / name).mkdir()
        (kernels / name / "kernel.cpp").write_text("half")
    os.utime(kernels / "build-old", (0, 0))
    program.check_done()
    assert [path.name for path in kernels.glob("build-*")] == ["build-new"]
