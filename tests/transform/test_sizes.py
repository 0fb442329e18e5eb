"""What of a kernel is made once for all sizes, and what is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from pyfuser.ir.canonical import canonical
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import For, Store
from pyfuser.ir.visit import statements
from pyfuser.lower.lower import ScalarType, ViewType, lower
from pyfuser.pipeline import C_PASSES, KERNEL_PASSES, kernel_of, run_passes
from pyfuser.trace.call import Space
from pyfuser.trace.shape import RegionShape
from pyfuser.transform.fuse import form_of, fuse
from pyfuser.transform.group import GroupShape
from tests.analysis.build import call_on, region


def put(i, x, v):
    x[i] = v


def add(i, x, y):
    y[i] += x[i]


def shifted(i, x, y, k):
    y[i] = x[i + k]


def stretched(i, x, y):
    y[i] = x[4 * i]


def rows(i, x, y, m):
    for f in range(m):
        y[i] += x[f][i]


def row_of(i, t, x, m):
    for f in range(m):
        t[i][f] = 2.0 * x[i]
    for f in range(m):
        x[i] += t[i][f]


def lowered(function: Callable[..., Any], **types: ViewType | ScalarType) -> Any:
    return lower(function, "for", 1, types)


DOUBLES, TABLE = ViewType(DType.FLOAT64, 1), ViewType(DType.FLOAT64, 2)
INT, FLOAT = ScalarType(DType.INT32), ScalarType(DType.FLOAT64)
PUT = lowered(put, x=DOUBLES, v=FLOAT).workunit
ADD = lowered(add, x=DOUBLES, y=DOUBLES).workunit
SHIFTED = lowered(shifted, x=DOUBLES, y=DOUBLES, k=INT).workunit
STRETCHED = lowered(stretched, x=DOUBLES, y=DOUBLES).workunit
ROWS = lowered(rows, x=TABLE, y=DOUBLES, m=INT).workunit
ROW_OF = lowered(row_of, t=TABLE, x=DOUBLES, m=INT).workunit

for_c = partial(run_passes, C_PASSES)


def put_and_add(n: int, start: int = 0, dead: Sequence[int] = ()) -> GroupShape:
    x, y = region(0, n), region(1, n + start)
    calls = call_on(PUT, n, x, 1.5), call_on(ADD, n, x, y)
    return GroupShape(calls, frozenset(dead))


@pytest.mark.parametrize("n", [0, 1, 2, 1000, 2**30])
def test_one_code_for_all_sizes(n):
    first, second = kernel_of(put_and_add(77)), kernel_of(put_and_add(n))
    assert second.workunit is first.workunit
    assert second.space == Space((0,), (n,))
    assert [s.shape for s in second.shapes if isinstance(s, RegionShape)] == [(n,), (n,)]
    assert for_c(second).workunit is for_c(first).workunit


@pytest.mark.parametrize(
    "group",
    [
        put_and_add(10),
        put_and_add(10, dead=[0]),
        GroupShape((call_on(ROWS, 9, region(0, (3, 9)), region(1, 9), 3),)),
        GroupShape((call_on(ROW_OF, 9, region(0, (9, 4)), region(1, 9), 4),), frozenset([0])),
        GroupShape((call_on(SHIFTED, 9, region(0, 12), region(0, 9), 3),)),
    ],
)
def test_what_is_kept_is_what_the_passes_make(group):
    for _ in range(2):
        kept, made = kernel_of(group), run_passes(KERNEL_PASSES, fuse(group))
        assert canonical(kept.workunit) == canonical(made.workunit)
        assert (kept.slots, kept.shapes, kept.space) == (made.slots, made.shapes, made.space)
        assert (kept.overwrites, kept.results) == (made.overwrites, made.results)


def test_dead_views_are_another_form():
    kept, gone = kernel_of(put_and_add(10)), kernel_of(put_and_add(10, dead=[0]))
    assert sum(isinstance(s, Store) for s in statements(kept.workunit.body)) == 1
    assert sum(isinstance(s, Store) for s in statements(gone.workunit.body)) == 0


def test_sizes_that_make_views_overlap_are_of_another_form():
    def halves(n: int) -> GroupShape:
        low, high = region(0, n), region(0, n, offset=64)
        return GroupShape((call_on(PUT, n, low, 1.0), call_on(ADD, n, high, low)))

    apart, touching = kernel_of(halves(8)), kernel_of(halves(9))
    assert form_of(halves(7)) == form_of(halves(8)) != form_of(halves(9)) == form_of(halves(10))
    assert not apart.overlaps and touching.overlaps
    assert apart.workunit is not touching.workunit


def test_views_that_become_one_are_another_form():
    def two(n: int) -> GroupShape:
        return GroupShape(
            (call_on(PUT, 4, region(0, 4), 1.0), call_on(ADD, 4, region(0, n), region(1, 4)))
        )

    assert form_of(two(4)) != form_of(two(5)) == form_of(two(6))
    assert [kernel_of(two(n)).shapes[0].shape for n in (4, 5, 6)] == [(4,), (5,), (6,)]


def test_a_full_overwrite_depends_on_the_sizes():
    def part(n: int) -> GroupShape:
        return GroupShape((call_on(PUT, n, region(0, 8), 1.0),))

    assert [kernel_of(part(n)).overwrites for n in (8, 9, 0, 5)] == [(0,), (), (0,), (0,)]


@pytest.mark.parametrize("sizes", [(3, 5), (5, 3)])
def test_rows_that_are_contracted_have_their_own_length(sizes):
    def rows_of(m: int) -> GroupShape:
        return GroupShape((call_on(ROW_OF, 9, region(0, (9, m)), region(1, 9), m),), frozenset([0]))

    made = [kernel_of(rows_of(m)).workunit.body[0] for m in sizes]
    assert [len(array.values) for array in made] == list(sizes)


@pytest.mark.parametrize("trips", [(2, 4), (4, 2)])
def test_loops_are_unrolled_for_their_own_trips(trips):
    def over(m: int) -> GroupShape:
        return GroupShape((call_on(ROWS, 9, region(0, (m, 9)), region(1, 9), m),))

    for m in (*trips, 100, 0):
        body = for_c(fuse(over(m))).workunit.body
        assert sum(isinstance(s, For) for s in statements(body)) == (m == 100)
        assert len(body) == (1 if m == 100 else m)


def test_a_proof_is_kept_for_the_bounds_it_holds_for():
    def reach(n: int, k: int) -> GroupShape:
        return GroupShape((call_on(SHIFTED, n, region(0, 2**20), region(1, 2**20), k),))

    near = for_c(fuse(reach(100, 2)))
    assert for_c(fuse(reach(2**20, 2**16))).workunit is near.workunit
    # i + k may wrap: the sum is of 32 bits, as the language says.
    far = for_c(fuse(reach(100, 2**31 - 50)))
    assert far.workunit is not near.workunit
    assert canonical(far.workunit) != canonical(near.workunit)
    assert for_c(fuse(reach(100, 2**31 - 101))).workunit is not far.workunit
    assert canonical(for_c(fuse(reach(100, 2**31 - 101))).workunit) == canonical(near.workunit)


def test_a_proof_ends_where_a_wider_one_fails():
    def reach(n: int) -> GroupShape:
        return GroupShape((call_on(STRETCHED, n, region(0, 2**20), region(1, 2**20)),))

    near = for_c(fuse(reach(100)))
    assert for_c(fuse(reach(2**20))).workunit is near.workunit
    # 4 * i wraps at the end of this range, and is of 32 bits there.
    far = for_c(fuse(reach(2**29 + 1)))
    assert canonical(far.workunit) != canonical(near.workunit)
