# ruff: noqa: F821
from __future__ import annotations

import math
from math import sqrt

import numpy as np
import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.lower.lower import free_values_unchanged, lower
from pyfuser.lower.types import ScalarType, ViewType
from pyfuser.support.errors import WorkunitError

VIEW = ViewType(DType.FLOAT64, 1)
INTS = ViewType(DType.INT32, 1)
SINGLE = ViewType(DType.FLOAT32, 1)
BYTES = ViewType(DType.INT8, 1)
MATRIX = ViewType(DType.FLOAT64, 2)
COMPLEX = ViewType(DType.COMPLEX128, 1)


def test_mathematical_functions_go_by_their_last_name(same) -> None:
    def w(i, v, s, k):
        v[i] = sqrt(v[i]) + math.sqrt(v[i]) + pk.sqrt(v[i])
        s[i] = fmax(s[i], exp(s[i]))
        v[i] = atan2(s[i], k[i])
        k[i] = abs(k[i]) + isnan(v[i])

    same(
        """
        v[i] = (sqrt(v[i]) + sqrt(v[i])) + sqrt(v[i])
        s[i] = fmax(s[i], exp(s[i]))
        v[i] = atan2((float64)s[i], (float64)k[i])
        k[i] = abs(k[i]) + (int32)isnan:bool(v[i])
        """,
        w,
        v=VIEW,
        s=SINGLE,
        k=INTS,
    )


def test_conversions(same) -> None:
    def w(i, v):
        v[i] = int(v[i]) + float(v[i]) + double(i) + pk.int64(i)
        v[i] = bool(v[i])
        v[i] = int(i) + pk.double(v[i])

    same(
        """
        v[i] = ((float64)((float32)int32(v[i]) + float32(v[i])) + float64(i)) + (float64)int64(i)
        v[i] = (float64)bool(v[i])
        v[i] = (float64)i + v[i]
        """,
        w,
        v=VIEW,
    )


def test_complex_numbers(same) -> None:
    def w(i, z, v):
        z[i] = z[i] * pk.complex64(v[i], 1) + 2
        v[i] = abs(z[i])

    same(
        """
        z[i] = (z[i] * complex:complex128(v[i], (float64)1)) + (complex128)2
        v[i] = abs:float64(z[i])
        """,
        w,
        z=COMPLEX,
        v=VIEW,
    )


def test_atomics_as_statements(same) -> None:
    def w(i, v, k, m):
        pk.atomic_add(v, [i], 1)
        pk.atomic_fetch_max(m, [i, 0], v[i])
        atomic_increment(k, [i])
        pk.atomic_fetch_lshift(k, [i], 2)
        pk.atomic_exchange(v, [0], 1.0)
        row = m[i, :]
        pk.atomic_sub(row, [2], 1.0)

    same(
        """
        atomic v[i] += (float64)1
        atomic m[i, 0] max= v[i]
        atomic k[i] += 1
        atomic k[i] <<= 2
        atomic v[0] exchange= 1.0
        atomic m[i, 2] -= 1.0
        """,
        w,
        v=VIEW,
        k=INTS,
        m=MATRIX,
    )


def test_atomics_as_values(same) -> None:
    def w(i, k, v):
        old: int = pk.atomic_fetch_add(k, [0], v[i])
        v[old] = pk.atomic_compare_exchange(v, [i], 0, old)

    same(
        """
        let old: int32 = atomic_fetch[+](k[0], (int32)v[i])
        v[old] = atomic_fetch[compare_exchange](v[i], (float64)old, expected (float64)0)
        """,
        w,
        v=VIEW,
        k=INTS,
    )


def test_printf_promotes_as_c_does(same) -> None:
    def w(i, s, b):
        pk.printf("%d %f %d\n", i, s[i], b[i])

    same(r"do printf:int32('%d %f %d\n':int8, i, (float64)s[i], (int32)b[i])", w, s=SINGLE, b=BYTES)


def test_extent(same) -> None:
    def w(i, v, m):
        if i < m.extent(1):
            v[i] = m.extent(0)

    same(
        "if (int64)i < m.extent(1):\n    v[i] = (float64)m.extent(0)",
        w,
        v=VIEW,
        m=MATRIX,
    )


class Config:
    scale = 2.5


COUNT = 3
STEP = np.float32(0.5)


def test_numbers_from_outside_become_constants(same) -> None:
    inner = 7

    def w(i, v):
        v[i] = COUNT + inner * Config.scale
        v[i] = STEP + np.pi

    same(
        """
        v[i] = (float64)3 + ((float64)7 * 2.5)
        v[i] = (float64)0.5:float32 + 3.141592653589793
        """,
        w,
        v=VIEW,
    )
    free = dict(lower(w, "for", 1, {"v": VIEW}).free)
    assert free == {
        "COUNT": 3,
        "inner": 7,
        "Config.scale": 2.5,
        "STEP": np.float32(0.5),
        "np.pi": np.pi,
    }


