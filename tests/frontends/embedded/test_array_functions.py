"""Functions of whole Views: NumPy's results, broadcasting as PyKokkos has it, and fusion."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import pyfuser
from pyfuser.frontends.embedded import linalg
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.support.errors import ArgumentError, CompilerError

A = np.array([[0.5, 1.5, -2.5], [3.25, 0.0, 7.0]])
V = np.array([0.5, -1.5, 2.5])


by_interpreter = pytest.mark.usefixtures("interpreted")  # what it computes is what counts


def view(values):
    array = np.array(values)
    result = pk.View(array.shape, pk.float if array.dtype == np.float32 else pk.double)
    result[...] = array
    return result


def launches():
    return pyfuser.stats().launches


UNARY = ["sin", "cos", "tan", "tanh", "exp", "exp2", "floor", "ceil", "trunc", "square", "sign"]
UNARY += ["negative", "positive", "isnan", "isinf", "isfinite", "logical_not"]
POSITIVE = ["log", "log2", "log10", "log1p", "sqrt"]


@by_interpreter
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", UNARY + POSITIVE)
def test_functions_of_one_view(name, dtype):
    values = (np.abs(A) + 0.5 if name in POSITIVE else A).astype(dtype)
    result = getattr(pk, name)(view(values))
    expected = getattr(np, name)(values)
    assert result.shape == A.shape
    assert_allclose(np.asarray(result), expected, rtol=1e-6 if dtype is np.float32 else 1e-14)


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor", "logical_not"])
def test_nothing_is_said_of_our_own_lines(name, recwarn):
    x = view(V)
    function, others = getattr(pk, name), [()] if name == "logical_not" else [(x,), (2,)]
    for other in others:
        str(function(x, *other))
    assert not recwarn.list


@by_interpreter
def test_functions_of_a_view_of_rank_0():
    x = pk.View((), pk.double)
    x[...] = 4.0
    assert float(pk.sqrt(x)) == 2.0
    assert pk.sqrt(x).shape == ()


@by_interpreter
def test_special_values():
    x = view([np.nan, -np.inf, -0.0, 2.5, -2.5])
    assert_array_equal(np.asarray(pk.sign(x)), [np.nan, -1, 0, 1, -1])
    assert_array_equal(np.asarray(pk.isnan(x)), [1, 0, 0, 0, 0])
    assert_array_equal(np.asarray(pk.round(x))[2:], [0, 3, -3])  # C's: halves away from 0


@by_interpreter
def test_integers():
    x = pk.View([3], pk.int32)
    x[:] = [-2, 0, 3]
    assert_array_equal(np.asarray(pk.sign(x)), [-1, 0, 1])
    assert_array_equal(np.asarray(pk.square(x)), [4, 0, 9])
    assert pk.floor(x) is x
    for function in (pk.sin, pk.sqrt, pk.negative):
        with pytest.raises(RuntimeError, match="Incompatible Types"):
            function(x)


@by_interpreter
def test_reciprocal_works_in_place():
    x = view([2.0, 4.0])
    assert pk.reciprocal(x) is x
    assert_array_equal(np.asarray(x), [0.5, 0.25])


BINARY = ["add", "subtract", "multiply", "divide", "true_divide", "power", "fmod", "fmax", "fmin"]
BINARY += ["logaddexp", "logaddexp2", "greater", "logical_and", "logical_or", "logical_xor"]


@by_interpreter
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_views(name):
    a, b = np.array([0.5, 1.5, 2.0, 0.0]), np.array([2.0, 0.25, 2.0, 1.0])
    result = getattr(pk, name)(view(a), view(b))
    assert_allclose(np.asarray(result), getattr(np, name)(a, b), rtol=1e-14)


@by_interpreter
def test_broadcasting():
    a, v, column = view(A), view(V), view(A[:, :1])
    two = view([10.0, 100.0])
    assert_array_equal(np.asarray(pk.add(a, v)), A + V)
    assert_array_equal(np.asarray(pk.add(v, a)), A + V)
    assert_array_equal(np.asarray(pk.subtract(a, v)), A - V)
    assert_array_equal(np.asarray(pk.subtract(a, column)), A - A[:, :1])
    assert_array_equal(np.asarray(pk.subtract(column, a)), A[:, :1] - A)
    assert_array_equal(np.asarray(pk.divide(a, 2)), A / 2)
    assert_array_equal(np.asarray(pk.power(2, v)), 2**V)
    assert_array_equal(np.asarray(pk.multiply(a, two)), A * [[10], [100]])  # by rows
    assert_array_equal(np.asarray(pk.equal(a, v)), A == V)
    assert_array_equal(np.asarray(pk.broadcast_view(v, a)), np.broadcast_to(V, A.shape))
    assert_array_equal(np.asarray(pk.broadcast_view(7.0, a)), np.full(A.shape, 7.0))


@by_interpreter
def test_what_does_not_fit():
    a, v, short = view(A), view(V), view([1.0, 2.0])
    for function in (pk.add, pk.multiply, pk.divide, pk.fmax, pk.greater, pk.power):
        for operands in ((v, short), (short, v), (a, view([1.0] * 5))):
            with pytest.raises(ValueError, match="broadcastable"):
                function(*operands)
    with pytest.raises(ValueError, match="of one length"):
        pk.dot(v, short)
    with pytest.raises(RuntimeError, match=r"pk.int32, where another type.*pk.astype"):
        pk.sqrt(pk.View([2], pk.int32))
    with pytest.raises(ValueError, match="broadcastable"):
        pk.subtract(a, short)
    with pytest.raises(ValueError, match="broadcastable"):
        pk.subtract(v, short)
    with pytest.raises(ValueError, match="broadcastable"):
        pk.copyto(v, a)
    with pytest.raises(RuntimeError, match="same shape for add"):
        pk.add(a, view(A.T))
    with pytest.raises(RuntimeError, match="Incompatible Types"):
        pk.add(v, view(V.astype(np.float32)))


@by_interpreter
def test_sums_means_and_products():
    a, v = view(A), view(V)
    assert pk.sum(v) == V.sum()
    assert pk.sum(a) == A.sum()
    assert_allclose(pk.mean(v), V.mean())
    assert_allclose(pk.var(v), V.var(), rtol=1e-14)
    for axis in (0, 1):
        for name in ("sum", "mean", "var"):
            result = getattr(pk, name)(a, axis)
            assert_allclose(np.asarray(result), getattr(np, name)(A, axis=axis), rtol=1e-14)
    assert pk.dot(v, v) == V @ V
    assert pk.matmul(v, view(V[:, None])) == V @ V
    assert_allclose(np.asarray(pk.np_matmul(a, view(A.T))), A @ A.T)
    assert_allclose(np.asarray(pk.np_matmul(a, v)), A @ V)
    assert_allclose(np.asarray(pk.np_matmul(v, view(A.T))), V @ A.T)
    product = linalg.dgemm(2.0, a, view(A.T), 3.0, view(np.ones((2, 2))))
    assert_allclose(np.asarray(product), 2 * A @ A.T + 3)


@by_interpreter
def test_views_of_views():
    a, v = view(A), view(V)
    places = pk.View([2], pk.int32)
    places[:] = [2, 0]
    assert_array_equal(np.asarray(pk.transpose(a)), A.T)
    assert_array_equal(np.asarray(pk.hstack(a, a)), np.hstack([A, A]))
    assert_array_equal(np.asarray(pk.hstack(v, v)), np.hstack([V, V]))
    assert_array_equal(np.asarray(pk.index(v, places)), V[[2, 0]])
    assert_array_equal(np.asarray(pk.in1d(v, view([2.5]))), [0, 0, 1])
    assert_array_equal(np.asarray(pk.col(a, 1)), A[:, 1])
    assert_array_equal(np.asarray(pk.ravel(a)), A.ravel())
    assert_array_equal(np.asarray(pk.ravel(a, order="F")), A.ravel(order="F"))
    assert_array_equal(np.asarray(pk.reshape(a, (3, 2))), A.reshape(3, 2))
    assert_array_equal(np.asarray(pk.expand_dims(v, 1)), V[:, None])
    assert_array_equal(np.asarray(pk.linspace(0, 1, 5)), np.linspace(0, 1, 5))
    assert_allclose(np.asarray(pk.logspace(0, 2, 3)), [1, 10, 100])
    assert_array_equal(np.asarray(pk.unique(view([2.0, 1.0, 2.0]))), [1, 2])
    assert_array_equal(np.asarray(pk.argmax(a, axis=1)), [1, 2])
    assert pk.find_max(v) == 2.5
    assert pk.searchsorted(view([1.0, 2.0]), 1.5) == 1
    assert bool(pk.any(v)) and not bool(pk.all(view([0.0, 1.0])))


def test_they_are_fused_with_the_users_calls_and_each_other():
    x = view(np.arange(100.0))
    before = launches()
    with pyfuser.fusing():
        total = pk.sum(pk.add(pk.square(pk.sin(x)), pk.square(pk.cos(x))))
    assert_allclose(float(total), 100.0)
    assert launches() == before + 1
    assert "test_array_functions.py:" in str(pyfuser.explain())


def test_they_are_computed_where_another_element_is_read():
    x = view(A)
    before = launches()
    with pyfuser.fusing():
        y = pk.transpose(pk.square(x))
    assert_array_equal(np.asarray(y), (A * A).T)
    assert launches() == before + 1


# --------------------------------------------------------------------------- bin sort


@by_interpreter
@pytest.mark.parametrize("within", [False, True])
def test_bin_sort(within):
    keys = view([9.0, 1.0, 5.5, 0.0, 5.0, 10.0])
    sorter = pk.BinSort(keys, pk.BinOp1D(keys, 5, 0, 10), within)
    sorter.create_permute_vector()
    order = [3, 1, 4, 2, 0, 5] if within else [1, 3, 2, 4, 0, 5]
    assert np.asarray(sorter.get_permute_vector()).tolist() == order
    assert np.asarray(sorter.get_bin_count()).tolist() == [2, 0, 2, 0, 1, 1]
    assert np.asarray(sorter.get_bin_offsets()).tolist() == [0, 2, 2, 4, 4, 5]
    values = view(np.arange(12.0).reshape(6, 2))
    sorter.sort(values)
    assert np.asarray(values)[:, 0].tolist() == [2.0 * n for n in order]


@by_interpreter
def test_bin_sort_of_more_or_fewer_rows_than_keys():
    keys, longer = view([2.0, 0.0, 1.0]), view([20.0, 0.0, 10.0, -1.0])
    sorter = pk.BinSort(keys, pk.BinOp1D(keys, 3, 0, 2))
    sorter.create_permute_vector()
    sorter.sort(longer)
    assert np.asarray(longer).tolist() == [0, 10, 20, -1]
    with pytest.raises(ArgumentError, match="3 keys, but a View of 2 rows"):
        sorter.sort(view([1.0, 2.0]))


@by_interpreter
def test_bin_sort_in_three_dimensions():
    keys = view([[1.5, 0.5, 0.5], [0.5, 1.5, 0.5], [0.5, 0.5, 1.5], [0.5, 0.5, 0.5]])
    sorter = pk.BinSort(keys, pk.BinOp3D(keys, [2, 2, 2], [0, 0, 0], [2, 2, 2]))
    sorter.create_permute_vector()
    assert np.asarray(sorter.get_permute_vector()).tolist() == [3, 2, 1, 0]


def test_bin_sort_waits_for_its_keys():
    keys = view([0.0, 1.0, 2.0])
    with pyfuser.fusing():
        pk.parallel_for(3, lambda i: 2 - i, keys)
        sorter = pk.BinSort(keys, pk.BinOp1D(keys, 3, 0, 2))
        sorter.create_permute_vector()
    assert np.asarray(sorter.get_permute_vector()).tolist() == [2, 1, 0]


def test_bin_sort_refuses_keys_outside():
    keys = view([0.0, 11.0])
    sorter = pk.BinSort(keys, pk.BinOp1D(keys, 5, 0, 5))
    with pytest.raises(ArgumentError, match="create_permute_vector first"):
        sorter.sort(keys)
    with pytest.raises(ArgumentError, match=r"key 1 \(11.0\) is not between"):
        sorter.create_permute_vector()


def test_a_module_of_cpp(tmp_path):
    source = ["#include <pybind11/pybind11.h>\n", "PYBIND11_MODULE(five, m)", "{"]
    source += ['m.def("five", []() { return 5; });', "}"]
    try:
        import pybind11  # noqa: F401
    except ImportError:
        with pytest.raises(CompilerError, match="needs pybind11"):
            pk.compile_into_module(tmp_path, source, "five")
        return
    assert pk.compile_into_module(tmp_path, source, "five").five() == 5
