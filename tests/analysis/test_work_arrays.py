"""Which arrays of a trace may wait for a reader, and which it overwrites, by hand-made traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pyfuser
from pyfuser.analysis.accesses import structural_scalars
from pyfuser.analysis.work_arrays import Overwritten, _is_in, _is_inside, _joined, work_of
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.ir.dtypes import DType
from pyfuser.runtime.session import TRACER
from pyfuser.trace.shape import RegionShape, shape_of

N = 6


@pk.workunit
def make(i, k, x):
    k[i] = 2.0 * x[i]


@pk.workunit
def use(i, y, k):
    y[i] = k[i] + 1.0


@pk.workunit
def total(i, acc, k):
    acc += k[i]


@pk.workunit
def grow(i, k, x):
    k[i] = k[i] + x[i]


@pk.workunit
def reads_before(i, k, x):
    x[i] = k[i]
    k[i] = 0.0


@pk.workunit
def some(i, k, x):
    if x[i] > 0.0:
        k[i] = x[i]


@pk.workunit
def all_but_one(i, k, x):
    k[i + 1] = x[i]


@pk.workunit
def twice_as_far(i, k, x):
    k[2 * i] = x[i]


@pk.workunit
def mirrored(i, k, x):
    k[5 - i] = x[i]


@pk.workunit
def again_in_parts(i, k, x):
    k[i] = 0.0
    if x[i] > 0.0:
        k[i] = x[i]


@pk.workunit
def atomic(i, k, x):
    pk.atomic_add(k, [i], x[i])


@pk.workunit
def shown(i, k, x):
    k[i] = x[i]
    pk.printf("%d", i)


@pk.workunit
def divided(i, k: pk.View1D[pk.int64], n: int):
    k[i] = 7 // n


@pk.workunit
def shares(i, k: pk.View1D[pk.int64], x, n: int):
    k[i] = 7 // n


@pk.workunit
def makes_and_adds(i, acc, k, x):
    k[i] = x[i]
    acc += x[i]


@pk.workunit
def rows(i, t, x):
    for j in range(3):
        t[i][j] = x[i] + j


@pk.workunit
def two_rows(i, t, x):
    for j in range(2):
        t[i][j] = x[i] + j


@pk.workunit
def columns(i, t, x):
    t[i][0] = x[i]
    t[i][1] = x[i]
    t[i][2] = x[i]


@pk.workunit
def two_columns(i, t, x):
    t[i][0] = x[i]
    t[i][2] = x[i]


@pk.workunit
def diagonal(i, t, x):
    t[i][i] = x[i]


@pk.workunit
def use_rows(i, y, t):
    y[i] = t[i][0] + t[i][1] + t[i][2]


@pk.workunit
def cells(i, j, t, x):
    t[i][j] = x[i]


@pk.workunit
def two(i, k, y, x):
    k[i] = x[i]
    y[i] = x[i]


class Arrays:
    """Views by name, that have memory; r and s have three columns."""

    def __init__(self) -> None:
        self.views = {name: pk.View([N], pk.double) for name in "abkxyz"}
        self.views |= {name: pk.View([N, 3], pk.double) for name in "rs"}
        self.views["n"] = pk.View([N], pk.int64)
        for view in self.views.values():
            view.fill(0)
            view._host()

    def __getattr__(self, name: str) -> Any:
        return self.views[name]


def found(program: Callable[[Arrays], None]) -> tuple[str, str, list[set[int]]]:
    """The arrays that may wait, those that are overwritten, and the calls for each of the first."""
    pyfuser.sync()
    arrays = Arrays()
    with pyfuser.fusing():
        program(arrays)
        calls = list(TRACER.calls)
        pyfuser.discard()
    work = work_of(shape_of(calls, structural_scalars))
    names = {id(view._region.buffer): name for name, view in arrays.views.items()}

    def named(sources: Any) -> str:
        return "".join(sorted(names[id(calls[c].arguments[a].buffer)] for c, a in sources))  # type: ignore[union-attr]

    return named(work.arrays), named(work.overwritten), list(work.arrays.values())


def step(a: Arrays, *, space: Any = N, first: Any = make, x: str = "x") -> None:
    pk.parallel_for(space, first, k=a.k, x=a.views[x])
    pk.parallel_for(N, use, y=a.y, k=a.k)


def in_place(a: Arrays) -> None:
    step(a)
    pk.parallel_for(N, make, k=a.x, x=a.y)  # k is computed from x


def from_what_is_computed(a: Arrays) -> None:
    pk.parallel_for(N, make, k=a.a, x=a.x)
    pk.parallel_for(N, make, k=a.k, x=a.a)
    pk.parallel_for(N, use, y=a.y, k=a.k)


def from_what_changed_before(a: Arrays) -> None:
    pk.parallel_for(N, grow, k=a.x, x=a.z)
    step(a)


def from_what_is_computed_and_changed(a: Arrays) -> None:
    pk.parallel_for(N, make, k=a.a, x=a.z)
    pk.parallel_for(N, make, k=a.k, x=a.a)
    pk.parallel_for(N, grow, k=a.a, x=a.z)
    pk.parallel_for(N, use, y=a.y, k=a.k)


def read_first(a: Arrays) -> None:
    pk.parallel_for(N, use, y=a.y, k=a.k)
    step(a)


def not_read(a: Arrays) -> None:
    pk.parallel_for(N, make, k=a.k, x=a.x)


def read_then_written(a: Arrays) -> None:
    step(a)
    pk.parallel_for(N, make, k=a.k, x=a.z)


def part(a: Arrays) -> None:
    pk.parallel_for(3, make, k=a.k[:3], x=a.x[:3])
    pk.parallel_for(3, use, y=a.y[:3], k=a.k[:3])


def twice_given(a: Arrays) -> None:
    pk.parallel_for(N, two, k=a.k, y=a.k, x=a.x)
    pk.parallel_for(N, use, y=a.y, k=a.k)


def summed(a: Arrays) -> None:
    pk.parallel_for(N, make, k=a.k, x=a.x)
    pk.parallel_reduce(N, total, k=a.k)


def divisions(a: Arrays) -> None:
    step(a)
    pk.parallel_for(N, divided, k=a.n, n=3)


def by_dividing(a: Arrays) -> None:
    pk.parallel_for(N, shares, k=a.n, x=a.x, n=3)
    pk.parallel_for(N, use, y=a.y, k=a.n)


def by_a_sum(a: Arrays) -> None:
    pk.parallel_reduce(N, makes_and_adds, k=a.k, x=a.x)
    pk.parallel_for(N, use, y=a.y, k=a.k)


def made_and_used(a: Arrays) -> None:
    k = pk.View([N], pk.double)  # nobody has it when it runs
    pk.parallel_for(N, make, k=k, x=a.x)
    pk.parallel_for(N, use, y=a.y, k=k)


def with_table(first: Any) -> Callable[[Arrays], None]:
    def program(a: Arrays) -> None:
        pk.parallel_for(N, first, t=a.r, x=a.x)
        pk.parallel_for(N, use_rows, y=a.y, t=a.r)

    return program


def in_two_dimensions(begin: int, end: int) -> Callable[[Arrays], None]:
    def program(a: Arrays) -> None:
        pk.parallel_for(pk.MDRangePolicy([begin, 0], [end, 3]), cells, t=a.r, x=a.x)
        pk.parallel_for(N, use_rows, y=a.y, t=a.r)

    return program


@pk.workunit
def column(i, t, x, c: int):
    t[i][c] = x[i]


@pk.workunit
def one_column(i, y, t):
    y[i] = t[i][0]


@pk.workunit
def two_steps(i, k, x):
    k[2 * i] = x[i]
    k[2 * i + 1] = x[i]


def in_parts(*columns: int, read: int = 3) -> Callable[[Arrays], None]:
    """Columns of r by calls of their own; read: after so many of them."""

    def program(a: Arrays) -> None:
        for n, c in enumerate(columns):
            if n == read:
                pk.parallel_for(N, use_rows, y=a.z, t=a.r)
            pk.parallel_for(N, column, t=a.r, x=a.x, c=c)
        pk.parallel_for(N, use_rows, y=a.y, t=a.r)

    return program


def inside(begin: int, end: int, first: int, last: int) -> Callable[[Arrays], None]:
    """A part of k is made, and one of it used."""

    def program(a: Arrays) -> None:
        pk.parallel_for(pk.RangePolicy(begin, end), make, k=a.k, x=a.x)
        pk.parallel_for(pk.RangePolicy(first, last), use, y=a.y, k=a.k)

    return program


def inside_and_ends(a: Arrays) -> None:
    for begin, end in ((1, N - 1), (0, 1), (N - 1, N)):
        pk.parallel_for(pk.RangePolicy(begin, end), make, k=a.k, x=a.x)
    pk.parallel_for(N, use, y=a.y, k=a.k)


def inside_and_more(a: Arrays) -> None:
    """What is written later lies inside of what was written first."""
    pk.parallel_for(pk.RangePolicy(1, N - 1), make, k=a.k, x=a.x)
    pk.parallel_for(pk.RangePolicy(2, 4), grow, k=a.k, x=a.x)
    pk.parallel_for(pk.RangePolicy(1, N - 1), use, y=a.y, k=a.k)


def outside_later(a: Arrays) -> None:
    """... or not: the condition may hold at the end."""
    pk.parallel_for(pk.RangePolicy(1, N - 1), make, k=a.k, x=a.x)
    pk.parallel_for(N, some, k=a.k, x=a.x)
    pk.parallel_for(pk.RangePolicy(1, N - 1), use, y=a.y, k=a.k)


def behind_another_part(a: Arrays) -> None:
    """Elements are counted from where a part begins."""
    pk.parallel_for(3, make, k=a.k[3:], x=a.x)
    pk.parallel_for(3, use, y=a.y, k=a.k)


def inside_another_part(a: Arrays) -> None:
    pk.parallel_for(pk.RangePolicy(1, 3), make, k=a.k[3:], x=a.x)
    pk.parallel_for(pk.RangePolicy(1, 3), use, y=a.y, k=a.k)


def in_the_whole_of_a_part(a: Arrays) -> None:
    """As arrays they are: whether a part is all of its memory is seen when it runs."""
    pk.parallel_for(N, make, k=a.k, x=a.x)
    pk.parallel_for(3, grow, k=a.k[3:], x=a.x)
    pk.parallel_for(3, use, y=a.y, k=a.k[2:5])


def one_column_twice(a: Arrays) -> None:
    pk.parallel_for(N, column, t=a.r, x=a.x, c=1)
    pk.parallel_for(N, two_first, t=a.r, x=a.x)
    pk.parallel_for(N, column, t=a.r, x=a.x, c=2)
    pk.parallel_for(N, use_rows, y=a.y, t=a.r)


@pk.workunit
def two_first(i, t, x):
    t[i][0] = x[i]
    t[i][1] = x[i]


def by(first: Any, space: Any = N) -> Callable[[Arrays], None]:
    return lambda a: step(a, first=first, space=space)


@pytest.mark.parametrize(
    "boxes, joined",
    [
        ([((0, 3), (0, 0)), ((0, 3), (1, 1)), ((0, 3), (2, 2))], [((0, 3), (0, 2))]),
        ([((0, 0), (0, 0)), ((0, 0), (1, 1)), ((1, 1), (0, 1))], [((0, 1), (0, 1))]),
        ([((0, 4),), ((2, 7),)], [((0, 7),)]),
        ([((2, 7),), ((0, 1),)], [((0, 7),)]),
        ([((0, 4),), ((0, 4),)], [((0, 4),)]),
        # twins
        ([((0, 3), (0, 0)), ((0, 3), (2, 2))], None),
        ([((0, 3), (0, 0)), ((0, 2), (1, 1))], None),
        ([((0, 3),), ((5, 7),)], None),
        ([((5, 7),), ((0, 3),)], None),
        ([((0, 1), (0, 1)), ((2, 3), (2, 3))], None),
        ([], None),
    ],
)
def test_boxes_that_are_one(boxes: list[Any], joined: list[Any] | None) -> None:
    assert _joined(boxes) == (boxes if joined is None else joined)


@pytest.mark.parametrize(
    "box, inside",
    [
        (((1, 3), (2, 2)), True),
        (((0, 4), (0, 2)), True),
        (((0, 5), (0, 2)), False),
        (((-1, 4), (0, 2)), False),
        (((0, 4), (0, 3)), False),
        (((7, 8), (0, 0)), True),
        (((4, 7), (0, 0)), False),
    ],
)
def test_a_box_inside_of_one(box: Any, inside: bool) -> None:
    boxes = [((0, 4), (0, 2)), ((6, 8), (0, 2))]
    assert _is_inside(box, boxes) is inside
    assert not _is_inside(box, [])
    one = Overwritten(False, (box,), frozenset())
    assert Overwritten(False, tuple(boxes), frozenset()).covers(one) is inside


@pytest.mark.parametrize(
    "program, waits, overwritten",
    [
        (step, "k", "ky"),
        (summed, "k", "k"),
        (from_what_is_computed, "ak", "aky"),
        (from_what_is_computed_and_changed, "k", "aky"),
        (by(mirrored), "k", "ky"),
        (by(again_in_parts), "k", "ky"),
        (with_table(rows), "r", "ry"),
        (with_table(columns), "r", "ry"),
        (in_two_dimensions(0, N), "r", "ry"),
        (in_parts(0, 1, 2), "r", "ry"),
        (in_parts(2, 0, 1), "r", "ry"),
        (inside(1, N - 1, 1, N - 1), "k", "ky"),
        (inside(1, N - 1, 2, N - 2), "k", "ky"),
        (inside_and_ends, "k", "ky"),
        (inside_and_more, "k", "ky"),
        # twins
        (in_parts(0, 1), "", "y"),
        (in_parts(0, 1, 1), "", "y"),
        (in_parts(0, 1, 2, read=1), "", "yz"),
        (inside(1, N - 1, 0, N - 1), "", "y"),
        (inside(1, N - 1, 1, N), "", "y"),
        (outside_later, "", "y"),
        (behind_another_part, "", "y"),
        (inside_another_part, "", "y"),
        (in_the_whole_of_a_part, "k", "ky"),
        (one_column_twice, "r", "ry"),
        (by(two_steps, N // 2), "", "y"),
        (in_place, "", "ky"),
        (from_what_changed_before, "", "ky"),
        (read_first, "", "y"),
        (not_read, "", "k"),
        (read_then_written, "", "ky"),
        (twice_given, "", "y"),
        (by_dividing, "", ""),
        (by_a_sum, "", "y"),
        (divisions, "k", ""),
        (by(grow), "", "y"),
        (by(reads_before), "", "xy"),
        (by(some), "", "y"),
        (by(all_but_one, N - 1), "", "y"),
        (by(twice_as_far, N // 2), "", "y"),
        (by(atomic), "", "y"),
        (by(shown), "", "y"),
        (by(make, pk.RangePolicy(1, N)), "", "y"),
        (by(make, N - 1), "", "y"),
        (with_table(two_rows), "", "y"),
        (with_table(two_columns), "", "y"),
        (with_table(diagonal), "", "y"),
        (in_two_dimensions(1, N), "", "y"),
        (in_two_dimensions(0, N - 1), "", "y"),
    ],
)
def test_what_waits_and_what_is_overwritten(
    program: Callable[[Arrays], None], waits: str, overwritten: str
) -> None:
    assert found(program)[:2] == (waits, overwritten)


@pytest.mark.parametrize(
    "program, calls",
    [
        (step, {0}),
        (in_parts(0, 1, 2), {0, 1, 2}),
        (inside_and_ends, {0, 1, 2}),
        (inside_and_more, {0}),
        (one_column_twice, {0, 1, 2}),
    ],
)
def test_the_calls_that_overwrite_together(
    program: Callable[[Arrays], None], calls: set[int]
) -> None:
    pyfuser.sync()
    with pyfuser.fusing():
        program(Arrays())
        trace = shape_of(list(TRACER.calls), structural_scalars)
        pyfuser.discard()
    assert work_of(trace).overwritten[0, 0].calls == calls


@pytest.mark.parametrize(
    "other, inside",
    [
        ((1, 16, (8,), (4,), DType.FLOAT64), True),
        ((1, 40, (8,), (3,), DType.FLOAT64), True),
        ((1, 8, (8,), (4,), DType.FLOAT64), False),
        ((1, 40, (8,), (4,), DType.FLOAT64), False),
    ],
)
def test_memory_of_other_arguments(other: Any, inside: bool) -> None:
    region = RegionShape(1, 16, (8,), (6,), DType.FLOAT64)
    assert _is_in(RegionShape(*other), region) is inside
    every_other = RegionShape(1, 16, (16,), (6,), DType.FLOAT64)
    assert not _is_in(RegionShape(*other), every_other) and _is_in(every_other, every_other)


def around_a_part(a: Arrays) -> None:
    """y is computed from all of k, a part of which is added to: once more if that runs again."""
    pk.parallel_for(3, make, k=a.k[3:], x=a.x)
    pk.parallel_for(3, grow, k=a.k[:3], x=a.x)
    pk.parallel_for(N, use, y=a.y, k=a.k)
    pk.parallel_reduce(N, total, k=a.y)


def test_what_is_computed_from_a_part_that_changes_does_not_wait() -> None:
    assert found(around_a_part)[:2] == ("", "y")


def test_all_boxes_have_to_be_covered() -> None:
    whole = Overwritten(False, (((0, 9),),), frozenset([0]))
    other = Overwritten(False, (((2, 3),), ((8, 12),)), frozenset([1]))
    assert not whole.covers(other)
    assert whole.covers(other._replace(boxes=(((2, 3),), ((8, 9),))))


def test_temporaries_do_not_wait() -> None:
    pyfuser.sync()
    with pyfuser.fusing():
        made_and_used(Arrays())
        trace = shape_of(list(TRACER.calls), structural_scalars)
        pyfuser.discard()
    assert work_of(trace).arrays == {} and len(work_of(trace).overwritten) == 2


def test_parts_are_overwritten_whole() -> None:
    """As arrays they are: whether a part is all of its memory is seen when it runs."""
    assert found(part)[:2] == ("k", "ky")


def test_calls_that_compute_an_array() -> None:
    assert found(step)[2] == [{0}]
    assert found(from_what_is_computed)[2] == [{0}, {0, 1}]
    assert found(from_what_is_computed_and_changed)[2] == [{0, 1, 2}]

    def shared(a: Arrays) -> None:
        pk.parallel_for(N, two, k=a.k, y=a.a, x=a.x)
        pk.parallel_for(N, make, k=a.a, x=a.k)  # writes what the first writes, too
        pk.parallel_for(N, use, y=a.y, k=a.k)

    assert found(shared)[2] == [{0, 1}]