def test_a_changed_outside_value_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(inner):
        def w(i, v):
            v[i] = inner * Config.scale

        return w

    w = make(0.0)
    lowered = lower(w, "for", 1, {"v": VIEW})
    assert free_values_unchanged(w, lowered)
    assert free_values_unchanged(make(0.0), lowered)
    assert not free_values_unchanged(make(-0.0), lowered)
    assert not free_values_unchanged(make(0), lowered)
    monkeypatch.setattr(Config, "scale", 3.0)
    assert not free_values_unchanged(w, lowered)


def test_a_user_function_may_replace_a_mathematical_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def w(i, v):
        v[i] = sqrt(v[i])

    lowered = lower(w, "for", 1, {"v": VIEW})

    def mine(x: float) -> float:
        return x

    monkeypatch.setitem(globals(), "sqrt", mine)
    assert not free_values_unchanged(w, lowered)


HOST_ARRAY = np.zeros(3)


def no_such_function(i, v):
    v[i] = foo(v[i])


def printing(i, v):
    print(v[i])


def arity(i, v):
    v[i] = sqrt(v[i], 2)


def global_array(i, v):
    v[i] = HOST_ARRAY[i]


def global_array_value(i, v):
    v[i] = HOST_ARRAY


def atomic_arity(i, v):
    pk.atomic_add(v, [i])


def atomic_index(i, v):
    pk.atomic_add(v, i, 1)


def atomic_rank(i, v):
    pk.atomic_add(v, [i, i], 1)


def atomic_type(i, v):
    pk.atomic_fetch_and(v, [i], 1)


def atomic_value(i, v):
    v[i] = pk.atomic_add(v, [i], 1)


def atomic_name(i, v):
    pk.atomic_frobnicate(v, [i], 1)


def greatest(i, v):
    v[i] = max(v)


def mistyped_view(i, values):
    values[i] = value[i]


def indexed_call(i, v):
    v[i] = divmod(i, 3)[0]


def division_by_zero(i, v):
    v[i] = i // 0


def remainder_by_zero(i, v):
    v[i] = i % 0


def update_by_zero(i, v):
    k: int = i
    k %= 0
    v[i] = k


def no_axis(i, v):
    v[i] = v.extent(1)


def nested_parallelism(i, v):
    pk.parallel_for(v, v)


def library_function(i, v):
    v[i] = np.median(v[i])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (no_such_function, "function 'foo' is not supported"),
        (printing, "use pk.printf"),
        (greatest, "max takes two numbers or more"),
        (division_by_zero, "integer division by zero"),
        (remainder_by_zero, "integer division by zero"),
        (update_by_zero, "integer division by zero"),
        (arity, r"sqrt takes 1 argument\(s\), not 2"),
        (global_array, "pass it as a keyword argument"),
        (global_array_value, "pass views and arrays as keyword arguments"),
        (atomic_arity, "atomic_add takes 3 arguments"),
        (atomic_index, "takes its indices as a list"),
        (atomic_rank, r"the view has 1 dimension\(s\), not 2"),
        (atomic_type, "atomic_fetch_and does not work on float64"),
        (atomic_value, "use atomic_fetch_add for the old one"),
        (atomic_name, "atomic_frobnicate is not supported"),
        (no_axis, "there is no axis 1"),
        (nested_parallelism, "nested parallelism"),
        (library_function, "'median' is not supported"),
    ],
)
def test_what_the_language_does_not_have(function, message: str) -> None:
    with pytest.raises(WorkunitError, match=message):
        lower(function, "for", 1, {"v": VIEW})


def test_the_name_that_may_be_meant() -> None:
    with pytest.raises(WorkunitError, match=r"'value' is no view .*: did you mean 'values'"):
        lower(mistyped_view, "for", 1, {"values": VIEW})
    with pytest.raises(WorkunitError, match="only views and local arrays can be indexed"):
        lower(indexed_call, "for", 1, {"v": VIEW})


def test_numbers_that_are_no_integers_are_divided_by_zero() -> None:
    def w(i, v):
        v[i] = 1 / 0
        v[i] = v[i] // 0
        v[i] /= 0

    lower(w, "for", 1, {"v": VIEW})


def test_a_complex_number_does_not_become_real() -> None:
    def w(i, v, z):
        v[i] = z

    with pytest.raises(WorkunitError, match="a complex128 value cannot become float64"):
        lower(w, "for", 1, {"v": VIEW, "z": ScalarType(DType.COMPLEX128)})
