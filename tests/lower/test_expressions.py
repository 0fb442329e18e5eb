# ruff: noqa: F821, RUF021
from __future__ import annotations

import math

import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.lower.lower import lower
from pyfuser.lower.types import ScalarType, ViewType
from pyfuser.support.errors import WorkunitError

VIEW = ViewType(DType.FLOAT64, 1)
INTS = ViewType(DType.INT32, 1)
SINGLE = ViewType(DType.FLOAT32, 1)
MATRIX = ViewType(DType.FLOAT64, 2)
N = ScalarType(DType.INT32)


def test_division_is_in_double_and_floor_division_is_c_division_to_int(same) -> None:
    def w(i, v, k):
        v[i] = k[i] / 2
        v[i] = k[i] // 2
        v[i] = v[i] // 2

    same(
        """
        v[i] = (float64)k[i] / (float64)2
        v[i] = (float64)(k[i] / 2)
        v[i] = (float64)(int32)(v[i] / (float64)2)
        """,
        w,
        v=VIEW,
        k=INTS,
    )


def test_single_precision_stays_single_unless_divided(same) -> None:
    def w(i, s):
        s[i] = s[i] * s[i] + 1
        s[i] = s[i] / s[i]
        s[i] = s[i] * 0.5

    same(
        """
        s[i] = (s[i] * s[i]) + (float32)1
        s[i] = (float32)((float64)s[i] / (float64)s[i])
        s[i] = (float32)((float64)s[i] * 0.5)
        """,
        w,
        s=SINGLE,
    )


def test_integer_promotion_and_unsigned_arithmetic(same) -> None:
    def w(i, b, u, k):
        b[i] = b[i] + b[i]
        k[i] = u[i] - 6 < k[i]
        k[i] = -b[i] + (k[i] << b[i])

    same(
        """
        b[i] = (int8)((int32)b[i] + (int32)b[i])
        k[i] = (int32)((u[i] - (uint32)6) < (uint32)k[i])
        k[i] = -(int32)b[i] + (k[i] << (int32)b[i])
        """,
        w,
        b=ViewType(DType.INT8, 1),
        u=ViewType(DType.UINT32, 1),
        k=INTS,
    )


def test_literals(same) -> None:
    def w(i, v):
        v[i] = 2147483648
        v[i] = -1
        v[i] = -0.0
        v[i] = math.pi
        v[i] = -True

    same(
        """
        v[i] = (float64)2147483648:int64
        v[i] = (float64)-1
        v[i] = -0.0
        v[i] = 3.141592653589793
        v[i] = (float64)-(int32)true
        """,
        w,
        v=VIEW,
    )


def test_power_is_a_call_with_cmath_overloads(same) -> None:
    def w(i, v, s, k):
        v[i] = v[i] ** 2
        s[i] = s[i] ** s[i]
        s[i] = s[i] ** 2
        v[i] = k[i] ** k[i]

    same(
        """
        v[i] = pow(v[i], (float64)2)
        s[i] = pow(s[i], s[i])
        s[i] = (float32)pow((float64)s[i], (float64)2)
        v[i] = pow((float64)k[i], (float64)k[i])
        """,
        w,
        v=VIEW,
        s=SINGLE,
        k=INTS,
    )


def test_and_or_nest_as_written(same) -> None:
    def w(i, v, a, b, c):
        if a and (b or c):
            v[i] = 1.0
        if not (a and b) or c and not a:
            v[i] = 2.0

    flag = ScalarType(DType.BOOL)
    same(
        """
        if a && (b || c):
            v[i] = 1.0
        if !(a && b) || (c && !a):
            v[i] = 2.0
        """,
        w,
        v=VIEW,
        a=flag,
        b=flag,
        c=flag,
    )


def test_conditions_become_bool(same) -> None:
    def w(i, v, n):
        while n and v[i]:
            v[i] = not n

    same(
        """
        while (bool)n && (bool)v[i]:
            v[i] = (float64)!(bool)n
        """,
        w,
        v=VIEW,
        n=N,
    )


def test_both_ways_of_indexing(same) -> None:
    def w(i, j, m, k):
        m[i][j] = m[j, i] + m[k[i]][j - 1]

    same("m[i, j] = m[j, i] + m[k[i], j - 1]", w, "for", 2, m=MATRIX, k=INTS)


def test_a_converted_index(same) -> None:
    def w(i, v):
        v[int(v[i])] = 1.0

    same("v[int32(v[i])] = 1.0", w, v=VIEW)


def test_a_floating_point_index_is_refused() -> None:
    def w(i, v):
        v[v[i]] = 1.0

    with pytest.raises(WorkunitError, match=r"'v\[i\]' is no integer, .* write int\(v\[i\]\)"):
        lower(w, "for", 1, {"v": VIEW})


def test_conditional_expression(same) -> None:
    def w(i, v, k):
        v[i] = k[i] if k[i] > 0 else v[i]

    same("v[i] = (k[i] > 0) ? (float64)k[i] : v[i]", w, v=VIEW, k=INTS)


def test_accesses_know_their_place() -> None:
    def w(i, v):
        v[i] = v[i + 1]

    store = lower(w, "for", 1, {"v": VIEW}).workunit.body[0]
    line = w.__code__.co_firstlineno + 1
    assert (store.location.line, store.location.column) == (line, 8)
    assert (store.value.location.column, store.value.location.function) == (15, "w")


def remainder_of_floats(i, v):
    v[i] = v[i] % 2.0


def chained(i, v):
    v[i] = 0 < i < 3


def whole_view(i, v):
    v[i] = v + 1


def wrong_rank(i, v):
    v[i] = v[i][0]


def from_the_end(i, v):
    v[i] = v[-2]


def slice_in_expression(i, v):
    v[i] = 1 + v[0:2]


def bits_of_floats(i, v):
    v[i] = ~v[i]


def a_list(i, v):
    v[i] = [1, 2]


def identity(i, v):
    v[i] = v is None


def matrix_product(i, v):
    v[i] = v[i] @ v[i]


def unknown_view(i, v):
    v[i] = q[i]


def string(i, v):
    v[i] = "x"


def misspelt(i, value):
    value[i] = valeu


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (remainder_of_floats, r"'%' needs integers, not float64; use fmod"),
        (chained, "write `a < b and b < c`"),
        (whole_view, r"'v' is a view: index it, as in v\[i\]"),
        (wrong_rank, "'v' has 1 dimension"),
        (from_the_end, "-2 is before the first element: .* write an extent less 2"),
        (slice_in_expression, "is a subview: write `s = "),
        (bits_of_floats, "'~' needs an integer, not float64"),
        (a_list, "a list"),
        (identity, "`is` and `in` are not supported"),
        (matrix_product, "'@' is not supported"),
        (unknown_view, "'q' is no view of this workunit"),
        (string, "a text may only be"),
        (misspelt, "unknown name 'valeu': did you mean 'value'"),
    ],
)
def test_what_the_language_does_not_have(function, message: str) -> None:
    name = function.__code__.co_varnames[1]
    with pytest.raises(WorkunitError, match=message) as caught:
        lower(function, "for", 1, {name: VIEW})
    assert caught.value.location.line == function.__code__.co_firstlineno + 1
