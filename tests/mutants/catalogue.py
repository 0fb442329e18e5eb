"""All mutants."""

from __future__ import annotations

from tests.mutants import of_accesses, of_dependences, of_passes, of_plans
from tests.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *of_dependences.MUTANTS,
    *of_accesses.MUTANTS,
    *of_plans.MUTANTS,
    *of_passes.MUTANTS,
)
