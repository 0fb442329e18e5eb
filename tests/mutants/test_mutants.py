"""The operators make laws weaker and nothing else, and some mutants are killed in every run.

`make mutants` judges many, `python -m tests.mutants --all` all of them.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.mutants.generated import ROOT, laws, laws_in, mutants_of, sample

LAW = """
# law: True
def may(call):
    if call.begin > 0 or call.waits:
        return False
    return call.size < 8 and all(a is None for a in call.args if a in ("x", "y"))
"""
VALUES = """
class Bounds:
    # law
    def hull(self, a, b):
        self.known |= {a}
        return min(a, b - 1)
"""
SEARCH = """
# law: not None
def find(calls):
    for call in calls:
        if not (call.fits and call.free):
            return None
    return calls[0]
"""
VERDICT = """
def verdict(a):  # law: Verdict.NONE
    return Verdict.UNKNOWN if a else Verdict.NONE
"""


def _edits(text: str) -> list[str]:
    (law,) = laws_in("f.py", text)
    return [m.name.removeprefix(f"{law.name}: ") for m in mutants_of(law)]


def test_a_predicate_is_only_made_weaker() -> None:
    all_none = "all((a is None for a in call.args if a in ('x', 'y')))"
    assert _edits(LAW) == [
        "condition: call.begin > 0 or call.waits -> False",
        "drop a disjunct: call.begin > 0 or call.waits -> call.waits",
        "drop a disjunct: call.begin > 0 or call.waits -> call.begin > 0",
        f"condition: call.size < 8 and {all_none} -> True",
        f"drop a conjunct: call.size < 8 and {all_none} -> {all_none}",
        "shift a bound: call.size < 8 -> call.size <= 8",
        f"drop a conjunct: call.size < 8 and {all_none} -> call.size < 8",
        "swap all and any: all -> any",
        "condition: a in ('x', 'y') -> False",
        "drop an element: ('x', 'y') -> ('y',)",
        "drop an element: ('x', 'y') -> ('x',)",
    ]


def test_a_value_is_changed_in_both_directions() -> None:
    assert _edits(VALUES) == [
        "drop a statement: self.known |= {a} -> pass",
        "swap min and max: min -> max",
        "drop an operand: b - 1 -> b",
    ]


def test_what_refuses_and_what_permits_gives_the_direction() -> None:
    assert _edits(SEARCH) == [
        "condition: not (call.fits and call.free) -> False",
        "drop a conjunct: call.fits and call.free -> call.free",
        "drop a conjunct: call.fits and call.free -> call.fits",
    ]
    assert _edits(VERDICT)[0].endswith("if a else Verdict.NONE -> Verdict.NONE")


def test_a_mark_marks_a_function() -> None:
    with pytest.raises(ValueError, match="no def here"):
        list(laws_in("f.py", "# law\nX = 1\n"))


def test_every_law_of_the_product_has_mutants_that_compile() -> None:
    assert all(mutants_of(law) for law in laws())
    for law in sample([mutants_of(law)[0] for law in laws()], 20, 0):
        assert law.code().co_name == law.law.node.name


def test_a_sample_follows_from_its_seed_and_hardly_from_other_mutants() -> None:
    mutants = [mutant for law in laws()[:9] for mutant in mutants_of(law)]
    chosen = sample(mutants, 12, 3)
    assert len(chosen) == 12 and chosen == sample(mutants, 12, 3) != sample(mutants, 12, 4)
    fewer = sample([m for m in mutants if m is not chosen[0]], 12, 3)
    assert fewer[:11] == chosen[1:]


def test_some_mutants_are_killed() -> None:
    command = [sys.executable, "-m", "tests.mutants", "--all", "--patience", "0", "--only"]
    done = subprocess.run(
        [*command, "analysis/dependences.py conflict_kind"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", survivors 0, " in done.stdout and "tried 0" not in done.stdout
