"""`x[indices]`: recorded, with NumPy's errors at the call."""

from __future__ import annotations

import shutil

import numpy
import pytest

import pyfuser.numpy as np
from pyfuser.frontends.numpy import switches
from pyfuser.runtime import first_tier
from pyfuser.runtime.session import TRACER
from pyfuser.support.extension import NUMPY
from pyfuser.support.settings import SETTINGS
from pyfuser.trace import reason

LARGE = switches.LAZY_FROM
ORDER = numpy.random.default_rng(7).integers(-LARGE, LARGE, LARGE)

needs_compiler = pytest.mark.skipif(
    shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler"
)


@pytest.fixture(autouse=True)
def nothing_pending() -> None:
    TRACER.flush(reason.SYNC)


def test_a_gather_sees_what_was_there() -> None:
    x = np.arange(float(LARGE))
    indices = np.array(ORDER)
    x += 1
    y = x[indices]
    x *= 0
    indices[...] = 0
    assert len(TRACER.calls) == 4
    assert numpy.array_equal(y, numpy.arange(float(LARGE))[ORDER] + 1)
    assert not numpy.shares_memory(y, x)


@needs_compiler
@pytest.mark.parametrize("kind", ["i8", "i4", "u4"])
@pytest.mark.parametrize("shape", [(LARGE,), (LARGE, 3)])
def test_kernels_gather(kind: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_tier, "runs_here", lambda trace, calls: False)
    array = numpy.arange(float(numpy.prod(shape))).reshape(shape)
    order = (numpy.abs(ORDER) % LARGE if kind == "u4" else ORDER).astype(kind).reshape(4, -1)
    found = (np.array(array) * 2)[np.array(order)] + 1
    assert len(TRACER.calls) == 3
    expected = array[order] * 2 + 1
    assert found.strides == expected.strides
    assert numpy.array_equal(found, expected)


@pytest.mark.parametrize("index", [LARGE, -LARGE - 1])
def test_outside_is_an_error_at_the_call(index: int) -> None:
    x = np.zeros(LARGE)
    x += 1
    order = ORDER.copy()
    order[77] = index
    with pytest.raises(IndexError, match=f"index {index} is out of bounds for axis 0"):
        x[np.array(order)]
    assert x[np.array(ORDER)][0] == 1.0


def test_what_others_reach_is_gathered_at_once() -> None:
    theirs = numpy.arange(float(LARGE))
    y = np.asarray(theirs)[np.array(ORDER)]
    assert len(TRACER.calls) == 0
    theirs[...] = 0
    assert numpy.array_equal(y, numpy.arange(float(LARGE))[ORDER])


def test_indices_are_looked_at_in_one_pass() -> None:
    if NUMPY is None:
        pytest.skip("it is the extension's")
    for dtype in ("i8", "i4"):
        for size in (1, 3, 64, 1001):
            found = numpy.arange(size).astype(dtype)
            assert NUMPY.are_below(found, size)
            assert not NUMPY.are_below(found, size - 1)
            for place in {0, size // 2, size - 1}:
                for wrong in (-1, size, numpy.iinfo(dtype).min, numpy.iinfo(dtype).max):
                    other = found.copy()
                    other[place] = wrong
                    assert not NUMPY.are_below(other, size), (dtype, size, place, wrong)
    assert NUMPY.are_below(numpy.zeros((3, 4), int), 1)
    for other in (numpy.zeros(4, "u8"), numpy.zeros(4, ">i8"), numpy.zeros((4, 4), int)[:, 1]):
        assert not NUMPY.are_below(other, 9)
    assert not NUMPY.are_below(numpy.zeros(2, int), 1 << 33)
