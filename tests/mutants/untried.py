"""Mutants that are not tried: those that change nothing, and those that nobody has judged yet.

equivalent.txt has the first kind, read, judged and declared, below the reason. backlog.txt has the
second: no test killed them in the time that learning had, or they were never tried. Each is to be
killed by a test, or declared equivalent; `--backlog` tries them. Both name a mutant as
`python -m tests.mutants` prints it; a name does not depend on other lines of the product.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

EQUIVALENT = Path(__file__).parent / "equivalent.txt"
BACKLOG = Path(__file__).parent / "backlog.txt"


def declared() -> frozenset[str]:
    """The names of the mutants that are declared equivalent."""
    lines = EQUIVALENT.read_text(encoding="utf-8").splitlines()
    return frozenset(line.strip() for line in lines if line.startswith("    "))


def backlog() -> frozenset[str]:
    """The names of the mutants that are not judged yet."""
    return frozenset(BACKLOG.read_text(encoding="utf-8").splitlines())


def postpone(names: Iterable[str]) -> None:
    """Write the backlog."""
    BACKLOG.write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")


def unused(names: Collection[str]) -> list[str]:
    """Of the records those of which no mutant is left: they may go."""
    return sorted((declared() | backlog()).difference(names))
