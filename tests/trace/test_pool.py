"""Memory of dead Views is used again, and never while anybody can see it."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest

import pyfuser
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.ir.dtypes import DType
from pyfuser.trace import memory, pool
from pyfuser.trace.memory import Allocation, Handle, Region, contiguous

SIZE = 1 << 17


@pytest.fixture(autouse=True)
def empty_pool():
    pool.clear()
    yield
    pool.clear()


@pytest.fixture(params=[1 << 10, SIZE], ids=["small", "large"])
def size(request):
    return request.param


def buffer_of(value: int, size: int = SIZE) -> tuple[Allocation, Handle]:
    handle = Handle()
    buffer = Allocation(size, handle)
    buffer.allocate()
    buffer.root[:] = value
    return buffer, handle


def test_a_dead_buffer_is_used_again_and_zeroed(size):
    buffer, _ = buffer_of(7, size)
    address = buffer.address
    del buffer
    again, _ = buffer_of(0, size)
    assert again.address == address
    other = Allocation(size, Handle())
    del again
    other.allocate()
    assert not other.root.any()


def test_memory_that_is_overwritten_next_is_not_zeroed(size):
    buffer, _ = buffer_of(7, size)
    del buffer
    again = Allocation(size, Handle())
    whole = Region(again, 0, (8,), (size // 8,), DType.INT64)
    whole.allocate(((0,), (size // 8,)))
    assert again.root.all()


def test_memory_of_which_a_part_is_overwritten_is_zeroed(size):
    buffer, _ = buffer_of(7, size)
    del buffer
    again = Allocation(size, Handle())
    Region(again, 0, (8,), (size // 8 - 1,), DType.INT64).allocate(((0,), (size // 8 - 1,)))
    assert not again.root.any()


def test_what_lies_around_an_overwritten_box_is_zeroed(size):
    buffer, _ = buffer_of(7, size)
    del buffer
    again = Allocation(size, Handle())
    columns = size // 32
    rows = 32
    region = Region(again, 0, (columns, 1), (rows, columns), DType.UINT8)
    region.allocate(((1, 3), (rows - 2, columns - 5)))
    array = region.array()
    assert (array[1 : rows - 2, 3 : columns - 5] == 7).all()
    assert array.sum(dtype=int) == 7 * (rows - 3) * (columns - 8)


@pytest.mark.parametrize("extension", [True, False])
@pytest.mark.parametrize("seed", range(30))
def test_what_lies_around_any_box_is_zeroed(seed, extension, monkeypatch):
    """By the extension and without it: boxes of any place, empty ones too; any order of axes."""
    if not extension:
        monkeypatch.setattr(memory, "HOT", None)
    rng = random.Random(seed)
    dtype = rng.choice([DType.UINT8, DType.FLOAT32, DType.FLOAT64])
    shape = tuple(rng.randrange(1, 7) for _ in range(rng.randrange(1, 5)))
    order = rng.sample(range(len(shape)), len(shape))
    strides = dict(zip(order, contiguous(tuple(shape[n] for n in order), dtype.size), strict=True))
    buffer = Allocation(prod(shape) * dtype.size, Handle())
    region = Region(buffer, 0, tuple(strides[n] for n in range(len(shape))), shape, dtype)
    root = np.full(buffer.nbytes, 1, np.uint8)
    begin = tuple(rng.randrange(n + 1) for n in shape)
    end = tuple(rng.randrange(n + 1) for n in shape)
    expected = region._within(root.copy())
    inside = tuple(map(slice, begin, end))
    kept = expected[inside].copy()
    expected[...] = 0
    expected[inside] = kept
    region._zero_around((begin, end), root)
    assert (region._within(root) == expected).all()


@pytest.mark.parametrize("box", [((0,), (-3,)), ((5,), (2,))])
def test_of_a_box_that_ends_before_it_begins_nothing_is_kept(box, size):
    buffer, _ = buffer_of(7, size)
    del buffer
    again = Allocation(size, Handle())
    Region(again, 0, (8,), (size // 8,), DType.INT64).allocate(box)
    assert not again.root.any()


def test_small_blocks_are_few_of_each_size_and_of_few_sizes():
    for size in range(1, 3 * pool.SIZES):
        pool.keep(np.zeros(size, np.uint8))
        assert len(pool.SMALL) <= pool.SIZES
    for size in 8, pool.SMALLEST - 8:
        for _ in range(2 * pool.COUNT):
            pool.keep(np.zeros(size, np.uint8))
        kept = len(pool.SMALL[size])
        assert kept <= pool.COUNT and (kept - 1) * size < pool.EACH


@pk.workunit
def fill(i, v):
    v[i] = 7.0


@pytest.mark.parametrize("fused", [True, False])
def test_small_memory_of_dead_views_is_zero_in_the_next(interpreted, fused):
    """Views die with values; the next of their size, written in part by a kernel, have none."""
    for n in range(1, 40):
        view = pk.View([50 + n % 3], pk.double)
        with pyfuser.fusing() if fused else pyfuser.unfused():
            pk.parallel_for(pk.RangePolicy(n, 50), fill, v=view)
            pyfuser.sync()
        assert not view.data[:n].any() and not view.data[50:].any() and (view.data[n:50] == 7).all()
        view.data[:] = 9


def test_memory_that_an_array_still_shows_is_left_alone(size):
    buffer, _ = buffer_of(7, size)
    array = Region(buffer, 0, (8,), (size // 8,), DType.INT64).array()
    del buffer
    again, _ = buffer_of(0, size)
    assert not np.shares_memory(array, again.root)
    assert array.all()


def test_exposed_memory_is_left_alone(size):
    buffer, _ = buffer_of(7, size)
    buffer.expose()
    root = buffer.root
    address = buffer.address
    del buffer
    again, _ = buffer_of(0, size)
    assert again.address != address
    assert root.all()


@pytest.mark.parametrize("size", [pool.UNALIGNED, 6000, SIZE + 8, 1 << 23])
def test_blocks_start_on_a_cache_line(size):
    kept = [pool.allocate(size, zero=True) for _ in range(4)]
    assert all(block.ctypes.data % pool.ALIGNMENT == 0 for block in kept)
    assert all(block.nbytes == size and not block.any() for block in kept)
    array = kept[0][3:].view()
    assert array.base is kept[0]  # what `release` counts


def test_the_pool_is_bounded():
    small = pool.Pool(3 * SIZE)
    for _ in range(5):
        small.give(pool.allocate(SIZE, zero=False))
    assert small.held == 3 * SIZE
    small.give(pool.allocate(SIZE * 4, zero=False))
    assert small.held == 3 * SIZE
    small.give(pool.allocate(2 * SIZE, zero=False))
    assert small.held == 3 * SIZE  # the last two


@pytest.mark.parametrize("first, second", [(0, -1), (-1, 0), (-4000, -8), (-8, -4000)])
def test_a_dead_buffer_serves_one_of_about_its_size(first: int, second: int):
    dead = Allocation(SIZE + first, Handle())
    dead.allocate()
    dead.root[:] = 7
    address = dead.address
    del dead
    again = Allocation(SIZE + second, Handle())
    again.allocate()
    assert again.address == address
    assert again.root.nbytes == SIZE + second
    assert not again.root.any()


def test_a_dead_buffer_does_not_serve_a_larger_one():
    dead, _ = buffer_of(7)
    address = dead.address
    del dead
    again = Allocation(SIZE + 1, Handle())
    again.allocate()
    assert again.address != address
    assert pool.POOL.held == SIZE


@pytest.mark.parametrize("size", [1 << 16, (1 << 16) + 1, 100_000, (1 << 30) - 1, 123_456_789])
def test_blocks_have_room_for_an_eighth_more_at_most(size: int):
    assert size <= pool.capacity(size) <= size * 9 / 8
    assert pool.capacity(pool.capacity(size)) == pool.capacity(size)


def test_a_block_of_somebody_else_serves_its_own_size_only():
    assert pool.POOL.take(SIZE) is None
    pool.POOL.give(np.full(SIZE - 8, 7, np.uint8))
    assert pool.POOL.take(SIZE - 16) is None
    pool.POOL.give(np.full(SIZE - 8, 7, np.uint8))
    block = pool.POOL.take(SIZE - 8)
    assert block is not None
    assert block.all()


def test_as_many_blocks_of_somebody_else_are_kept_as_were_missing():
    kept = pool.Pool(1 << 40)
    for _ in range(50):
        kept.give(np.empty(SIZE, np.uint8))
    assert kept.held == 0  # nobody asked for one
    assert kept.take(SIZE) is kept.take(SIZE) is None
    for _ in range(50):
        kept.give(np.empty(SIZE, np.uint8))
    assert kept.held == 2 * pool.capacity(SIZE)
    assert kept.take(SIZE).nbytes == SIZE
    kept.give(np.empty(SIZE, np.uint8))
    assert kept.held == pool.capacity(SIZE)


def test_no_more_of_them_are_kept_however_many_were_missing():
    kept = pool.Pool(1 << 40)
    for _ in range(2 * pool.MISSED):
        assert kept.take(SIZE) is None
    for _ in range(2 * pool.MISSED):
        kept.give(np.empty(SIZE, np.uint8))
    assert kept.held == pool.MISSED * pool.capacity(SIZE)


def test_one_of_another_size_was_missing_too():
    kept = pool.Pool(1 << 40)
    assert kept.take(SIZE) is None
    kept.give(np.empty(SIZE - 1, np.uint8))
    assert kept.take(SIZE) is None  # NumPy's serve their own size alone
    assert kept.held == 0
    kept.give(np.empty(SIZE, np.uint8))
    kept.give(np.empty(SIZE, np.uint8))
    assert kept.held == pool.capacity(SIZE)


@pytest.mark.parametrize("size", [1 << 20, 3 << 20, 1 << 24, 48_000_000, 1 << 27])
def test_large_blocks_do_not_start_powers_of_two_apart(size: int):
    """If the system puts them one behind the other, as it does."""
    distance = pool.allocate(size, zero=False).base.nbytes
    assert 1 << 14 <= distance % (1 << 17) <= 7 << 14
