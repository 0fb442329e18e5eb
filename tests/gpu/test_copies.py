"""What is copied to the host when it looks at a part of a View."""

from __future__ import annotations

from typing import Any

import numpy as np
import pykokkos as pk
import pytest

from pyfuser.support.counters import COUNTERS
from pyfuser.trace import images

N = 3 * images.LATENCY // 8
"""Doubles: as many bytes as three copies of little may cost."""


@pk.workunit
def set_to(i, value, x):
    x[i] = i + value


@pk.workunit
def rows(i, j, x):
    x[i][j] = i * 1000.0 + j


def made(value: float = 1.0) -> Any:
    view = pk.View([N], pk.double)
    pk.parallel_for(N, set_to, value=value, x=view)
    return view


class Copied:
    """Bytes that came to the host since the last time."""

    def __init__(self) -> None:
        self.before = COUNTERS.bytes_to_host

    def __call__(self) -> int:
        now = COUNTERS.bytes_to_host
        self.before, found = now, now - self.before
        return found


def test_one_element_is_copied_alone(cupy: Any) -> None:
    x = made()
    copied = Copied()
    assert x[5] == 6.0 and type(x[5]) is np.float64
    assert copied() == 2 * 8
    pk.parallel_for(N, set_to, value=2.0, x=x)
    assert x[-1] == N + 1.0
    assert copied() == 8
    with pytest.raises(IndexError):
        x[N]
    assert x[np.int64(5)] == 7.0


def test_elements_in_a_loop_are_copied_together(cupy: Any) -> None:
    """Copies of little that would take as long as one of all."""
    x = made()
    copied = Copied()
    assert [x[n] for n in range(100)] == [n + 1.0 for n in range(100)]
    assert copied() == 8 * N + 2 * 8
    assert sum(x) == N * (N + 1) / 2
    assert copied() == 0
    pk.parallel_for(N, set_to, value=0.0, x=x)
    assert x[3] == 3.0
    assert copied() == 8


def test_slices(cupy: Any) -> None:
    x = made()
    copied = Copied()
    first = x[:10]
    assert copied() == 0
    assert str(first) == str(np.arange(1.0, 11.0))
    assert copied() == 80
    assert np.array_equal(x[4:20:3] + np.zeros(6), np.arange(5.0, 21.0, 3.0))
    assert copied() == 16 * 8
    assert first[9] == 10.0 and first[-10] == 1.0
    assert copied() == 8 * N, "the third copy is one of all"
    y = made()
    copied()
    assert [float(v) for v in y[10:4:-2]] == [11.0, 9.0, 7.0]
    assert copied() == 16 + 8 * N
    assert str(made()[3:3]) == "[]"


def test_rows(cupy: Any) -> None:
    x = pk.View([64, N // 64], pk.double)
    pk.parallel_for(pk.MDRangePolicy([0, 0], [64, N // 64]), rows, x=x)
    copied = Copied()
    assert x[7, 5] == 7005.0
    assert copied() == 8
    assert x[9][4] == 9004.0
    assert copied() == 8
    pk.parallel_for(pk.MDRangePolicy([0, 0], [64, N // 64]), rows, x=x)
    assert np.array_equal(x[:, 2] + np.zeros(64), 2.0 + 1000.0 * np.arange(64))
    assert copied() == 8 * 64, "they are neighbours: LayoutLeft"
    assert np.array_equal(x[3] + 1.0, 3001.0 + np.arange(N // 64))
    assert copied() == 8 * N, "what is spread over all is no small part"
    assert np.array_equal(np.asarray(x)[:, 2], np.arange(64) * 1000.0 + 2)


def test_a_part_is_no_window_and_host_writes_are_kept(cupy: Any) -> None:
    x = made()
    part = x[2:5]
    assert part[0] == 3.0
    x[2] = 100.0
    assert part[0] == 100.0 and x[3] == 4.0
    pk.parallel_for(N, set_to, value=5.0, x=x)
    assert part[0] == 7.0
    part[1] = -1.0
    assert x[3] == -1.0 and x[2] == 7.0


def test_arrays_that_are_alive_see_all(cupy: Any) -> None:
    x = made()
    array = np.asarray(x)
    pk.parallel_for(N, set_to, value=9.0, x=x)
    assert x[1] == 10.0
    assert array[1] == 10.0
    array[1] = 3.0
    assert x[1] == 3.0
    del array
    pk.parallel_for(N, set_to, value=4.0, x=x)
    copied = Copied()
    assert x[1] == 5.0
    assert copied() == 8


def test_other_types(cupy: Any) -> None:
    x = pk.View([images.LATENCY], pk.int64)
    pk.parallel_for(images.LATENCY, set_to, value=1, x=x)
    plain = pk.View([4], pk.int64)
    assert type(x[0]) is type(plain[0]) and x[0] == 1


def test_streams(cupy: Any) -> None:
    """A part is read once the stream that wrote it has come so far."""
    stream = cupy.cuda.Stream(non_blocking=True)
    x = pk.View([N], pk.double)
    policy = pk.RangePolicy(pk.ExecutionSpaceInstance(pk.Cuda, stream), 0, N)
    pk.parallel_for(policy, set_to, value=1.0, x=x)
    assert x[8] == 9.0
