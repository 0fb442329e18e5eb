"""The memory hierarchy as Linux tells it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_CPUS = Path("/sys/devices/system/cpu")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Level(NamedTuple):
    """A level of cache: `total` bytes in the machine, and the `share` of each thread that may run.

    Threads of one core, or cores of one cluster, share a cache.
    """

    total: int
    share: int


def caches(root: Path = _CPUS) -> dict[int, Level]:
    """The data caches by level; those that the system does not tell of are missing.

    root: the directory of the processors.
    """
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {0}
    processor = min(allowed)
    number = sum(1 for path in root.glob("cpu[0-9]*") if path.name[3:].isdigit())
    found = {}
    for index in root.glob(f"cpu{processor}/cache/index*"):
        try:
            if _text(index / "type") == "Instruction":
                continue
            size = _bytes(_text(index / "size"))
            sharing = _members(_text(index / "shared_cpu_list"))
            level = int(_text(index / "level"))
        except (OSError, ValueError):
            continue
        if size > 0 and sharing:
            total = size * max(1, number // len(sharing))
            found[level] = Level(total, size // max(1, len(sharing & allowed)))
    return found


def memory_bytes() -> int:
    """The machine's memory; 4 GiB if the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 1 << 32


def _text(path: Path) -> str:
    return path.read_text(encoding="ascii").strip()


def _bytes(text: str) -> int:
    """Of "1024K"."""
    return int(text.rstrip("KMG")) * _UNITS.get(text[-1:], 1)


def _members(text: str) -> set[int]:
    """Of "0-3,8"."""
    members: set[int] = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        members |= set(range(int(low), int(high or low) + 1))
    return members
