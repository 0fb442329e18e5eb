"""Values that pass through floats are rounded, whatever g++ makes of neighbouring statements."""

from __future__ import annotations

import numpy as np
import pykokkos as pk
import pytest

import pyfuser

N = 37


@pk.workunit
def through_locals(i, z, x, places):
    k: int = places[i]
    a: pk.float = x[k][0]
    b: pk.float = x[k][1]
    z[k][0] = a
    z[k][1] = b


@pk.workunit
def narrow(i, t, x, places):
    t[places[i]][0] = x[places[i]][0]
    t[places[i]][1] = x[places[i]][1]


@pk.workunit
def widen(i, z, t, places):
    z[places[i]][0] = t[places[i]][0]
    z[places[i]][1] = t[places[i]][1]


@pk.workunit
def double_or_half(i, j, t, x):
    if i > 2:
        t[i][j] = x[i][j] + x[i][j]
    else:
        t[i][j] = pk.fabs(x[i][j]) / 2.0


@pk.workunit
def combine(i, j, z, t):
    z[i][j] = t[i - 1][j] * 3.0 + t[i - 1][j - 1]


def views(shape: list[int]) -> tuple[pk.View, pk.View, pk.View]:
    x, z, places = pk.View(shape, pk.double), pk.View(shape, pk.double), pk.View([N], pk.int32)
    x.data[:] = np.random.default_rng(5).uniform(-1.0, 1.0, shape)
    places.data[:] = np.arange(N)[::-1]
    return x, z, places


@pytest.mark.parametrize("mode", [pyfuser.fusing, pyfuser.unfused])
def test_pairs(mode):
    x, z, places = views([N, 2])
    with mode():
        pk.parallel_for(N, through_locals, z=z, x=x, places=places)
    assert (np.asarray(z) == np.asarray(x).astype(np.float32)).all()


@pytest.mark.parametrize("mode", [pyfuser.fusing, pyfuser.unfused])
def test_pairs_through_a_view_that_is_contracted(mode):
    x, z, places = views([N, 2])
    with mode():
        t = pk.View([N, 2], pk.float)
        pk.parallel_for(N, narrow, t=t, x=x, places=places)
        pk.parallel_for(N, widen, z=z, t=t, places=places)
        del t
    assert (np.asarray(z) == np.asarray(x).astype(np.float32)).all()


def test_floats_that_are_computed_again():
    x, z, _ = views([7, 7])
    with pyfuser.fusing():
        t = pk.View([7, 7], pk.float)
        pk.parallel_for(pk.MDRangePolicy([0, 0], [7, 7]), double_or_half, t=t, x=x)
        pk.parallel_for(pk.MDRangePolicy([2, 2], [5, 5]), combine, z=z, t=t)
        del t
    a = np.asarray(x)
    t = np.where(np.arange(7)[:, None] > 2, a + a, np.abs(a) / 2.0).astype(np.float32)
    t = t.astype(np.float64)
    expected = np.zeros((7, 7))
    expected[2:5, 2:5] = t[1:4, 2:5] * 3.0 + t[1:4, 1:4]
    assert (np.asarray(z) == expected).all()
