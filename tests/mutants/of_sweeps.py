"""Wrong sweeps: iterations that overtake those they depend on, windows too small, other sums.

What breaks the emitted C++ is killed by compiled tests, which need a C++ compiler.
"""

from __future__ import annotations

from tests.mutants.mutant import Mutant

DISTANCES = (
    Mutant(
        "one distance of several counts",
        "analysis/distances.py",
        "return min(low for low, _ in found), max(high for _, high in found)",
        "return found[-1]",
        "analysis/test_distances.py::test_the_hull_of_all_accesses_counts",
    ),
    Mutant(
        "anti dependences have no distance",
        "analysis/distances.py",
        "if conflict_kind(a, region, b, other) is None:",
        'if conflict_kind(a, region, b, other) is None or a.mode.value == "read":',
        "plan/test_sweeps.py::test_anti_dependences_alone",
    ),
    Mutant(
        "elements meet where they begin only",
        "analysis/distances.py",
        "1 - second_region.dtype.size, first_region.dtype.size - 1",
        "0, 0",
        "analysis/test_distances.py::test_other_types_of_one_buffer",
    ),
    Mutant(
        "slices begin where their buffers do",
        "analysis/distances.py",
        "yield _Equation(a, b.shifted(s), 0, 0)",
        "yield _Equation(a, b, 0, 0)",
        "analysis/test_distances.py::test_slices_of_one_buffer",
    ),
    Mutant(
        "inner variables do not move the distance",
        "analysis/distances.py",
        "greatest = equation.greatest + span[1] - other_span[0]",
        "greatest = equation.greatest + span[1] - other_span[1]",
        "analysis/test_distances.py::test_bounds_hold_every_distance_of_affine_accesses",
    ),
    Mutant(
        "one subscript moves on as fast as another",
        "analysis/distances.py",
        "more = sorted(excess * end for end in ends)",
        "more = [0, 0]",
        "analysis/test_distances.py::test_one_axis",
    ),
    Mutant(
        "distances of mirrored subscripts are not turned",
        "analysis/distances.py",
        "factor, least, greatest = -factor, -greatest, -least",
        "factor = -factor",
        "analysis/test_distances.py::test_one_axis",
    ),
)

PLANS = (
    Mutant(
        "a loop lags a step less than it must",
        "plan/wavefront.py",
        "lag = max(lag, stage.lag - bounds[0])",
        "lag = max(lag, stage.lag - bounds[0] - 1)",
        "plan/test_sweeps.py::test_schedules_keep_every_dependence",
    ),
    Mutant(
        "lags do not add up",
        "plan/wavefront.py",
        "lag = max(lag, stage.lag - bounds[0])",
        "lag = max(lag, -bounds[0])",
        "plan/test_sweeps.py::test_schedules_keep_every_dependence",
    ),
    Mutant(
        "a loop starts where its share does",
        "plan/wavefront.py",
        "ahead = max(ahead, stage.ahead + bounds[1])",
        "ahead = max(ahead, stage.ahead)",
        "plan/test_sweeps.py::test_schedules_keep_every_dependence",
    ),
    Mutant(
        "only the first loop of a sweep is looked at",
        "plan/wavefront.py",
        "for number, stage in enumerate(self.stages):",
        "for number, stage in enumerate(self.stages[:1]):",
        "plan/test_sweeps.py::test_lags_add_up_along_a_chain",
    ),
    Mutant(
        "a loop may take a result of its sweep",
        "plan/wavefront.py",
        "isinstance(argument, FutureShape) and argument.producer in inside",
        "isinstance(argument, FutureShape) and argument.producer in group",
        "plan/test_sweeps.py::test_a_result_that_a_later_loop_takes_forbids",
    ),
    Mutant(
        "everything sweeps",
        "plan/wavefront.py",
        "        (mergeable(call) or is_scan(call))\n        and call.space.size > 0",
        "        call.space.size > 0",
        "plan/test_sweeps.py::test_effects_forbid",
    ),
    Mutant(
        "two scans share tiles",
        "plan/wavefront.py",
        'if sum(call.pattern == "scan" for call in calls) > 1:',
        'if sum(call.pattern == "scan" for call in calls) > 2:',
        "plan/test_scans.py::test_one_scan_and_no_sums",
    ),
    Mutant(
        "a loop lags behind a scan",
        "plan/wavefront.py",
        "if any(stage.lag or stage.ahead for stage in stages):",
        "if any(stage.lag and stage.ahead for stage in stages):",
        "plan/test_scans.py::test_no_iteration_may_need_another_one",
    ),
    Mutant(
        "loops over other spaces share the tiles of a scan",
        "plan/wavefront.py",
        "if any(call.space != calls[0].space for call in calls):",
        "if any(call.space.begin != calls[0].space.begin for call in calls):",
        "plan/test_scans.py::test_one_space",
    ),
    Mutant(
        "a scan may write in both passes",
        "plan/legality.py",
        "if writes(stmt.orelse) or (not guarded and writes(stmt.then)):",
        "if writes(stmt.orelse) and (not guarded and writes(stmt.then)):",
        "plan/test_scans.py::test_a_scan_writes_in_its_last_pass_only",
    ),
    Mutant(
        "a tile's last pass never waits for other first passes",
        "codegen/cpu/scan.py",
        "if not view.restrict or not set.intersection(*axes):",
        "if not view.restrict:",
        "codegen/test_chain.py::test_else_all_first_passes_come_before",
    ),
    Mutant(
        "execution spaces share a sweep",
        "plan/wavefront.py",
        "space.execution != trace.calls[self.calls[0]].space.execution",
        "space.execution is None",
        "plan/test_sweeps.py::test_execution_spaces_keep_apart",
    ),
)

