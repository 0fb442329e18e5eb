"""What the extension does of a GPU's calls: as Python, whatever changes between flushes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.engine.gpu import launchable
from pyfuser.engine.gpu.device import current
from pyfuser.runtime.session import SESSION
from pyfuser.support.counters import COUNTERS
from pyfuser.support.extension import HOT
from pyfuser.tuning.thresholds import DEFAULT

N = 300
ROUNDS = 12

pytestmark = pytest.mark.skipif(HOT is None, reason="there is no extension")


@pk.workunit
def scale(i, x, a):
    x[i] = a * x[i]


@pk.workunit
def turned(i, x, y, last):
    y[i] = x[last - i] + 1.0


@pk.workunit
def total(i, acc, x):
    acc += x[i]


@pk.workunit
def less(i, x, mean):
    x[i] = x[i] - mean


@pk.workunit
def fill(i, x, a):
    x[i] = a + i


@pk.workunit
def count(i, acc: pk.Acc[pk.int64], x):
    if x[i] > 0.0:
        acc += 1


@pytest.fixture
def by_python(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The launches that Python makes, from now on."""
    made: list[str] = []
    bind = launchable.Launchable.bind

    def noted(self: Any, *arguments: Any) -> Any:
        made.append(self.spec.title)
        return bind(self, *arguments)

    monkeypatch.setattr(launchable.Launchable, "bind", noted)
    return made


def step(x: Any, y: Any, a: float = 0.5) -> Any:
    """More than one kernel, as `turned` reads what others write; `less` reads the sum."""
    with pyfuser.fusing():
        pk.parallel_for(N, scale, x=x, a=a)
        pk.parallel_for(N, turned, x=x, y=y, last=N - 1)
        mean = pk.parallel_reduce(N, total, x=y)
        pk.parallel_for(N, less, x=x, mean=mean)
    return mean


class Model:
    """The same with NumPy."""

    def __init__(self) -> None:
        self.x, self.y = np.arange(float(N)), np.zeros(N)

    def step(self, a: float = 0.5) -> float:
        self.x *= a
        self.y = self.x[::-1] + 1.0
        mean = float(self.y.sum())
        self.x -= mean
        return mean


def ramp() -> Any:
    x = pk.View([N], pk.double)
    x[:] = np.arange(float(N))
    return x


def test_a_steady_loop_needs_no_python(cupy: Any, by_python: list[str]) -> None:
    x, y, model, kept = ramp(), pk.View([N], pk.double), Model(), []
    for n in range(ROUNDS):
        if n == 3:
            by_python.clear()
        kept.append(step(x, y))
    assert by_python == []
    np.testing.assert_allclose([float(mean) for mean in kept], [model.step() for _ in kept], 1e-12)
    np.testing.assert_allclose(np.asarray(x), model.x, 1e-12)
    np.testing.assert_allclose(np.asarray(y), model.y, 1e-12)


def test_changing_scalars_and_arrays_need_no_python(cupy: Any, by_python: list[str]) -> None:
    x, y, z, model = ramp(), pk.View([N], pk.double), pk.View([N], pk.double), Model()
    for n in range(ROUNDS):
        if n == 6:
            by_python.clear()
        step(x, (y, z)[n % 2], a=0.5 + n)
        model.step(0.5 + n)
    assert by_python == []
    np.testing.assert_allclose(np.asarray(x), model.x, 1e-12)
    np.testing.assert_allclose(np.asarray(z), model.y, 1e-12)


def test_new_views_each_round(cupy: Any, by_python: list[str]) -> None:
    x, model = ramp(), Model()
    for n in range(ROUNDS):
        if n == 4:
            by_python.clear()
        y = pk.View([N], pk.double)
        step(x, y)
        model.step()
    assert by_python == []
    np.testing.assert_allclose(np.asarray(x), model.x, 1e-12)
    np.testing.assert_allclose(np.asarray(y), model.y, 1e-12)


