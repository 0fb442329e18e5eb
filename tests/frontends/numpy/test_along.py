"""Reductions along axes: lazy where NumPy has one order of additions, with its bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy
import pytest

import pyfuser.numpy as np
from pyfuser.runtime.session import TRACER
from pyfuser.trace import reason

VALUES = numpy.random.default_rng(5).normal(size=(70, 80, 90))


@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "max", "min", "any", "all"])
@pytest.mark.parametrize("axis", [0, 1, -2])
@pytest.mark.parametrize("keepdims", [False, True])
def test_along_outer_axes(name: str, axis: int, keepdims: bool) -> None:
    TRACER.flush(reason.SYNC)
    x = np.array(VALUES)
    found = getattr(x, name)(axis=axis, keepdims=keepdims)
    assert len(TRACER.calls) > 0
    expected = getattr(VALUES, name)(axis=axis, keepdims=keepdims)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert numpy.array_equal(found, expected)


NAMES = ["sum", "mean", "var", "prod", "any"]


@pytest.mark.parametrize("name", NAMES)
def test_along_the_innermost_axis(name: str) -> None:
    TRACER.flush(reason.SYNC)
    x = np.array(VALUES)
    for array, axis in ((x, 2), (x[:, :, ::2], -1), (x.reshape(5600, 90, 1), 1)):
        found = getattr(array, name)(axis=axis)
        assert len(TRACER.calls) > 0
        assert numpy.array_equal(found, getattr(numpy.asarray(array), name)(axis=axis))


@pytest.mark.parametrize("axes", [(1, 2), (0, 1), (0, 1, 2), (2, 0)])
def test_several_axes(axes: tuple[int, ...]) -> None:
    TRACER.flush(reason.SYNC)
    values = numpy.random.default_rng(6).normal(size=(70, 80, 9, 10))
    x = np.array(values)
    assert numpy.array_equal(x.sum(axis=axes), values.sum(axis=axes))
    assert numpy.array_equal(x.std(axis=axes, keepdims=True), values.std(axis=axes, keepdims=True))


def test_what_has_another_order_is_numpys() -> None:
    TRACER.flush(reason.SYNC)
    x = np.array(VALUES)
    for array, axis in ((x.T, 0), (x[:, ::-1], 2), (np.broadcast_to(x, (2, *x.shape)), 1)):
        found = array.sum(axis=axis)
        assert len(TRACER.calls) == 0
        assert numpy.array_equal(found, numpy.asarray(array).sum(axis=axis))
    assert numpy.array_equal(x.max(axis=2), VALUES.max(axis=2))
    assert len(TRACER.calls) == 0


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("tier", ["numpy", "interpret", "compiled"])
def test_rows_of_every_length_have_numpys_bits(
    tier: str, dtype: str, lazily: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    lazily(tier)
    monkeypatch.setattr("pyfuser.runtime.first_tier.runs_here", lambda *_: False)
    rng = numpy.random.default_rng(7)
    for count in (1, 7, 8, 128, 129, 136, 137, 247, 248, 256, 257, 511, 1023, 4095):
        values = rng.normal(size=(2, count)).astype(dtype)
        found = np.array(values).sum(axis=1)
        assert len(TRACER.calls) > 0
        assert numpy.array_equal(found, values.sum(axis=1)), count


def test_the_pairwise_sum_is_not_one_term_after_the_other() -> None:
    values = numpy.random.default_rng(7).normal(size=1000)
    assert values.sum() != numpy.add.accumulate(values)[-1]


@pytest.mark.parametrize("first", [numpy.nan, 2.0, -0.0])
def test_the_first_of_equals_and_of_nans(first: float) -> None:
    values = numpy.full((300, 300), 2.0)
    values[:, 7] = first
    values[:, 9] = first
    x = np.array(values)
    for axis in (0, 1):
        assert numpy.array_equal(x.argmax(axis=axis), values.argmax(axis=axis))
        assert numpy.array_equal(x.argmin(axis), values.argmin(axis))


def test_integers_along_any_axis() -> None:
    TRACER.flush(reason.SYNC)
    values = (VALUES * 100).astype("i4")
    x = np.array(values)
    found = x.sum(axis=2)
    assert len(TRACER.calls) == 1
    assert numpy.array_equal(found, values.sum(axis=2))
    assert found.dtype == numpy.int64
    assert numpy.array_equal((x > 3).any(axis=-1), (values > 3).any(axis=-1))


def test_a_sum_of_negative_zeros() -> None:
    x = np.full((300, 300), -0.0)
    assert not numpy.signbit(x.sum(axis=0)).any()
    assert not numpy.signbit(x.sum())


def test_few_results_are_numpys() -> None:
    TRACER.flush(reason.SYNC)
    x = np.array(VALUES.reshape(-1, 40))
    x.sum(axis=0)
    x.reshape(10, -1).sum(axis=1)
    assert len(TRACER.calls) == 0


def test_few_columns() -> None:
    TRACER.flush(reason.SYNC)
    values = VALUES.reshape(-1, 20)
    found = np.array(values).sum(axis=0)
    assert len(TRACER.calls) == 1
    assert numpy.array_equal(found, values.sum(axis=0))


def test_errors_are_numpys() -> None:
    x = np.array(VALUES)
    with pytest.raises(numpy.exceptions.AxisError):
        x.sum(axis=3)
    with pytest.raises(TypeError):
        x.sum(axis=0.5)
    with pytest.raises(ValueError, match="zero-size"):
        np.zeros((0, 70000)).max(axis=0)
