"""Rewritten modules on disk, by content, as Python keeps the bytecode of those that it compiles.

Code from there runs with the user's rights: the law of `engine.cache` holds for it, too. What
cannot be read or written is made again each time. `sys.dont_write_bytecode` is obeyed.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import marshal
import os
import sys
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from pyfuser.engine.cache import DIGEST_SIZE, private_directory, write_own
from pyfuser.support.caches import once
from pyfuser.support.errors import CacheError
from pyfuser.support.private_files import read_own
from pyfuser.support.settings import SETTINGS


class Kept(NamedTuple):
    """What a module's text compiles to, plainly and rewritten.

    functions: name and first line of those whose statements were rewritten, and whether they only
    return what they find.
    """

    plain: CodeType
    code: CodeType
    functions: dict[tuple[str, int], bool]


def key_of(source: bytes | str, file: str) -> str:
    """A digest of all that a rewritten module depends on, and of its file's name."""
    text = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    parts = (_identity(), file.encode("utf-8", "surrogateescape"), text)
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


@once
def _identity() -> bytes:
    """What rewrites, and for which Python."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    try:
        texts = [source.read_bytes() for source in sources] or [os.urandom(32)]
    except OSError:  # PyFuser is installed without its sources: nothing is kept beyond this process
        return os.urandom(32)
    python = f"{sys.implementation.cache_tag} {sys.flags.optimize}".encode()
    return b"\0".join([python, importlib.util.MAGIC_NUMBER, *texts])


@once
def _directory() -> Path | None:
    """Where modules are kept, if that is a place that nobody else can write."""
    try:
        return private_directory(SETTINGS.cache_dir / "modules")
    except (OSError, CacheError):
        return None


def load(key: str) -> Kept | None:
    """The module that was kept under a key."""
    folder = _directory()
    data = None if folder is None else read_own(folder / key)
    if data is None or hashlib.sha256(data[DIGEST_SIZE:]).digest() != data[:DIGEST_SIZE]:
        return None
    return Kept(*marshal.loads(data[DIGEST_SIZE:]))


def save(key: str, module: Kept) -> None:
    """Keep a module, unless that cannot be or is not wanted."""
    folder = _directory()
    if folder is not None and not sys.dont_write_bytecode:
        data = marshal.dumps(tuple(module))
        with contextlib.suppress(OSError, CacheError):
            write_own(folder / key, hashlib.sha256(data).digest() + data)
