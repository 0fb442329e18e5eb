"""Calls that wait but must not: `plan/dependence_slice.py`, `runtime/partial_flush.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TEST = "test_deferral.py::"
_NEEDED = _TEST + "test_what_a_result_needs_runs"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "what a result needs waits",
        "plan/dependence_slice.py",
        "rest += (n for n in range(place) if before[place] >> n & 1)",
        "pass",
        _NEEDED,
    ),
    Mutant(
        "what is printed waits",
        "ir/effects.py",
        "        return self.output or",
        "        return",
        _NEEDED,
    ),
    Mutant(
        "atomic updates wait",
        "ir/effects.py",
        "                atomics = True\n",
        "                pass\n",
        _NEEDED,
    ),
    Mutant(
        "results wait",
        "plan/dependence_slice.py",
        'return call.pattern == "for" and not',
        "return not",
        _TEST + "test_another_result_does_not_wait_nor_what_it_needs",
    ),
    Mutant(
        "calls wait again",
        "runtime/partial_flush.py",
        "call.position > self._due",
        "True",
        _TEST + "test_nothing_waits_for_two_flushes",
    ),
    Mutant(
        "calls on memory that others reach wait",
        "runtime/partial_flush.py",
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
