"""Strips of iterations whose loops walk along columns: trips that differ, orders that show."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TEST = "codegen/test_columns.py::"
_OTHERS = _TEST + "test_other_loops_stay_one_iteration_after_the_other"
_BITS = _TEST + "test_loops_along_columns_keep_their_bits"
_BRANCHES = "codegen/test_column_branches.py::"
_FEW = _BRANCHES + "test_branches_that_few_or_many_take"
_SUMS = _TEST + "test_sums_keep_the_order_of_their_additions"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "all iterations make the trips of one",
        "codegen/passes/strip_mine.py",
        "return self._is_known(loop.start, around) and self._is_known(loop.stop, around)",
        "return True",
        _OTHERS,
    ),
    Mutant(
        "trips of a strip end early together",
        "codegen/passes/strip_mine.py",
        " or any(map(leaves_loop, loop.body))",
        "",
        _OTHERS,
    ),
    Mutant(
        "atomics of columns take any order",
        "codegen/passes/strip_mine.py",
        " or effects(workunit).observable",
        "",
        _TEST + "test_atomics_keep_their_order",
    ),
    Mutant(
        "columns of a serial space are interchanged",
        "codegen/cpu/columns.py",
        "if not context.independent:",
        "if False:",
        _TEST + "test_iterations_of_a_serial_space_keep_their_order",
    ),
    Mutant(
        "arrays that an iteration keeps begin with zeros",
        "codegen/passes/scalar_expansion.py",
        " or not all(map(is_zero, stmt.values))",
        "",
        _OTHERS,
    ),
    Mutant(
        "arrays of any size are kept",
        "codegen/passes/scalar_expansion.py",
        "if size > MOST_KEPT:",
        "if False:",
        _TEST + "test_what_is_kept_has_its_limit",
    ),
    Mutant(
        "arrays keep what the strip before left in them",
        "codegen/cpu/columns.py",
        "{head} {name}[cell] =",
        "{head} if (cell < 0) {name}[cell] =",
        _TEST + "test_several_strips_and_the_rest",
    ),
    Mutant(
        "sums of columns are added in order",
        "codegen/passes/strip_mine.py",
        "if free and (around or under or free != set(self._free_sums(loop))):",
        "if free and (around or under):",
        _SUMS,
    ),
    Mutant(
        "what a trip changes is lost",
        "codegen/passes/scalar_expansion.py",
        "leaving = sorted(writes & kept, key=lambda sym: sym.uid)",
        "leaving = sorted(own & kept, key=lambda sym: sym.uid)",
        _BITS,
    ),
    Mutant(
        "columns have half as many running sums",
        "codegen/cpu/columns.py",
        "{_count(total) - 1}",
        "{_count(total) // 2 - 1}",
        _SUMS,
    ),
    Mutant(
        "iterations run branches that they do not take",
        "codegen/cpu/columns.py",
        "if ({names[guard]}) {{",
        "if (true) {{",
        _FEW,
    ),
    Mutant(
        "both sides of an If are one",
        "codegen/passes/strip_mine.py",
        'run.append(Declare(other, nodes.Unary("!", nodes.Read(taken), DType.BOOL)))',
        "run.append(Declare(other, nodes.Read(taken)))",
        _FEW,
    ),
    Mutant(
        "a branch that few iterations take is left out",
        "codegen/cpu/columns.py",
        "}} else if (taking) {{",
        "}} else if (taking < 0) {{",
        _FEW,
    ),
    Mutant(
        "conditions are the same for all iterations",
        "codegen/passes/strip_mine.py",
        "if self._is_known(stmt.condition, around):",
        "if True:",
        _FEW,
    ),
    Mutant(
        "sums under conditions run along strips",
        "codegen/passes/strip_mine.py",
        "return not sums and any(",
        "return any(",
        _BRANCHES + "test_sums_beside_branches",
    ),
    Mutant(
        "locals that are both alive share an array",
        "codegen/passes/scalar_expansion.py",
        "return last[before] < first[sym]",
        "return True",
        _BRANCHES + "test_locals_share_an_array_if_one_is_dead",
    ),
    Mutant(
        "loops walk through a column in each trip of another",
        "codegen/passes/strip_mine.py",
        "if around or not self._tears_inside(inner):",
        "if True:",
        _BRANCHES + "test_what_stays_as_it_is_costs_others_nothing",
    ),
    Mutant(
        "rows are walked along again after columns",
        "codegen/passes/strip_mine.py",
        "again |= rows & seen",
        "again |= set()",
        _OTHERS,
    ),
)
