"""Wrong loop orders: where an order shows, and blocks that miss iterations or run them twice."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TEST = "codegen/test_order.py::"
_SHOWS = _TEST + "test_no_interchange_where_the_order_shows"
_ONCE = _TEST + "test_every_iteration_runs_once"

MUTANTS = (
    Mutant(
        "sums are interchanged",
        "codegen/order.py",
        'if rank == 1 or kernel.pattern != "for" or not _any_order(kernel):',
        "if rank == 1:",
        _TEST + "test_sums_keep_their_order_of_additions",
    ),
    Mutant(
        "atomics are interchanged",
        "codegen/order.py",
        "return stmt.atomic\n",
        "return False\n",
        _SHOWS,
    ),
    Mutant(
        "what atomics return does not show their order",
        "codegen/order.py",
        "isinstance(e, nodes.AtomicFetch) or (",
        "(",
        _SHOWS,
    ),
    Mutant(
        "lines may be printed in another order",
        "codegen/order.py",
        "and not is_pure(e.name))",
        "and e.name == 'fence')",
        _SHOWS,
    ),
    Mutant(
        "loops that wait may be interchanged",
        "codegen/order.py",
        "return any(isinstance(e, nodes.Load) and e.view in written for e in seen)",
        "return False",
        _SHOWS,
    ),
    Mutant(
        "serial spaces have no order",
        "codegen/order.py",
        "or kernel.space.execution in SERIAL_SPACES",
        "",
        _TEST + "test_no_interchange_in_serial_spaces",
    ),
    Mutant(
        "blocks leave out what does not fill one",
        "codegen/cpp_context.py",
        'least = f"{at} + {BLOCK} < {last} ? {at} + {BLOCK} : {last}"',
        'least = f"{at} + {BLOCK} <= {last} ? {at} + {BLOCK} : {at}"',
        _ONCE,
    ),
    Mutant(
        "the innermost loop runs over all, in every block",
        "codegen/cpp_context.py",
        "return lines, depth, inner[order.axes[-1]]",
        "return lines, depth, bounds[order.axes[-1]]",
        _ONCE,
    ),
    Mutant(
        "a transpose of a large array sweeps",
        "plan/window.py",
        "if array > model.machine.cache:",
        "if False:",
        "plan/test_sweeps.py::test_one_transpose_of_a_large_array_keeps_a_sweep_away",
    ),
)
