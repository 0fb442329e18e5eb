# ruff: noqa: B007, F821, F841, PLW0127, UP006, UP035, SIM, C4
from __future__ import annotations

from typing import List

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


def test_a_local_has_exactly_its_annotation(same) -> None:
    def w(i, v, s):
        a: int = v[i]
        b: float = s[i]
        c: pk.float = v[i]
        d: pk.cpp_auto = s[i] * 2
        e: pk.uint8
        e = 300
        v[i] = a + b + c + d + e

    same(
        """
        let a: int32 = (int32)v[i]
        let b: float64 = (float64)s[i]
        let c: float32 = (float32)v[i]
        let d: float32 = s[i] * (float32)2
        let e: uint8
        e = (uint8)300
        v[i] = ((((float64)a + b) + (float64)c) + (float64)d) + (float64)e
        """,
        w,
        v=VIEW,
        s=SINGLE,
    )


def test_blocks_shadow(same) -> None:
    def w(i, v):
        x: int = 1
        if i > 0:
            x: int = 2
            x = 3
        v[i] = x

    same(
        """
        let x: int32 = 1
        if i > 0:
            let x.1: int32 = 2
            x.1 = 3
        v[i] = (float64)x
        """,
        w,
        v=VIEW,
    )


def test_a_local_may_shadow_an_argument_but_not_an_index(same) -> None:
    def w(i, v, n):
        n: float = 2.0
        v[i] = n

    def wrong(i, v, n):
        i: int = 2

    same("let n.1: float64 = 2.0\nv[i] = n.1", w, v=VIEW, n=N)
    with pytest.raises(WorkunitError, match="'i' is already declared in this block"):
        lower(wrong, "for", 1, {"v": VIEW, "n": N})


def test_updates_compute_in_the_common_type(same) -> None:
    def w(i, v, s, k):
        v[i] += k[i]
        s[i] += 1
        s[i] += 0.5
        k[i] /= 2
        k[i] //= v[i]
        k[i] <<= 1
        x: int = 7
        x *= 1.5
        v[i] -= x

    same(
        """
        v[i] += (float64)k[i]
        s[i] += (float32)1
        s[i] = (float32)((float64)s[i] + 0.5)
        k[i] /= 2
        k[i] = (int32)((float64)k[i] / v[i])
        k[i] <<= 1
        let x: int32 = 7
        x = (int32)((float64)x * 1.5)
        v[i] -= (float64)x
        """,
        w,
        v=VIEW,
        s=SINGLE,
        k=INTS,
    )


def test_an_index_with_an_effect_is_evaluated_once(same) -> None:
    def w(i, s, k):
        s[pk.atomic_fetch_add(k, [0], 1)] += 0.5

    same(
        """
        let at: int32 = atomic_fetch[+](k[0], 1)
        s[at] = (float32)((float64)s[at] + 0.5)
        """,
        w,
        s=SINGLE,
        k=INTS,
    )


def test_accumulators(same) -> None:
    def w(i, acc, v):
        acc += v[i]
        acc -= 1
        acc = acc * 2.0
        if v[i] > acc:
            acc = v[i]

    same(
        """
        acc += v[i]
        acc += -(float64)1
        acc = acc * 2.0
        if v[i] > acc:
            acc = v[i]
        """,
        w,
        "reduce",
        v=VIEW,
    )


def test_an_integer_accumulator_truncates_at_every_step(same) -> None:
    def w(i, acc: pk.Acc[int], v, k):
        acc += v[i]
        acc += k[i]

    same(
        """
        acc = (int32)((float64)acc + v[i])
        acc += k[i]
        """,
        w,
        "reduce",
        v=VIEW,
        k=INTS,
    )


def test_a_scan(same) -> None:
    def w(i, acc, last, v):
        acc += v[i]
        if last:
            v[i] = acc

    same("acc += v[i]\nif last:\n    v[i] = acc", w, "scan", v=VIEW)


def test_chained_assignment_passes_on_what_was_stored(same) -> None:
    def w(i, v, k):
        x: int = 0
        v[i] = x = k[i] = 2.5
        v[i] = x

    same(
        """
        let x: int32 = 0
        let value: int32 = (int32)2.5
        k[i] = value
        x = value
        let value.1: float64 = (float64)x
        v[i] = value.1
        v[i] = (float64)x
        """,
        w,
        v=VIEW,
        k=INTS,
    )


def test_lists(same) -> None:
    def w(i, v):
        a: List[int] = [1, 2, i]
        a[1] += v[i]
        v[i] = a[i] + a[0]

    same(
        """
        let a: int32[3] = [1, 2, i]
        a[1] = (int32)((float64)a[1] + v[i])
        v[i] = (float64)(a[i] + a[0])
        """,
        w,
        v=VIEW,
    )


