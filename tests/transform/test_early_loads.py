"""Elements that all iterations of a row share, under conditions, are loaded before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyfuser.ir.nodes import Declare, Load
from pyfuser.ir.visit import statements
from pyfuser.pipeline import for_changing
from pyfuser.transform import early_loads
from pyfuser.transform.early_loads import load_early, needed
from pyfuser.transform.kernel import Kernel
from tests.transform.build import Program
from tests.transform.test_rows import outcome

N = 7


def arrays(*shape: int) -> dict[str, Any]:
    x = np.random.default_rng(3).integers(-3, 9, shape).astype(float)
    return {"y": np.zeros(shape), "x": x, "c": np.array([2.0, 3.0, 5.0])}


def early(function: Callable[..., Any], *shape: int, **more: Any) -> list[str]:
    """The elements that are loaded first; the kernel computes what it did."""
    program = Program(*shape)
    program.call(function, **{**arrays(*shape), **more})
    return loaded_first(program)


def loaded_first(program: Program) -> list[str]:
    kernel = program.check()
    changed = load_early(kernel)
    for found, wanted in zip(outcome(program, changed), outcome(program, kernel), strict=True):
        np.testing.assert_array_equal(found, wanted)
    body, before = changed.workunit.body, kernel.workunit.body
    count = len(body) - len(before)
    first = body[:count]
    assert all(isinstance(stmt, Declare) and isinstance(stmt.value, Load) for stmt in first)
    assert len([*statements(body)]) == len([*statements(before)]) + count
    return [stmt.value.view.name for stmt in first]  # type: ignore[union-attr]


def branch(i, y, x, c):
    if x[i] > 2.0:
        y[i] = c[1] * x[i]
    else:
        y[i] = c[2]


def choice(i, y, x, c):
    y[i] = c[0] * x[i] if x[i] > 2.0 else x[i]


def both(i, y, x, c):
    y[i] = 1.0 if x[i] > 2.0 and x[i] < c[1] else 0.0


def nested(i, y, x, c):
    for k in range(3):
        if x[i] > k:
            y[i] += c[2] * x[i]


def found_by_an_element(i, y, x, c):
    if x[i] > 2.0:
        y[i] = x[int(c[1])]


def test_branches_choices_and_conditions():
    assert early(branch, N) == ["c", "c"]
    assert early(choice, N) == ["c"]
    assert early(both, N) == ["c"]
    assert early(nested, N) == ["c"]
    assert early(found_by_an_element, N) == ["c"]


def of_a_row(i, j, y, x, c):
    if x[i, j] > 2.0:
        y[i, j] = c[i] * x[i, j]


def of_the_next_row(i, j, y, x, c):
    if i < 2:
        y[i, j] = c[i + 1] * x[i, j]


def of_a_column(i, j, y, x, c):
    if x[i, j] > 2.0:
        y[i, j] = c[j] * x[i, j]


def test_what_a_row_shares():
    assert early(of_a_row, 3, N) == ["c"]
    assert early(of_the_next_row, 2, N) == ["c"]
    assert early(of_the_next_row, 3, N) == []  # in the last row there is none, and it is not read
    assert early(of_a_column, N, 3) == []  # each iteration has its own


def by_a_number(i, y, x, c, k):
    if x[i] > 2.0:
        y[i] = c[k]


def changed_index(i, j, y, x, c):
    i = 2 - i
    if x[i, j] > 2.0:
        y[i, j] = c[i]


def divided(i, j, y, x, c):
    if x[i, j] > 2.0:
        y[i, j] = c[i // 2]


def test_numbers_that_a_kernel_is_made_for():
    assert early(by_a_number, N, k=2) == ["c"]
    x = np.zeros(N)  # so that the element that is not there is not read
    assert early(by_a_number, N, k=3, x=x) == []


def test_places_that_are_not_known():
    assert early(changed_index, 3, N) == []
    assert early(divided, 3, N) == []


def behind_the_end(i, y, x, c):
    if x[i] > 1000.0:
        y[i] = c[3]


def before_the_start(i, j, y, x, c):
    if i > 0:
        y[i, j] = c[i - 1]


def unconditional(i, y, x, c):
    y[i] = c[1] * x[i]
    if x[i] * c[2] > 2.0:
        y[i] = 0.0


def test_elements_that_are_not_there():
    assert early(behind_the_end, N) == []
    assert early(before_the_start, 3, N) == []


def of_a_local_array(i, y, x, c):
    t: List[float] = [x[i], 1.0]  # noqa: F821
    a = t[1] + 1.0
    if x[i] > 2.0:
        y[i] = t[0] + c[1] + a


def test_local_arrays_are_no_tables():
    assert early(of_a_local_array, N) == ["c"]
    program = Program(N)
    program.call(of_a_local_array, **arrays(N))
    assert [extents for _, extents in needed(load_early(program.kernel())) or ()] == [(2,)]


def test_what_is_loaded_anyway():
    assert early(unconditional, N) == []


def written(i, y, x, c):
    if x[i] > 2.0:
        y[i] = c[1]
    if i == 1:
        c[1] = 4.0


def writes(i, c):
    if i == 1:
        c[i] = 4.0


def test_tables_that_change():
    assert early(written, N) == []
    for second in ("its own", "a part of y", "a part of x", "another"):
        given = arrays(N)
        given["c"] = given[second[-1]][:3] if "part" in second else given["c"]
        program = Program(N)
        program.call(branch, **given)
        if second == "its own":
            program.call(writes, c=given["c"])
        kernel = program.kernel()
        found = load_early(kernel) is not kernel
        assert found == (second in ("a part of x", "another")), second


def many(i, y, x, c):
    if x[i] > 2.0:
        y[i] = c[0] + c[1] + c[2]


def test_there_is_a_limit(monkeypatch: pytest.MonkeyPatch):
    assert len(early(many, N)) == 3
    monkeypatch.setattr(early_loads, "MOST", 2)
    assert early(many, N) == []


def test_gpus_load_what_they_use():
    program = Program(N)
    program.call(branch, **arrays(N))
    kernel: Kernel = program.kernel()
    assert load_early(kernel) is not kernel
    kernel = replace(kernel, space=kernel.space._replace(execution="Cuda"))
    assert load_early(kernel) is kernel


def of_a_row_that_is_there(i, j, y, x, c):
    a = c[2] * 2.0
    if x[i, j] > 2.0:
        y[i, j] = c[i] * x[i, j] + a


def test_code_for_other_sizes_needs_what_is_loaded_early():
    program = Program(N)
    program.call(branch, **arrays(N))
    kernel = load_early(program.kernel())
    found = needed(kernel)
    assert found is not None
    places = [kernel.workunit.params[kernel.slots.index(slot)].sym.name for slot, _ in found]
    assert (places, [extents for _, extents in found]) == (["c", "c"], [(2,), (3,)])
    final, proof = for_changing(program.kernel(), frozenset())
    assert proof is not None and needed(final) == needed(kernel)


def test_code_that_loads_by_row_is_for_its_sizes_alone():
    program = Program(3, N)
    program.call(of_a_row, **arrays(3, N))
    kernel = program.kernel()
    assert needed(load_early(kernel)) is None
    assert for_changing(kernel, frozenset())[1] is None
    program = Program(2, N)  # of three elements there are two, whatever the space
    program.call(of_a_row_that_is_there, **arrays(2, N))
    assert needed(load_early(program.kernel())) is None


def of_both(i, j, y, x, c):
    if x[i, j] > 2.0:
        y[i, j] = c[1]
    if i < 2:
        y[i, j] += c[i + 1]


def test_what_stays_under_conditions_is_not_needed():
    program = Program(3, N)
    program.call(of_both, **arrays(3, N))
    assert [extents for _, extents in needed(load_early(program.kernel())) or ()] == [(2,)]


def test_code_that_loads_nothing_early_is_for_others_too():
    program = Program(3, N)
    program.call(of_the_next_row, **arrays(3, N))
    assert for_changing(program.kernel(), frozenset())[1] is not None
