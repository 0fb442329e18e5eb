"""Wrong coarsening: rows that are not the own ones, iterations that need each other."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_LAW = "plan/test_coarsening.py::"
_IR = "ir/test_coarse.py::"
_BOUNDS = "analysis/test_bounds.py::"

MUTANTS = (
    Mutant(
        "spaces that end together fit",
        "plan/rewrites/coarsen.py",
        "if (begin[:1], end[:1]) != (space.begin, space.end):",
        "if end[:1] != space.end:",
        f"{_LAW}test_spaces_that_fit",
    ),
    Mutant(
        "any smaller space fits",
        "plan/rewrites/coarsen.py",
        " or end[0] % space.end[0]:",
        ":",
        f"{_LAW}test_spaces_that_fit",
    ),
    Mutant(
        "sums may be coarsened",
        "plan/rewrites/coarsen.py",
        'call.pattern == "for"\n        and',
        "",
        f"{_LAW}test_what_is_one_iteration_shows_in_sums_and_scans",
    ),
    Mutant(
        "iterations may wait",
        "plan/rewrites/coarsen.py",
        "        and not effects(workunit).waits\n",
        "",
        f"{_LAW}test_iterations_that_wait_for_each_other_stay_apart",
    ),
    Mutant(
        "an iteration starts with the scalars that the last one left",
        "plan/rewrites/coarsen.py",
        " and _begins(workunit)",
        "",
        f"{_LAW}test_a_scalar_that_iterations_change_is_theirs_alone",
    ),
    Mutant(
        "every quotient is the row",
        "plan/rewrites/coarse_body.py",
        "self.value(expr.right) != self.factor or ",
        "",
        f"{_IR}test_split",
    ),
    Mutant(
        "a quotient of anything is the row",
        "plan/rewrites/coarse_body.py",
        " or not self.is_index(expr.left)",
        "",
        f"{_IR}test_split",
    ),
    Mutant(
        "an index that changes is split",
        "plan/rewrites/coarse_body.py",
        "if index not in changing:\n        body = map_body(",
        "if True:\n        body = map_body(",
        f"{_IR}test_an_index_that_changes_is_no_row",
    ),
    Mutant(
        "what changes twice has the bounds of its first values",
        "analysis/bounds.py",
        "        if turn >= ROUNDS:\n",
        "        if turn >= ROUNDS:\n            break\n",
        f"{_BOUNDS}test_a_counter_has_no_bounds",
    ),
    Mutant(
        "a place between bounds is certain",
        "analysis/interpret.py",
        "exact = self.exact and certain",
        "exact = self.exact",
        f"{_BOUNDS}test_a_place_between_bounds_is_vague_and_never_certain",
    ),
    Mutant(
        "a place between bounds is a loop's variable",
        "analysis/interpret.py",
        "                self.unboxed.add(number)\n                self.bounded",
        "                self.bounded",
        f"{_BOUNDS}test_a_place_between_bounds_is_vague_and_never_certain",
    ),
    Mutant(
        "a selected element may be any",
        "transform/selects.py",
        "values[sym] = then[sym] | orelse[sym]",
        "values[sym] = then[sym]",
        "transform/test_selects.py::test_each_place_that_it_may_be",
    ),
)