WINDOWS = (
    Mutant(
        "a window forgets that its readers lag",
        "plan/storage_folding.py",
        "oldest = min(oldest, reach[0] - use.stage.lag)",
        "oldest = min(oldest, reach[0])",
        "plan/test_rolling.py::test_windows_hold_what_is_read",
    ),
    Mutant(
        "around a cut a window ends with what is made",
        "plan/storage_folding.py",
        "until = max(until, reach[1] + use.stage.ahead)",
        "until = max(until, 0)",
        "plan/test_rolling.py::test_windows_hold_what_is_read",
    ),
    Mutant(
        "zeros are read from a window",
        "plan/storage_folding.py",
        "if low < first or high > last:",
        "if low < first and high > last:",
        "plan/test_rolling.py::test_zeros_that_are_read_do_not_roll",
    ),
    Mutant(
        "a window takes what is changed before it is written",
        "plan/storage_folding.py",
        "if use.order <= writer.order:",
        "if False:",
        "plan/test_rolling.py::test_what_is_written_outside_does_not_roll",
    ),
    Mutant(
        "around cuts a window has what was written first",
        "codegen/cpu/runtime/wavefront.h",
        "int64_t old = before + w.view.oldest",
        "int64_t old = before + w.view.made",
        "codegen/test_sweep.py::test_windows_of_what_is_updated_roll_on",
    ),
    Mutant(
        "a window takes what is written sometimes",
        "plan/storage_folding.py",
        "access.mode is not Mode.WRITE or not (access.exact and relation.everywhere)",
        "access.mode is not Mode.WRITE",
        "plan/test_rolling.py::test_what_is_not_written_once_everywhere_does_not_roll",
    ),
    Mutant(
        "other launches see a window's view",
        "plan/storage_folding.py",
        "cluster not in seen_outside",
        "cluster is not seen_outside",
        "plan/test_rolling.py::test_what_other_calls_see_does_not_roll",
    ),
)

