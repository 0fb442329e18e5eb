"""Memory traits: updates of a View with the trait Atomic are atomic."""

from __future__ import annotations

import numpy as np
import pytest

import pyfuser
from pyfuser.frontends.embedded import pykokkos as pk

N = 200_000


@pk.workunit
def count(i, bins, x):
    bins[i % 3] += x[i]


@pk.workunit
def twice(i, bins):
    bins[i] *= 2


@pytest.mark.parametrize("dtype", [pk.int32, pk.double, pk.float])
def test_updates_of_an_atomic_view_are_atomic(dtype):
    bins = pk.View([3], dtype, trait=pk.Trait.Atomic)
    x = pk.View([N], pk.int32)
    x.fill(1)
    with pyfuser.fusing():
        pk.parallel_for(N, count, bins=bins, x=x)
        pk.parallel_for(3, twice, bins=bins)
    expected = [2 * len(range(k, N, 3)) for k in range(3)]
    assert list(np.asarray(bins)) == expected


def test_parts_of_an_atomic_view_are_atomic_and_others_are_not():
    plain = pk.View([8], pk.double)
    atomic = pk.View([8], pk.double, trait=pk.Trait.Atomic)
    sources = []
    for view in (atomic, atomic[2:6], plain):
        with pyfuser.fusing():
            pk.parallel_for(3, count, bins=view, x=plain)
        sources.append(pyfuser.explain(source=True).groups[0].source)
    assert ["atomic" in source for source in sources] == [True, True, False]


@pk.workunit
def take_place(i, places, taken):
    place: int = 0
    place = taken[0] = taken[0] + 1
    places[i] = place


@pk.workunit
def copy_or_change(i, y, x):
    y[i] = x[i]
    if i < 0:
        x[i] = 1


@pytest.mark.parametrize("dtype", [pk.int16, pk.int64, pk.float, pk.double])
def test_iterations_see_what_others_wrote_to_an_atomic_view(dtype):
    """Although the View is new, whose elements every iteration of its own would find zero."""
    places = pk.View([1000], pk.int32)
    with pyfuser.fusing():
        taken = pk.View([1], dtype, trait=pk.Trait.Atomic)
        pk.parallel_for(pk.RangePolicy(pk.Serial, 0, 1000), take_place, places=places, taken=taken)
    assert list(np.asarray(places)) == list(range(1, 1001))
    assert taken[0] == 1000


@pytest.mark.parametrize("dtype", [pk.bool, pk.uint64, pk.float, pk.double, pk.complex128])
def test_atomic_loads_change_nothing(dtype):
    values = [0, 1] if dtype in (pk.bool, pk.uint64) else [-0.0, 1.5, np.nan, -np.inf, 0.0]
    x = pk.View([len(values)], dtype, trait=pk.Trait.Atomic)
    y = pk.View([len(values)], dtype)
    np.asarray(x)[:] = values
    before = np.asarray(x).tobytes()
    with pyfuser.fusing():
        pk.parallel_for(len(values), copy_or_change, y=y, x=x)
    assert "atomic" in pyfuser.explain(source=True).groups[0].source
    assert np.asarray(x).tobytes() == np.asarray(y).tobytes() == before


def test_an_atomic_view_that_is_only_read_is_an_ordinary_one():
    x, y = pk.View([8], pk.double, trait=pk.Trait.Atomic), pk.View([8], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(8, count, bins=y, x=x)
    assert "atomic" not in pyfuser.explain(source=True).groups[0].source
