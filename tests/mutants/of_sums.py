"""In which order GPUs add up (see `analysis/sums.py`)."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TEST = "gpu/test_sums.py::"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "what shares a sum's loop says in which order a GPU adds up",
        "codegen/gpu/axis.py",
        "    if known:",
        "    if False:",
        _TEST + "test_a_sum_beside_a_map_of_another_layout",
    ),
    Mutant(
        "sums along different axes share a loop",
        "plan/legality.py",
        "(accumulators[0].flat, added_along(call))",
        "(accumulators[0].flat, None)",
        _TEST + "test_sums_along_different_axes_share_no_loop",
    ),
    Mutant(
        "a flattened sum is added up along the axis of its views",
        "analysis/sums.py",
        "if any(accumulator.flat for accumulator in workunit.accumulators):",
        "if False:",
        "gpu/test_boxes.py::test_sums_have_the_bits_of_one_axis",
    ),
    Mutant(
        "teams of blocks of different sizes share a loop",
        "plan/legality.py",
        "return call.workunit.threads if call.space.execution in GPU_SPACES else 0",
        "return 0",
        "gpu/test_frontend_teams.py::test_blocks_as_large_as_teams",
    ),
    Mutant(
        "several terms a trip are added by vectors",
        "codegen/c/gcc_inorder_reductions.py",
        "return trip.most > _FEW",
        "return False",
        "codegen/test_in_order.py::test_several_terms_a_trip",
    ),
    Mutant(
        "elements that all trips add to are no sums",
        "codegen/c/gcc_inorder_reductions.py",
        "if cell is not None:\n                self.sums[cell] = 0",
        "if False:\n                self.sums[cell] = 0",
        "codegen/test_in_order.py::test_a_serial_loop",
    ),
)
