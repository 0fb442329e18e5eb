"""Functions that are given an array for their result are called once: it may be what they read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import pyfuser.numpy as np

INTO: dict[str, Callable[[Any, Any], Any]] = {
    "dot": lambda m, x: m.dot(x, x, out=x),
    "dot, placed": lambda m, x: m.dot(x, x, x),
    "take": lambda m, x: m.take(x, [2, 0, 1], axis=0, out=x[:3]),
    "einsum": lambda m, x: m.einsum("ij,jk->ik", x, x, out=x),
    "trace": lambda m, x: m.trace(x, out=x[0, :1].reshape(())),
    "percentile": lambda m, x: m.percentile(x, 50, axis=0, out=x[0]),
    "nansum": lambda m, x: m.nansum(x, axis=0, out=x[0]),
    "nancumsum": lambda m, x: m.nancumsum(x, axis=0, out=x),
    "nanstd": lambda m, x: m.nanstd(x, axis=0, out=x[0]),
    "median": lambda m, x: m.median(x, axis=0, out=x[0]),
    "multi_dot": lambda m, x: m.linalg.multi_dot([x, x, x], out=x),
    "round": lambda m, x: m.round(x / 7, 1, out=x),
    "choose": lambda m, x: m.choose(x.astype(int) % 2, [x + 1, x], out=x),
    "divide": lambda m, x: m.divide(x, x.T, out=x, where=x > 4),
}


@pytest.mark.parametrize("n", [3, 30, 200])
@pytest.mark.parametrize("into", INTO.values(), ids=INTO)
def test_into_what_is_read(into: Callable[[Any, Any], Any], n: int) -> None:
    x, y = (m.arange(float(n * n)).reshape(n, n) / 16 + 1 for m in (numpy, np))
    into(numpy, x)
    found = into(np, y)
    assert type(found) is np.ndarray and np.shares_memory(found, y)
    assert numpy.array_equal(x, numpy.asarray(y))


@pytest.mark.parametrize("n", [4, 3000])
def test_a_transform_in_place(n: int) -> None:
    x, y = (m.arange(n) * (1 + 2j) for m in (numpy, np))
    numpy.fft.fft(x, out=x)
    assert np.fft.fft(y, out=y) is y
    assert numpy.array_equal(x, numpy.asarray(y))


def test_results_that_are_parts_of_what_is_given() -> None:
    x = np.arange(6.0)
    for part in (np.trim_zeros(x), np.real_if_close(x)):
        part[..., -1] = 9.0
        assert x[5] == 9.0
        x[5] = 5.0
    rows, columns = np.nonzero(np.arange(12).reshape(3, 4) % 3 == 1)
    rows += 1  # a view of what `columns` is a view of
    assert rows.tolist() == [1, 2, 2, 3] and columns.tolist() == [0 + 1, 0, 3, 2]
    assert rows.base is not None and not np.shares_memory(rows, columns)


def test_masks_and_results_that_are_named() -> None:
    x, out = np.arange(4.0), np.ones(4)
    assert np.add(x, 1, where=x > 1, out=out) is out and out.tolist() == [1, 1, 3, 4]
    np.divide(x, 2, out=out, where=x > 2)
    assert out.tolist() == [1, 1, 3, 1.5]
    with pytest.raises(ValueError, match="read-only"):
        out.setflags(write=False)
        np.add(x, 1, where=x > 1, out=out)


def test_what_no_memory_has_room_for_is_refused_at_the_call() -> None:
    x = np.ones(1 << 20)
    for product in (lambda: np.outer(x, x), lambda: x[:, None] * x, lambda: np.add.outer(x, x)):
        with pytest.raises(MemoryError, match="Unable to allocate"):
            product()
    huge = 10**7, 10**7
    makers = (np.zeros, np.empty, np.ones, lambda shape: np.full(shape, 2.0))
    for make in (*makers, lambda shape: np.tile(np.ones((1, shape[1])), (shape[0], 1))):
        with pytest.raises(MemoryError, match="Unable to allocate"):
            make(huge)
    assert float((x + 1.0).sum()) == 1 << 21
