"""Sums over all elements: whoever computes them, the bits are the same."""

from __future__ import annotations

import shutil

import numpy
import pytest

import pyfuser.numpy as np
from pyfuser.frontends.numpy import sums, switches
from pyfuser.ir.dtypes import DType
from pyfuser.runtime import first_tier
from pyfuser.runtime.session import TRACER
from pyfuser.support.settings import SETTINGS

LARGE = switches.LAZY_FROM

needs_compiler = pytest.mark.skipif(
    shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler"
)


def values(shape: tuple[int, ...], dtype: str = "f8") -> numpy.ndarray:
    return numpy.random.default_rng(1).normal(size=shape).astype(dtype)


@needs_compiler
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize(
    "shape", [(LARGE,), (LARGE + 7,), (300_001,), (130, 257), (9, 3, 701), (6001, 3)]
)
def test_kernels_and_numpy_add_up_alike(
    shape: tuple[int, ...], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_tier, "runs_here", lambda trace, calls: False)
    array = values(shape, dtype)
    x = np.array(array)
    for ours, theirs in ((x, array), (x.T, array.T), (x[::-1], array[::-1])):
        by_kernel = ours.sum()
        assert by_kernel.dtype == dtype
        handed_out = numpy.asarray(ours)  # so NumPy computes it
        assert ours.sum() == by_kernel
        del handed_out
        exact = numpy.longdouble(theirs.astype("g")).sum() if theirs.ndim == 1 else None
        if exact is not None:
            bound = 32 * numpy.finfo(dtype).eps * numpy.abs(array).sum()
            assert abs(by_kernel - exact) < bound


@needs_compiler
def test_code_for_steps_of_one_element_runs_no_other_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_tier, "runs_here", lambda trace, calls: False)
    for n in range(6):
        for dtype in ("f4", "f8"):
            array = values((LARGE + n,), dtype)
            x = np.array(array)
            for ours, theirs in ((x, array), (x[::-1], array[::-1])):
                assert ours.sum() == pytest.approx(theirs.sum(dtype="f8"), rel=1e-6)


def test_the_order_of_additions_is_that_of_the_header() -> None:
    array = values((5 * 4096 * 64 + 4099,))
    parts = []
    for begin in range(0, array.size, 4096):
        lanes = [0.0] * 32
        for n, term in enumerate(array[begin : begin + 4096].tolist()):
            lanes[n % 32] += term
        for half in (16, 8, 4, 2, 1):
            lanes = [lanes[k] + lanes[k + half] for k in range(half)]
        parts.append(lanes[0])
    expected = 0.0
    for part in parts:
        expected += part
    assert sums.tree_sum(array, DType.FLOAT64) == expected


def test_a_sum_fuses_with_what_it_adds_up() -> None:
    x = np.ones(LARGE)
    y = (x * 3 + 1).sum()
    assert type(y) is numpy.float64
    assert y == 4.0 * LARGE
    assert len(TRACER.calls) == 0


def test_types_of_sums() -> None:
    for dtype in ("?", "i1", "u1", "i4", "u8", "f4", "f8"):
        array = numpy.arange(LARGE).astype(dtype)
        x = np.array(array)
        assert (x.sum(), x.sum().dtype) == (array.sum(), array.sum().dtype)
        for name in ("mean", "var", "std"):
            one, other = getattr(array, name)(), getattr(x, name)()
            assert one.dtype == other.dtype
            assert other == pytest.approx(one, rel=1e-6)
    x = np.ones((2, LARGE))
    assert x.sum(axis=1).tolist() == [LARGE, LARGE]
    assert x.sum(keepdims=True).shape == (1, 1)
    assert x.sum(dtype="f4").dtype == numpy.float32
    assert np.sum(x) == 2.0 * LARGE
    assert x.var(ddof=1) == 0.0


def test_a_broadcast_array_counts_each_element() -> None:
    x = np.broadcast_to(np.arange(float(LARGE)), (3, LARGE))
    assert x.sum() == 3 * sum(range(LARGE))


def test_masks_guard_stores() -> None:
    array = numpy.arange(-5.0, LARGE)
    x = np.array(array)
    x += 1
    x[x < 0] = 7.0
    assert len(TRACER.calls) == 3
    array += 1
    array[array < 0] = 7.0
    assert numpy.array_equal(x, array)
    with pytest.raises(IndexError):
        x[np.ones(3, dtype=bool)] = 1


@pytest.mark.skipif(sums.NUMPY is None, reason="needs the compiled extension")
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "?"])
def test_the_extension_adds_up_in_the_same_order(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = numpy.random.default_rng(0)
    for size in (1, 31, 33, LARGE, LARGE + 1, 99_991, 1 << 20):
        terms = rng.standard_normal(size) * 10.0 ** rng.integers(-8, 9, size)
        terms = terms > 0 if dtype == "?" else (terms * 1e6).astype(dtype)
        found = sums.tree_sum(terms, DType.FLOAT64)
        with monkeypatch.context() as patch:
            patch.setattr(sums, "NUMPY", None)
            assert float(found).hex() == float(sums.tree_sum(terms, DType.FLOAT64)).hex()
    assert str(sums.tree_sum(numpy.full(LARGE, -0.0), DType.FLOAT64)) == "0.0"


@pytest.mark.skipif(sums.NUMPY is None, reason="needs the compiled extension")
def test_the_extension_leaves_other_arrays_alone() -> None:
    for array in (
        numpy.ones(8, "i4"), numpy.ones(8, ">f8"), numpy.ones((2, 4)), numpy.ones(8)[::2],
        numpy.zeros(65, numpy.uint8)[1:].view(float), numpy.ma.ones(8),
    ):  # fmt: skip
        assert sums.NUMPY.tree_sum(array, 4) is None


def test_the_order_of_additions_depends_on_the_elements_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where arrays are not recorded yet, and with keywords that change nothing."""
    monkeypatch.setattr(switches.LIMITS, "sure", 1 << 20)
    terms = numpy.random.default_rng(1).standard_normal(LARGE + 77) * 1e3
    expected = sums.tree_sum(terms, DType.FLOAT64)
    x = np.array(terms)
    found = x.sum(), x.sum(axis=None), x.sum(None), np.sum(x), np.sum(x, axis=None)
    assert [float(each).hex() for each in found] == [float(expected).hex()] * 5
    apart = terms - float(expected) / x.size
    spread = sums.tree_sum(apart * apart, DType.FLOAT64) / (x.size - 1)
    assert float(x.var(ddof=1)).hex() == float(np.var(x, ddof=1)).hex() == float(spread).hex()
