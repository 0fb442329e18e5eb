"""The catalogue fits the code, and a handful of mutants is killed in every run of the tests.

`make mutants` judges all of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.laboratory import ROOT, Laboratory
from tests.mutants.mutant import Mutant

EVERY_RUN = (
    "equal subscripts mean equal iterations",
    "an overwrite of a part kills",
    "conditional stores move out of their branch",
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_fits_once(mutant: Mutant) -> None:
    text = (ROOT / "pyfuser" / mutant.file).read_text(encoding="utf-8")
    assert mutant.applied(text) != text
    file, _, name = mutant.test.partition("::")
    assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8")


def test_names_are_unique() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_a_mutant_must_fit_once() -> None:
    mutant = Mutant("m", "f.py", "a", "b", "t")
    assert mutant.applied("xax") == "xbx"
    for text in ("x", "aa"):
        with pytest.raises(ValueError, match="fits"):
            mutant.applied(text)


def test_some_mutants_are_killed(tmp_path: Path) -> None:
    laboratory = Laboratory(tmp_path)
    chosen = [mutant for mutant in MUTANTS if mutant.name in EVERY_RUN]
    assert len(chosen) == len(EVERY_RUN)
    assert not laboratory.healthy([mutant.test for mutant in chosen])
    for mutant in chosen:
        assert laboratory.judge(mutant, thorough=False).killer.startswith(mutant.test)
