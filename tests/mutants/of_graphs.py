"""Graphs of launches whose scalars change (see `engine/gpu/graphs.py`)."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TEST = "gpu/test_graphs.py::"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "a graph is replayed although another scalar changed",
        "engine/gpu/graphs.py",
        "other = (bits ^ self.bits) & ~self.mask",
        "other = (bits ^ self.bits) & (-1 if not self.mask else 0)",
        _TEST + "test_a_scalar_that_begins_to_change_is_no_replay_of_the_old_one",
    ),
    Mutant(
        "scalars are set once",
        "engine/gpu/scalars.py",
        "if words == self._known:",
        "if self._known:",
        _TEST + "test_a_loop_whose_scalars_change_is_replayed",
    ),
    Mutant(
        "two streams read one block of scalars",
        "engine/gpu/graphs.py",
        "key = first.device.number, first.handle, kernels, bits & fixed",
        "key = first.device.number, kernels, fixed",
        _TEST + "test_two_streams_have_their_own_scalars",
    ),
)
