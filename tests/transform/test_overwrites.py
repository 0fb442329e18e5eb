"""Which views a kernel overwrites: their new memory need not be zero."""

from __future__ import annotations

import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.lower.lower import ScalarType, ViewType, lower
from pyfuser.pipeline import kernel_of
from pyfuser.trace.call import Space
from pyfuser.transform.group import GroupShape
from pyfuser.transform.overwrites import boxes_of, holds_box, mark_overwrites
from tests.analysis.build import call_on, region

DOUBLES, TABLE = ViewType(DType.FLOAT64, 1), ViewType(DType.FLOAT64, 2)
INT = ScalarType(DType.INT32)


def plain(i, x):
    x[i] = 1.0


def by_a_local(i, x):
    k: int = i
    m: int = k
    x[m] = 1.0


def by_two(i, j, x):
    row: int = i
    x[row, j] = 1.0


def moved(i, x):
    k: int = i + 1
    x[k - 1] = 1.0


def by_a_local_that_changes(i, x):
    k: int = i
    k += i
    x[k // 2] = 1.0


def by_an_index_that_changes(i, x):
    i = i // 2
    x[i] = 1.0


def crossed(i, j, x):
    row: int = j
    x[row, i] = 1.0


def under_a_condition(i, x, n):
    if i < n:
        x[i] = 1.0


def of_what_it_reads(i, x):
    x[i] = x[i] + 1.0


def updated(i, x):
    x[i] += 1.0


def whatever_the_column(i, j, x):
    x[i] = 1.0


def twice_the_index(i, x):
    x[i, i] = 1.0


def beyond(i, x):
    x[i, 1] = 1.0


@pytest.mark.parametrize(
    ("function", "shape", "overwritten"),
    [
        (plain, (8,), True),
        (by_a_local, (8,), True),
        (by_two, (8, 8), True),
        (moved, (8,), False),  # it does; that is not found out
        (by_a_local_that_changes, (8,), False),
        (by_an_index_that_changes, (8,), False),
        (crossed, (8, 8), True),
        (under_a_condition, (8,), False),
        (of_what_it_reads, (8,), False),
        (updated, (8,), False),
    ],
)
def test_what_is_stored_at_the_index_in_every_iteration(function, shape, overwritten):
    types = {"x": TABLE if len(shape) == 2 else DOUBLES}
    arguments = [region(0, shape if len(shape) > 1 else shape[0])]
    if function is under_a_condition:
        types["n"] = INT
        arguments.append(8)
    unit = lower(function, "for", len(shape), types).workunit
    kernel = kernel_of(
        GroupShape((call_on(unit, shape[0] if len(shape) == 1 else shape, *arguments),))
    )
    assert kernel.overwrites == ((0,) if overwritten else ())


@pytest.mark.parametrize(
    ("function", "space", "shape"),
    [
        (whatever_the_column, (8, 8), (8,)),  # it does, if there are columns
        (twice_the_index, 8, (8, 8)),
        (beyond, 8, (8, 1)),  # an error
    ],
)
def test_subscripts_that_are_not_an_index_each(function, space, shape):
    rank = len(space) if isinstance(space, tuple) else 1
    unit = lower(function, "for", rank, {"x": ViewType(DType.FLOAT64, len(shape))}).workunit
    kernel = kernel_of(GroupShape((call_on(unit, space, region(0, shape)),)))
    assert kernel.overwrites == ()


def sums(i, acc, last, s, x):
    acc += x[i]
    if last:
        s[i] = acc


def sums_where_small(i, acc, last, s, x):
    acc += x[i]
    if last:
        t: float = acc
        if t < 8.0:
            s[i] = t


def sums_of_both_passes(i, acc, last, s, x):
    acc += x[i]
    if not last:
        s[i] = acc


def running(i, acc, last, s, x):
    if last:
        s[i] = acc
    acc += s[i] + x[i]


def running_behind(i, acc, last, s, x):
    if last:
        s[i] = x[i]
    acc += s[i]


@pytest.mark.parametrize(
    ("function", "overwritten"),
    [
        (sums, (0,)),
        (sums_where_small, ()),
        (sums_of_both_passes, ()),
        (running, ()),
        (running_behind, ()),
    ],
)
def test_what_the_last_pass_of_a_scan_stores(function, overwritten):
    unit = lower(function, "scan", 1, {"s": DOUBLES, "x": DOUBLES}).workunit
    kernel = kernel_of(GroupShape((call_on(unit, 8, region(0, 8), region(1, 8)),)))
    assert kernel.overwrites == overwritten


def test_indices_of_more_than_32_bits():
    """A local of 32 bits would wrap."""
    unit = lower(by_a_local, "for", 1, {"x": DOUBLES}).workunit
    for n, overwritten in ((2**31, (0,)), (2**31 + 1, ())):
        assert kernel_of(GroupShape((call_on(unit, n, region(0, n)),))).overwrites == overwritten


@pytest.mark.parametrize(
    ("begin", "end", "held"),
    [
        ((0, 0), (4, 6), True),
        ((1, 2), (3, 5), True),
        ((-1, 0), (4, 6), False),
        ((0, -1), (4, 6), False),
        ((-1, -1), (4, 6), False),
        ((0, 0), (5, 6), False),
        ((0, 0), (4, 7), False),
        ((0, 0), (5, 7), False),
    ],
)
def test_boxes_that_lie_in_a_view(begin: tuple[int, int], end: tuple[int, int], held: bool) -> None:
    assert holds_box((4, 6), Space(begin, end), (0, 1)) is held


def test_indices_that_are_no_32_bit_numbers_lie_in_no_box() -> None:
    assert holds_box((1 << 40,), Space((0,), (1 << 31,)), (0,))
    assert not holds_box((1 << 40,), Space((0,), ((1 << 31) + 1,)), (0,))


def row(i, x, w):
    for j in range(w):
        x[i, j] = 1.0


def row_by_extent(i, x, w):
    for j in range(x.extent(1)):
        k: int = j
        x[i, k] = 1.0


def column(i, x, w):
    for j in range(w):
        x[j, i] = 1.0


def one_by_one(i, x, w):
    x[i, 1] = 1.0
    for _ in range(2):
        x[i, 0] = 1.0
        x[i, 2] = 1.0


def never(i, x, w):
    for _ in range(0):
        for j in range(w):
            x[i, j] = 1.0


def twice(i, x, w):
    for _ in range(2):
        for k in range(w):
            x[i, k] = 1.0


def row_left(i, x, w):
    for j in range(w):
        x[i, j] = 1.0
        if j == i:
            break


def row_after_continue(i, x, w):
    for j in range(w):
        if j == i:
            continue
        x[i, j] = 1.0


def guarded(i, x, w):
    for j in range(w):
        if j != i:
            x[i, j] = 1.0


def guarded_whole(i, x, w):
    if i < w:
        for j in range(w):
            x[i, j] = 1.0


def short(i, x, w):
    for j in range(w - 1):
        x[i, j] = 1.0


def from_one(i, x, w):
    for j in range(1, w):
        x[i, j] = 1.0


def every_other(i, x, w):
    for j in range(0, w, 2):
        x[i, j] = 1.0


def by_a_step(i, x, w):
    for j in range(0, 3, w):
        x[i, j] = 1.0


def backwards(i, x, w):
    for j in range(w, 0, -1):
        x[i, j - 1] = 1.0


def by_the_index(i, x, w):
    for j in range(i):
        x[i, j] = 1.0


def changed_end(i, x, w):
    n: int = w
    n -= 1
    for j in range(n):
        x[i, j] = 1.0


def changed_variable(i, x, w):
    for j in range(w):
        j = 0
        x[i, j] = 1.0


def diagonal(i, x, w):
    for j in range(w):
        x[j, j] = 1.0


def one_row(i, x, w):
    for j in range(w):
        x[0, j] = 1.0


def all_but_one(i, x, w):
    x[i, 0] = 1.0
    x[i, 1] = 1.0
    x[i, 1] = 2.0


def while_it_lasts(i, x, w):
    k: int = 0
    while k < 1:
        k += 1
        for j in range(w):
            x[i, j] = 1.0


def reads_first(i, x, w):
    s: float = x[i, 0]
    for j in range(w):
        x[i, j] = s


def reads_another_row(i, x, w):
    for j in range(w):
        x[i, j] = 1.0
    x[i, 0] = x[7 - i, 1]


def reads_behind(i, x, w):
    for j in range(w):
        x[i, j] = 1.0
    s: float = 0.0
    for j in range(w):
        s += x[i, j]
    k: int = i
    if s > 1.0:
        x[k, w - 1] = x[k, 0] + s


def updates_behind(i, x, w):
    for j in range(w):
        x[i, j] = 1.0
    x[i, 1] += 2.0


def reads_column_behind(i, x, w):
    for j in range(w):
        x[j, i] = 1.0
    s: float = x[0, i]
    x[1, i] = s


def reads_in_the_loop(i, x, w):
    for j in range(w):
        x[i, j] = 1.0
        x[i, j] = x[i, w - 1 - j]


def reads_between(i, x, w):
    x[i, 0] = 1.0
    x[i, 1] = x[i, 0] + x[i, 2]
    x[i, 2] = 1.0


def reads_transposed(i, x, w):
    for j in range(w):
        x[i, j] = 1.0
    x[i, 0] = x[0, i]


def reads_short_rows(i, x, w):
    for j in range(w - 1):
        x[i, j] = 1.0
    x[i, 0] = x[i, w - 1]


def reads_by_a_local(i, x, w):
    for j in range(w):
        x[i, j] = 1.0
    k: int = i
    k -= 1
    if k > 0:
        x[i, 0] = x[k, 0]


def overwritten_by(function, shape, n=8, w=None):
    w = shape[1] if w is None else w
    unit = lower(function, "for", 1, {"x": TABLE, "w": INT}).workunit
    kernel = kernel_of(GroupShape((call_on(unit, n, region(0, shape), w),)))
    return dict(boxes_of(kernel)).get(0)


@pytest.mark.parametrize(
    ("function", "shape", "box"),
    [
        (row, (8, 5), ((0, 0), (8, 5))),
        (row, (9, 5), ((0, 0), (8, 5))),  # the last row stays what it is
        (row_by_extent, (8, 5), ((0, 0), (8, 5))),
        (column, (8, 8), ((0, 0), (8, 8))),
        (one_by_one, (8, 3), ((0, 0), (8, 3))),
        (twice, (8, 5), ((0, 0), (8, 5))),
        (reads_behind, (8, 5), ((0, 0), (8, 5))),
        (updates_behind, (8, 5), ((0, 0), (8, 5))),
        (reads_column_behind, (8, 8), ((0, 0), (8, 8))),
    ],
)
def test_what_loops_over_whole_extents_store(function, shape, box):
    assert overwritten_by(function, shape) == box


@pytest.mark.filterwarnings("ignore:'j' is assigned to")
@pytest.mark.parametrize(
    "function",
    [
        row_left, row_after_continue, guarded, guarded_whole, short, from_one, every_other,
        by_a_step, backwards, by_the_index, changed_end, changed_variable, diagonal, one_row,
        all_but_one, while_it_lasts, reads_first, reads_another_row, never,
        reads_in_the_loop, reads_between, reads_transposed, reads_short_rows, reads_by_a_local,
    ],
)  # fmt: skip
def test_loops_that_may_leave_something(function):
    assert overwritten_by(function, (8, 8) if function is diagonal else (8, 3)) is None


@pytest.mark.parametrize(
    ("function", "shape", "w"),
    [(row, (8, 5), 4), (row, (8, 5), 0), (column, (8, 8), 7), (column, (9, 8), 8)],
)
def test_extents_that_loops_do_not_have(function, shape, w):
    assert overwritten_by(function, shape, w=w) is None


def test_loops_of_more_than_32_bits():
    for width, box in ((2**31, ((0, 0), (8, 2**31))), (2**31 + 1, None)):
        assert overwritten_by(row_by_extent, (8, width), w=1) == box


def test_numbers_that_change_are_the_end_of_no_loop() -> None:
    unit = lower(row, "for", 1, {"x": TABLE, "w": INT}).workunit
    kernel = kernel_of(GroupShape((call_on(unit, 8, region(0, (8, 5)), 5),)))
    assert mark_overwrites(kernel).overwrites == mark_overwrites(kernel, {0}).overwrites == (0,)
    assert mark_overwrites(kernel, {1}).overwrites == ()
