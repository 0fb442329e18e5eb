"""Compiled kernels on disk, by content: one file a kernel, named by what went into it.

A file is the shared library followed by a 32-byte SHA-256 of it (a loader ignores what follows an
ELF file's sections). It is written under another name and renamed, so that no reader sees half of
it; the digest is checked before anything is loaded, and what fails is compiled again. Code from
the cache runs with the user's rights, so a directory that others can write is refused.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import stat
import tempfile
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from pyfuser.counters import COUNTERS
from pyfuser.errors import CacheError

LOCK_LIMIT = 330.0  # seconds to wait for another process that compiles the same kernel
_DIGEST_SIZE = 32
_PRIVATE = 0o700

Build = Callable[[Path, Path], None]
"""build(source file, target file) compiles."""


def key_of(source: str, identity: str) -> str:
    """The name of a kernel: a digest of its source and of all else that it depends on."""
    return hashlib.sha256(f"{identity}\0{source}".encode()).hexdigest()


class KernelCache:
    """A directory of compiled kernels; see the module's description."""

    def __init__(self, directory: Path) -> None:
        self._wish = directory / "kernels"
        self._directory: Path | None = None

    @property
    def directory(self) -> Path:
        """Where kernels are kept; it is made, and its owner checked, on first use.

        Raises CacheError if somebody else could have put code there.
        """
        if self._directory is None:
            try:
                self._wish.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
                check_private(self._wish.parent)
                check_private(self._wish)
                self._directory = self._wish
            except OSError as error:
                self._directory = self._fallback(error)
        return self._directory

    def _fallback(self, error: OSError) -> Path:
        """A private directory for this process, if the real one cannot be written."""
        warnings.warn(
            f"kernels are not kept: {self._wish} cannot be written ({error.strerror}); "
            "set PYFUSER_CACHE_DIR to a directory that can",
            RuntimeWarning,
            stacklevel=2,
        )
        path = Path(tempfile.mkdtemp(prefix="pyfuser-"))
        owner = os.getpid()
        # A forked child shares the directory: only its maker removes it.
        atexit.register(_remove, path, owner)
        return path

    def obtain(self, key: str, source: str, build: Build) -> Path:
        """The shared library of a key: the kept one if it is intact, else built from `source`."""
        path = self.directory / f"{key}.so"
        if intact(path):
            COUNTERS.cache_hits += 1
            return path
        try:
            return self._build(path, key, source, build)
        except OSError as error:
            if self._directory != self._wish:
                raise
            self._directory = self._fallback(error)
            return self._build(self._directory / f"{key}.so", key, source, build)

    def _build(self, path: Path, key: str, source: str, build: Build) -> Path:
        with self._lock(key):
            if intact(path):  # another process was faster
                COUNTERS.cache_hits += 1
                return path
            with tempfile.TemporaryDirectory(prefix="build-", dir=path.parent) as work:
                text, made = Path(work, "kernel.cpp"), Path(work, "kernel.so")
                text.write_text(source, encoding="utf-8")
                build(text, made)
                seal(made)
                os.replace(made, path)
        return path

    def _lock(self, key: str) -> AbstractContextManager[object]:
        """Excludes other processes from compiling kernels that share the key's first digits.

        If the holder hangs, both compile: the rename keeps that correct.
        """
        from filelock import FileLock, Timeout  # 50 ms to import: only when compiling

        lock = FileLock(self.directory / f"{key[:2]}.lock")
        try:
            lock.acquire(timeout=LOCK_LIMIT)
        except Timeout:
            return nullcontext()
        return _Held(lock.release)


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


class _Held(AbstractContextManager[object]):
    def __init__(self, release: Callable[[], None]) -> None:
        self._release = release

    def __exit__(self, *_: object) -> None:
        self._release()


def seal(path: Path) -> None:
    """Append the digest of a file to it."""
    with open(path, "r+b") as file:
        digest = hashlib.sha256(file.read()).digest()
        file.write(digest)


def intact(path: Path) -> bool:
    """Whether a file exists and ends in the digest of what comes before."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return False
    body, digest = data[:-_DIGEST_SIZE], data[-_DIGEST_SIZE:]
    return bool(body) and hashlib.sha256(body).digest() == digest


def check_private(directory: Path) -> None:
    """Raise CacheError unless the directory is ours and only we can write it."""
    if not hasattr(os, "getuid"):
        return
    status = directory.stat()
    if status.st_uid != os.getuid():
        raise CacheError(
            f"the kernel cache {directory} belongs to user {status.st_uid}, who could change the "
            "code that would be run; set PYFUSER_CACHE_DIR to a directory of your own"
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise CacheError(
            f"the kernel cache {directory} can be written by others, who could change the code "
            f"that would be run; chmod go-w {directory} or set PYFUSER_CACHE_DIR"
        )
