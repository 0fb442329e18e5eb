"""Wrong edges: parts in rows that touch each other, iterations that forget or repeat themselves."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_PLAN = "plan/test_edges.py::"
_CODE = "codegen/test_spread.py::"

MUTANTS = (
    Mutant(
        "parts of a call never touch each other",
        "plan/rewrites/embed_boundary.py",
        "return all(call_distance(a, b) is None for a, b in combinations(calls, 2))",
        "return True",
        f"{_PLAN}test_parts_that_touch_each_other_stay_together",
    ),
    Mutant(
        "what a part uses is left out",
        "plan/rewrites/embed_boundary.py",
        "if not written((stmt,)) & stored and _named((stmt,)) & used",
        "if False",
        f"{_PLAN}test_parts_that_touch_each_other_elsewhere",
    ),
    Mutant(
        "sums have a place",
        "plan/rewrites/embed_boundary.py",
        '        call.pattern == "for"\n        and mergeable(call)',
        "        mergeable(call)",
        f"{_PLAN}test_calls_whose_iterations_are_not_free_have_no_place",
    ),
    Mutant(
        "what changes its arguments has a place",
        "plan/rewrites/embed_boundary.py",
        "        and not changed\n",
        "",
        f"{_PLAN}test_calls_whose_iterations_are_not_free_have_no_place",
    ),
    Mutant(
        "iterations that wait for others follow them",
        "plan/rewrites/embed_boundary.py",
        "if len(places) < 2 or not coarsen.may_coarsen(call):",
        "if len(places) < 2:",
        f"{_PLAN}test_iterations_that_may_wait_stay_side_by_side",
    ),
    Mutant(
        "rows far from each other have one place",
        "plan/rewrites/embed_boundary.py",
        "if not rows or rows[-1] - rows[0] > REACH:",
        "if not rows:",
        f"{_PLAN}test_periodic_copies_end_sweeps_and_are_told",
    ),
    Mutant(
        "edges of slices begin where their buffers do",
        "plan/rewrites/embed_boundary.py",
        "row.number - shifts[row.axis] - self.constant",
        "row.number - self.constant",
        f"{_PLAN}test_slices_of_one_buffer_are_aligned",
    ),
    Mutant(
        "an iteration forgets its number",
        "plan/rewrites/embedded_body.py",
        "if old in assigned(body) or Read(old) in all_expressions(body):",
        "if False:",
        f"{_PLAN}test_an_iteration_that_is_read_keeps_its_value",
    ),
    Mutant(
        "every part runs in the first row",
        "plan/rewrites/embedded_body.py",
        'Compare("==", Read(row), Read(number))',
        'Compare("==", Read(row), Read(rows[0]))',
        f"{_PLAN}test_edges_in_one_workunit_run_at_their_own_rows",
    ),
    Mutant(
        "parts share their locals",
        "plan/rewrites/embedded_body.py",
        "part = substitute_syms(part, own)",
        "pass",
        f"{_PLAN}test_edges_in_one_workunit_run_at_their_own_rows",
    ),
    Mutant(
        "what else is done is left out",
        "codegen/passes/peel_points.py",
        "if not isinstance(stmt, If) or stmt.orelse or",
        "if not isinstance(stmt, If) or",
        f"{_CODE}test_what_more_iterations_may_do_is_in_all_of_them",
    ),
    Mutant(
        "a part runs in the iteration after its own, too",
        "codegen/passes/peel_points.py",
        "{AT_ROWS}(next, next + 1{tail});",
        "{AT_ROWS}(next, end{tail});",
        f"{_CODE}test_each_iteration_runs_once",
    ),
)
