"""GPUs: graphs whose scalars change, copies of parts of Views, trials by the device's clock."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TEST = "gpu/test_graphs.py::"
_TRIALS = "gpu/test_arbitration.py::"
_COPIES = "gpu/test_copies.py::"

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
    Mutant(
        "a part of a View is read before the stream that writes it",
        "trace/images.py",
        "        values = np.empty(high - low, np.uint8)\n        self.use()",
        "        values = np.empty(high - low, np.uint8)",
        _COPIES + "test_streams",
    ),
    Mutant(
        "a part of a View is read where the host has newer values",
        "frontends/embedded/view_memory.py",
        "if image is not None and buffer.root is None and not writes:",
        "if image is not None and not writes:",
        _COPIES + "test_a_part_is_no_window_and_host_writes_are_kept",
    ),
    Mutant(
        "times of launches that have not run are read",
        "runtime/autotune_gpu.py",
        "if not all(taken.done for _, taken in self._measures):",
        "if False:",
        _TRIALS + "test_nobody_waits_for_the_device",
    ),
    Mutant(
        "teams are tried in several kernels",
        "runtime/autotune_gpu.py",
        "isinstance(stmt, For) and stmt.shared",
        "False",
        _TRIALS + "test_teams_are_not_tried",
    ),
)
