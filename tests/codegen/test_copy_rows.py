"""Copied rows: what strips of iterations read again is copied, and nothing else is."""
# ruff: noqa: F821

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.kernel import spec_of
from pyfuser.nest.build import nest_of
from pyfuser.nest.nodes import Nest
from pyfuser.nest.passes.blocks import lower_blocks
from pyfuser.nest.passes.columns import columns_of
from pyfuser.nest.passes.copy_rows import AGAIN, ROW, copied_rows
from pyfuser.nest.spec import LoopOrder
from pyfuser.nest.verify import verify
from pyfuser.tuning.thresholds import DEFAULT
from tests.codegen.build import Case, as_interpreted, case
from tests.nest.interpret import interpret

FEWEST = DEFAULT.fewest_columns
M, D = 17, 19
SIZES = [1, FEWEST - 1, FEWEST, 75]


def table(rows: int, columns: int = D, seed: int = 0, kind: str = "float64") -> Any:
    return np.random.default_rng(seed).integers(-9, 9, (rows, columns)).astype(kind)


def line(n: int) -> Any:
    return np.random.default_rng(3).integers(0, 5, n).astype("float64")


def nest(given: Case) -> Nest:
    spec = spec_of(given.kernel)
    return nest_of(replace(spec, order=LoopOrder(tuple(range(spec.rank)))))


def copies(given: Case) -> int:
    """How many rows are copied."""
    made = nest(given)
    found = copied_rows(made, made.workunit.indices[-1])
    used = columns_of(made)
    if found is None:
        assert used is None or used.fits is None
        return 0
    assert used is not None and used.fits == found.fits and used.outer == found.outer
    assert len(used.copies) == len(found.rows)
    return len(found.rows)


def on(work: Callable[..., None], n: int, m: int = M, d: int = D, **options: Any) -> Case:
    """The work on two tables of rows, a line, and the numbers of rows and elements."""
    kind = options.pop("kind", "float64")
    return case(
        work,
        [n],
        lambda: [table(n, d, 0, kind), table(m + 1, d, 1, kind), line(n), m, d],
        **options,
    )


def over(work: Callable[..., None], n: int, m: int, d: int = D) -> Case:
    """The same over a box of pairs, with a table for their numbers."""
    return case(
        work,
        [m, n],
        lambda: [table(n, d), table(m, d, 1), np.zeros((m, n)), m, d],
    )


def nearest(i, x, y, l, m, d):
    least: float = 1e30
    for j in range(m):
        total: float = 0.0
        for c in range(d):
            step: float = x[i][c] - y[j][c]
            total += step * step
        if total < least:
            least = total
    l[i] = least


