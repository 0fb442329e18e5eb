"""Random numbers in workunits: the documented generator, the same whoever computes it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import pyfuser
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.support.errors import WorkunitError

N = 1000
MASK = 2**64 - 1


def first_state(seed: int, *indices: int) -> int:
    """A hash of seed and indices: splitmix64."""
    for index in indices:
        seed = (seed + (index % 2**64) * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) & MASK
        seed = ((seed ^ seed >> 30) * 0xBF58476D1CE4E5B9) & MASK
        seed = ((seed ^ seed >> 27) * 0x94D049BB133111EB) & MASK
        seed ^= seed >> 31
    return seed or 1318319


def draws(state: int):
    """The words of xorshift64*."""
    while True:
        state ^= state >> 12
        state = (state ^ state << 25) & MASK
        state ^= state >> 27
        yield (state * 2685821657736338717) & MASK


@pk.functor
class Noise:
    def __init__(self, seed: int):
        self.pool: pk.Random_XorShift64_Pool = pk.Random_XorShift64_Pool(seed, 16)
        self.x: pk.View1D[pk.double] = pk.View([N], pk.double)
        self.m: pk.View2D[pk.int64] = pk.View([4, 5], pk.int64)

    @pk.function
    def both(self) -> float:
        return pk.rand(pk.double) - pk.rand(pk.double)

    @pk.workunit
    def uniform(self, i: int):
        self.x[i] = pk.rand(pk.double)

    @pk.workunit
    def difference(self, i: int):
        self.x[i] = self.both()

    @pk.workunit
    def integers(self, i: int, j: int):
        self.m[i][j] = pk.rand(pk.int64)

    @pk.workunit
    def inside(self, i: int, acc: pk.Acc[pk.int64]):
        for _ in range(10):
            if pk.rand(float) ** 2 + pk.rand(float) ** 2 < 1:
                acc += 1

    @pk.workunit
    def no_type(self, i: int):
        self.x[i] = pk.rand()


@pk.functor
class Poolless:
    def __init__(self):
        self.x: pk.View1D[pk.double] = pk.View([N], pk.double)

    @pk.workunit
    def draw(self, i: int):
        self.x[i] = pk.rand(pk.double)


@pk.workunit
def narrow(i: int, a: pk.View1D[pk.int32], b: pk.View1D[pk.uint32], p: pk.RandomPool):
    a[i] = pk.rand(int)
    b[i] = pk.rand(pk.uint32)


def uniform(seed):
    noise = Noise(seed)
    pk.parallel_for(N, noise.uniform)
    return np.asarray(noise.x).copy()


def test_the_numbers_are_those_of_the_generator():
    words = [next(draws(first_state(7, i))) for i in range(N)]
    expected = [np.float64(np.uint64((word - 1) & MASK)) / np.float64(MASK) for word in words]
    assert_array_equal(uniform(7), expected)


def test_integers_and_two_indices():
    noise = Noise(0)
    pk.parallel_for(pk.MDRangePolicy([0, 1], [4, 5]), noise.integers)
    m = np.asarray(noise.m)
    for i, j in ((0, 1), (3, 4)):
        word = next(draws(first_state(0, i, j)))
        assert m[i, j] == ((word - 1) & MASK) // 2
    assert not m[:, 0].any()


def test_narrow_integers_of_a_pool_that_is_an_argument():
    a, b = pk.View([3], pk.int32), pk.View([3], pk.uint32)
    pk.parallel_for(3, narrow, a=a, b=b, p=pk.Random_XorShift1024_Pool(5, 1))
    words = draws(first_state(5, 2))
    assert a[2] == (next(words) >> 16 & 0xFFFFFFFF) // 2
    assert b[2] == next(words) >> 16 & 0xFFFFFFFF


def test_draws_are_in_the_order_of_the_source():
    noise = Noise(3)
    pk.parallel_for(N, noise.difference)
    words = draws(first_state(3, 10))
    first, second = (np.float64(np.uint64(next(words) - 1)) / np.float64(MASK) for _ in "ab")
    assert noise.x[10] == first - second


def test_they_are_uniform():
    x = uniform(42)
    assert x.min() >= 0 and x.max() <= 1
    assert abs(x.mean() - 0.5) < 0.03
    assert abs(x.var() - 1 / 12) < 0.01
    assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < 0.1
    assert (uniform(43) != x).all()
    inside = pk.parallel_reduce(10 * N, Noise(1).inside)
    assert abs(inside / (100 * N) - np.pi / 4) < 0.01


def test_fused_numbers_are_the_unfused_ones():
    noise, before = Noise(9), pyfuser.stats().launches
    with pyfuser.fusing():
        pk.parallel_for(N, noise.uniform)
        y = pk.add(noise.x, 0.0)
        pk.parallel_for(N, noise.uniform)
    assert pyfuser.stats().launches == before + 1
    assert_array_equal(np.asarray(y), uniform(9))
    assert_array_equal(np.asarray(noise.x), uniform(9))


def test_what_is_refused():
    with pytest.raises(WorkunitError, match=r"pk.rand needs a pool"):
        pk.parallel_for(N, Poolless().draw)
    with pytest.raises(WorkunitError, match=r"pk.rand takes one data type"):
        pk.parallel_for(N, Noise(1).no_type)
    with pytest.raises(NotImplementedError):
        pk.rand(pk.double)
