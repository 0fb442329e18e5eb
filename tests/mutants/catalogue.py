"""All mutants."""

from __future__ import annotations

from tests.mutants import (
    of_accesses,
    of_boxes,
    of_coarsening,
    of_columns,
    of_deferral,
    of_dependences,
    of_edges,
    of_graphs,
    of_guards,
    of_memory,
    of_orders,
    of_passes,
    of_plans,
    of_recompute,
    of_rows,
    of_segments,
    of_sums,
    of_sweeps,
    of_vectors,
)
from tests.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *of_dependences.MUTANTS,
    *of_accesses.MUTANTS,
    *of_plans.MUTANTS,
    *of_recompute.MUTANTS,
    *of_coarsening.MUTANTS,
    *of_boxes.MUTANTS,
    *of_edges.MUTANTS,
    *of_graphs.MUTANTS,
    *of_guards.MUTANTS,
    *of_passes.MUTANTS,
    *of_rows.MUTANTS,
    *of_segments.MUTANTS,
    *of_sums.MUTANTS,
    *of_sweeps.MUTANTS,
    *of_orders.MUTANTS,
    *of_columns.MUTANTS,
    *of_vectors.MUTANTS,
    *of_memory.MUTANTS,
    *of_deferral.MUTANTS,
)
