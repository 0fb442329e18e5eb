from __future__ import annotations

import copy
import fractions
import math
import numbers
import operator
import pickle

import numpy as np
import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.support.errors import PyFuserError
from pyfuser.trace.future import Future


class Pending:
    """Futures of given values, and how often they were forced."""

    def __init__(self) -> None:
        self.forced = 0

    def make(self, value: int | float | complex) -> Future:
        kinds = {int: DType.INT64, float: DType.FLOAT64, complex: DType.COMPLEX128}

        def force(_) -> None:
            self.forced += 1
            future.set(value)

        future = Future(kinds[type(value)], force)
        return future


@pytest.fixture
def pending() -> Pending:
    return Pending()


ARITHMETIC = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    divmod,
]
BITWISE = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("operation", ARITHMETIC + COMPARISONS)
@pytest.mark.parametrize("left, right", [(7, 2), (7.5, 2.0), (-7, 2.5), (3, 3)])
def test_operators_on_both_sides(pending, operation, left, right):
    expected = operation(left, right)
    for a, b in [
        (pending.make(left), right),
        (left, pending.make(right)),
        (pending.make(left), pending.make(right)),
    ]:
        result = operation(a, b)
        assert result == expected
        assert type(result) is type(expected)
    assert pending.forced == 4


@pytest.mark.parametrize("operation", BITWISE)
def test_bitwise_operators(pending, operation):
    assert operation(pending.make(12), 3) == operation(12, 3)
    assert operation(12, pending.make(3)) == operation(12, 3)
    with pytest.raises(TypeError):
        operation(pending.make(12.0), 3)


@pytest.mark.parametrize(
    "function",
    [
        operator.neg,
        operator.pos,
        abs,
        float,
        int,
        complex,
        bool,
        str,
        repr,
        hash,
        round,
        math.floor,
        math.ceil,
        math.trunc,
        math.sqrt,
        math.exp,
        lambda x: round(x, 1),
        lambda x: f"{x:.3f} {x!r} {x}",
        lambda x: f"{x:.2f} {int(x)}",
        lambda x: "%d %.2f %s" % (x, x, x),  # noqa: UP031
        lambda x: [x.real, x.imag, x.conjugate()],
        lambda x: pow(x, 2),
        lambda x: sum([x, 1, x]),
        lambda x: max(x, 2),
        lambda x: {x: "key"}[float(x)],
        lambda x: math.isclose(x, 3.0),
        lambda x: 2 < x < 10,
    ],
)
@pytest.mark.parametrize("value", [3.7, 3.0, 5])
def test_functions_see_the_number(pending, function, value):
    future = pending.make(value)
    assert function(future) == function(value)
    assert pending.forced == 1


def test_integers_index_and_floats_do_not(pending):
    assert "abc"[pending.make(1)] == "b"
    assert list(range(pending.make(2))) == [0, 1]
    assert ~pending.make(5) == ~5
    assert pow(pending.make(7), 2, 5) == 4
    assert pending.make(6).bit_length() == 3
    for use in (lambda f: "abc"[f], range, operator.invert):
        with pytest.raises(TypeError):
            use(pending.make(1.0))


def test_float_methods_exist_and_private_names_do_not(pending):
    assert pending.make(2.0).is_integer()
    unforced = pending.make(2.0)
    with pytest.raises(AttributeError):
        unforced.__cuda_array_interface__  # noqa: B018
    assert not unforced.ready


def test_in_place_operators_rebind(pending):
    future = total = pending.make(2.0)
    total += 1
    assert (total, type(total)) == (3.0, float)
    assert future == 2.0


def test_numpy_treats_it_as_a_python_number(pending):
    array = np.arange(3, dtype=np.float32)
    for result in (
        array * pending.make(2.0),
        pending.make(2.0) * array,
        np.multiply(array, pending.make(2.0)),
    ):
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result, [0, 2, 4])
    array += pending.make(1.0)
    array[0] = pending.make(9.0)
    np.testing.assert_array_equal(array, [9, 2, 3])
    assert np.sqrt(pending.make(4.0)) == 2.0
    assert np.asarray(pending.make(4.0)).dtype == np.float64
    assert np.asarray(pending.make(4)).shape == ()
    np.testing.assert_array_equal(np.array([pending.make(1.0), 2.0]), [1.0, 2.0])
    np.testing.assert_array_equal(np.stack([pending.make(1.0), pending.make(2.0)]), [1.0, 2.0])
    assert np.isclose(pending.make(1.0), 1.0)


def test_copies_are_plain_numbers(pending):
    for duplicate in (copy.copy, copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))):
        result = duplicate(pending.make(2.5))
        assert (result, type(result)) == (2.5, float)


def test_it_is_a_number(pending):
    assert isinstance(pending.make(1.0), numbers.Number)


def test_values_have_the_type_of_the_accumulator():
    def no_force(_) -> None:
        raise AssertionError

    future = Future(DType.INT32, no_force)
    future.set(np.int32(3))
    assert type(future.result()) is int
    future = Future(DType.FLOAT32, no_force)
    future.set(np.float32(0.1))
    assert type(future.result()) is float
    assert future.result() == float(np.float32(0.1))


def test_equal_futures_are_one_key(pending):
    assert len({pending.make(2.0), pending.make(2), 2.0}) == 1
    assert sorted([pending.make(3.0), 1, pending.make(2)]) == [1, 2, 3]
    assert fractions.Fraction(1, 2) + pending.make(1) == 1.5
    assert fractions.Fraction(*pending.make(0.75).as_integer_ratio()) == fractions.Fraction(3, 4)


def test_it_is_forced_once(pending):
    future = pending.make(1.0)
    assert not future.ready
    assert future + future == 2.0
    assert future.ready
    assert pending.forced == 1


def test_a_failed_future_raises_at_each_use():
    future = Future(
        DType.FLOAT64, lambda future: future.fail(ZeroDivisionError("in axpy, file.py:3"))
    )
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match=r"file\.py:3"):
            future + 1


def test_a_future_whose_call_never_ran_says_so():
    with pytest.raises(PyFuserError, match="did not run"):
        float(Future(DType.FLOAT64, lambda _: None))
