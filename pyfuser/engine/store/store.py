"""Entries on disk, beside the compiled kernels: what an earlier process has worked out.

An entry is a file: the SHA-256 of what follows, a line end, and a table of `codec`. Its name is a
digest of its kind, its key and the `environment`, so an entry is never wrong, only missing. It is
written under another name and renamed. It comes from where kernels come from, by the same rules
(see `engine.cache`): a directory of ours that nobody else can write, and files that are ours. Yet
it is no pickle, so that a file that came there all the same (a folder of another machine, an old
backup) can make plans of its own, but calls nothing. What cannot be read is as good as missing, and
told to the logger `pyfuser.plan` in one line. Where nothing can be written nothing is kept.

An entry is dated when it is used; see `engine.store.trim` for what goes.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from pyfuser.engine.cache import date, private_directory, write_own
from pyfuser.engine.store.codec import Table, Unstorable
from pyfuser.engine.store.identity import environment
from pyfuser.engine.store.trim import trim
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import CacheError
from pyfuser.support.passes import left_out
from pyfuser.support.private_files import read_own
from pyfuser.support.progress import listening
from pyfuser.support.settings import SETTINGS
from pyfuser.tuning.host import known
from pyfuser.tuning.thresholds import DEFAULT, NOW

_DIGEST = 64


class Store:
    """A directory of entries."""

    def __init__(self, directory: Path) -> None:
        self._wish = directory
        self._checked: Path | None = None
        self.written = 0
        self.off = bool(SETTINGS.debug) or SETTINGS.engine != "native" or left_out("store")

    def entry(self, kind: str, *key: Any) -> Entry | None:
        """The place of an entry; None if there can be none with such a key."""
        if self.off or NOW.tuning is not DEFAULT:
            return None
        table = Table()
        try:
            for part in (environment(), repr(known().machine), kind, *key):
                table.number(part)
            return Entry(self, table, f"{kind}-{table.digest()[:40]}")
        except (Unstorable, RecursionError):
            return None

    def directory(self) -> Path | None:
        """Where entries are; None, from then on, if somebody else could write there."""
        if self._checked is None and not self.off:
            try:
                self._checked = private_directory(self._wish)
            except (OSError, CacheError) as error:
                self.off = True
                note(f"plans are not kept: {error}")
        return self._checked


class Entry:
    """One entry: that of a key, which is there or not."""

    def __init__(self, store: Store, table: Table, name: str) -> None:
        self._store = store
        self._table = table
        self._name = name

    def read(self) -> Any:
        """The value; None if it is missing or cannot be read."""
        directory = self._store.directory()
        data = directory and read_own(directory / self._name)
        if not directory or not data:
            return None
        digest, text = data[:_DIGEST], data[_DIGEST + 1 :]
        if hashlib.sha256(text).hexdigest().encode() != digest:
            note(f"{self._name} is ignored: not what was written")
            return None
        try:
            value = self._table.read(text)
        except Unstorable as error:
            note(f"{self._name} is ignored: {error}")
            return None
        COUNTERS.loaded += 1
        date(directory / self._name)
        return value

    def write(self, value: Any) -> None:
        """Keep a value, if that can be done."""
        store = self._store
        directory = store.directory()
        if directory is None or store.written >= NOW.running.written_plans:
            return
        if not store.written:
            trim(SETTINGS.cache_dir, SETTINGS.cache_size << 20)
        store.written += 1
        try:
            text = self._table.text(value).encode()
            digest = hashlib.sha256(text).hexdigest().encode()
            write_own(directory / self._name, digest + b"\n" + text)
        except (Unstorable, RecursionError) as error:
            note(f"{self._name} is not kept: {error}")
        except (OSError, CacheError) as error:
            store.written = NOW.running.written_plans  # read-only, or full
            note(f"plans are not kept: {error}")


def note(text: str) -> None:
    """One line for the logger of plans."""
    log = listening("plan")
    if log is not None:
        log.debug("%s", text)


STORE = Store(SETTINGS.cache_dir / "plans")