def test_loops(same) -> None:
    def w(i, v, n):
        for j in range(n):
            if j == 2:
                continue
            v[j] = 1.0
        for j in range(n, 0, -2):
            break
        for j in range(1, v.extent(0), n):
            pass
        while True:
            break

    same(
        """
        for j: int32 in range(0, n, 1):
            if j == 2:
                continue
            v[j] = 1.0
        for j.1: int32 in range(n, 0, -2):
            break
        for j.2: int32 in range(1, v.extent(0), n):
            pass
        while true:
            break
        """,
        w,
        v=VIEW,
        n=N,
    )


def test_an_index_that_is_assigned_is_copied(same) -> None:
    def w(i, v):
        i += 1
        v[i] = 0.0

    same("let i.1: int32 = i\ni.1 = i.1 + 1\nv[i.1] = 0.0", w, v=VIEW)


def test_subviews_are_resolved(same) -> None:
    def w(i, m, n):
        row = m[i, :]
        part = m[n + 1, 2:n]
        inner = part[1:]
        column: pk.View1D[pk.double] = m[:, 0]
        row[0] = part[i] + inner[i] + column[n]
        row[1] = part.extent(0) + inner.extent(0) + column.extent(0)

    same(
        """
        let at: int32 = n + 1
        m[i, 0] = (m[at, 2 + i] + m[at, (2 + 1) + i]) + m[n, 0]
        m[i, 1] = (float64)((((int64)n - (int64)2) + (((int64)n - (int64)2) - (int64)1)) \
+ m.extent(0))
        """,
        w,
        m=MATRIX,
        n=N,
    )


def test_a_subview_keeps_the_bounds_it_was_made_with(same) -> None:
    def w(i, m):
        k: int = 1
        row = m[k, :]
        k = 2
        row[i] = k

    same(
        """
        let k: int32 = 1
        let at: int32 = k
        k = 2
        m[at, i] = (float64)k
        """,
        w,
        m=MATRIX,
    )


def undeclared(i, v):
    x += 3.5


def twice(i, v):
    x: int = 1
    x: int = 2


def own_value(i, v):
    x: float = x


def out_of_scope(i, v):
    for j in range(3):
        v[i] = j
    v[i] = j


def read_only(i, v, n):
    n += 1


def assign_view(i, v):
    v = 1


def float_range(i, v):
    for j in range(v[i]):
        pass


def view_loop(i, v):
    for j in v:
        pass


def zero_step(i, v):
    for j in range(0, 3, 0):
        pass


def negative_step(i, v, n):
    for j in range(3, 0, -n):
        pass


def value_returned(i, v):
    return 3


def power_update(i, v):
    v[i] **= 2


def tuple_assignment(i, v):
    v[0], v[1] = 1, 2


def assertion(i, v):
    assert v[i] > 0


def no_effect(i, v):
    v[i]


def stepped_slice(i, v):
    s = v[0:4:2]


def odd_type(i, v):
    x: str = 1


def nested_function(i, v):
    def f():
        pass


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (undeclared, "'x' has no value yet: line"),
        (twice, "'x' is already declared in this block"),
        (own_value, "'x' is used in its own declaration"),
        (read_only, "'n' is an argument of the call: it cannot be assigned"),
        (assign_view, "'v' is a view: assign to an element"),
        (float_range, "range needs integers, not float64"),
        (view_loop, r"a loop runs over range\(...\) only"),
        (zero_step, "the step of range is zero"),
        (negative_step, "a negative step must be a number"),
        (value_returned, "returns no value"),
        (power_update, r"`\*\*=` and `@=` are not supported"),
        (tuple_assignment, "a tuple is not supported"),
        (assertion, "assert is not supported"),
        (no_effect, "has no effect"),
        (stepped_slice, "a subview has no step"),
        (odd_type, "'str' is no type for a local variable"),
        (nested_function, "a nested function"),
    ],
)
def test_what_the_language_does_not_have(function, message: str) -> None:
    types = {"v": VIEW, **({"n": N} if "n" in function.__code__.co_varnames else {})}
    with pytest.raises(WorkunitError, match=message) as caught:
        lower(function, "for", 1, types)
    assert 0 < caught.value.location.line - function.__code__.co_firstlineno <= 2


def test_a_name_beyond_its_block() -> None:
    with pytest.raises(
        WorkunitError, match=r"'j' has no value here: it is the variable of the loop in line \d+"
    ):
        lower(out_of_scope, "for", 1, {"v": VIEW})


def test_wide_index_spaces_have_wide_loops_and_halves() -> None:
    def w(i, v):
        for j in range(i // 2, i):
            v[j] = 1.0

    for dtype in (DType.INT32, DType.INT64):
        loop = lower(w, "for", 1, {"v": VIEW}, dtype).workunit.body[0]
        assert loop.sym.dtype is loop.start.dtype is dtype
