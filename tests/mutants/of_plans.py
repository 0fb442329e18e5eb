"""Wrong plans: calls that must not share a loop, or not run in that order."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "a call moves to where the groups have no order",
        "plan/refine_partition.py",
        "if _ordered(changed, predecessors):",
        "if True:",
        "plan/test_partition.py::test_moves_are_legal_and_save",
    ),
    Mutant(
        "a call moves to calls that it may share no loop with",
        "plan/refine_partition.py",
        "if any(not compatible[call] >> other & 1 for other in group):",
        "if False:",
        "plan/test_partition.py::test_moves_are_legal_and_save",
    ),
    Mutant(
        "calls of different spaces share a loop",
        "plan/legality.py",
        "space = call.space, _threads(call)",
        "space = len(call.space.begin), _threads(call)",
        "plan/test_partition.py::test_reasons",
    ),
    Mutant(
        "partitions of other dependences are taken over",
        "plan/plan_cache.py",
        "if found is not None and found[0] == graph:",
        "if found is not None:",
        "plan/test_alike.py::test_other_dependences_are_planned_anew",
    ),
    Mutant(
        "a Future links nothing",
        "plan/legality.py",
        'links[producer, position] = "scalar"',
        "pass",
        "plan/test_partition.py::test_a_result_that_a_later_call_takes",
    ),
    Mutant(
        "paths do not separate",
        "plan/legality.py",
        "            separate |= apart[source]\n            if forbids >> source & 1:",
        "            if forbids >> source & 1:",
        "plan/test_mutants_legality.py::test_a_path_with_a_bad_link_separates_its_ends",
    ),
    Mutant(
        "what a separated call follows is not separated",
        "plan/legality.py",
        "separate |= 1 << source | before[source]",
        "separate |= 1 << source",
        "plan/test_mutants_legality.py::test_a_path_with_a_bad_link_separates_its_ends",
    ),
    Mutant(
        "scans share loops",
        "plan/legality.py",
        'if call.pattern not in ("for", "reduce") or',
        'if call.pattern not in ("for", "reduce", "scan") or',
        "plan/test_partition.py::test_patterns",
    ),
    Mutant(
        "all accumulators are sums",
        "plan/legality.py",
        "return not workunit.accumulators or _is_sum(workunit)",
        "return True",
        "plan/test_partition.py::test_patterns",
    ),
    Mutant(
        "printing is no effect",
        "plan/legality.py",
        'if call.pattern not in ("for", "reduce") or effects(workunit).output:',
        'if call.pattern not in ("for", "reduce"):',
        "plan/test_partition.py::test_effects_keep_their_order_and_stay_alone",
    ),
    Mutant(
        "groups run in the order of their first calls",
        "plan/partition.py",
        "    groups = sorted(groups)\n",
        "    return sorted(groups)\n",
        "plan/test_partition.py::test_exact_search_finds_the_best",
    ),
    Mutant(
        "the order forgets a dependence",
        "plan/partition.py",
        "if before != number and number not in followers[before]:",
        "if before != number and number not in followers[before] and before < number:",
        "plan/test_partition.py::test_exact_search_finds_the_best",
    ),
    Mutant(
        "the exact search may run a call before its predecessors",
        "plan/partition.py",
        "if done >> call & 1 or self._before[call] & ~(done | group):",
        "if done >> call & 1:",
        "plan/test_mutants_legality.py::test_the_exact_search_closes_no_cycle",
    ),
    Mutant(
        "the greedy search may close a cycle",
        "plan/partition.py",
        "closed |= groups[number].after",
        "closed |= 0",
        "plan/test_partition.py::test_greedy_is_legal",
    ),
    Mutant(
        "a plan holds for all sizes of a family",
        "plan/size_generic.py",
        "return all(map(le, sizes, most)) and all(map(ge, sizes, least))",
        "return all(map(ge, sizes, least))",
        "plan/test_family.py::test_a_range_that_grows_into_what_is_read",
    ),
    Mutant(
        "equal sizes of a family may come to differ",
        "plan/size_generic.py",
        "spaces.setdefault(call.space, len(spaces)),",
        "spaces.setdefault(call.space, len(spaces)) * 0,",
        "plan/test_family.py::test_which_spaces_are_equal_belongs_to_the_structure",
    ),
    Mutant(
        "what asks for extents is of a family",
        "plan/size_generic.py",
        "return any(isinstance(e, Extent) for e in all_expressions(workunit.body))",
        "return False",
        "plan/test_family.py::test_what_asks_for_extents_is_analysed_for_each",
    ),
    Mutant(
        "a plan of loops at a distance holds for all sizes of a family",
        "plan/size_generic.py",
        "return not apart and not plan.coarsened",
        "return not plan.coarsened",
        "plan/test_family.py::test_sweeps_at_a_distance_are_analysed_for_each_size",
    ),
)