def test_what_is_overwritten_in_part_is_zero_elsewhere(cupy: Any) -> None:
    for n in range(ROUNDS):
        y = pk.View([N], pk.double)
        with pyfuser.fusing():
            pk.parallel_for(pk.RangePolicy(0, N // 2), fill, x=y, a=float(n))
        values = np.asarray(y)
        np.testing.assert_array_equal(values[: N // 2], n + np.arange(N // 2))
        assert not values[N // 2 :].any()


@pytest.mark.parametrize("mode", [pyfuser.fusing, pyfuser.unfused])
def test_the_host_writes_and_reads_between(mode: Any, cupy: Any) -> None:
    x, y = ramp(), pk.View([N], pk.double)
    expected = np.arange(float(N))
    for n in range(ROUNDS):
        with mode():
            pk.parallel_for(N, scale, x=x, a=2.0)
            pk.parallel_for(N, turned, x=x, y=y, last=N - 1)
        expected *= 2.0
        assert x[5] == expected[5]
        if n % 3 == 1:
            x[5] = expected[5] = float(n)
        if n % 3 == 2:
            np.testing.assert_array_equal(np.asarray(x), expected)
    np.testing.assert_array_equal(np.asarray(x), expected)
    assert y[N - 1 - 7] == expected[7] + 1.0


@pytest.mark.parametrize("mode", [pyfuser.fusing, pyfuser.unfused])
def test_an_array_over_a_view_sees_all(mode: Any, cupy: Any) -> None:
    x, expected = ramp(), np.arange(float(N))
    array = None
    for n in range(ROUNDS):
        with mode():
            pk.parallel_for(N, scale, x=x, a=2.0)
        expected *= 2.0
        if n == 5:
            array = np.asarray(x)
        if array is not None:
            pyfuser.sync()
            np.testing.assert_array_equal(array, expected)
            array[3] = expected[3] = float(n)
    np.testing.assert_array_equal(np.asarray(x), expected)


@pytest.mark.parametrize("mode", [pyfuser.fusing, pyfuser.unfused])
def test_streams_that_change(mode: Any, cupy: Any) -> None:
    x, expected = ramp(), np.arange(float(N))
    streams = [cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)]
    for n in range(ROUNDS):
        with streams[n // 5 % 2], mode():
            pk.parallel_for(N, scale, x=x, a=2.0)
            pk.parallel_for(pk.RangePolicy(0, N), scale, x=x, a=0.25)
        expected *= 0.5
    np.testing.assert_array_equal(np.asarray(x), expected)


def test_unfused_calls_need_no_python(cupy: Any, by_python: list[str]) -> None:
    x = ramp()
    with pyfuser.unfused():
        for n in range(ROUNDS):
            if n == 4:
                by_python.clear()
            pk.parallel_for(N, scale, x=x, a=2.0)
            assert pk.parallel_reduce(N, total, x=x) == 2.0 ** (n + 1) * (N * (N - 1) / 2)
            number = pk.parallel_reduce(N, count, x=x)
            assert (number, type(number)) == (N - 1, int)
    assert by_python == []


def test_the_host_runs_calls_beside_a_gpus(cupy: Any) -> None:
    x, y, expected = ramp(), ramp(), np.arange(float(N))
    host = pk.RangePolicy(pk.OpenMP, 0, N)
    for n in range(ROUNDS):
        with pyfuser.fusing() if n % 2 else pyfuser.unfused():
            pk.parallel_for(host, scale, x=y, a=2.0)
            pk.parallel_for(N, scale, x=x, a=2.0)
            if n % 4 > 1:
                pk.parallel_for(host, scale, x=x, a=0.25)
                expected *= 0.25
        expected *= 2.0
    np.testing.assert_array_equal(np.asarray(x), expected)
    np.testing.assert_array_equal(np.asarray(y), np.arange(float(N)) * 2.0**ROUNDS)


def test_a_launch_that_fails_is_made_by_python(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a flush, once; what ran before does not run again."""
    x, y, model = ramp(), pk.View([N], pk.double), Model()
    driver = current().library.driver
    launch, left = driver.launchKernel, [-1]

    def fails(*arguments: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise RuntimeError("once")
        launch(*arguments)

    monkeypatch.setattr(driver, "launchKernel", fails)
    HOT.capture_on(0)
    for n in range(ROUNDS):
        left[0] = n % 4 if n > 4 else -1
        mean = step(x, y)
        assert abs(float(mean) - model.step()) < 1e-9 * abs(float(mean))
    np.testing.assert_allclose(np.asarray(x), model.x, 1e-12)


def test_an_array_that_is_not_the_gpus_is_refused(cupy: Any) -> None:
    x = ramp()
    for _ in range(4):
        with pyfuser.unfused():
            pk.parallel_for(N, scale, x=x, a=2.0)
    with pytest.raises(TypeError, match="NumPy array"):
        pk.parallel_for(N, scale, x=np.zeros(N), a=2.0)


def test_a_step_is_counted_as_a_replay(cupy: Any) -> None:
    x, y = ramp(), pk.View([N], pk.double)
    for _ in range(4):
        step(x, y)
    before = COUNTERS.replays
    step(x, y)
    assert COUNTERS.replays == before + 1


@pytest.mark.parametrize("n", [DEFAULT.gpu_few - 1, DEFAULT.gpu_few])
def test_small_spaces_have_small_blocks(n: int, cupy: Any) -> None:
    """By their size alone, fused or not."""
    x = pk.View([n], pk.double)
    x[:] = np.random.default_rng(2).random(n)
    with pyfuser.unfused():
        alone = pk.parallel_reduce(n, total, x=x)
    with pyfuser.fusing():
        pk.parallel_for(n, fill, x=pk.View([n], pk.double), a=1.0)
        together = float(pk.parallel_reduce(n, total, x=x))
    assert together == alone
    (launch,) = SESSION.flushes[-1].program.launches
    kernel = launch.launchable.sized(launch.space).kernel
    assert kernel.launch.threads == (64 if n < DEFAULT.gpu_few else 256)
