"""Calls that NumPy computes take over the memory of temporaries that nobody reads any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import pyfuser.numpy as np
from pyfuser.frontends.numpy.memory import host
from pyfuser.runtime.session import TRACER
from pyfuser.trace import pool
from pyfuser.trace.memory import Allocation, Buffer, Handle

SIZE = 1 << 16


@pytest.fixture(autouse=True)
def by_numpy(lazily: Callable[[str], None]) -> Iterator[None]:
    lazily("numpy")
    pool.clear()
    yield


def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of all memory that is made from now on."""
    sizes: list[int] = []
    allocate = pool.allocate

    def noted(size: int, zero: bool) -> Any:
        sizes.append(size)
        return allocate(size, zero)

    monkeypatch.setattr(pool, "allocate", noted)
    return sizes


def test_temporaries_share_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    values = numpy.arange(float(SIZE))
    x = np.array(values)
    sizes = made(monkeypatch)
    y = ((x * 2.0 + 1.0) * x - 3.0) * x + x
    assert numpy.array_equal(host(y), ((values * 2.0 + 1.0) * values - 3.0) * values + values)
    assert sizes == [8 * SIZE]
    t = x * 2.0
    t = t * t - t  # each is read twice
    assert numpy.array_equal(host(t), 4.0 * values * values - 2.0 * values)
    assert len(sizes) == 3


def test_memory_that_is_still_read_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    values = numpy.arange(float(SIZE))
    x = np.array(values)
    sizes = made(monkeypatch)
    t = x * 2.0
    y = t + 1.0  # a name
    assert host(y)[3] == 7.0 and host(t)[3] == 6.0 and len(sizes) == 2
    t = x * 2.0
    y, part = t + 1.0, t[:5]
    del t
    assert host(y)[3] == 7.0 and host(part)[3] == 6.0 and len(sizes) == 4  # a view
    t = x * 2.0
    y, z = t + 1.0, t + 2.0
    del t
    assert host(y)[3] == 7.0 and host(z)[3] == 8.0 and len(sizes) == 6  # two calls, z is the heir
    y = x + 1.0  # somebody else's memory
    assert host(y)[3] == 4.0 and host(x)[3] == 3.0 and len(sizes) == 7


def test_what_lies_otherwise_is_no_place_for_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    values = numpy.arange(float(SIZE)).reshape(256, 256)
    x = np.array(values)
    sizes = made(monkeypatch)
    y = (x * 2.0)[::-1] + x
    assert numpy.array_equal(host(y), values[::-1] * 2.0 + values) and len(sizes) == 2
    y = (x * 2.0) > 3.0  # of another type
    assert numpy.array_equal(host(y), values > 1.5) and len(sizes) == 4
    y = (x * 2.0)[:, 1:] + 1.0  # a part
    assert numpy.array_equal(host(y), values[:, 1:] * 2.0 + 1.0) and len(sizes) == 6
    y = (x * 2.0)[:128] + 1.0  # it begins where the result does
    assert numpy.array_equal(host(y), values[:128] * 2.0 + 1.0) and len(sizes) == 8
    out = np.empty((256, 256))
    np.add(x * 2.0, 1.0, out=out, where=x > 7.0)
    host(out)
    assert len(sizes) == 11  # x * 2.0, x > 7.0, out


@pytest.mark.parametrize(
    "change",
    [
        lambda buffer: setattr(buffer, "external", True),
        lambda buffer: setattr(buffer, "lent", True),
        lambda buffer: setattr(buffer, "image", object()),
        lambda buffer: setattr(buffer, "root", None),
        lambda buffer: setattr(buffer, "pending", 3),
        lambda buffer: setattr(buffer, "pending", 1),
    ],
)
def test_whose_memory_ends(change: Callable[[Any], None]) -> None:
    handle = Handle()
    buffer = Allocation(80, handle)
    buffer.allocate()
    buffer.pending = 2
    assert not buffer.ends_after(2)
    del handle
    assert buffer.ends_after(2)
    change(buffer)
    assert not buffer.ends_after(2)
    buffer.image = None


def test_only_memory_that_was_made_here_ends() -> None:
    buffer = Buffer(80, Handle())
    buffer.root = numpy.zeros(80, numpy.uint8)
    assert not buffer.reachable and not buffer.ends_after(0)


def test_memory_comes_back_to_the_pool() -> None:
    x = np.array(numpy.arange(float(SIZE)))
    y = (x * 2.0) + 1.0
    host(y)
    address = y._region.buffer.address
    del y
    y = x * 3.0
    host(y)
    assert y._region.buffer.address == address and not TRACER.calls
