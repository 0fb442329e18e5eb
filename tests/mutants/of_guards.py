"""Wrong guards: iterations outside of a call's own box, sums over others, slabs run twice."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_LAW = "plan/test_hulls.py::"
_IR = "ir/test_guarded.py::"
_JOIN = "transform/test_guards.py::"
_SPLIT = "codegen/test_split.py::"

_INSIDE = "codegen/test_interior.py::"

MUTANTS = (
    Mutant(
        "a block across rows is inside",
        "codegen/passes/split_conditions.py",
        'yield Compare("==", _wide(steps), Binary("-", Read(last), Read(first)))',
        "pass",
        f"{_INSIDE}test_inside_the_body_does_what_it_did",
    ),
    Mutant(
        "a block is inside if its beginning is",
        "codegen/passes/split_conditions.py",
        "for end in dict.fromkeys((low, high)):",
        "for end in (low,):",
        f"{_INSIDE}test_inside_the_body_does_what_it_did",
    ),
    Mutant(
        "a block is inside if its end is",
        "codegen/passes/split_conditions.py",
        "for end in dict.fromkeys((low, high)):",
        "for end in (high,):",
        f"{_INSIDE}test_inside_the_body_does_what_it_did",
    ),
    Mutant(
        "indices may wrap inside",
        "codegen/passes/split_conditions.py",
        'yield Compare("<=", Read(last), Const(FARTHEST, DType.INT64))',
        "pass",
        f"{_INSIDE}test_where_32_bits_may_wrap_nothing_is_inside",
    ),
    Mutant(
        "a scalar that the body changes is the same in all iterations",
        "codegen/passes/split_conditions.py",
        "self._given = {p.sym for p in workunit.params if not p.rank} - changing",
        "self._given = {p.sym for p in workunit.params if not p.rank} | changing",
        f"{_INSIDE}test_what_is_not_split",
    ),
    Mutant(
        "quotients by negative numbers rise",
        "codegen/passes/split_conditions.py",
        'yield Compare(">", core.right, Const(0, core.dtype))',
        'yield Compare("!=", core.right, Const(0, core.dtype))',
        f"{_INSIDE}test_a_quotient_that_falls_may_meet_what_it_is_compared_with",
    ),
    Mutant(
        "to find out what is inside divides by zero",
        "codegen/passes/split_conditions.py",
        'yield Compare(">", core.right, Const(0, core.dtype))',
        "pass",
        f"{_INSIDE}test_a_divisor_of_zero_is_not_tried",
    ),
    Mutant(
        "the beginning of a box is not guarded",
        "plan/rewrites/enlarge_domain.py",
        "if own.begin[axis] > hull.begin[axis]:",
        "if False:",
        f"{_LAW}test_an_inner_range_in_the_loop_of_the_whole_one",
    ),
    Mutant(
        "the end of a box is not guarded",
        "plan/rewrites/enlarge_domain.py",
        "if own.end[axis] < hull.end[axis]:",
        "if False:",
        f"{_LAW}test_an_inner_range_in_the_loop_of_the_whole_one",
    ),
    Mutant(
        "sums are guarded",
        "plan/rewrites/enlarge_domain.py",
        'call.pattern != "for" or ',
        "",
        f"{_LAW}test_what_may_be_guarded",
    ),
    Mutant(
        "the range of a sum is widened with others",
        "plan/rewrites/enlarge_domain.py",
        " or any(s in fixed and s != hull for s in spaces)",
        "",
        f"{_LAW}test_sums_keep_their_iterations",
    ),
    Mutant(
        "a sum's range is widened for other sizes",
        "plan/rewrites/enlarge_domain.py",
        "if not all(may_guard(trace.calls[call]) for call in hulls):",
        "if False:",
        f"{_LAW}test_a_plan_for_other_sizes_leaves_sums_their_range",
    ),
    Mutant(
        "execution spaces share a hull",
        "plan/rewrites/enlarge_domain.py",
        "self.hull.execution != other.hull.execution or ",
        "",
        f"{_LAW}test_execution_spaces_stay_apart",
    ),
    Mutant(
        "a changed scalar is guarded",
        "plan/rewrites/enlarge_domain.py",
        "return not changed and not any(",
        "return not any(",
        f"{_LAW}test_loops_and_changed_scalars_stay_unguarded",
    ),
    Mutant(
        "bounds need not fit the type of the index",
        "plan/rewrites/enlarge_domain.py",
        "low <= begin and end <= high",
        "True",
        f"{_LAW}test_bounds_are_numbers_of_the_type_of_the_index",
    ),
    Mutant(
        "an upper bound belongs to the box",
        "ir/guarded.py",
        'Compare("<" if bound.upper',
        'Compare("<=" if bound.upper',
        f"{_IR}test_iterations_of_the_box_alone",
    ),
    Mutant(
        "what is otherwise done is forgotten",
        "ir/guarded.py",
        "if isinstance(stmt, If) and not stmt.orelse:",
        "if isinstance(stmt, If):",
        f"{_IR}test_what_is_a_guard",
    ),
    Mutant(
        "any comparison is a guard",
        "ir/guarded.py",
        ' or condition.op not in ("<", ">="):',
        ":",
        f"{_IR}test_what_is_a_guard",
    ),
    Mutant(
        "a bound may change",
        "ir/guarded.py",
        "integers - changing)",
        "integers)",
        f"{_IR}test_what_changes_is_no_bound",
    ),
    Mutant(
        "guards that differ are joined",
        "transform/guards.py",
        "and stmt.condition == last.condition",
        "",
        f"{_JOIN}test_others_stay_apart",
    ),
    Mutant(
        "the other branch is lost where guards are joined",
        "transform/guards.py",
        "and not (stmt.orelse or last.orelse)",
        "",
        f"{_JOIN}test_others_stay_apart",
    ),
    Mutant(
        "conditions on data are joined",
        "transform/guards.py",
        "            and bounds_of(stmt.condition, indices, scalars)\n",
        "",
        f"{_JOIN}test_others_stay_apart",
    ),
    Mutant(
        "serial iterations of several axes are split",
        "codegen/passes/split_guards.py",
        " or (spec.serial and spec.rank > 1)",
        "",
        f"{_SPLIT}test_serial_iterations_keep_their_order",
    ),
    Mutant(
        "the middle begins with the box",
        "codegen/passes/split_guards.py",
        "low = {name};",
        "low = low;",
        f"{_SPLIT}test_one_axis",
    ),
    Mutant(
        "the middle ends with the box",
        "codegen/passes/split_guards.py",
        "high = {name};",
        "high = high;",
        f"{_SPLIT}test_one_axis",
    ),
    Mutant(
        "what lies before the middle is left out",
        "codegen/passes/split_guards.py",
        "if (begin < low) pf_around",
        "if (false) pf_around",
        f"{_SPLIT}test_one_axis",
    ),
    Mutant(
        "the slab behind the middle is left out",
        "codegen/passes/split_guards.py",
        '"if (high < piece) {",',
        '"if (false) {",',
        f"{_SPLIT}test_two_axes",
    ),
)
