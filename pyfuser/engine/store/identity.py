"""What else an entry of the store depends on than its key: this package, Python and the machine."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from pyfuser.support.caches import once
from pyfuser.support.settings import SETTINGS
from pyfuser.tuning.host import cpu_identity
from pyfuser.tuning.target import host
from pyfuser.tuning.thresholds import DEFAULT
from pyfuser.version import VERSION

FORMAT = 1
"""Of entries; another number means that another PyFuser wrote them."""

_OF_THE_PROCESS = frozenset({"directory", "cache_size", "on", "compiler"})
"""Settings that change no code. (The compiler is a part of the keys of what it compiled.)"""


@once
def environment() -> str:
    """A digest of it."""
    settings = [
        f"{field.name}={_shown(getattr(SETTINGS, field.name))}"
        for field in fields(SETTINGS)
        if field.name not in _OF_THE_PROCESS
    ]
    target = host()
    parts = [
        f"{FORMAT} {VERSION} {sys.version}",
        *_stamps(Path(__file__).parents[2]),
        *settings,
        f"{target.vector_bytes} {target.intel} {_shown(target.vector_maths)}",
        repr(DEFAULT),
        cpu_identity(),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _shown(value: object) -> str:
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)


def _stamps(folder: Path) -> Iterator[str]:
    """What changes when a file of the package does: to read all of them would take 20 ms."""
    pending = [str(folder)]
    while pending:
        for entry in sorted(os.scandir(pending.pop()), key=lambda entry: entry.name):
            if entry.name.endswith((".py", ".h")):
                status = entry.stat()
                yield f"{entry.name} {status.st_size} {status.st_mtime_ns}"
            elif entry.is_dir() and not entry.name.startswith("__"):
                pending.append(entry.path)
