"""Random programs against NumPy: see `programs`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pyfuser.numpy as pnp
from pyfuser.frontends.numpy import record, switches
from tests.frontends.numpy import programs
from tests.frontends.numpy.programs import DONE, Both, Mismatch, Program

Lazily = Callable[[str], None]


@pytest.mark.parametrize("tier", ["interpret", "numpy"])
def test_programs_record(tier: str, lazily: Lazily, monkeypatch: pytest.MonkeyPatch) -> None:
    lazily(tier)
    monkeypatch.setattr(programs, "WARNINGS", [tier == "numpy"])
    DONE.clear()
    for seed in range(700_000, 700_120):
        Program(seed).run()
    assert min(DONE[kind] for kind in ("operator", "in_place", "assign", "where", "unary")) > 10


def test_programs_are_exact(lazily: Lazily, monkeypatch: pytest.MonkeyPatch) -> None:
    lazily("interpret")
    monkeypatch.setattr(switches.LIMITS, "exact", True)
    monkeypatch.setattr(programs, "EXACT", [True])
    for seed in range(730_000, 730_100):
        Program(seed).run()


def test_exact_sums_and_functions_are_numpys(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).normal(size=100_000)
    x = pnp.array(values)
    assert x.sum() != values.sum()  # another order of additions
    monkeypatch.setattr(switches.LIMITS, "exact", True)
    assert x.sum() == values.sum()
    assert x.var() == values.var()
    assert np.array_equal(pnp.exp(x + 1) * 2, np.exp(values + 1) * 2)


def test_programs_run_at_once() -> None:
    for seed in range(710_000, 710_200):
        Program(seed).run()


def test_programs_compile(lazily: Lazily, monkeypatch: pytest.MonkeyPatch) -> None:
    lazily("compiled")
    monkeypatch.setattr("pyfuser.runtime.first_tier.runs_here", lambda trace, calls: False)
    for seed in range(720_000, 720_010):
        Program(seed).run()


def test_the_comparison_finds_what_differs() -> None:
    program = Program(0)
    x = np.arange(6.0)
    program.compare_arrays(Both(x, pnp.asarray(x.copy())), "x")
    for other in (x + 1, x.astype("f4"), x[::-1].copy()[::-1], -x, x[None]):
        with pytest.raises(Mismatch):
            program.compare_arrays(Both(x, pnp.asarray(other)), "x")


def test_programs_find_a_copy_that_is_missing(
    lazily: Lazily, monkeypatch: pytest.MonkeyPatch
) -> None:
    lazily("interpret")
    monkeypatch.setattr(record, "independent", lambda *_: True)
    with pytest.raises((Mismatch, AssertionError)):
        for seed in range(700_000, 700_300):
            Program(seed).run()
