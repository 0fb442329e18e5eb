"""The Debug space: what Python computes of a program is what its kernels compute."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

N = 6


@pk.workunit
def maths(i, y, x):
    y[i] = pk.exp(x[i]) + pk.sqrt(x[i]) + pk.fmax(x[i], 1.0) + pk.negative(x[i])


@pk.workunit
def total(i, acc: pk.Acc[pk.int64], b):
    acc += b[i]


@pk.workunit
def without_annotation(i, acc, b):
    acc -= b[i]


@pk.workunit
def drawn(i, y, pool: pk.RandomPool):
    y[i] = pk.rand(float)


@pk.workunit
def backwards(team: pk.TeamMember, m, n):
    j: int = team.league_rank()
    row: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), n)

    def load(i: int):
        row[i] = 2.0 * m[j][i]

    def store(i: int):
        m[j][i] = row[n - 1 - i]

    pk.parallel_for(pk.TeamThreadRange(team, n), load)
    team.team_barrier()
    pk.parallel_for(pk.TeamThreadRange(team, n), store)


@pytest.fixture
def debug() -> Iterator[None]:
    before = pk.get_default_space()
    pk.set_default_space(pk.Debug)
    yield
    pk.set_default_space(before)


def test_maths_of_numbers(debug: None) -> None:
    x, y = np.linspace(0.5, 2.0, N), np.zeros(N)
    pk.parallel_for(N, maths, y=y, x=x)
    np.testing.assert_allclose(y, np.exp(x) + np.sqrt(x) + np.fmax(x, 1.0) - x, rtol=1e-15)


@pytest.mark.parametrize("name", ["exp", "sqrt", "floor", "negative", "isnan", "exp2", "square"])
def test_functions_of_a_number_are_those_of_an_element(name: str) -> None:
    function, view = getattr(pk, name), pk.View([1])
    view[0] = 1.75
    number = function(1.75)
    assert type(number) in (float, bool)
    np.testing.assert_allclose(number, np.asarray(function(view))[0], rtol=1e-15)


@pytest.mark.parametrize("name", ["add", "power", "fmax", "logical_xor"])
def test_functions_of_two_numbers(name: str) -> None:
    function, view = getattr(pk, name), pk.View([1])
    view[0] = 1.75
    np.testing.assert_allclose(function(1.75, 2.5), np.asarray(function(view, 2.5))[0], rtol=1e-15)


def test_functions_of_views(debug: None) -> None:
    x = pk.array(np.linspace(0.5, 2.0, N))
    both = pk.add(pk.sqrt(x), pk.multiply(x, 2.0))
    np.testing.assert_array_equal(np.asarray(both), np.sqrt(x.data) + 2.0 * x.data)
    assert float(pk.sum(x)) == float(np.asarray(x).sum())


def test_sums_are_pythons_numbers(debug: None) -> None:
    b = np.full(N, 200, np.uint8)
    assert pk.parallel_reduce(N, total, b=b) == 200 * N
    assert pk.parallel_reduce(N, without_annotation, b=b) == -200 * N
    zero: Any = pk.parallel_reduce(N, without_annotation, b=np.zeros(N))
    with pytest.raises(ZeroDivisionError):
        1.0 / zero


def test_scratch_memory(debug: None) -> None:
    m = np.arange(12.0).reshape(2, 6)
    pk.parallel_for(pk.TeamPolicy(2, pk.AUTO), backwards, m=m, n=6)
    np.testing.assert_array_equal(m, 2.0 * np.arange(12.0).reshape(2, 6)[:, ::-1])


def test_there_are_no_random_numbers(debug: None) -> None:
    with pytest.raises(NotImplementedError, match="the Debug space, where Python runs workunits"):
        pk.parallel_for(N, drawn, y=np.zeros(N), pool=pk.RandomPool(1, 8))
