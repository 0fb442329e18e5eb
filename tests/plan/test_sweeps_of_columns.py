"""Sweeps of loops that walk along columns: waves of few iterations would be narrow strips."""

from __future__ import annotations

from pyfuser.tuning.thresholds import NOW
from tests.analysis.build import region
from tests.plan.test_sweeps import ROWS, planned, solve
from tests.vendors import tune

WIDTH = 2500


def test_columns_do_not_sweep_by_short_waves():
    rows = [region(k, (ROWS, WIDTH)) for k in range(3)]
    (sweep,) = planned(solve(WIDTH)(*rows[:2]), solve(WIDTH)(*rows[1:]))
    assert 0 < sweep.wave < NOW.tuning.wave_columns
    columns = [region(k, (ROWS, WIDTH), strides=(8, 8 * ROWS)) for k in range(3)]
    assert not planned(solve(WIDTH)(*columns[:2]), solve(WIDTH)(*columns[1:]))


def test_columns_sweep_by_waves_that_are_long_enough(monkeypatch):
    columns = [region(k, (ROWS, WIDTH), strides=(8, 8 * ROWS)) for k in range(3)]
    tune(monkeypatch, wave_columns=1)
    (sweep,) = planned(solve(WIDTH)(*columns[:2]), solve(WIDTH)(*columns[1:]))
    assert sweep.wave >= 1
