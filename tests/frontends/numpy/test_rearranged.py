"""Arrays that are put together of elements of others: recorded, with NumPy's results."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy
import pytest

import pyfuser.numpy as np
from pyfuser.frontends.numpy.maps import PADDINGS, may_pad
from pyfuser.runtime.session import TRACER

Lazily = Callable[[str], None]


def compare(name: str, *args: Any, **kwargs: Any) -> int:
    """Call a function on both sides; how many calls were recorded."""
    before = TRACER.recorded
    expected = getattr(numpy, name)(*args, **kwargs)
    ours = [_ours(x) for x in args]
    found = getattr(np, name)(*ours, **kwargs)
    recorded = TRACER.recorded - before
    assert type(found) is np.ndarray and found.dtype == expected.dtype
    assert numpy.array_equal(numpy.asarray(found), expected), (name, args, kwargs)
    assert found.shape == expected.shape and found.strides == expected.strides
    return recorded


def _ours(x: Any) -> Any:
    if type(x) is list:
        return [_ours(entry) for entry in x]
    return np.array(x) if type(x) is numpy.ndarray else x


@pytest.mark.parametrize("tier", ["numpy", "interpret"])
@pytest.mark.parametrize("mode", [*PADDINGS, "constant"])
def test_padding(lazily: Lazily, mode: str, tier: str) -> None:
    lazily(tier)
    for shape in ((1,), (2,), (5,), (2, 3), (1, 4), (2, 1, 3)):
        values = numpy.arange(float(numpy.prod(shape))).reshape(shape)
        for before, after in product(range(4), repeat=2):
            if before or after:
                most = max(before, after)
                known = mode == "constant" or all(may_pad(mode, n, most) for n in shape)
                recorded = compare("pad", values, (before, after), mode)
                assert (recorded > 0) == known


def test_how_much_padding_indices_know() -> None:
    assert may_pad("edge", 1, 9) and may_pad("wrap", 3, 3) and may_pad("symmetric", 3, 3)
    assert may_pad("reflect", 3, 2) and not may_pad("reflect", 3, 3)
    assert not may_pad("wrap", 3, 4) and not may_pad("symmetric", 3, 4)


def test_padding_is_the_dtypes(lazily: Lazily) -> None:
    lazily("numpy")
    for kind, value in product("?bHldf", (0, 1, -3, 2.5, 300)):
        values = numpy.array([[1, 0], [1, 1]], kind)
        if not (kind in "?bH" and value in (-3, 300)):  # NumPy warns
            compare("pad", values, 1, constant_values=value)
    with pytest.raises(ValueError, match="unsupported keyword"):
        np.pad(np.ones(3), 1, "edge", constant_values=1)
    with pytest.raises(ValueError, match="negative"):
        np.pad(np.ones(3), -1)
    with pytest.raises(ValueError, match="broadcast"):
        np.pad(np.ones(3), ((1, 2), (1, 2)))


@pytest.mark.parametrize("tier", ["numpy", "interpret"])
def test_joining(lazily: Lazily, tier: str) -> None:
    lazily(tier)
    flat, wide, counts = numpy.arange(3.0), numpy.ones((2, 3)), numpy.arange(6).reshape(2, 3)
    cubes = numpy.arange(12.0).reshape(2, 2, 3)
    assert compare("hstack", [flat, flat]) and compare("hstack", [wide, counts])
    assert compare("hstack", [cubes, cubes]) and compare("vstack", [flat, wide, flat])
    assert compare("vstack", [cubes, cubes]) and compare("column_stack", [flat, flat])
    assert compare("column_stack", [wide, wide, wide]) and compare("append", counts, wide, axis=0)
    assert compare("append", wide, cubes) and compare("append", cubes, cubes, axis=-1)
    for name, arrays in (
        ("hstack", [flat, wide]),
        ("vstack", [flat, wide[:, :2]]),
        ("column_stack", [flat, wide[0:1]]),
    ):
        with pytest.raises(ValueError, match="dimension"):
            getattr(np, name)(_ours(arrays))
    with pytest.raises(ValueError, match="dimension"):
        np.append(np.array(flat), np.array(wide), axis=0)


def test_what_is_padded_may_change_afterwards(lazily: Lazily) -> None:
    lazily("numpy")
    values = numpy.arange(4.0)
    x = np.array(values)
    around, joined = np.pad(x, 2, "wrap"), np.hstack([x, x])
    x += 1.0
    assert around.tolist() == numpy.pad(values, 2, "wrap").tolist()
    assert joined.tolist() == [*values, *values] and (x == values + 1.0).all()


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((30, 20), 2), ((30, 63), 2), ((30, 64), 2), ((30, 15), 1), ((8, 16, 20), 3),
        ((8, 3, 20), 2), ((2, 2, 2, 20), 1),
    ],
)  # fmt: skip
def test_what_is_done_with_a_rolled_array_shares_its_loop(
    lazily: Lazily, shape: tuple[int, ...], axes: int
) -> None:
    lazily("interpret")
    values = numpy.arange(float(numpy.prod(shape))).reshape(shape)
    x = np.array(values)
    before = x + 1.0
    assert len(TRACER.calls[-1].space.end) == (2 if shape[-1] > 63 else 1)
    found = np.roll(x, -1, axis=-1) - x + before
    assert len(TRACER.calls[-1].space.end) == axes
    expected = numpy.roll(values, -1, axis=-1) - values + (values + 1.0)
    assert (numpy.asarray(found) == expected).all()


def test_rolls_that_move_nothing(lazily: Lazily) -> None:
    lazily("interpret")
    values = numpy.arange(600.0).reshape(30, 20)
    for shift in ((0, 3), (2, 0), (2, -3), (0, 0), (numpy.int64(2), numpy.int8(0))):
        assert compare("roll", values, shift, axis=(0, 1)) == (2 if shift == (2, -3) else 1)
    x = np.array(values)
    y = np.roll(x, (0, 0), axis=(0, 1))
    y += 1.0
    assert (numpy.asarray(x) == values).all()
