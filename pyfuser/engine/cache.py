"""Compiled kernels on disk, by content: one file a kernel, named by what went into it.

A file is the shared library followed by a 32-byte SHA-256 of it (a loader ignores what follows an
ELF file's sections). It is written under another name and renamed, so that no reader sees half of
it; the digest is checked before anything is loaded, and what fails is compiled again.

Code from the cache runs with the user's rights. So nothing is loaded that another user (root
apart) could have written: a directory of somebody else, one that others can write, and one that
lies where others could replace it are refused with a CacheError, as OpenSSH does with keys; a file
that is a link, or not ours, is no entry. A place that merely cannot be written (read-only, disk
full) is replaced by a temporary directory of this process, with a warning.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pyfuser.engine.ahead import Piece
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import CacheError, CompilerError, PyFuserWarning, warn
from pyfuser.support.private_files import read_own
from pyfuser.support.tracebacks import users_line
from pyfuser.tuning.thresholds import NOW

FRESH = 3600.0  # seconds for which a file is not dated anew
STALE = 3600.0  # seconds after which a build that left its directory behind is surely dead
_LOCK_POLL = 0.02
_PROBE = 1 << 20  # bytes: if these can be written, the disk was not what failed the compiler
DIGEST_SIZE = 32
COMPILER = "compiler.txt"
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
        self._substitute: Path | None = None
        self._mutex = threading.Lock()
        self._swept = False
        self._noted = False

    @property
    def directory(self) -> Path:
        """Where kernels are kept; it is made if it is not there, and checked each time.

        Raises CacheError if somebody else could have put code there.
        """
        if self._substitute is None:
            try:
                return private_directory(self._wish)
            except OSError as error:
                return self._fallback(error)
        return self._substitute

    def _fallback(self, error: OSError) -> Path:
        """A private directory for this process, once the real one turns out not to be writable."""
        with self._mutex:  # kernels are compiled by several threads
            if self._substitute is None:
                warn(
                    f"kernels are not kept: {self._wish} cannot be written ({error.strerror}); "
                    "set PYFUSER_CACHE_DIR to a directory that can",
                    *users_line(),
                    PyFuserWarning,
                )
                try:
                    path = Path(tempfile.mkdtemp(prefix="pyfuser-")).resolve()
                    for parent in path.parents:
                        check_ancestor(parent)
                except OSError as second:
                    raise _nowhere("the temporary directory", second) from error
                # A forked child shares the directory: only its maker removes it.
                atexit.register(_remove, path, os.getpid())
                self._substitute = path
            return self._substitute

    def kept(self, key: str) -> Path | None:
        """The shared library of a key, if there is one. Raises CacheError."""
        path = self.directory / f"{key}.so"
        if not intact(path):
            return None
        COUNTERS.cache_hits += 1
        date(path)
        return path

    def compiler(self) -> str | None:
        """The identity of the compiler that filled the cache folder, if it is known."""
        text = read_own(self._wish.parent / COMPILER)
        return None if text is None else text.decode(errors="replace")

    def filled_by(self, identity: str) -> None:
        """Note the compiler, for machines that have none: see `native`."""
        if not self._noted:
            self._noted = True
            with contextlib.suppress(OSError, CacheError):
                write_own(self._wish.parent / COMPILER, identity)

    def obtain(
        self, key: str, source: str, build: Build, cancelled: threading.Event | None = None
    ) -> Path:
        """The shared library of a key: the kept one if it is intact, else built from `source`.

        cancelled: set by another thread to stop waiting for a process that builds the same.
        Raises what `build` raises, and CacheError.
        """
        path = self.kept(key)
        if path is not None:
            return path
        directory = self.directory
        path = directory / f"{key}.so"
        try:
            try:
                return self._build(path, source, build, cancelled)
            except OSError as error:
                if directory == self._substitute:
                    raise
                directory = self._fallback(error)
            return self._build(directory / f"{key}.so", source, build, cancelled)
        except OSError as error:
            raise _nowhere(str(directory), error) from error

    def begun(self, key: str, source: str, command: Callable[[Path, Path], list[str]]) -> Piece:
        """What makes the library of a key while the program goes on; raises OSError.

        command: of the file with the source, and of the library.
        """
        directory = self.directory
        self._sweep(directory)
        work = Path(tempfile.mkdtemp(prefix="build-", dir=directory))
        text, made = work / "kernel.cpp", work / "kernel.so"
        text.write_text(source, encoding="utf-8")

        def take() -> None:
            seal(made)
            os.replace(made, directory / f"{key}.so")
            COUNTERS.compilations += 1

        return Piece(work, command(text, made), take)

    def _build(
        self, path: Path, source: str, build: Build, cancelled: threading.Event | None
    ) -> Path:
        with _locked(path.with_name(f"{path.name[:3]}.lock"), cancelled):
            if intact(path):  # another process was faster
                COUNTERS.cache_hits += 1
                return path
            self._sweep(path.parent)
            with tempfile.TemporaryDirectory(
                prefix="build-", dir=path.parent, ignore_cleanup_errors=True
            ) as work:
                text, made = Path(work, "kernel.cpp"), Path(work, "kernel.so")
                text.write_text(source, encoding="utf-8")
                try:
                    build(text, made)
                except CompilerError:
                    Path(work, "probe").write_bytes(bytes(_PROBE))  # OSError if the disk is full
                    raise
                seal(made)
                os.replace(made, path)
        return path

    def _sweep(self, directory: Path) -> None:
        """Once a process, remove what builds left behind that were killed."""
        if not self._swept:
            self._swept = True
            for path in directory.glob("build-*"):
                with contextlib.suppress(OSError):
                    if time.time() - path.stat().st_mtime > STALE:
                        shutil.rmtree(path, ignore_errors=True)


def _nowhere(directory: str, error: OSError) -> CacheError:
    return CacheError(
        f"kernels cannot be compiled: {directory} cannot be written ({error.strerror}); set "
        "PYFUSER_CACHE_DIR or TMPDIR to a directory with space"
    )


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path, cancelled: threading.Event | None) -> Iterator[None]:
    """Excludes other processes from compiling kernels that share this lock file.

    The lock of a process that dies goes with it. If a holder hangs or the file system has no
    locks, both compile: the rename keeps that correct.
    """
    # Ours alone: the lock file of another user could be held for ever.
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        _acquire(file, cancelled)
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)  # a forked child may hold the file open
        os.close(file)


def _acquire(file: int, cancelled: threading.Event | None) -> None:
    deadline = time.monotonic() + NOW.running.lock_seconds
    while time.monotonic() < deadline:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES, errno.EINTR):
                return  # ENOSYS, ENOLCK, ...: no locks here
        if cancelled is not None and cancelled.is_set():
            raise CompilerError("compilation was interrupted")
        time.sleep(_LOCK_POLL)


def date(path: Path) -> None:
    """Note that a file was used, unless it was a short time ago; see `engine.store.trim`."""
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > FRESH:
            os.utime(path)


def seal(path: Path) -> None:
    """Append the digest of a file to it, and let nobody else write it."""
    with open(path, "r+b") as file:
        digest = hashlib.sha256(file.read()).digest()
        file.write(digest)
        os.fchmod(file.fileno(), _PRIVATE)


def intact(path: Path) -> bool:
    """Whether a file of ours that only we can write ends in the digest of what comes before."""
    data = read_own(path) or b""
    body, digest = data[:-DIGEST_SIZE], data[-DIGEST_SIZE:]
    return bool(body) and hashlib.sha256(body).digest() == digest


def private_directory(wish: Path) -> Path:
    """The directory free of links, made if it is not there, which only we can write or replace.

    Raises CacheError if that is not so, OSError if it cannot be made.
    """
    for path in reversed((wish, *wish.parents)):
        if not path.exists():
            path.mkdir(_PRIVATE, exist_ok=True)  # whatever the umask is
    real = wish.resolve(strict=True)
    check_private(real)
    check_private(wish.parent.resolve(strict=True))
    for path in real.parents:
        check_ancestor(path)
    return real


def write_own(path: Path, content: str | bytes) -> None:
    """Write a file, in a private directory, so that no reader sees half of it.

    Raises CacheError or OSError.
    """
    directory = private_directory(path.parent)
    with tempfile.NamedTemporaryFile(dir=directory, delete=False) as file:
        try:
            file.write(content.encode() if isinstance(content, str) else content)
            file.close()
            os.replace(file.name, directory / path.name)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(file.name)
            raise


def check_private(directory: Path) -> None:
    """Raise CacheError unless the directory is ours and only we can write it."""
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


def check_ancestor(directory: Path) -> None:
    """Raise CacheError if others could rename what lies in a directory above the cache.

    In a directory with the sticky bit (/tmp) they cannot. Whoever owns "/" is trusted: root, or
    what stands for it in a user namespace.
    """
    status = directory.stat()
    if status.st_uid not in (os.getuid(), 0, os.stat("/").st_uid):
        who = f"belongs to user {status.st_uid}"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX:
        who = "can be written by others"
    else:
        return
    raise CacheError(
        f"the kernel cache lies in {directory}, which {who}: they could put another directory with "
        "other code in its place; set PYFUSER_CACHE_DIR to a place that is yours alone"
    )
