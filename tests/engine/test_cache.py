"""The kernel cache on disk, with its faults really made."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from pyfuser.engine.cache import KernelCache, intact, key_of
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import CacheError, PyFuserWarning
from tests.vendors import tune

KEY = key_of("source", "identity")


class Builder:
    """Stands for the compiler; counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, source: Path, target: Path) -> None:
        self.calls += 1
        target.write_bytes(b"compiled from " + source.read_bytes())


@pytest.fixture
def build() -> Builder:
    return Builder()


def test_a_kernel_is_built_once(tmp_path: Path, build: Builder) -> None:
    hits = COUNTERS.cache_hits
    first = KernelCache(tmp_path).obtain(KEY, "source", build)
    assert first.read_bytes().startswith(b"compiled from source")
    assert KernelCache(tmp_path).obtain(KEY, "source", build) == first
    assert build.calls == 1
    assert COUNTERS.cache_hits == hits + 1
    left = {path.name for path in first.parent.iterdir()}
    assert left == {f"{KEY}.so", f"{KEY[:3]}.lock"}


def test_the_key_tells_source_and_identity_apart() -> None:
    assert len({key_of("ab", "c"), key_of("a", "bc"), key_of("ab", "d"), key_of("ac", "c")}) == 4


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[3] ^= 1
    path.write_bytes(data)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [_truncate, _flip, _empty])
def test_a_damaged_entry_is_built_again(damage, tmp_path: Path, build: Builder) -> None:
    path = KernelCache(tmp_path).obtain(KEY, "source", build)
    whole = path.read_bytes()
    damage(path)
    assert not intact(path)
    assert KernelCache(tmp_path).obtain(KEY, "source", build).read_bytes() == whole
    assert build.calls == 2


def test_an_interrupted_build_leaves_nothing(tmp_path: Path, build: Builder) -> None:
    def interrupted(source: Path, target: Path) -> None:
        target.write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        KernelCache(tmp_path).obtain(KEY, "source", interrupted)
    path = KernelCache(tmp_path).obtain(KEY, "source", build)
    assert build.calls == 1
    assert sorted(p.suffix for p in path.parent.iterdir()) == [".lock", ".so"]


@pytest.mark.parametrize("place", ["", "kernels"])
def test_a_directory_that_others_can_write_is_refused(
    place: str, tmp_path: Path, build: Builder
) -> None:
    KernelCache(tmp_path).obtain(KEY, "source", build)
    (tmp_path / place).chmod(0o777)
    with pytest.raises(CacheError, match=r"can be written by others.*chmod go-w"):
        KernelCache(tmp_path).obtain(KEY, "source", build)


def test_a_directory_of_somebody_else_is_refused(
    tmp_path: Path, build: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(CacheError, match="belongs to user"):
        KernelCache(tmp_path).obtain(KEY, "source", build)


def test_a_place_that_cannot_be_written_is_replaced(tmp_path: Path, build: Builder) -> None:
    (tmp_path / "file").write_text("not a directory")
    kept = KernelCache(tmp_path / "file")
    with pytest.warns(PyFuserWarning, match="set PYFUSER_CACHE_DIR"):
        path = kept.obtain(KEY, "source", build)
    assert intact(path)
    assert tmp_path not in path.parents
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one warning is enough
        assert kept.obtain(KEY, "source", build) == path
    assert build.calls == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="needs a user who is not root")
def test_a_read_only_directory_is_still_read(tmp_path: Path, build: Builder) -> None:
    path = KernelCache(tmp_path).obtain(KEY, "source", build)
    path.parent.chmod(0o500)
    try:
        assert KernelCache(tmp_path).obtain(KEY, "source", build) == path
        with pytest.warns(PyFuserWarning, match="cannot be written"):
            KernelCache(tmp_path).obtain(key_of("other", ""), "other", build)
    finally:
        path.parent.chmod(0o700)


def test_a_lock_that_is_never_released_does_not_stop_us(
    tmp_path: Path, build: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from filelock import FileLock

    tune(monkeypatch, lock_seconds=0.05)
    kept = KernelCache(tmp_path)
    with FileLock(kept.directory / f"{KEY[:3]}.lock"):
        assert intact(kept.obtain(KEY, "source", build))


_PROCESS = """
import sys, time
from pathlib import Path
from pyfuser.engine.cache import KernelCache

def build(source, target):
    time.sleep(0.2)
    target.write_bytes(b"compiled")
    print("built")

KernelCache(Path(sys.argv[1])).obtain(sys.argv[2], "source", build)
"""


def test_processes_that_start_together_build_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _PROCESS, str(tmp_path), KEY]
    root = Path(__file__).parents[2]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) for _ in range(4)
    ]
    output = [process.communicate()[0] for process in processes]
    assert all(process.returncode == 0 for process in processes)
    assert "".join(output) == "built\n"
