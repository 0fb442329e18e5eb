"""Arrays as memory: bytes, the buffer protocol, NumPy's interfaces."""

from __future__ import annotations

import ctypes
import hashlib
import io
import sys
from typing import Any

import numpy
import pytest

import pyfuser.numpy as np
from pyfuser.frontends.numpy.memory import is_external
from pyfuser.support.extension import HOT

has_buffers = pytest.mark.skipif(
    sys.version_info < (3, 12) and HOT is None, reason="needs the extension before Python 3.12"
)
DTYPES = ["i8", "f4", "u1", "c16", "?", ">i4"]


@pytest.mark.parametrize("dtype", [*DTYPES, "M8[s]"])
def test_bytes_are_those_of_the_memory(dtype: str) -> None:
    theirs = numpy.arange(6).astype(dtype).reshape(2, 3)
    ours = np.array(theirs)
    for mine, other in ((ours, theirs), (ours.T, theirs.T), (ours[:, ::2], theirs[:, ::2])):
        assert bytes(mine) == other.tobytes()


@has_buffers
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_buffer_protocol(dtype: str) -> None:
    theirs = numpy.arange(6).astype(dtype)
    ours = np.array(theirs)
    assert bytearray(ours) == bytearray(theirs)
    assert hashlib.sha256(ours).digest() == hashlib.sha256(theirs).digest()
    file = io.BytesIO()
    file.write(ours)
    assert file.getvalue() == theirs.tobytes()
    mine, other = memoryview(ours), memoryview(theirs)
    assert (mine.format, mine.shape, mine.strides) == (other.format, other.shape, other.strides)


@has_buffers
def test_who_writes_into_the_memory_writes_into_the_array() -> None:
    x = np.zeros(100_000)
    x += 1.0
    shared = numpy.frombuffer(x)
    assert shared[5] == 1.0
    shared[5] = 7.0
    x *= 2.0
    assert float(x[5]) == 14.0 and shared[5] == 14.0 and shared[6] == 2.0
    x.flags.writeable = False
    assert memoryview(x).readonly and not numpy.asarray(x).flags.writeable


def test_numpys_interfaces() -> None:
    x = np.arange(6.0).reshape(2, 3)[:, 1:]
    interface = x.__array_interface__
    theirs = numpy.asarray(x)
    assert interface["shape"] == (2, 2)
    assert tuple(interface["data"]) == (theirs.ctypes.data, False)
    assert x.__array_struct__ is not None


N = 2_000_000


class Holder:
    """An object of somebody's whose memory is an array's."""

    def __init__(self, x: Any) -> None:
        self.kept = x
        self.__array_interface__ = x.__array_interface__


@has_buffers
def test_memory_that_frombuffer_shares_is_seen_at_once() -> None:
    x = np.ones(N) * 1.0
    shared = numpy.frombuffer(x)
    x += 1.0
    assert shared[0] == 2.0
    shared[0] = 7.0
    assert (x + 0.0)[0] == 7.0


def test_memory_whose_address_was_taken_is_seen_at_once() -> None:
    x = np.ones(N) * 1.0
    holder = Holder(x)
    shared = numpy.asarray(holder)
    x += 1.0
    assert shared[0] == 2.0
    y = np.ones(N) * 1.0
    address = y.__array_interface__["data"][0]
    y += 1.0
    assert ctypes.c_double.from_address(address).value == 2.0
    z = np.ones(N) * 1.0
    address = z.ctypes.data
    z += 1.0
    assert ctypes.c_double.from_address(address).value == 2.0


def test_who_only_looks_for_the_interface_changes_nothing() -> None:
    x = np.ones(N) * 1.0
    assert hasattr(x, "__array_interface__")
    assert not is_external(x)
