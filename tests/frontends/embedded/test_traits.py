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