def two_rows(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(m):
        k: int = d - 1
        for c in range(d):
            total += x[i][c] * y[j][c] - x[i][k - c]
    l[i] = total


def deeper(i, x, y, l, m, d):
    total: float = 0.0
    for k in range(2, m):
        for j in range(m):
            for c in range(d):
                total = total * 0.5 + x[i][c] * y[j][c] - y[k][c]
    l[i] = total


def twice(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(m):
        for c in range(d):
            total += x[i][c] * y[j][c]
    for j in range(m):
        for c in range(d):
            total = total * 0.25 - x[i][c] * y[j][c]
    l[i] = total


def made_before(i, x, y, l, m, d):
    for c in range(d):
        x[i][c] = x[i][c] * 0.5 + 1.0
    total: float = 0.0
    for j in range(m):
        for c in range(d):
            total = total * 0.5 + x[i][c] * y[j][c]
    l[i] = total


def changed_after(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(m):
        for c in range(d):
            total = total * 0.5 + x[i][c] * y[j][c]
    for c in range(d):
        x[i][c] += total


def changed_between(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(m):
        for c in range(d):
            total = total * 0.5 + x[i][c] * y[j][c]
    x[i][0] = total
    for j in range(m):
        for c in range(d):
            total = total * 0.5 + x[i][c] * y[j][c]
    l[i] = total


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    ("work", "rows"),
    [(made_before, 1), (changed_after, 1), (changed_between, 2)],
)
def test_rows_that_the_iteration_changes_elsewhere(
    work: Callable[..., None], rows: int, n: int
) -> None:
    given = on(work, n)
    assert copies(given) == rows
    as_interpreted(given)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("work", "rows"), [(nearest, 1), (two_rows, 2), (deeper, 1), (twice, 2)])
def test_rows_that_trips_read_again(work: Callable[..., None], rows: int, n: int) -> None:
    given = on(work, n)
    assert copies(given) == rows
    as_interpreted(given)


@pytest.mark.parametrize("m", [0, 1, AGAIN - 1, AGAIN])
@pytest.mark.parametrize("d", [0, 1, ROW, ROW + 1])
def test_few_trips_and_rows_of_any_length(m: int, d: int) -> None:
    for work in (nearest, deeper):
        as_interpreted(on(work, FEWEST + 1, m, d))


@pytest.mark.parametrize("kind", ["float32", "int32", "uint8", "int64"])
def test_rows_of_other_types(kind: str) -> None:
    def least(i, x, y, l, m, d):
        for j in range(m):
            total: float = l[i]
            for c in range(d):
                total += x[i][c] * y[j][c]
            l[i] = total

    given = on(least, 40, kind=kind)
    assert copies(given) == 1
    as_interpreted(given)


def test_no_rows_of_pairs_of_numbers_or_of_bools() -> None:
    def count(i, x, y, l, m, d):
        for j in range(m):
            total: float = l[i]
            for c in range(d):
                if x[i][c]:
                    total += y[j][c]
            l[i] = total

    def arguments() -> list[Any]:
        return [table(20) > 0, table(M, D, 1), line(20), M, D]

    assert not copies(case(count, [20], arguments))


def summed(i, acc, x, y, l, m, d):
    least: float = 1e30
    for j in range(m):
        total: float = 0.0
        for c in range(d):
            step: float = x[i][c] - y[j][c]
            total += step * step
        if total < least:
            least = total
    l[i] = least
    acc += least


@pytest.mark.parametrize("n", SIZES)
def test_in_reductions(n: int) -> None:
    given = on(summed, n, pattern="reduce")
    assert copies(given) == 1
    as_interpreted(given)


# --------------------------------------------------------------------------- boxes


def product(i, j, x, y, r, m, d):
    total: float = 0.0
    for c in range(d):
        total += x[j][c] * y[i][c]
    r[i][j] = total


def of_both(i, j, x, y, r, m, d):
    total: float = 0.0
    for c in range(d):
        total = total * 0.5 + x[j][c] * y[i][c] - x[j][d - 1 - c]
    for c in range(d):
        total = total * 0.5 + y[i][c] - x[j][c]
    r[i][j] = total


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("m", [1, AGAIN - 1, AGAIN, AGAIN + 5])
def test_rows_that_another_axis_reads_again(n: int, m: int) -> None:
    for work, rows in ((product, 1), (of_both, 3)):
        given = over(work, n, m)
        assert copies(given) == rows
        used = columns_of(nest(given))
        assert used is not None and used.outer == 0 and used.ahead
        as_interpreted(given)


@pytest.mark.parametrize("d", [0, 1, ROW, ROW + 1])
def test_rows_of_any_length_over_boxes(d: int) -> None:
    as_interpreted(over(product, 2 * FEWEST + 1, AGAIN, d))


def test_rows_of_the_other_axis_are_each_iterations_own() -> None:
    def moved(i, j, x, y, r, m, d):
        total: float = 0.0
        for c in range(d):
            total += x[j + i][c] * y[i][c]
        r[i][j] = total

    def in_trips(i, j, x, y, r, m, d):
        total: float = 0.0
        for k in range(m):
            for c in range(d):
                total += x[j + i][c] * y[k][c]
        r[i][j] = total

    def arguments() -> list[Any]:
        return [table(40), table(M, D, 1), np.zeros((9, 20)), M, D]

    assert not copies(case(moved, [9, 20], arguments))
    given = case(in_trips, [9, 20], arguments)
    assert copies(given) == 1
    used = columns_of(nest(given))
    assert used is not None and used.outer is None and not used.ahead
    as_interpreted(given)


def test_rows_of_an_axis_are_changed_nowhere() -> None:
    def ends(i, j, x, y, r, m, d):
        total: float = 0.0
        for c in range(d - 1):
            total = total * 0.5 + x[j][c] * y[i][c]
        if i == 0:
            x[j][d - 1] = total
        r[i][j] = total

    given = over(ends, 30, 9)
    assert not copies(given)
    as_interpreted(given)


def test_reductions_over_boxes_have_no_rows_of_an_axis() -> None:
    def added(i, j, acc, x, y, r, m, d):
        total: float = 0.0
        for c in range(d):
            total = total * 0.5 + x[j][c] * y[i][c]
        acc += total

    def arguments() -> list[Any]:
        return [table(30), table(9, D, 1), np.zeros((9, 30)), 9, D]

    given = case(added, [9, 30], arguments, "reduce")
    assert not copies(given)
    as_interpreted(given)


def test_tiled_loops_have_no_rows_of_an_axis() -> None:
    given = over(product, 20, 9)
    made = nest_of(replace(spec_of(given.kernel), order=LoopOrder((0, 1), 8)))
    assert copied_rows(made, made.workunit.indices[-1]) is None


# --------------------------------------------------------------------------- what has none


def written(i, x, y, l, m, d):
    for j in range(m):
        total: float = 0.0
        for c in range(d):
            total += x[i][c] * y[j][c]
        x[i][0] = total


def written_by_atomics(i, x, y, l, m, d):
    for j in range(m):
        total: float = 0.0
        for c in range(d):
            total += x[i][c] * y[j][c]
        pk.atomic_add(x, [i, 0], total)


def atomics_before(i, x, y, l, m, d):
    pk.atomic_add(x, [i, 0], 1.0)
    total: float = 0.0
    for j in range(m):
        for c in range(d):
            total = total * 0.5 + x[i][c] * y[j][c]
    l[i] = total


def skipped(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(m):
        if l[i] > j:
            for c in range(d):
                total = total * 0.5 + x[i][c] * y[j][c]
    l[i] = total


def skipped_elements(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(m):
        for c in range(d):
            if y[j][c] > 0.0:
                total = total * 0.5 + x[i][c]
    l[i] = total


def short_circuit(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(m):
        for c in range(d):
            if y[j][c] > 0.0 and x[i][c] > 0.0:
                total = total * 0.5 + 1.0
    l[i] = total


def chosen(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(m):
        for c in range(d):
            total = total * 0.5 + (x[i][c] if y[j][c] > 0.0 else 0.0)
    l[i] = total


def until(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(m):
        for c in range(d):
            total = total * 0.5 + x[i][c] * y[j][c]
            if total > 2.0:
                break
    l[i] = total


def until_around(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(m):
        if total > 2.0:
            break
        for c in range(d):
            total = total * 0.5 + x[i][c] * y[j][c]
    l[i] = total


def own_ends(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(m):
        for c in range(i % d):
            total = total * 0.5 + x[i][c] * y[j][c]
    l[i] = total


def own_trips(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(i % m):
        for c in range(d):
            total = total * 0.5 + x[i][c] * y[j][c]
    l[i] = total


def ends_of_data(i, x, y, l, m, d):
    end: int = y[0][0]
    total: float = 0.0
    for j in range(m):
        for c in range(end):
            total = total * 0.5 + x[i][c] * y[j][c]
    l[i] = total


def ends_that_change(i, x, y, l, m, d):
    end: int = d
    total: float = 0.0
    for j in range(m):
        for c in range(end):
            total = total * 0.5 + x[i][c] * y[j][c]
        end = end - 1
    l[i] = total


def from_one(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(m):
        for c in range(1, d):
            total = total * 0.5 + x[i][c] * y[j][c]
    l[i] = total


def every_other(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(m):
        for c in range(0, d, 2):
            total = total * 0.5 + x[i][c] * y[j][c]
    l[i] = total


def rows_of_trips(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(m):
        for c in range(d):
            total = total * 0.5 + x[(i + j) % 17][c] * y[j][c]
    l[i] = total


def rows_of_data(i, x, y, l, m, d):
    at: int = l[i]
    total: float = 0.0
    for j in range(m):
        for c in range(d):
            total = total * 0.5 + x[at][c] * y[j][c]
    l[i] = total


def rows_that_change(i, x, y, l, m, d):
    at: int = i
    total: float = 0.0
    for j in range(m):
        for c in range(d):
            total = total * 0.5 + x[at][c] * y[j][c]
        at = i - at
    l[i] = total


def one_element(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(m):
        for c in range(d):
            total = total * 0.5 + x[i][3] * y[j][c]
    l[i] = total


def read_once(i, x, y, l, m, d):
    total: float = 0.0
    for c in range(d):
        total = total * 0.5 + x[i][c] * y[0][c]
    l[i] = total


def same_row(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(m):
        for c in range(d):
            total = total * 0.5 + y[m][c] * y[j][c]
    l[i] = total


@pytest.mark.parametrize(
    "work",
    [
        *(
            written,
            written_by_atomics,
            atomics_before,
            skipped,
            skipped_elements,
            short_circuit,
            chosen,
            until,
        ),
        *(until_around, own_ends, own_trips, ends_of_data, ends_that_change, from_one),
        *(every_other, rows_of_trips, rows_of_data, rows_that_change, one_element, read_once),
        same_row,
    ],
    ids=lambda work: work.__name__,
)
def test_other_rows_are_not_copied(work: Callable[..., None]) -> None:
    given = on(work, 40)
    assert not copies(given)
    as_interpreted(given)


def ends_of_elements(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(m):
        for c in range(y[0][0]):
            total = total * 0.5 + x[i][c] * y[j][c]
    l[i] = total


def trips_of_elements(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(y[0][0]):
        for c in range(d):
            total = total * 0.5 + x[i][c] * y[j][c]
    l[i] = total


def rows_of_elements(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(m):
        for c in range(d):
            total = total * 0.5 + x[y[0][0] * i][c] * y[j][c]
    l[i] = total


def unsigned_ends(i, x, y, l, m, d):
    end: pk.uint32 = d
    total: float = 0.0
    for j in range(m):
        for c in range(end):
            total = total * 0.5 + x[i][c] * y[j][c]
    l[i] = total


def moved_on(i, x, y, l, m, d):
    total: float = 0.0
    for j in range(m):
        for c in range(d):
            total = total * 0.5 + x[i][c] * y[j][c]
            c += 1
    l[i] = total


@pytest.mark.parametrize(
    "work",
    [ends_of_elements, trips_of_elements, rows_of_elements, unsigned_ends, moved_on],
    ids=lambda work: work.__name__,
)
def test_rows_that_data_or_other_counters_end(work: Callable[..., None]) -> None:
    def arguments() -> list[Any]:
        x, y = table(20, kind="int32"), table(M, D, 1, "int32")
        y[0, 0] = 1
        return [x, y, line(20), M, D]

    given = case(work, [20], arguments)
    assert not copies(given)
    as_interpreted(given)


@pytest.mark.parametrize("trips", [AGAIN - 1, AGAIN])
def test_few_trips_pay_for_no_copies(trips: int) -> None:
    def known(i, x, y, l, m, d):
        total: float = 0.0
        for j in range(trips):
            for c in range(d):
                total = total * 0.5 + x[i][c] * y[j][c]
        l[i] = total

    given = on(known, 20)
    assert copies(given) == (trips == AGAIN)
    as_interpreted(given)


def test_no_rows_of_views_that_overlap() -> None:
    def given(apart: bool) -> Case:
        def arguments() -> list[Any]:
            x = table(40)
            return [x, table(M, D, 1), line(40) if apart else x[:, 3], M, D]

        return case(nearest, [40], arguments)

    assert copies(given(True)) == 1
    assert not copies(given(False))
    as_interpreted(given(False))


def test_no_rows_in_serial_spaces_and_checked_code() -> None:
    assert columns_of(nest(on(nearest, 40, execution="Serial"))) is None
    made = nest(on(nearest, 40))
    made = replace(made, spec=replace(made.spec, sites=()))
    assert copied_rows(made, made.workunit.indices[-1]) is None


@pytest.mark.parametrize("m", [0, 1, AGAIN])
def test_nothing_is_read_that_was_not(m: int) -> None:
    """Without trips the rows may be shorter: the nest's interpreter sees all that is read."""
    d = D if m else D + 4

    def around(i, x, y, l, m, d):
        for _ in range(m):
            for j in range(M):
                total: float = 0.0
                for c in range(d):
                    total += x[i][c] * y[j][c]
                l[i] = total

    def arguments() -> list[Any]:
        return [table(20), table(M, D, 1), line(20), m, d]

    for work in (nearest, around):
        given = case(work, [20], arguments)
        assert copies(given) == 1
        made = lower_blocks(nest(given))
        verify(made)
        found = given.arguments()
        interpret(made, (0,), (20,), found, 0)
        for a, b in zip(found, given.interpreted()[0], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n", [1, FEWEST, 2 * FEWEST + 3])
@pytest.mark.parametrize("m", [AGAIN - 1, AGAIN, AGAIN + 3])
def test_boxes_interpreted(n: int, m: int) -> None:
    for work in (product, of_both):
        given = over(work, n, m)
        made = lower_blocks(nest(given))
        verify(made)
        found = given.arguments()
        interpret(made, (0, 0), (m, n), found, 0)
        for a, b in zip(found, given.interpreted()[0], strict=True):
            np.testing.assert_array_equal(a, b)
