"""Reductions along axes: lazy where NumPy has one order of additions, with its bits."""

from __future__ import annotations

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


@pytest.mark.parametrize("name", ["sum", "mean", "max"])
def test_floats_along_the_innermost_axis_are_numpys(name: str) -> None:
    TRACER.flush(reason.SYNC)
    x = np.array(VALUES)
    for array, axis in ((x, 2), (x.T, 0), (x[:, :, :1], 0)):
        found = getattr(array, name)(axis=axis)
        assert len(TRACER.calls) == 0
        assert numpy.array_equal(found, getattr(numpy.asarray(array), name)(axis=axis))


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
    np.array(VALUES.reshape(-1, 10)).sum(axis=0)
    assert len(TRACER.calls) == 0


def test_errors_are_numpys() -> None:
    x = np.array(VALUES)
    with pytest.raises(numpy.exceptions.AxisError):
        x.sum(axis=3)
    with pytest.raises(TypeError):
        x.sum(axis=0.5)
    with pytest.raises(ValueError, match="zero-size"):
        np.zeros((0, 70000)).max(axis=0)
