"""The greatest and the least of all elements, and the like: in any order, NumPy's results."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy
import pytest

import pyfuser.numpy as np
from pyfuser.frontends.numpy.extremes import PART, RecordedParts
from pyfuser.runtime.session import TRACER

Lazily = Callable[[str], None]
NAMES = ["max", "min", "any", "all", "prod"]


LONG = (PART + 65,)
SHAPES = ((1,), (70,), LONG, (3, 70), (3, 129))
COMPILED = [(LONG, "f8"), ((70,), "f4"), ((3, 129), "i4"), ((3, 70), "u1"), (LONG, "?")]
CASES = [
    (tier, shape, dtype)
    for tier, shape, dtype in product(
        ("numpy", "interpret", "compiled"), SHAPES, ("f8", "f4", "i4", "u1", "?")
    )
    if tier == "numpy" or (shape, dtype) in COMPILED or (tier == "interpret" and shape != LONG)
]


@pytest.mark.parametrize(("tier", "shape", "dtype"), CASES)
def test_all_elements(
    tier: str, shape: tuple[int, ...], dtype: str, lazily: Lazily, monkeypatch: pytest.MonkeyPatch
) -> None:
    lazily(tier)
    monkeypatch.setattr("pyfuser.runtime.first_tier.runs_here", lambda *_: False)
    values = (numpy.random.default_rng(1).normal(size=shape) * 9).astype(dtype)
    x = np.array(values)
    for ours, theirs in ((x, values), (x[::-1], values[::-1]), (x[..., ::2], values[..., ::2])):
        for name in NAMES:
            found = getattr(ours * ours, name)()
            expected = getattr(theirs * theirs, name)()
            assert type(found) is type(expected)
            if name != "prod" or dtype[0] != "f":
                assert found == expected


def test_they_are_recorded(lazily: Lazily, monkeypatch: pytest.MonkeyPatch) -> None:
    lazily("numpy")
    seen: list[object] = []
    compute = RecordedParts.compute
    monkeypatch.setattr(
        RecordedParts, "compute", lambda call, step: (seen.append(call), compute(call, step))
    )
    x = np.arange(1.0, 100.0)
    assert (x * 2).max() == 198.0
    assert len(seen) == 1
    assert len(TRACER.calls) == 0


def test_a_nan_is_the_greatest(lazily: Lazily) -> None:
    lazily("interpret")
    for place in (0, 7, 64, 200, PART + 1):
        values = numpy.arange(PART + 9.0)
        values[place] = numpy.nan
        x = np.array(values)
        assert numpy.isnan((x + 0).max())
        assert numpy.isnan((x + 0).min())


@pytest.mark.parametrize("tier", ["numpy", "interpret"])
def test_of_zeros_it_is_numpys(tier: str, lazily: Lazily) -> None:
    lazily(tier)
    rng = numpy.random.default_rng(2)
    for count in range(1, 90):
        values = numpy.where(rng.random(count) < 0.5, 0.0, -0.0)
        x = np.array(values)
        for name in ("max", "min"):
            found = getattr(x + -0.0, name)()
            assert numpy.signbit(found) == numpy.signbit(getattr(values, name)()), count
