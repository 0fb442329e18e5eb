"""`pyfuser.numpy` on a GPU, or on the stand-in for CuPy: `set_space`, memory, what is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import pykokkos as pk
import pytest

import pyfuser
import pyfuser.numpy as np
from pyfuser.frontends.numpy.lanes import lanes_of
from pyfuser.frontends.numpy.spaces import SPACE, set_space
from pyfuser.frontends.numpy.switches import LIMITS
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import ArgumentError
from tests.processes import real

N = 70_000  # elements that are recorded
SHAPES = (3, 70_001), (70_001, 3), (20, 30, 400), (1, 90_000), (3000, 40), (2000, 40), (40, 50, 60)
AXES = [(shape, axis) for shape in SHAPES for axis in (None, *range(len(shape)))]


@pk.workunit
def add(i: int, x: pk.View1D[pk.double], a: pk.double):
    x[i] += a


@pytest.fixture
def gpu(cupy: Any) -> Iterator[Any]:
    """Operations are recorded for pk.Cuda."""
    set_space(pk.Cuda)
    try:
        yield cupy
    finally:
        pyfuser.discard()
        set_space(pk.OpenMP)


class Moved:
    """What a block launched, and the bytes that it copied to the host and to the device."""

    def __enter__(self) -> Moved:
        self._before = self._now()
        return self

    def __exit__(self, *_: object) -> None:
        pyfuser.sync()
        now = self._now()
        self.launches, self.to_host, self.to_device = (
            n - before for n, before in zip(now, self._before, strict=True)
        )

    @staticmethod
    def _now() -> tuple[int, int, int]:
        return COUNTERS.launches, COUNTERS.bytes_to_host, COUNTERS.bytes_to_device


def test_operations_fuse_and_stay_on_the_device(gpu: Any) -> None:
    x = np.ones(N)
    y = np.sqrt(x + 3.0)  # x is copied once
    pyfuser.sync()
    with Moved() as moved:
        z = (y * y + x) / 5.0
    assert (moved.launches, moved.to_host, moved.to_device) == (1, 0, 0)
    assert (numpy.asarray(z) == 1.0).all()


def test_an_element_is_copied_alone(gpu: Any) -> None:
    x = np.ones((2 * N, 2)) + 1.0
    pyfuser.sync()
    with Moved() as moved:
        assert x[3, 1] == 2.0
        assert x[-1][0] == 2.0
        assert type(x[0, 0]) is numpy.float64
    assert 0 < moved.to_host <= 3 * 8


def test_small_parts_of_what_is_there_stay_there(gpu: Any) -> None:
    x = np.ones(N) + 1.0
    pyfuser.sync()
    with Moved() as moved:
        y = x[:4] * 2.0
        y += 1.0
    assert (moved.to_host, moved.to_device) == (0, 0)
    assert y.tolist() == [5.0] * 4


def test_small_arrays_of_the_host_are_computed_there(gpu: Any) -> None:
    x = np.ones(10)
    with Moved() as moved:
        y = x + 1.0
    assert (moved.launches, moved.to_device) == (0, 0)
    assert y[0] == 2.0


def test_views_made_before_see_what_the_device_wrote(cupy: Any) -> None:
    x = np.zeros(N)
    view = x[2:]  # which has no region yet
    first = x[:1]
    x[0] = 5.0
    set_space(pk.Cuda)
    try:
        x += 1.0
        assert view[0] == 1.0
        assert first.tolist() == [6.0]
        view *= 2.0
        assert x[:4].tolist() == [6.0, 1.0, 2.0, 2.0]
        x[1] = 7.0  # on the host, which has the newest values now
        assert (x + 0.0)[:3].tolist() == [6.0, 7.0, 2.0]
    finally:
        set_space(pk.OpenMP)


@pytest.mark.parametrize("touch", ["item", "store", "method", "ufunc", "mask", "fancy"])
def test_what_the_host_does_in_between_counts(gpu: Any, touch: str) -> None:
    x = np.zeros(N) + 1.0
    pyfuser.sync()
    if touch == "item":
        assert x.item(3) == 1.0
    elif touch == "store":
        x[3] = 2.0
    elif touch == "method":
        x.sort()
    elif touch == "ufunc":
        numpy.add.at(x, [3, 3], 0.5)
    elif touch == "mask":
        x[x > 5.0] = 3.0
    else:
        x[[3, 4]] = 2.0
    changed = 2.0 if touch in ("store", "ufunc", "fancy") else 1.0
    y = x * 2.0
    assert y[3] == 2.0 * changed
    assert y[0] == 2.0


def test_exports_end_recording_and_are_seen(gpu: Any) -> None:
    x = np.zeros(N) + 1.0
    outside = numpy.asarray(x)
    outside[0] = 9.0
    y = x + 1.0
    assert y[0] == 10.0
    x += 1.0
    assert outside[0] == 10.0
    del outside
    with Moved() as moved:
        z = x + 1.0
    assert moved.launches == 1
    assert z[0] == 11.0


def test_workunits_on_the_gpu_take_arrays(gpu: Any) -> None:
    x = np.zeros(N) + 1.0
    with pyfuser.fusing(), Moved() as moved:
        pk.parallel_for(pk.RangePolicy(pk.Cuda, 0, N), add, x=x, a=2.0)
        y = x * 2.0
    assert moved.launches == 1
    assert y[5] == 6.0
    other = numpy.ones(N)
    with pytest.raises(ArgumentError, match="in the host's memory"):
        pk.parallel_for(pk.RangePolicy(pk.Cuda, 0, N), add, x=other, a=2.0)
    foreign = np.asarray(other)
    with pytest.raises(ArgumentError, match="in the host's memory"):
        pk.parallel_for(pk.RangePolicy(pk.Cuda, 0, N), add, x=foreign, a=2.0)


def test_elements_at_odd_addresses_are_the_hosts(gpu: Any) -> None:
    raw = np.zeros(8 * N + 1, numpy.uint8)
    x = raw[1:].view(numpy.float64)
    with Moved() as moved:
        y = x + 1.0
    assert moved.launches == 0
    assert y[0] == 1.0
    records = np.zeros(N, numpy.dtype([("a", "i1"), ("b", "f8")]))
    records["b"] += 1.0
    assert (records["b"] * 2.0)[3] == 2.0


def test_reductions(gpu: Any) -> None:
    given = numpy.random.default_rng(1).random((300, 400)) - 0.5
    x = np.array(given) * 2.0
    expected = given * 2.0
    assert numpy.isclose(float(x.sum()), expected.sum())
    assert x.max() == expected.max()
    assert x.min() == expected.min()
    for axis in (0, 1):
        numpy.testing.assert_allclose(numpy.asarray(x.sum(axis=axis)), expected.sum(axis=axis))
        numpy.testing.assert_array_equal(numpy.asarray(x.max(axis=axis)), expected.max(axis=axis))
    numpy.testing.assert_allclose(numpy.asarray(x.std(axis=0)), expected.std(axis=0))


@pytest.mark.parametrize(("shape", "axis"), AXES)
def test_long_axes_are_reduced_by_lanes(gpu: Any, shape: tuple[int, ...], axis: int | None) -> None:
    floats = numpy.random.default_rng(2).random(shape) - 0.5
    for given in (floats, (floats * 100.0).astype(numpy.int32), floats > 0.4):
        x = np.array(given)
        for name in ("sum", "max", "min", "any", "all", "prod", "mean", "std"):
            expected = numpy.asarray(getattr(given, name)(axis=axis))
            found = numpy.asarray(getattr(x, name)(axis=axis))
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape), name
            if expected.dtype.kind == "f":
                numpy.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-300)
            else:
                numpy.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("inner", [True, False])
def test_lanes_are_shorter_than_their_axis(inner: bool) -> None:
    for count in (*range(1, 3000), 10**6):
        for results in (1, 3, 1000, 1985, 1986, 2000, 2048, 2049, 65_536, 10**7):
            lanes = lanes_of(count, results, inner)
            assert lanes < 2 or count // lanes >= 2


def test_an_item_is_copied_alone(gpu: Any) -> None:
    x = np.ones((N, 2)) + 1.0
    pyfuser.sync()
    with Moved() as moved:
        assert x.item(3, 1) == 2.0
        assert type(x.item(-1, 0)) is float
        with pytest.raises(IndexError):
            x.item(N, 0)
    assert moved.to_host == 2 * 8
    assert x.item(5) == 2.0
    assert np.sort(x[:, 0])[0] == 2.0
    with Moved() as moved:
        y = x + 1.0
    assert moved.to_device == 0  # the host has read it only
    assert y[0, 0] == 3.0


def test_few_results_do_not_leave_the_device(gpu: Any) -> None:
    x = np.ones((N, 3)) + 1.0
    pyfuser.sync()
    with Moved() as moved:
        sums = x.sum(axis=0)
    assert moved.to_host == 0
    assert moved.launches >= 2  # lanes, and then these
    assert sums.tolist() == [2.0 * N] * 3


def test_a_plan_of_one_space_is_not_the_others(gpu: Any) -> None:
    def run(x: Any) -> Any:
        return (x + 1.0) * 2.0

    for space in (pk.OpenMP, pk.Cuda, pk.OpenMP, pk.Cuda):
        set_space(space)
        with Moved() as moved:
            y = run(np.ones(N))
        assert moved.launches == (space is pk.Cuda)  # what used a GPU computes at once on the host
        assert y[1] == 4.0


def test_streams(gpu: Any) -> None:
    x = np.ones(N) + 1.0
    with gpu.cuda.Stream():
        y = x * 2.0
        z = y + 1.0
    w = z + x
    assert w[7] == 7.0


def test_spaces_that_are_none() -> None:
    for wrong in ("GPU", "cuda", pk.Serial, None, 3):
        with pytest.raises(ValueError, match=r"set_space: .* is none of pk.OpenMP, pk.Cuda"):
            set_space(wrong)
    assert (SPACE.execution, SPACE.device) == ("OpenMP", False)


def test_without_cupy_the_host_stays() -> None:
    code = (
        "import sys; sys.modules['cupy'] = None\n"
        "import pyfuser.numpy as np\n"
        "try: np.set_space('Cuda')\n"
        "except ValueError as error: print(type(error).__name__)\n"
        "print((np.ones(100_000) + 1.0)[0])"
    )
    done = real("-c", code, check=True)
    assert done.stdout.split() == ["DeviceError", "2.0"]


def test_the_environment_names_a_space() -> None:
    code = (
        "import sys; sys.modules['cupy'] = None\n"
        "import pyfuser\n"
        "import pykokkos as pk\n"
        "print(pk.get_default_space())\n"
        "try: import pyfuser.numpy\n"
        "except ValueError as error: print(type(error).__name__)"
    )
    done = real("-c", code, check=True, PYFUSER_SPACE="cuda")
    assert done.stdout.split() == ["ExecutionSpace.Cuda", "DeviceError"]


def test_thresholds_are_those_of_the_space(gpu: Any) -> None:
    assert LIMITS.first(False) == LIMITS.most
    set_space(pk.OpenMP)
    assert LIMITS.first(False) == max(LIMITS.most, LIMITS.sure)
