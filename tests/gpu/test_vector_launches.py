"""Launches of kernels that load vectors: when they are chosen, and that graphs know of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.codegen.gpu import packed
from pyfuser.engine.gpu import launchable, variants
from pyfuser.engine.gpu.device import current
from pyfuser.engine.gpu.launchable import Launchable
from pyfuser.engine.gpu.variants import Registers, costs_more
from pyfuser.runtime.session import SESSION
from pyfuser.support.counters import COUNTERS
from tests.programs import KERNELS, check_fused_equals_unfused

N = 1001
PROGRAMS = ("adam_optimizer", "elementwise_chain", "euler1d", "harris_md")


@pk.workunit
def add(i, x, y):
    y[i] += x[i]


@pk.workunit
def mirrored(i, last, x, y):
    y[i] = x[last - i]


@pk.workunit
def halved(i, j, x, y):
    y[i][j] = x[i][j] * 0.5


@pytest.fixture
def launched(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the entries of kernels were launched, all compiled with vectors."""
    found: Counter[str] = Counter()
    calls = Launchable.calls

    def counted(self: Launchable, bound: Any, handle: int) -> Any:
        assert self.kernel.vectors is not None or not bound.vectors
        found["vectors" if bound.vectors else "plain"] += 1
        return calls(self, bound, handle)

    monkeypatch.setattr(Launchable, "calls", counted)
    monkeypatch.setattr(packed, "WIDEST", 8)
    monkeypatch.setattr(variants, "LEAST", 1)
    monkeypatch.setattr(variants, "ROW", 1)
    SESSION.clear()
    return found


def ramp(cupy: Any, skip: int = 0, dtype: str = "float64") -> Any:
    """Numbers that begin so many elements behind the start of an allocation."""
    return cupy.asarray(np.arange(N + skip, dtype=dtype))[skip:]


def test_aligned_arrays_are_loaded_as_vectors(cupy: Any, launched: Counter[str]) -> None:
    for dtype in ("float64", "float32", "int8"):
        x, y = ramp(cupy, dtype=dtype), ramp(cupy, dtype=dtype)
        with pyfuser.unfused():
            pk.parallel_for(N, add, x=x, y=y)
        pyfuser.sync()
        np.testing.assert_array_equal(y.get(), 2 * np.arange(N).astype(dtype))
    assert launched == {"vectors": 3}


def test_others_are_not(cupy: Any, launched: Counter[str]) -> None:
    for skip, together, name in ((1, 1, "vectors"), (1, 0, "plain"), (2, 0, "vectors")):
        launched.clear()
        x, y = ramp(cupy, skip), ramp(cupy, together)
        with pyfuser.unfused():
            pk.parallel_for(N, add, x=x, y=y)
        pyfuser.sync()
        np.testing.assert_array_equal(y.get(), 2.0 * np.arange(N) + skip + together)
        assert launched == {name: 1}


def test_columns_of_an_odd_length_are_not(cupy: Any, launched: Counter[str]) -> None:
    """Views on GPUs have columns that are contiguous."""
    for length, name in ((32, "vectors"), (31, "plain")):
        launched.clear()
        x, y = (pk.View([length, 20], pk.double) for _ in range(2))
        numbers = np.arange(20.0 * length).reshape(length, 20)
        x[:] = numbers
        pk.parallel_for(pk.MDRangePolicy([3, 1], [length, 20]), halved, x=x, y=y)
        expected = np.zeros((length, 20))
        expected[3:, 1:] = numbers[3:, 1:] * 0.5
        np.testing.assert_array_equal(np.asarray(y), expected)
        assert launched == {name: 1}


def test_few_iterations_are_not(
    cupy: Any, launched: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(variants, "LEAST", 300)  # threads, of two doubles each
    x, y = ramp(cupy), ramp(cupy)
    with pyfuser.unfused():
        for n in (599, 600):
            pk.parallel_for(n, add, x=x, y=y)
    pyfuser.sync()
    assert launched == {"plain": 1, "vectors": 1}


def test_short_rows_are_not(
    cupy: Any, launched: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(variants, "ROW", 8)  # threads, of two doubles each
    x, y = (pk.View([20, 40], pk.double, layout=pk.Layout.LayoutRight) for _ in range(2))
    for width in (16, 15):
        pk.parallel_for(pk.MDRangePolicy([0, 0], [20, width]), halved, x=x, y=y)
    pyfuser.sync()
    assert launched == {"vectors": 1, "plain": 1}


def test_a_graph_is_replayed_for_the_alignment_it_was_made_for(
    cupy: Any, launched: Counter[str]
) -> None:
    """The bytes that the choice depends on are its key."""
    steps = 12
    arrays = [(ramp(cupy, skip), ramp(cupy)) for skip in (0, 1)]
    before = COUNTERS.graph_launches
    for _ in range(steps):
        for x, y in arrays:  # the same program, on memory that is aligned or not
            with pyfuser.fusing():
                pk.parallel_for(N, add, x=x, y=y)
                pk.parallel_for(N, mirrored, last=N - 1, x=y, y=x)
    pyfuser.sync()
    assert COUNTERS.graph_launches - before >= 2 * (steps - 4)
    assert launched["vectors"] == launched["plain"] / 3  # one of four kernels
    for skip, (x, y) in enumerate(arrays):
        first, second = np.arange(N) + float(skip), np.arange(float(N))
        for _ in range(steps):
            second += first
            first = second[::-1].copy()
        np.testing.assert_array_equal(y.get(), second)
        np.testing.assert_array_equal(x.get(), first)


@pytest.mark.parametrize(
    ("vectors", "plain", "worse"),
    [
        (Registers(40, 0), Registers(20, 0), False),
        (Registers(20, 8), Registers(20, 0), True),
        (Registers(20, 8), Registers(20, 8), False),
        (Registers(200, 0), Registers(20, 0), True),
        (Registers(200, 0), Registers(210, 0), False),
    ],
)
def test_vectors_that_spill_or_crowd_cost_more(
    vectors: Registers, plain: Registers, worse: bool
) -> None:
    assert costs_more(vectors, plain) == worse


def test_a_kernel_that_spills_is_not_launched(
    cupy: Any, launched: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pk.parallel_for(N, add, x=ramp(cupy), y=ramp(cupy))
    pyfuser.sync()
    assert launched == {"vectors": 1}
    used = iter((Registers(64, 16), Registers(32, 0)))  # of vectors, and of the plain one
    monkeypatch.setattr(launchable, "registers_of", lambda device, function: next(used))
    SESSION.clear()
    launched.clear()
    with pyfuser.unfused():
        pk.parallel_for(N, add, x=ramp(cupy), y=ramp(cupy))
    pyfuser.sync()
    assert launched == {"plain": 1}


def test_a_device_can_do_without(cupy: Any, launched: Counter[str]) -> None:
    x, y = ramp(cupy), ramp(cupy)
    device = current()
    device.vectors = False
    try:
        with pyfuser.unfused():
            pk.parallel_for(N, add, x=x, y=y)
    finally:
        device.vectors = True
    assert launched == {"plain": 1}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_the_same(name: str, launched: Counter[str]) -> None:
    (path,) = (path for path in KERNELS if path.stem == name)
    check_fused_equals_unfused(path, runs=2)
    assert launched["vectors"]
