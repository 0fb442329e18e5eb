"""Modules that are rewritten once and kept on disk run as if they were rewritten now."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pyfuser.run import guards, kept, rewrite
from tests.run.conftest import Runner

HELPER = """\
import pykokkos as pk

@pk.workunit
def twice(i, a):
    a[i] *= 2.0

def double(a, times):
    for _ in range(times):
        pk.parallel_for(len(a), twice, a=a)

def double_and_look(a):
    pk.parallel_for(len(a), twice, a=a)
    first = a[0]
    pk.parallel_for(len(a), twice, a=a)
    return first, a[1]
"""
SCRIPT = """
import helper
a = np.ones(3)
helper.double(a, 4)
print(a[0], *helper.double_and_look(a))
launch(a)
launch(a)
print(a)
"""
PRINTED = "16.0 32.0 64.0\n[66. 66. 66.]\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where modules are kept."""
    (tmp_path / "helper.py").write_text(HELPER, encoding="utf-8")
    found = tmp_path / "modules"
    found.mkdir(0o700)
    monkeypatch.setattr(kept, "_directory", lambda: found)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return found


@pytest.fixture
def saved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys under which modules were saved; what is known of their sites is forgotten."""
    keys: list[str] = []
    save = kept.save

    def noted(key: str, module: kept.Kept) -> None:
        keys.append(key)
        save(key, module)

    monkeypatch.setattr(kept, "save", noted)
    return keys


def run_twice(run: Runner) -> None:
    for _ in range(2):
        guards.SITES._known.clear()
        ran = run(SCRIPT)
        assert ran.output == PRINTED
        assert ran.together == 4  # the launches of `double`


def test_a_kept_module_waits_where_it_waited(run: Runner, saved: list[str]) -> None:
    run_twice(run)
    assert len(saved) == 1  # and loaded the second time


def test_the_twin_of_a_kept_module_that_is_changed(
    run: Runner, saved: list[str], tmp_path: Path
) -> None:
    run_twice(run)
    changed = HELPER.replace("*= 2.0", "*= 3.0")
    (tmp_path / "helper.py").write_text(changed, encoding="utf-8")
    assert run(SCRIPT).output.startswith("81.0 243.0 729.0")
    assert len(saved) == 2


@pytest.mark.parametrize("damage", ["cut", "changed", "writable", "link", "empty"])
def test_what_is_not_whole_or_not_ours_is_not_loaded(
    run: Runner, saved: list[str], folder: Path, damage: str
) -> None:
    run_twice(run)
    (file,) = folder.iterdir()
    data = file.read_bytes()
    if damage == "cut":
        file.write_bytes(data[:-1])
    elif damage == "changed":
        file.write_bytes(data.replace(b"double", b"single"))
    elif damage == "writable":
        file.chmod(0o666)
    elif damage == "empty":
        file.write_bytes(b"")
    else:
        file.rename(folder.parent / "elsewhere")
        file.symlink_to(folder.parent / "elsewhere")
    run_twice(run)
    assert len(saved) == 2


def test_nothing_is_written_where_python_writes_nothing(
    run: Runner, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    run_twice(run)
    assert not list(folder.iterdir())


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(
    run: Runner, saved: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "_directory", lambda: None)
    run_twice(run)
    assert len(saved) == 2


def test_sites_that_cannot_be_made_now_wait(
    run: Runner, saved: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_twice(run)

    def too_deep(*_: object) -> list[guards.Site]:
        raise RecursionError

    monkeypatch.setattr(rewrite, "_sites", too_deep)
    guards.SITES._known.clear()
    ran = run(SCRIPT)
    assert ran.output == PRINTED
    assert ran.together < 4
    assert len(saved) == 1


def test_the_key_has_all_that_the_code_depends_on() -> None:
    key = kept.key_of("x = 1", "/a.py")
    assert key == kept.key_of(b"x = 1", "/a.py")
    others = [kept.key_of("x = 2", "/a.py"), kept.key_of("x = 1", "/b.py")]
    others.append(kept.key_of("", "/a.pyx = 1"))
    assert len({key, *others}) == 4


def test_without_the_sources_of_pyfuser_keys_are_of_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "__file__", str(tmp_path / "kept.py"))
    kept._identity.cache_clear()
    first = kept.key_of("x = 1", "/a.py")
    assert first == kept.key_of("x = 1", "/a.py")
    kept._identity.cache_clear()
    assert first != kept.key_of("x = 1", "/a.py")
    kept._identity.cache_clear()


def test_modules_are_kept_beside_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Settings:
        cache_dir = tmp_path / "cache"

    monkeypatch.setattr(kept, "SETTINGS", Settings)
    kept._directory.cache_clear()
    assert kept._directory() == tmp_path / "cache" / "modules"
    assert not os.stat(tmp_path / "cache" / "modules").st_mode & 0o077
    os.chmod(tmp_path / "cache", 0o777)
    kept._directory.cache_clear()
    assert kept._directory() is None
    kept._directory.cache_clear()
