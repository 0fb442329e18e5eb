"""Calls that wait although they must not (see `plan/closure.py` and `deferral.py`)."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TEST = "test_deferral.py::"
_NEEDED = _TEST + "test_what_a_result_needs_runs"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "what a result needs waits",
        "plan/closure.py",
        "rest += (n for n in range(place) if before[place] >> n & 1)",
        "pass",
        _NEEDED,
    ),
    Mutant(
        "what is printed waits",
        "plan/closure.py",
        " or (isinstance(e, nodes.Call) and not is_pure(e.name))",
        "",
        _NEEDED,
    ),
    Mutant(
        "atomic updates wait",
        "plan/closure.py",
        " or (isinstance(stmt, nodes.Update) and stmt.atomic)",
        "",
        _NEEDED,
    ),
    Mutant(
        "results wait",
        "plan/closure.py",
        'return call.pattern == "for" and not',
        "return not",
        _TEST + "test_another_result_does_not_wait_nor_what_it_needs",
    ),
    Mutant(
        "calls wait again",
        "deferral.py",
        "call.position > self._due",
        "True",
        _TEST + "test_nothing_waits_for_two_flushes",
    ),
    Mutant(
        "calls on memory that others reach wait",
        "deferral.py",
        "argument.buffer.external or argument.buffer.lent",
        "False",
        _TEST + "test_memory_that_others_reach_does_not_wait",
    ),
    Mutant(
        "what waiting calls read is a temporary",
        "trace/shape.py",
        " and key not in reached",
        "",
        _TEST + "test_a_dead_view_that_a_waiting_call_reads",
    ),
    Mutant(
        "flushes for nothing leave calls",
        "trace/tracer.py",
        "            self.wanted = wanted\n",
        "            self.wanted = wanted or self.calls[-1].result\n",
        _TEST + "test_functions_that_run_everything",
    ),
)
