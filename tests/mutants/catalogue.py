"""All mutants."""

from __future__ import annotations

from tests.mutants import of_accesses, of_dependences, of_passes, of_plans, of_rows
from tests.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *of_dependences.MUTANTS,
    *of_accesses.MUTANTS,
    *of_plans.MUTANTS,
    *of_passes.MUTANTS,
    *of_rows.MUTANTS,
)
