"""The run time of emitted code: C++ headers, of which a unit carries the text of those it needs.

Each is a file that compiles by itself: what it needs, it includes. Nothing is found by searching
emitted text: the printers say which headers they use (`Expressions.features`). A unit includes no
file of ours, so its text is all that a compiled kernel depends on, and it parses only what it uses.

What differs between targets, and what is a number of `tuning`, a header calls PF_NAME; the reader
of the header says what that is (`words`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyfuser.ir.canonical import all_syms
from pyfuser.ir.nodes import Workunit
from pyfuser.ir.visit import all_expressions
from pyfuser.support.caches import cached
from pyfuser.support.records import dataclass

COMMON = Path(__file__).parent / "runtime"
"""What more than one target of the C family uses."""

_ONCE = "#pragma once\n"
_INCLUDE = re.compile(r'^#include (?:"(\w+)\.h"|<([\w.]+)>)\n', re.MULTILINE)
_WORD = re.compile(r"\b(PF_[A-Z_]+)\b( ?)")


@dataclass(frozen=True, slots=True)
class Header:
    """A header: the names of those it includes, the system's that it includes, and the rest."""

    needs: tuple[str, ...]
    system: tuple[str, ...]
    text: str


@cached(256)
def header(name: str, folders: tuple[Path, ...]) -> Header:
    """The header of a name, from the first folder that has it."""
    path = next(path for folder in folders if (path := folder / f"{name}.h").exists())
    text = path.read_text(encoding="utf-8").removeprefix(_ONCE)
    found = [match.groups() for match in _INCLUDE.finditer(text)]
    return Header(
        tuple(own for own, _ in found if own),
        tuple(system for _, system in found if system),
        _INCLUDE.sub("", text).lstrip("\n"),
    )


def assembled(
    names: Iterable[str], folders: tuple[Path, ...], words: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """The system's headers and the texts that a unit needs, each after those it builds on.

    names: of headers, in the order wanted. words: what stands for PF_NAME; for "", nothing.
    """
    system: set[str] = set()
    texts: dict[str, str] = {}

    def add(name: str) -> None:
        if name in texts:
            return
        found = header(name, folders)
        for need in found.needs:
            add(need)
        system.update(found.system)
        texts[name] = _WORD.sub(lambda match: _replaced(match, words), found.text)

    for name in names:
        add(name)
    return sorted(system), [text for text in texts.values() if text]


def _replaced(match: re.Match[str], words: Mapping[str, str]) -> str:
    word, space = match.groups()
    value = words.get(word)
    return match.group() if value is None else f"{value}{space}" if value else ""


def has_complex(workunit: Workunit) -> bool:
    """Whether the code of a workunit names a complex type."""
    return any(sym.dtype.is_complex for sym in all_syms(workunit)) or any(
        e.dtype.is_complex for e in all_expressions(workunit.body)
    )
