from __future__ import annotations

import numpy as np
import pytest

from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.support.errors import ArgumentError


def test_array_shares_memory_and_type():
    for array in (np.arange(3), np.zeros((2, 2), np.float32), np.array([True, False])):
        view = pk.array(array)
        assert view.data is array
        view[...] = 1
        assert (array == 1).all()
    assert pk.array(np.array([True])).dtype is pk.bool
    with pytest.raises(ArgumentError, match="float16"):
        pk.array(np.zeros(2, np.float16))


def test_array_of_sequences_and_numbers():
    view = pk.array([np.array([0, 1], dtype=np.int32)] * 3)
    assert (view.shape, view.dtype) == ((3, 2), pk.int32)
    assert pk.array(3.0).shape == ()


@pytest.mark.parametrize("constant", [pk.e, pk.pi, pk.inf, pk.nan])
def test_asarray_of_constants(constant):
    np.testing.assert_array_equal(pk.asarray(constant), [constant])
    assert pk.asarray(constant, dtype=pk.float).dtype is pk.float32


def test_filled_views():
    assert pk.zeros(3).shape == (3,)
    assert pk.zeros((2, 2), dtype=pk.int8).dtype is pk.int8
    np.testing.assert_array_equal(pk.ones((2,)), [1, 1])
    np.testing.assert_array_equal(pk.full([2], 7, dtype=pk.int32), [7, 7])
    assert pk.full(2, np.float32(1)).dtype is pk.float32
    like = pk.full_like(pk.View([2], pk.int16), 3)
    assert (like[1], like.dtype) == (3, pk.int16)
    assert pk.ones_like(np.zeros(2, np.float32)).dtype is pk.float32
    assert pk.zeros_like(like, dtype=pk.double).dtype is pk.float64


def test_result_type_is_the_widest_of_one_kind():
    assert pk.result_type(pk.uint8, pk.uint16, pk.uint8) is pk.uint16
    assert pk.result_type(pk.float, pk.double) is pk.double
    for mixed in ((pk.uint64, pk.int8), (pk.float32, pk.int64), (pk.View([1]), pk.int8)):
        with pytest.raises(NotImplementedError):
            pk.result_type(*mixed)


def test_number_limits():
    assert pk.iinfo(pk.int16).max == 2**15 - 1
    assert pk.iinfo(pk.View([1], pk.uint8)).max == 255
    assert pk.finfo(pk.float).bits == 32
