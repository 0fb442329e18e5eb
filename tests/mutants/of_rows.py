"""Wrong row contraction and strips: rows that hold something older, iterations that mix."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_ROWS = "transform/test_rows.py::"
_OLDER = _ROWS + "test_a_row_of_which_an_element_may_be_older_stays"

MUTANTS = (
    Mutant(
        "a loop that may end early stores its whole range",
        "transform/rows.py",
        "if not exact or any(map(leaves_loop, loop.body)):",
        "if not exact:",
        _OLDER,
    ),
    Mutant(
        "what one branch stores is stored",
        "transform/rows.py",
        "sides[0].elements & sides[1].elements, sides[0].here & sides[1].here",
        "sides[0].elements | sides[1].elements, sides[0].here | sides[1].here",
        _OLDER,
    ),
    Mutant(
        "an update of a row reads nothing",
        "transform/rows.py",
        "                if isinstance(stmt, Update):\n                    self._check_load(",
        "                if False:\n                    self._check_load(",
        _OLDER,
    ),
    Mutant(
        "loops start at their least start",
        "transform/rows.py",
        "if start[0] != start[1] or stop[0] != stop[1] or",
        "if",
        _OLDER,
    ),
    Mutant(
        "every element between is stored",
        "transform/rows.py",
        "return range(start[0], stop[0], step[0])",
        "return range(start[0], stop[0])",
        _OLDER,
    ),
    Mutant(
        "rows do not overlap",
        "transform/rows.py",
        "kernel.dead - {sym for pair in kernel.overlaps for sym in pair}",
        "kernel.dead",
        f"{_ROWS}test_a_view_that_may_overlap_another_stays",
    ),
    Mutant(
        "an unknown element is the least one",
        "transform/rows.py",
        "{low} if low == high else stored.elements",
        "{low}",
        _OLDER,
    ),
    Mutant(
        "locals keep their values",
        "transform/rows.py",
        "isinstance(e, Read) and e.sym in self.facts.changing for e in expressions(index)",
        "False for e in ()",
        _OLDER,
    ),
    Mutant(
        "all iterations make the same trips",
        "codegen/passes/unroll_and_jam.py",
        "return e.sym in fixed",
        "return True",
        "codegen/test_strips.py::test_other_loops_stay_one_iteration_after_the_other",
    ),
    Mutant(
        "local arrays start at zero",
        "codegen/cpu/strips.py",
        "if all(map(is_zero, stmt.values)):",
        "if True:",
        "codegen/test_strips.py::test_iterations_compute_what_they_did",
    ),
    Mutant(
        "what a segment before computed does not change",
        "codegen/passes/unroll_and_jam.py",
        "(*segment.arriving, *segment.leaving)",
        "segment.leaving",
        "codegen/test_strips_of_segments.py::test_segments_have_strips",
    ),
    Mutant(
        "what a later segment changes is computed again",
        "codegen/passes/unroll_and_jam.py",
        "(*segment.arriving, *segment.leaving)",
        "segment.arriving",
        "codegen/test_strips_of_segments.py::test_segments_have_strips",
    ),
    Mutant(
        "what a strip computes stays in it",
        "codegen/passes/unroll_and_jam.py",
        "return expanded(parts, waiting, again, segment.arriving, segment.leaving)",
        "return expanded(parts, waiting, again, segment.arriving)",
        "codegen/test_strips_of_segments.py::test_segments_have_strips",
    ),
    Mutant(
        "a strip has the block's first elements",
        "codegen/cpu/strips.py",
        'return "step" if lane is None else f"strip + {lane}"',
        'return "step" if lane is None else f"{lane}"',
        "codegen/test_strips_of_segments.py::test_segments_have_strips",
    ),
    Mutant(
        "fewer running sums where terms are little work",
        "codegen/cpu/runtime/lanes.h",
        "static constexpr int64_t count = 4 * 64 / sizeof(T);",
        "static constexpr int64_t count = 2 * 64 / sizeof(T);",
        "codegen/test_rows.py::test_sums_are_right_and_do_not_depend_on_fusion",
    ),
    Mutant(
        "a loop is joined to one of another kind that adds",
        "transform/inner_loops.py",
        "if (a.changed or b.changed) and _kinds(first.body) != _kinds(body):",
        "if False:",
        "codegen/test_rows.py::test_a_sum_beside_a_loop_of_another_kind",
    ),
    Mutant(
        "what lanes leave to their next trip is kept",
        "codegen/cpu/strips.py",
        "if s in assigned(part.body)))",
        "if s in part.leaving))",
        "codegen/test_strips.py::test_long_trips_fill_lanes",
    ),
    Mutant(
        "each lane has its own values",
        "codegen/cpu/strips.py",
        '*self._arrivals(part, "lane", depth + 2)',
        '*self._arrivals(part, "0", depth + 2)',
        "codegen/test_strips.py::test_long_trips_fill_lanes",
    ),
)
