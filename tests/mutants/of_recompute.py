"""Wrong recomputing: of what is not there any more, or never was."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_LAW = "plan/test_recompute.py::"

MUTANTS = (
    Mutant(
        "what a loop passes on is computed again",
        "plan/rewrites/recompute.py",
        "return self._launches[place] != self._launches[producer]",
        "return True",
        f"{_LAW}test_an_own_element_that_another_launch_reads",
    ),
    Mutant(
        "what the values are made of may be overwritten before they are computed",
        "plan/rewrites/recompute.py",
        "made is None or not self._undisturbed(source, producer, place)",
        "made is None",
        f"{_LAW}test_what_is_read_keeps_its_value_until_then",
    ),
    Mutant(
        "the reader may overwrite what the values are made of",
        "plan/rewrites/recompute.py",
        "writers[first : bisect_left(writers, place + 1)]",
        "writers[first : bisect_left(writers, place)]",
        f"{_LAW}test_a_reader_that_overwrites_what_the_values_are_made_of",
    ),
    Mutant(
        "elements may be read that were not stored",
        "plan/rewrites/recompute.py",
        "if max(first, 0) < low or min(last, extent - 1) > high:",
        "if False:",
        f"{_LAW}test_only_elements_that_were_stored",
    ),
    Mutant(
        "the upper end is not looked at",
        "plan/rewrites/recompute.py",
        " or min(last, extent - 1) > high:",
        ":",
        f"{_LAW}test_only_elements_that_were_stored",
    ),
    Mutant(
        "what is stored under a condition is always stored",
        "plan/rewrites/recomputed_body.py",
        "self.made[view] = replace(then, always=False)",
        "self.made[view] = then",
        f"{_LAW}test_elements_stored_under_a_condition",
    ),
    Mutant(
        "iterations may store to one place",
        "plan/rewrites/recompute.py",
        " or abs(index.terms[0][1]) != 1:",
        ":",
        f"{_LAW}test_places_that_are_no_iteration_of_their_own",
    ),
    Mutant(
        "every index counts upwards",
        "plan/rewrites/recomputed_body.py",
        "if axis.sign < 0:",
        "if False:",
        f"{_LAW}test_places_that_are_no_iteration_of_their_own",
    ),
    Mutant(
        "a call vanishes whose values are read",
        "plan/rewrites/recompute.py",
        "if users and all(live.is_dead_after(c, (producer,)) for c in _written(call)):",
        "if users:",
        f"{_LAW}test_what_is_read_later_is_stored_as_well",
    ),
    Mutant(
        "what vanished is forgotten before it is computed",
        "runtime/launch.py",
        "return [n for n in done if n not in missing]",
        "return list(done)",
        f"{_LAW}test_a_vanished_call_is_needed_until_all_who_compute_it_have_run",
    ),
)
