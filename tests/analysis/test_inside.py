"""The quick test that a call has no mistake: what it passes has none, and what has one fails it."""

from __future__ import annotations

import pytest

from pyfuser.analysis.accesses import structural_scalars
from pyfuser.analysis.inside import is_element, subscripts_of, surely_inside
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Assign, Binary, Const, Load, Param, Read, Store, Sym, Workunit
from pyfuser.lower.lower import lower
from pyfuser.lower.types import ScalarType, ViewType
from pyfuser.trace.call import Space


def shifted(i, y, x, k):
    y[i] = x[i + k]


def local(i, y, x, k):
    place = 2 * i + k
    for j in range(k, 5):
        y[i] += x[place + j]


def guarded(i, y, x, k):
    if i > 0:
        y[i] = x[i - 1]


def chosen(i, y, x, k):
    y[i] = x[k[i]]


def moved(i, y, x, k):
    i += k
    y[i] = x[i]


def divided(i, y, x, k):
    y[i] = x[i // k]


def divided_by_index(i, y, x, k):
    y[i] = x[k // i]


def divided_values(i, y, x, k):
    y[i] = 7 // i


def divided_by_an_element(i, y, x, k):
    at: int = k[i]
    y[i] = x[i // at]


def by_local(i, y, x, k):
    at: int = k[i]
    y[i] = x[at + 3]


def by_counted(i, y, x, k):
    at: int = 0
    at += k[i]
    y[i] = x[at]


def by_bound(i, y, x, k):
    for j in range(k[i]):
        y[i] += x[j]


def by_trips(i, y, x, k):
    at: int = 0
    for j in range(k[i], 5):
        at = j
        y[i] += x[at + j]


def stepped(i, y, x, k):
    for j in range(0, 5, k):
        y[i] += x[j]


def own_table(i, y, x, k):
    at: List[int] = [3, 0]  # noqa: F821
    y[i] = x[at[1] + k] + at[i % 2]


def chosen_row(i, y, x, k):
    y[i] = x[k[i], 1]


_OF_ELEMENTS = (chosen, divided_by_an_element, by_local, by_counted, by_bound, by_trips)
VIEW, INDICES = ViewType(DType.FLOAT64, 1), ViewType(DType.INT32, 1)


def lowered(function) -> Workunit:
    k = INDICES if function in _OF_ELEMENTS else ScalarType(DType.INT32)
    return lower(function, "for", 1, {"y": VIEW, "x": VIEW, "k": k}).workunit


def inside(function, begin: int, end: int, k: object, extent: int = 10) -> bool:
    unit = lowered(function)
    subscripts = subscripts_of(unit)
    assert subscripts is not None
    space = Space((begin,), (end,))
    return surely_inside(subscripts, space, ((10,), (extent,), k), structural_scalars(unit))


def test_subscripts_up_to_the_ends_are_inside() -> None:
    assert inside(shifted, 0, 6, 4)
    assert inside(shifted, 4, 10, -4)


@pytest.mark.parametrize(
    "begin, end, k", [(0, 7, 4), (3, 10, -4), (0, 11, -1), (-1, 5, 2), (0, 5, 2**31 - 3)]
)
def test_subscripts_beyond_the_ends_are_not(begin: int, end: int, k) -> None:
    assert not inside(shifted, begin, end, k)


def test_no_iteration_has_no_mistake() -> None:
    assert inside(shifted, 5, 5, 100)


def test_locals_and_loops_are_followed() -> None:
    assert inside(local, 0, 3, 1)  # 2 * 2 + 1 + 4
    assert not inside(local, 0, 4, 1)
    assert not inside(local, 0, 1, -1)


def test_what_a_guard_keeps_inside_is_sure() -> None:
    assert inside(guarded, 0, 10, 0) and inside(guarded, -1, 5, 0)
    assert not inside(guarded, 0, 11, 0)


def test_an_element_as_a_subscript_is_never_proved_wrong() -> None:
    assert inside(chosen, 0, 10, (10,))
    assert not inside(chosen, 0, 11, (11,))  # y[i]
    assert not inside(chosen, 0, 10, (9,))  # k[i]


def test_an_element_is_one_of_several_subscripts() -> None:
    types = {"y": VIEW, "x": ViewType(DType.FLOAT64, 2), "k": INDICES}
    found = subscripts_of(lower(chosen_row, "for", 1, types).workunit)
    assert found is not None
    assert surely_inside(found, Space((0,), (10,)), ((10,), (4, 2), (10,)), frozenset())


def test_a_number_that_is_not_known_is_not_sure() -> None:
    assert not inside(shifted, 0, 5, None)


def test_an_index_that_changes_is_not_sure() -> None:
    assert not inside(moved, 0, 5, 1)


def test_arrays_of_an_iteration_are_no_views() -> None:
    assert inside(own_table, 0, 10, 0) and not inside(own_table, 0, 11, 0)


@pytest.mark.parametrize("changed", ["i", "n"])
def test_what_the_body_sets_has_no_range(changed: str) -> None:
    i, n, x = Sym("i", 0, DType.INT32), Sym("n", 1, DType.INT32), Sym("x", 2, DType.FLOAT64)
    sym = i if changed == "i" else n
    store = Store(x, (Read(sym),), Const(1.0, DType.FLOAT64))
    params = Param(n), Param(x, 1)
    for body, held in (((store,), True), ((Assign(sym, Const(50, DType.INT32)), store), False)):
        found = subscripts_of(Workunit("unit", (i,), params, body))
        assert found is not None
        assert surely_inside(found, Space((0,), (4,)), (3, (10,)), frozenset({0})) is held
        if not held:
            as_if = found._replace(stable=found.stable | {i, n})
            assert surely_inside(as_if, Space((0,), (4,)), (3, (10,)), frozenset({0}))


@pytest.mark.parametrize("function", [divided_by_an_element, stepped])
def test_what_elements_divide_and_steps_are_for_others_to_look_at(function) -> None:
    assert subscripts_of(lowered(function)) is None


def test_divisors_that_cannot_be_0() -> None:
    assert inside(divided, 0, 10, 1) and inside(divided, 0, 10, 7)
    assert inside(divided, 0, 1, -1)
    assert not inside(divided, 0, 10, 0)
    assert not inside(divided_by_index, 0, 5, 1)
    assert inside(divided_by_index, 1, 5, 1)
    assert inside(divided_values, 1, 5, 1) and not inside(divided_values, 0, 5, 1)
    assert not inside(divided_by_index, -3, 0, 1) and not inside(divided_by_index, -3, 5, 1)


@pytest.mark.parametrize("function", [by_local, by_counted, by_bound, by_trips])
def test_locals_and_loops_that_elements_decide_prove_nothing(function) -> None:
    """... and what else is wrong is found nevertheless."""
    assert inside(function, 0, 10, (10,))
    assert not inside(function, 0, 11, (11,))


@pytest.mark.parametrize("function", [by_local, by_counted, by_bound, by_trips])
def test_what_is_left_out_is_what_elements_decide_alone(function) -> None:
    unit = lowered(function)
    subscripts = subscripts_of(unit)
    assert subscripts is not None
    views = {unit.params[place].sym.name for place, *_ in subscripts.found}
    assert views == {"y", "k"}


def test_an_element_is_there_for_all_values():
    i, k = Sym("i", 0, DType.INT32), Sym("k", 1, DType.INT32)
    ranges = {i: (0, 3)}
    assert is_element((Read(i), Const(2, DType.INT32)), (4, 3), ranges)
    assert not is_element((Read(i), Const(3, DType.INT32)), (4, 3), ranges)
    assert not is_element((Read(i),), (3,), ranges)
    assert not is_element((Read(i),), (4,), {i: (-1, 2)})
    assert not is_element((Read(k),), (4,), ranges)  # of which nothing is known
    assert not is_element((Binary("+", Read(k), Const(1, DType.INT32)),), (4,), ranges)  # wraps
    table = Sym("table", 2, DType.INT32)
    assert not is_element((Load(table, (Read(i),)),), (4,), ranges)
