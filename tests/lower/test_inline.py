# ruff: noqa: F821
from __future__ import annotations

import numpy as np
import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.ir.reference.interpret import interpret
from pyfuser.lower.lower import free_values_unchanged, lower
from pyfuser.lower.types import ViewType
from pyfuser.support.errors import WorkunitError

VIEW = ViewType(DType.FLOAT64, 1)
MATRIX = ViewType(DType.FLOAT64, 2)
INTS = ViewType(DType.INT32, 1)


def square(x: float) -> float:
    return x * x


def shift(k: int, by: int) -> int:
    k += by
    return k


def clamp(x: float, top: float) -> float:
    if x > top:
        return top
    return x


def norm(x: float, y: float) -> float:
    return sqrt(square(x) + square(y))


def bump(target: pk.View1D[pk.double], k: int) -> None:
    target[k] += 1.0


def positive(x: float) -> bool:
    return x > 0


SCALE = 2.0


def scaled(x: float) -> float:
    return x * SCALE


def endless(x: float) -> float:
    return endless(x)


def unannotated(x):
    return x


def resultless(x: float):
    return x


def test_arguments_are_converted_to_fresh_locals(same) -> None:
    def w(i, v, k):
        v[i] = square(k[i]) + shift(i, v[i])

    same(
        """
        let x: float64 = (float64)k[i]
        let square: float64 = x * x
        let k.1: int32 = i
        let by: int32 = (int32)v[i]
        k.1 = k.1 + by
        let shift: int32 = k.1
        v[i] = square + (float64)shift
        """,
        w,
        v=VIEW,
        k=INTS,
    )


def test_nested_calls_and_early_returns(same) -> None:
    def w(i, v):
        v[i] = clamp(norm(v[i], 1.0), 2.0)

    same(
        """
        let x: float64 = v[i]
        let y: float64 = 1.0
        let x.1: float64 = x
        let square: float64 = x.1 * x.1
        let x.2: float64 = y
        let square.1: float64 = x.2 * x.2
        let norm: float64 = sqrt(square + square.1)
        let x.3: float64 = norm
        let top: float64 = 2.0
        let clamp: float64
        if x.3 > top:
            clamp = top
        else:
            clamp = x.3
        v[i] = clamp
        """,
        w,
        v=VIEW,
    )


def test_view_parameters_are_the_callers_views(same) -> None:
    def w(i, v, m):
        bump(v, i)
        bump(m[i, :], 2)
        row = m[:, i]
        bump(row, 3)

    same(
        """
        let k: int32 = i
        v[k] += 1.0
        let k.1: int32 = 2
        m[i, k.1] += 1.0
        let k.2: int32 = 3
        m[k.2, i] += 1.0
        """,
        w,
        v=VIEW,
        m=MATRIX,
    )


def test_short_circuit_holds_for_inlined_calls(same) -> None:
    def w(i, v):
        if i > 0 and positive(v[i - 1]):
            v[i] = 1.0

    same(
        """
        let condition: bool = i > 0
        if condition:
            let x: float64 = v[i - 1]
            let positive: bool = x > (float64)0
            condition = positive
        if condition:
            v[i] = 1.0
        """,
        w,
        v=VIEW,
    )


def test_a_call_in_a_loop_condition_is_repeated(same) -> None:
    def w(i, v):
        while positive(v[i]):
            v[i] -= 1.0

    same(
        """
        while true:
            let x: float64 = v[i]
            let positive: bool = x > (float64)0
            if positive:
                pass
            else:
                break
            v[i] -= 1.0
        """,
        w,
        v=VIEW,
    )


def test_only_the_chosen_side_of_a_conditional_is_evaluated() -> None:
    def w(i, v):
        v[i] = square(v[i - 1]) if i > 0 else -1.0

    workunit = lower(w, "for", 1, {"v": VIEW}).workunit
    v = np.full(3, 3.0)
    interpret(workunit, "for", (0,), (3,), [v])  # v[-1] would be undefined behaviour
    assert v.tolist() == [-1.0, 1.0, 1.0]


def test_a_loop_bound_that_the_loop_changes_is_refused() -> None:
    def good(i, v, k):
        for j in range(shift(i, 2)):
            v[j] = 1.0

    def bad(i, v, k):
        for j in range(shift(k[i], 2)):
            v[j] = 1.0

    types = {"v": VIEW, "k": INTS}
    assert lower(good, "for", 1, types).workunit.body
    with pytest.raises(WorkunitError, match="compute it before the loop"):
        lower(bad, "for", 1, types)


def test_what_an_inlined_function_takes_from_outside_is_watched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def w(i, v):
        v[i] = scaled(v[i])

    lowered = lower(w, "for", 1, {"v": VIEW})
    assert dict(lowered.free) == {"scaled": scaled, "scaled().SCALE": 2.0}
    assert free_values_unchanged(w, lowered)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert not free_values_unchanged(w, lowered)
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    monkeypatch.setitem(globals(), "scaled", square)
    assert not free_values_unchanged(w, lowered)


def test_recursion() -> None:
    def w(i, v):
        v[i] = endless(v[i])

    with pytest.raises(WorkunitError, match="endless calls itself"):
        lower(w, "for", 1, {"v": VIEW})


def too_few(i, v):
    v[i] = shift(i)


def by_keyword(i, v):
    v[i] = shift(i, by=2)


def no_annotation(i, v):
    v[i] = unannotated(v[i])


def no_result_annotation(i, v):
    v[i] = resultless(v[i])


def void_value(i, v):
    v[i] = bump(v, i)


def number_for_view(i, v):
    bump(i, i)


def view_for_number(i, v):
    v[i] = square(v)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (too_few, r"shift takes 2 argument\(s\), not 1"),
        (by_keyword, "takes its arguments by position: pass .by. so"),
        (no_annotation, "a workunit calls unannotated, .* but 'x' has none, the result has none"),
        (no_result_annotation, "a workunit calls resultless, .* but the result has none"),
        (void_value, "bump returns nothing"),
        (number_for_view, "'target' is annotated as a view but gets a number"),
        (view_for_number, "'x' does not take a 1-D view of float64"),
    ],
)
def test_wrong_calls(function, message: str) -> None:
    with pytest.raises(WorkunitError, match=message):
        lower(function, "for", 1, {"v": VIEW})


def test_a_view_of_another_type_is_refused() -> None:
    def w(i, k):
        bump(k, i)

    with pytest.raises(WorkunitError, match="does not take a 1-D view of int32"):
        lower(w, "for", 1, {"k": INTS})


def take(target: pk.View1D[pk.double], k: int) -> float:
    target[k] += 1.0
    return target[k]


def test_values_keep_pythons_order_around_effects() -> None:
    def w(i, v):
        v[i] = v[i] * 10.0 + take(v, i)

    def indexed(i, v):
        v[int(take(v, 0))] = v[0]

    first = np.array([3.0])
    interpret(lower(w, "for", 1, {"v": VIEW}).workunit, "for", (0,), (1,), [first])
    assert first.tolist() == [34.0]
    second = np.array([1.0, 0.0, 0.0])
    interpret(lower(indexed, "for", 1, {"v": VIEW}).workunit, "for", (0,), (1,), [second])
    assert second.tolist() == [2.0, 0.0, 1.0]


def test_a_function_without_effects_keeps_no_values(same) -> None:
    def w(i, v):
        v[i] = v[i] * 10.0 + square(v[i])

    same(
        """
        let x: float64 = v[i]
        let square: float64 = x * x
        v[i] = (v[i] * 10.0) + square
        """,
        w,
        v=VIEW,
    )
