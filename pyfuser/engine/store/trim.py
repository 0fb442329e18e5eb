"""What goes when the cache folder has grown too large: what was not used for longest.

Compiled kernels and the entries of the store are looked at together, by the time of their last
change, which whoever uses them renews (once an hour). Files that a process has loaded stay valid
when their names are removed. Two processes may trim at once: each removes the same ones.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

KINDS = ("kernels", "plans")
"""The folders of a cache folder that have files which can be made again."""

LEFT = 0.75
"""Of the size that may not be exceeded, what stays."""


class File(NamedTuple):
    """A file that can be made again."""

    used: float
    size: int
    path: str


def files(folder: Path, kind: str) -> Iterator[File]:
    """All of one kind."""
    with contextlib.suppress(OSError), os.scandir(folder / kind) as found:
        for entry in found:
            with contextlib.suppress(OSError):
                if kind == "plans" or entry.name.endswith(".so"):
                    status = entry.stat(follow_symlinks=False)
                    yield File(status.st_mtime, status.st_size, entry.path)


def trim(folder: Path, most: int) -> int:
    """Remove files while there are more than so many bytes; how many files went."""
    found = [each for kind in KINDS for each in files(folder, kind)]
    total = sum(each.size for each in found)
    if total <= most:
        return 0
    gone = 0
    for each in sorted(found):
        if total <= LEFT * most:
            break
        with contextlib.suppress(OSError):
            os.unlink(each.path)
            total -= each.size
            gone += 1
    return gone
