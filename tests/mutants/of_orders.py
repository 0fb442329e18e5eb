"""Wrong loop orders (where an order shows, blocks that miss iterations), wrong cuts of groups."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TEST = "codegen/test_order.py::"
_SHOWS = _TEST + "test_no_interchange_where_the_order_shows"
_ONCE = _TEST + "test_every_iteration_runs_once"

MUTANTS = (
    Mutant(
        "sums are interchanged",
        "codegen/passes/loop_order.py",
        'if kernel.pattern != "for" or',
        "if",
        _TEST + "test_sums_keep_their_order_of_additions",
    ),
    Mutant(
        "atomics are interchanged",
        "ir/effects.py",
        "                atomics = True\n",
        "                pass\n",
        _SHOWS,
    ),
    Mutant(
        "what atomics return does not show their order",
        "ir/effects.py",
        "atomics or fetches, waits)",
        "atomics, waits)",
        _SHOWS,
    ),
    Mutant(
        "lines may be printed in another order",
        "ir/effects.py",
        "return self.output or self.atomics or self.waits",
        "return self.atomics or self.waits",
        _SHOWS,
    ),
    Mutant(
        "loops that wait may be interchanged",
        "ir/effects.py",
        "e.view in changed:",
        "False:",
        _SHOWS,
    ),
    Mutant(
        "serial spaces have no order",
        "codegen/passes/loop_order.py",
        " or kernel.space.execution in SERIAL_SPACES",
        "",
        _TEST + "test_no_interchange_in_serial_spaces",
    ),
    Mutant(
        "blocks leave out what does not fill one",
        "codegen/cpu/context.py",
        "} < {last} ? {at} + {size} : {last}",
        "} <= {last} ? {at} + {size} : {at}",
        _ONCE,
    ),
    Mutant(
        "the innermost loop runs over all, in every block",
        "codegen/cpu/context.py",
        "return lines, depth, inner[order.axes[-1]]",
        "return lines, depth, bounds[order.axes[-1]]",
        _ONCE,
    ),
    Mutant(
        "a transpose of a large array sweeps",
        "plan/tile_size.py",
        "if array > model.machine.cache:",
        "if False:",
        "plan/test_sweeps.py::test_one_transpose_of_a_large_array_keeps_a_sweep_away",
    ),
    Mutant(
        "the parts of a cut group change places",
        "runtime/autotune.py",
        "zip([0, *cuts], ends, strict=True)]",
        "zip([0, *cuts], ends, strict=True)][::-1]",
        "test_arbitration.py::test_what_follows_a_cut_group_moves_on",
    ),
    Mutant(
        "sweeps stay where they were when a group before them is cut",
        "runtime/autotune.py",
        "return (place + more * (place > at) for place in places)",
        "return iter(places)",
        "test_arbitration.py::test_what_follows_a_cut_group_moves_on",
    ),
    Mutant(
        "calls with atomics are tried",
        "runtime/autotune.py",
        "and not any(effects(trace.calls[n].workunit).atomics for n in launch.calls)",
        "",
        "test_arbitration.py::test_no_trial_where_an_order_shows",
    ),
    Mutant(
        "a remembered cut may lie anywhere",
        "runtime/autotune.py",
        "and APART <= place < calls",
        "",
        "test_arbitration.py::test_files_are_read_back",
    ),
    Mutant(
        "choices hold for all sizes",
        "runtime/autotune.py",
        "\\0{sizes}\\0",
        "\\0\\0",
        "test_arbitration.py::test_a_size_of_another_power_is_another_choice",
    ),
)
