"""Very many calls, recorded, flushed and launched alone: memory and references stay as they are."""

from __future__ import annotations

import gc
import resource
import sys

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.support.extension import HOT

pytestmark = pytest.mark.skipif(HOT is None, reason="needs the compiled extension")

N = 16
CALLS = 125_000


@pk.workunit
def scale(i, y, x, a):
    y[i] = a * x[i]


@pk.workunit
def shift(i, y, x, k):
    y[i] = x[(i + k) % 16]


@pk.workunit
def total(i, acc, x):
    acc += x[i]


def step(x: pk.View, y: pk.View, raw: np.ndarray, k: int) -> None:
    t = pk.View([N], pk.double)
    pk.parallel_for(N, scale, y=t, x=x, a=0.5 + k)
    pk.parallel_for("label", pk.RangePolicy(0, N), shift, y=y, x=t, k=k % 7)
    del t
    pk.parallel_for(N, scale, y=raw[::2], x=y, a=1)
    if k % 3 == 0:
        float(pk.parallel_reduce(N, total, x=y))
    elif k % 3 == 1:
        pyfuser.sync()


def rounds(count: int, offset: int = 0) -> None:
    x, y, raw = pk.View([N], pk.double), pk.View([N], pk.double), np.zeros(2 * N)
    x.fill(1.0)
    for k in range(offset, offset + count):
        step(x, y, raw, k)
        if k % 1000 == 5:
            with pytest.raises(pyfuser.PyFuserError):
                pk.parallel_for(N, scale, y=y, x="no array", a=1.0)
    pyfuser.sync()
    assert raw[0] == 0.5 + offset + count - 1


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("mode", [pyfuser.fusing, pyfuser.unfused])
def test_nothing_grows(mode: object) -> None:
    with mode():  # type: ignore[operator]
        rounds(3000)
        gc.collect()
        counts = [sys.getrefcount(kept) for kept in (None, scale, pk.double, HOT.Prepared)]
        blocks, before = sys.getallocatedblocks(), resident()
        rounds(CALLS // 3)
        gc.collect()
        after = [sys.getrefcount(kept) for kept in (None, scale, pk.double, HOT.Prepared)]
        assert all(abs(new - old) < 2000 for old, new in zip(counts, after, strict=True))
        assert sys.getallocatedblocks() - blocks < 20_000
        assert resident() - before < 8 << 20