LAUNCHES = (
    Mutant(
        "an early loop reads memory that a later one would overwrite",
        "runtime/launch.py",
        "    if not any(a.buffer is region.buffer for a in before if type(a) is Region):",
        "    if True:",
        "soundness/test_sweeps.py::test_fresh_memory_is_zero",
    ),
    Mutant(
        "the first loop's space is the sweep's",
        "codegen/cpu/runtime/wavefront.h",
        "if (s->end > high) high = s->end;",
        "",
        "codegen/test_sweep.py::test_windows_roll_on",
    ),
    Mutant(
        "a thread does not wait for its neighbour at the end of its share",
        "codegen/cpu/runtime/wavefront.h",
        "const int64_t until = right ? last - s.lag : s.end;",
        "const int64_t until = right ? last : s.end;",
        "codegen/test_sweep.py::test_equal_loops_are_emitted_once",
    ),
    Mutant(
        "a thread does not wait for its neighbour at the beginning of its share",
        "codegen/cpu/runtime/wavefront.h",
        "const int64_t from = left ? first + s.ahead : s.begin;",
        "const int64_t from = left ? first : s.begin;",
        "codegen/test_sweep.py::test_equal_loops_are_emitted_once",
    ),
    Mutant(
        "what runs between the shares may meet",
        "codegen/cpu/runtime/wavefront.h",
        "(high - low) / (2 * (lag + ahead) + 1)",
        "(high - low)",
        "codegen/test_sweep.py::test_lags_may_be_larger_than_needed",
    ),
    Mutant(
        "nothing runs between the shares",
        "codegen/cpu/wavefront/loops.py",
        'f"{guard}schedule.between(part + 1, parts, {tail});",',
        "",
        "codegen/test_sweep.py::test_equal_loops_are_emitted_once",
    ),
    Mutant(
        "a window does not keep what the last wave made",
        "codegen/cpu/runtime/wavefront.h",
        "        if (again)\n",
        "        if (0)\n",
        "codegen/test_sweep.py::test_windows_roll_on",
    ),
    Mutant(
        "a window moves on by one wave after several",
        "codegen/cpu/runtime/wavefront.h",
        "memory + (oldest - start) * view.step",
        "memory + wave * view.step",
        "codegen/test_sweep.py::test_windows_roll_on",
    ),
    Mutant(
        "a window's memory is one wave too small",
        "codegen/cpu/runtime/wavefront.h",
        "before + wave + view.made <= start + steps(wave)",
        "before + view.made <= start + steps(wave)",
        "codegen/test_sweep.py::test_windows_roll_on",
    ),
    Mutant(
        "a window is not saved around the beginning of a share",
        "codegen/cpu/runtime/wavefront.h",
        "if (left) w.save(",
        "if (0) w.save(",
        "codegen/test_sweep.py::test_windows_roll_on",
    ),
)

SUMS = (
    Mutant(
        "two threads sum one tile",
        "codegen/cpu/wavefront/loops.py",
        "step - stages[{n}].lag, step + stages[{n}].ahead",
        "step, step",
        "codegen/test_sweep.py::test_lags_may_be_larger_than_needed",
    ),
    Mutant(
        "each thread's terms begin their tile",
        "codegen/cpu/wavefront/reduce.py",
        'terms = "".join(f", {k}{s.times(f\'({before})\')}" for',
        'terms = "".join(f", {k}" for',
        "codegen/test_sweep.py::test_lags_may_be_larger_than_needed",
    ),
    Mutant(
        "a tile begins anew with every wave",
        "codegen/cpu/wavefront/reduce.py",
        'f"    if ({begins}) pf_sums = pf_running();",',
        '"    pf_sums = pf_running();",',
        "codegen/test_sweep.py::test_lags_may_be_larger_than_needed",
    ),
    Mutant(
        "terms of a shared tile are added in another order",
        "codegen/cpu/runtime/partial_sums.h",
        "running.term, from + at * width,",
        "running.term, from + (count - at - some) * width,",
        "codegen/test_sweep.py::test_long_lines",
    ),
    Mutant(
        "one thread adds up what a scan sums in one go",
        "codegen/cpu/wavefront/scan.py",
        "if cpu_scan.is_exact(scan.context):",
        "if True:",
        "codegen/test_chain.py::test_maps_around_a_scan",
    ),
    Mutant(
        "maps run in both passes of the scan they joined",
        "transform/fuse.py",
        "self._add_to_last_pass(flag, body)",
        "self.body.extend(body)",
        "plan/test_tails.py::test_the_map_runs_in_the_last_pass_alone",
    ),
    Mutant(
        "maps join a scan that comes after them",
        "plan/fuse_into_scan.py",
        "and before[0] < calls[0]",
        "",
        "plan/test_tails.py::test_what_comes_before_the_scan_in_the_program_stays_apart",
    ),
    Mutant(
        "maps join a scan that changes its flag",
        "plan/fuse_into_scan.py",
        "and accumulator.last_pass not in changed",
        "",
        "plan/test_tails.py::test_a_scan_that_forgets_which_pass_it_is_stays_alone",
    ),
)

MUTANTS = (*DISTANCES, *PLANS, *WINDOWS, *LAUNCHES, *SUMS)
