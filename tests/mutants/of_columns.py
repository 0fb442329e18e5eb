"""Strips of iterations whose loops walk along columns: trips that differ, orders that show."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TEST = "codegen/test_columns.py::"
_OTHERS = _TEST + "test_other_loops_stay_one_iteration_after_the_other"
_BITS = _TEST + "test_loops_along_columns_keep_their_bits"
_SUMS = _TEST + "test_sums_keep_the_order_of_their_additions"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "all iterations make the trips of one",
        "codegen/columns.py",
        "return all(_depends_on(self.resolved(e), known) for e in (loop.start, loop.stop))",
        "return True",
        _OTHERS,
    ),
    Mutant(
        "trips of a strip end early together",
        "codegen/columns.py",
        " or any(map(leaves_loop, loop.body))",
        "",
        _OTHERS,
    ),
    Mutant(
        "atomics of columns take any order",
        "codegen/columns.py",
        " or order_shows(workunit)",
        "",
        _TEST + "test_atomics_keep_their_order",
    ),
    Mutant(
        "columns of a serial space are interchanged",
        "codegen/cpp_columns.py",
        "if not context.independent:",
        "if False:",
        _TEST + "test_iterations_of_a_serial_space_keep_their_order",
    ),
    Mutant(
        "arrays that an iteration keeps begin with zeros",
        "codegen/columns.py",
        " or not all(map(is_zero, stmt.values))",
        "",
        _OTHERS,
    ),
    Mutant(
        "arrays of any size are kept",
        "codegen/columns.py",
        "return size <= MOST_KEPT",
        "return True",
        _TEST + "test_what_is_kept_has_its_limit",
    ),
    Mutant(
        "arrays keep what the strip before left in them",
        "codegen/cpp_columns.py",
        "{head} {name}[cell] =",
        "{head} if (cell < 0) {name}[cell] =",
        _TEST + "test_several_strips_and_the_rest",
    ),
    Mutant(
        "sums of columns are added in order",
        "codegen/columns.py",
        "if free and (around or free != set(self._free_sums(loop))):",
        "if free and around:",
        _SUMS,
    ),
    Mutant(
        "what a trip changes is lost",
        "codegen/columns.py",
        "leaving = sorted(writes & kept, key=lambda sym: sym.uid)",
        "leaving = sorted(own & kept, key=lambda sym: sym.uid)",
        _BITS,
    ),
    Mutant(
        "columns have half as many running sums",
        "codegen/cpp_columns.py",
        "{_count(total) - 1}",
        "{_count(total) // 2 - 1}",
        _SUMS,
    ),
)
