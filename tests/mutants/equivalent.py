"""Mutants that change nothing that may be wrong: read, judged and declared, with the reason.

A record names a mutant as `python -m tests.mutants` prints it; it does not depend on other lines.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.mutants.generated import Mutant

#: From the reason to the names.
EQUIVALENT: dict[str, tuple[str, ...]] = {}
_NAMES = frozenset(name for names in EQUIVALENT.values() for name in names)


def declared(mutant: Mutant) -> bool:
    """Whether a mutant is declared equivalent."""
    return mutant.name in _NAMES


def unused(mutants: Iterable[Mutant]) -> list[str]:
    """Records of which no mutant is left, which may go."""
    return sorted(_NAMES - {mutant.name for mutant in mutants})
