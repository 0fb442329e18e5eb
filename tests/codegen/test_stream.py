"""Results past the caches: which, and that they arrive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import pyfuser
from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import KernelSpec
from pyfuser.runtime import driver
from pyfuser.transform import group
from pyfuser.tuning.host import Known, known

# isort: split
import pykokkos as pk


@pk.workunit
def double(i, y, x):
    y[i] = 2 * x[i]


@pk.workunit
def next_one(i, y, x):
    y[i] = x[i] + 1


@pk.workunit
def shifted(i, y, x):
    y[i + 1] = x[i]


@pk.workunit
def add(i, y, x):
    y[i] += x[i]


@pk.workunit
def where_positive(i, y, x):
    if x[i] > 0:
        y[i] = x[i]


@pk.workunit
def twice(i, y, x):
    y[i] = 0
    if x[i] > 0:
        y[i] = x[i]


@pk.workunit
def beside(i, y, x):
    y[i] = x[i]
    if x[i] > 8:
        y[0] = x[i]


@pk.workunit
def rows(i, j, y, x):
    y[i][j] = 3 * x[i][j]


@pk.workunit
def transposed(i, j, y, x):
    y[i][j] = x[j][i]


@pk.workunit
def roots(i, acc, y, x):
    y[i] = x[i]
    acc += x[i]


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = replace(known().machine, streaming=1)
    monkeypatch.setattr(group, "known", lambda: Known(machine))
    driver.PROGRAMS.clear()


def streams() -> list[list[str]]:
    """The views that each kernel of the last flush stores past the caches."""
    return [list(names(launch.launchable.spec)) for launch in driver.FLUSHES[-1].program.launches]


def names(spec: KernelSpec) -> Iterator[str]:
    for name, view in zip(spec.names_of_params(), getattr(spec, "views", ()), strict=False):
        if view is not None and view.streamed:
            assert "pf_streamed();" in emit(spec)
            yield name


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("n", [0, 1, 7, 63, 64, 65, 1000, 5003])
@pytest.mark.parametrize("begin", [0, 1, 3])
def test_every_element_arrives_and_no_other_one_is_touched(dtype: str, n: int, begin: int) -> None:
    x, y = np.arange(n + 8).astype(dtype), np.full(n + 8, 5, dtype)
    expected = y.copy()
    expected[begin : begin + n] = 2 * x[begin : begin + n]
    with pyfuser.fusing():
        pk.parallel_for(pk.RangePolicy(begin, begin + n), double, y=y, x=x)
    assert streams() == [["y"]]
    assert np.array_equal(y, expected)


@pytest.mark.parametrize("offset", range(9))
def test_results_begin_anywhere_in_a_line(offset: int) -> None:
    x, y = np.arange(700.0), np.zeros(720)
    with pyfuser.fusing():
        pk.parallel_for(700, double, y=y[offset : offset + 700], x=x)
    assert streams() == [["y"]]
    assert np.array_equal(y[offset : offset + 700], 2 * x)
    assert not y[:offset].any()
    assert not y[offset + 700 :].any()


def test_boxes_stream_along_their_rows() -> None:
    x, y = np.random.default_rng(1).random((9, 301)), np.zeros((9, 301))
    with pyfuser.fusing():
        pk.parallel_for(pk.MDRangePolicy([1, 2], [8, 299]), rows, y=y, x=x)
    assert streams() == [["y"]]
    expected = np.zeros_like(y)
    expected[1:8, 2:299] = 3 * x[1:8, 2:299]
    assert np.array_equal(y, expected)


def test_a_view_across_the_loop_does_not_stream() -> None:
    x, y = np.random.default_rng(1).random((40, 40)), np.zeros((40, 40), order="F")
    with pyfuser.fusing():
        pk.parallel_for(pk.MDRangePolicy([0, 0], [40, 40]), transposed, y=y.T, x=x)
    assert np.array_equal(y.T, x.T)
    x, y = x[:, ::2].copy(), np.zeros((40, 80))[:, ::2]
    with pyfuser.fusing():
        pk.parallel_for(pk.MDRangePolicy([0, 0], [40, 20]), rows, y=y[:, :20], x=x)
    assert streams() == [[]]
    assert np.array_equal(y[:, :20], 3 * x)


@pytest.mark.parametrize("work", [shifted, add, where_positive, beside])
def test_what_is_read_or_stored_elsewhere_or_not_always_does_not(work: object) -> None:
    x, y = np.random.default_rng(2).normal(size=300) * 10, np.ones(301)
    expected = y.copy()
    with pyfuser.unfused():
        pk.parallel_for(300, work, y=expected, x=x)
    with pyfuser.fusing():
        pk.parallel_for(300, work, y=y, x=x)
    assert streams() == [[]]
    assert work is beside or np.array_equal(y, expected)


def test_a_result_that_is_stored_again_in_its_iteration_streams_once() -> None:
    x, y = np.random.default_rng(2).normal(size=300), np.ones(300)
    with pyfuser.fusing():
        pk.parallel_for(300, twice, y=y, x=x)
    assert streams() == [["y"]]
    assert np.array_equal(y, np.maximum(x, 0))


def test_overlapping_views_do_not() -> None:
    x = np.arange(301.0)
    with pyfuser.fusing():
        pk.parallel_for(300, next_one, y=x[:300], x=x[:300])
    assert streams() == [[]]


def test_what_a_later_call_of_the_flush_needs_does_not() -> None:
    x, y, z = np.arange(300.0), np.zeros(300), np.zeros(300)
    with pyfuser.fusing():
        pk.parallel_for(300, double, y=y, x=x)
        pk.parallel_for(150, next_one, y=z, x=y[100:250])
    assert streams() == [[], ["y"]]
    assert np.array_equal(z[:150], y[100:250] + 1)


def test_both_results_of_a_fused_loop_stream() -> None:
    x, y, z = np.arange(300.0), np.zeros(300), np.zeros(300)
    with pyfuser.fusing():
        pk.parallel_for(300, double, y=y, x=x)
        pk.parallel_for(300, next_one, y=z, x=y)
    assert [len(views) for views in streams()] == [2]
    assert np.array_equal(z, 2 * x + 1)


def test_sums_keep_their_results_near() -> None:
    x, y = np.arange(300.0), np.zeros(300)
    with pyfuser.fusing():
        total = pk.parallel_reduce(300, roots, y=y, x=x)
        assert total == x.sum()
    assert streams() == [[]]


def test_small_results_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = replace(known().machine, streaming=2401)
    monkeypatch.setattr(group, "known", lambda: Known(machine))
    for n, expected in ((300, [[]]), (301, [["y"]])):
        x, y = np.arange(float(n)), np.zeros(n)
        with pyfuser.fusing():
            pk.parallel_for(n, double, y=y, x=x)
        assert streams() == expected


def test_unfused_calls_do_not_know_what_comes() -> None:
    x, y = np.arange(300.0), np.zeros(300)
    before = len(driver.FLUSHES)
    with pyfuser.unfused():
        pk.parallel_for(300, double, y=y, x=x)
    assert len(driver.FLUSHES) == before
    assert np.array_equal(y, 2 * x)


def test_explain_says_so() -> None:
    x, result = pk.View([300], pk.double), pk.View([300], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(300, double, y=result, x=x)
    assert "stored past the caches: result" in str(pyfuser.explain())


@pytest.mark.parametrize("n", [8, 100, 1001])
def test_results_of_a_loop_that_is_split_arrive(n: int) -> None:
    x, y, z = np.arange(float(n)), np.zeros(n), np.full(n, 5.0)
    with pyfuser.fusing():
        pk.parallel_for(n, double, y=y, x=x)
        pk.parallel_for(pk.RangePolicy(1, n - 1), next_one, y=z, x=y)
    (launch,) = driver.FLUSHES[-1].program.launches
    assert "pf_middle" in emit(launch.launchable.spec)
    assert streams() == [["y"]]
    assert np.array_equal(y, 2 * x)
    assert np.array_equal(z[1:-1], 2 * x[1:-1] + 1)
    assert z[0] == z[-1] == 5


@pk.workunit
def costly(i, y, x):
    y[i] = pk.sqrt(x[i]) / (x[i] + 1) + pk.sqrt(x[i] + 2)


def test_loops_that_compute_do_not() -> None:
    x, result = pk.View([300], pk.double), pk.View([300], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(300, costly, y=result, x=x)
    (launch,) = driver.FLUSHES[-1].program.launches
    assert "pf_stream" not in emit(launch.launchable.spec)
    assert "past the caches" not in str(pyfuser.explain())
