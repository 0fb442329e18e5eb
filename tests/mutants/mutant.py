"""One way to break the legality of fusion: a substitution that fits exactly once."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """In `pyfuser/<file>`, the text `old` becomes `new`; `test` (below tests/) notices, fast."""

    name: str
    file: str
    old: str
    new: str
    test: str

    def applied(self, text: str) -> str:
        """The text of the file with the substitution; ValueError unless it fits exactly once."""
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"{self.name!r} fits {found} times into pyfuser/{self.file}")
        return text.replace(self.old, self.new)
