"""Calls that run alone and differ in integers share their code; mistakes are found in each."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.analysis.conditions import hold
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Sym
from pyfuser.runtime import eager
from pyfuser.runtime.looked import LOOKED, look_at
from pyfuser.runtime.session import SESSION
from pyfuser.trace.call import Call, Space
from pyfuser.trace.memory import region_of

CODE = (lambda: None).__code__


@pk.workunit
def shifted(i, y, x, k):
    y[i] = x[i + k]


@pk.workunit
def update(i, j, a, k):
    a[i][j] -= a[i][k] * a[k][j]


@pk.workunit
def short(i, y, x, k):
    for j in range(k):
        y[i] += x[i + j]


@pk.workunit
def tally(i, count, key):
    pk.atomic_add(count, [key[i]], 1)


@pk.workunit
def put(i, y, k):
    y[i] = k


@pk.workunit
def wide(i, y, x, k):
    y[i] = i + k + x[k % 4]


@pk.workunit
def limited(i, y, x, p):
    if x[i] > 1.0:
        y[i] = p[2]


@pk.workunit
def squared(i, y, x, k):
    y[i] = x[k * k + i]


@pk.workunit
def stepped(i, y, x, k):
    for j in range(0, 5, k):
        y[i] += x[j]


@pk.workunit
def crossed(i, a, row, k):
    a[row][i + k] = row + k


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the workunits whose code was looked for."""
    SESSION.clear()
    looked: list[str] = []
    prepare = eager.prepare_one

    def noted(kernel):
        looked.append(kernel.workunit.name)
        return prepare(kernel)

    monkeypatch.setattr(eager, "prepare_one", noted)
    yield looked
    SESSION.clear()


def test_ranges_and_subscripts_that_change_share_code(counted: list[str]) -> None:
    n = 60
    x, y = pk.View([2 * n], pk.double), pk.View([n], pk.double)
    x.data[:] = np.arange(2.0 * n)
    with pyfuser.unfused():
        for k in range(n):
            pk.parallel_for(pk.RangePolicy(k // 2, n), shifted, y=y, x=x, k=k)
            np.testing.assert_array_equal(y.data[k // 2 :], x.data[k + k // 2 : k + n])
    assert counted == ["shifted"]


def test_boxes_that_shrink_share_code_for_sizes_that_are_alike(counted: list[str]) -> None:
    n = 40
    given = 0.1 * np.random.default_rng(4).random((n, n))
    a, expected = pk.View([n, n], pk.double), given.copy()
    a.data[:] = given
    with pyfuser.unfused():
        for k in range(n - 1):
            pk.parallel_for(pk.MDRangePolicy([k + 1, k + 1], [n, n]), update, a=a, k=k)
            expected[k + 1 :, k + 1 :] -= np.outer(expected[k + 1 :, k], expected[k, k + 1 :])
    np.testing.assert_array_equal(a.data, expected)
    assert len(counted) == (n - 1).bit_length()


@pytest.mark.parametrize("overlapping", [False, True])
def test_other_memory_has_other_code(overlapping: bool, counted: list[str]) -> None:
    """Strides and overlaps are a part of the key."""
    n = 20
    x = np.arange(100.0)
    with pyfuser.unfused():
        pk.parallel_for(n, shifted, y=np.zeros(n), x=x, k=0)
        y = x[10 : 10 + n] if overlapping else x[60 : 60 + 2 * n : 2]
        pk.parallel_for(pk.RangePolicy(0, n), shifted, y=y, x=x[: 2 * n], k=15)
    assert len(counted) == 2
    if not overlapping:
        np.testing.assert_array_equal(x[60:100:2], np.arange(15.0, 35.0))


def test_loops_that_are_written_out_have_code_of_their_own(counted: list[str]) -> None:
    n = 30
    x = pk.View([2 * n], pk.double)
    x.data[:] = np.arange(2.0 * n)
    with pyfuser.unfused():
        for k in (2, 3, 40):
            y = pk.View([n], pk.double)
            pk.parallel_for(10, short, y=y, x=x, k=k)
            np.testing.assert_array_equal(y.data[:10], [sum(range(i, i + k)) for i in range(10)])
    assert len(counted) == 3


def test_a_loop_whose_trips_change_is_written_out_a_few_times_only(counted: list[str]) -> None:
    n = 30
    x = pk.View([2 * n], pk.double)
    x.data[:] = np.arange(2.0 * n)
    with pyfuser.unfused():
        for k in range(1, 25):
            y = pk.View([n], pk.double)
            pk.parallel_for(10, short, y=y, x=x, k=k)
            np.testing.assert_array_equal(y.data[:10], [sum(range(i, i + k)) for i in range(10)])
    assert len(counted) == eager.MANY + 1


def test_tables_of_other_sizes_have_code_of_their_own(counted: list[str]) -> None:
    """Each thread counts in a copy, whose size is in the code."""
    n = 4000
    with pyfuser.unfused():
        for size in (64, 400, 16):
            values = np.arange(n, dtype=np.int32) % size
            count = pk.View([size], pk.int64)
            pk.parallel_for(n, tally, count=count, key=values)
            np.testing.assert_array_equal(count.data, np.bincount(values, minlength=size))
    assert len(counted) == 3


@pytest.fixture
def new(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An entry for each call that was prepared anew, and served by no family."""
    found: list[int] = []
    prepare = eager._prepare_new

    def noted(*arguments):
        found.append(1)
        return prepare(*arguments)

    monkeypatch.setattr(eager, "_prepare_new", noted)
    return found


def shifts(count: int) -> None:
    """So many calls that differ in integers."""
    x, y = pk.View([2 * count], pk.double), pk.View([count], pk.double)
    x.data[:] = np.arange(2.0 * count)
    for k in range(count):
        pk.parallel_for(pk.RangePolicy(k // 2, count), shifted, y=y, x=x, k=k)
        np.testing.assert_array_equal(y.data[k // 2 :], x.data[k + k // 2 : k + count])


PREPARED = 10
"""Until it is known which numbers change, and wherever one has another power of two."""


def test_later_numbers_need_no_preparation(new: list[int]) -> None:
    with pyfuser.unfused():
        shifts(60)
    assert len(new) <= PREPARED


def test_views_that_come_to_overlap_are_prepared_anew(new: list[int]) -> None:
    """The twin of the one above: y[i] = x[i + k] where both are one array."""
    n = 40
    with pyfuser.unfused():
        shifts(n)
        before = len(new)
        a = np.arange(200.0)
        pk.parallel_for(n, shifted, y=a[:n], x=a[100:], k=3)
        assert len(new) == before
        pk.parallel_for(n, shifted, y=a[:n], x=a, k=n)
        assert len(new) == before + 1
    np.testing.assert_array_equal(a[:n], a[n : 2 * n])


@pytest.mark.parametrize("k", [-1, 200])
def test_a_mistake_is_found_where_a_family_exists(k: int, new: list[int]) -> None:
    x, y = pk.View([200], pk.double), pk.View([40], pk.double)
    with pyfuser.unfused():
        shifts(40)
        with pytest.raises(IndexError, match="its extent is 200"):
            pk.parallel_for(10, shifted, y=y, x=x, k=k)


def test_rows_of_other_strides_are_prepared_anew(new: list[int]) -> None:
    with pyfuser.unfused():
        shifts(40)
        before = len(new)
        x, y = np.arange(100.0), np.zeros(20)
        pk.parallel_for(20, shifted, y=y, x=x[::2], k=5)
    assert len(new) == before + 1
    np.testing.assert_array_equal(y, x[10:50:2])


def test_what_is_left_around_an_overwritten_box_is_zero(new: list[int]) -> None:
    """Fresh memory is not zeroed where it is overwritten; which part that is changes."""
    with pyfuser.unfused():
        for k in range(40):
            y = pk.View([50], pk.double)
            pk.parallel_for(pk.RangePolicy(k, 45), put, y=y, k=k)
            np.testing.assert_array_equal(y.data, [k * (k <= i < 45) for i in range(50)])
    assert len(new) <= PREPARED


@pk.workunit
def put_row(i, y, k):
    for j in range(k):
        y[i][j] = k


@pk.workunit
def put_column(j, y, k):
    for i in range(k):
        y[i][j] = k


def dirty(shape: list[int], layout: pk.Layout) -> None:
    """Leave numbers in the memory that the next View of this shape gets."""
    dead = pk.View(shape, pk.double, layout=layout)
    dead.fill(np.nan)
    pyfuser.sync()


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("layout", [pk.LayoutRight, pk.LayoutLeft])
@pytest.mark.parametrize("put", [put_row, put_column])
def test_what_loops_leave_of_new_memory_is_zero(put: Any, layout: pk.Layout, fused: bool) -> None:
    """Loops over a whole extent need no zeros before; numbers, extents and spaces change."""
    by_row = put is put_row
    cases = [(n, 110, 110) for n in range(100, 111)]
    cases += [(110, 120, 110), (110, 119, 110), (110, 110, 110)]  # the strides may be the same
    cases += [(110, 110, k) for k in range(100, 111)]  # from now on it changes
    cases += [(110, 111, k) for k in (111, 110, 109)]
    with pyfuser.fusing() if fused else pyfuser.unfused():
        for n, width, k in cases:
            for there in (n, 110):
                shape = [110, width] if by_row else [width, 110]
                dirty(shape, layout)
                y = pk.View(shape, pk.double, layout=layout)
                pk.parallel_for(pk.RangePolicy(110 - n, there), put, y=y, k=k)
                expected = np.zeros(shape)
                part = slice(110 - n, max(110 - n, there))
                expected[(part, slice(k)) if by_row else (slice(k), part)] = k
                np.testing.assert_array_equal(y.data, expected)
                del y


def test_extents_that_loops_overwrite_are_those_of_an_entry() -> None:
    """The code that was found last is for another extent, though all strides are the same."""
    with pyfuser.unfused():
        for height in (60, 50):
            pk.parallel_for(110, put_column, y=np.zeros([height, 110]), k=50)
        for n in range(80, 100):
            pk.parallel_for(n, put_column, y=np.zeros([50, 111]), k=50)
    ready = next(r for r in eager.READY.values() if r.workunit.name == "put_column")
    for height in (60, 50):
        given = region_of(np.zeros([height, 110]), DType.FLOAT64), 50
        call = Call("for", Space((0,), (110,)), ready.workunit, given, None, None, CODE, 0)
        found = eager.served(call)
        assert found is not None
        assert found[0].overwrites == ((0,) if height == 50 else ())


def test_a_proof_ends_where_a_sum_would_wrap() -> None:
    """i + k in 32 bits: proved for k up to 2^24; where it may wrap nothing is served."""
    with pyfuser.unfused():
        shifts(40)
    ready = next(r for r in eager.READY.values() if r.workunit.name == "shifted")
    (family,) = [f for key, f in ready.families.items() if key[0]]
    x, y = (region_of(np.zeros(100), DType.FLOAT64) for _ in range(2))

    def served(k: int, begin: int = 0, end: int = 10) -> bool:
        call = Call("for", Space((begin,), (end,)), ready.workunit, (y, x, k), None, None, CODE, 0)
        return eager._serves(family, call, call.arguments)

    assert served(50)
    assert served(2**24)
    assert not served(2**31 - 1)
    assert not served(50, -1)  # y would not be overwritten as the kernel says
    assert not served(50, 0, 101)


def test_numbers_stay_where_a_proof_holds() -> None:
    with pyfuser.unfused():
        shifts(40)
    ready = next(r for r in eager.READY.values() if r.workunit.name == "shifted")
    (family,) = [f for key, f in ready.families.items() if key[0]]
    (index,), k = family.kernel.workunit.indices, ready.workunit.params[2].sym
    (place,) = ready.matters

    def box(least: int, most: int, changing: frozenset[int], widest: int = 50) -> Any:
        ranges = {sym: (least, most) for sym in (index, k) if sym in family.proof.ranges}
        assert index in ranges
        limited = family._replace(proof=family.proof._replace(ranges=ranges))
        return eager._box(limited, [place], changing, [0, 10, 7], widest)

    assert box(3, 20, frozenset({place}))[:2] == [(3, 20)] * 2
    assert box(-3, 99, frozenset({place}))[:2] == [(0, 50)] * 2
    assert box(3, 20, frozenset())[2] == (7, 7)


def test_an_index_that_leaves_its_view_is_an_error_however_late() -> None:
    n = 50
    x, y = pk.View([n], pk.double), pk.View([n], pk.double)
    with pyfuser.unfused():
        for k in range(40):
            pk.parallel_for(10, shifted, y=y, x=x, k=k)
        with pytest.raises(IndexError, match="runs from 41 to 50"):
            pk.parallel_for(10, shifted, y=y, x=x, k=41)


def entry(
    workunit: str, space: Space, *arguments: object, looked_at: bool = True
) -> eager.Served | None:
    """What serves a call of a workunit that has run, if calls of all sizes were looked at."""
    ready = next(r for r in eager.READY.values() if r.workunit.name == workunit)
    for number in (-(1 << 40), 1 << 40) if looked_at else ():
        facts = [getattr(a, "shape", number) for a in arguments]
        ends = (number,) * len(space.begin)
        look_at(ready.workunit, Space(ends, ends), facts)
    call = Call("for", space, ready.workunit, arguments, None, None, CODE, 0)  # type: ignore[arg-type]
    return eager.served(call)


def holds(found: eager.Served | None, begin: int, end: int, *scalars: int) -> bool:
    assert found is not None
    return hold(found[2], (begin, end, *scalars))


def test_an_entry_serves_all_numbers_that_are_inside() -> None:
    with pyfuser.unfused():
        shifts(40)
    x, y = (region_of(np.zeros(100), DType.FLOAT64) for _ in range(2))
    found = entry("shifted", Space((0,), (10,)), y, x, 30)
    for begin, end, k in itertools.product((-1, 0, 5, 10), (10, 20, 100, 101), (-1, 0, 80, 90, 91)):
        inside = 0 <= begin <= end <= 100 and k >= -begin and end + k <= 100
        # No proof is for a k of less than 0: the least that the code was proved for.
        assert holds(found, begin, end, k) is (inside and k >= 0)
    same = region_of(np.zeros(200), DType.FLOAT64)
    assert entry("shifted", Space((0,), (10,)), same, same, 30) is None
    assert entry("shifted", Space((0,), (10,)), y, x, 95) is None


def test_a_number_that_does_not_change_is_served_alone() -> None:
    def runs(numbers: list[tuple[int, int]]) -> None:
        a = pk.View([9, 100], pk.double)
        with pyfuser.unfused():
            for row, k in numbers:
                pk.parallel_for(10, crossed, a=a, row=row, k=k)
                assert a.data[row, k + 9] == row + k

    a = region_of(np.zeros((9, 100)), DType.FLOAT64)
    runs([(2, k) for k in range(30)])
    found = entry("crossed", Space((0,), (10,)), a, 2, 3)
    assert holds(found, 0, 10, 2, 90) and holds(found, 3, 5, 2, 0)
    assert not holds(found, 0, 10, 3, 3) and not holds(found, 0, 10, 1, 3)
    assert not holds(found, 0, 11, 2, 90)
    assert entry("crossed", Space((0,), (10,)), a, 3, 3) is None
    runs([(k % 9, 7 * k % 91) for k in range(30)])
    found = entry("crossed", Space((0,), (10,)), a, 3, 3)
    assert holds(found, 0, 10, 8, 90) and not holds(found, 0, 10, 9, 90)
    assert not holds(found, 0, 10, -1, 90)


def test_a_box_is_served_for_sizes_of_which_the_order_of_loops_is_right() -> None:
    n = 40
    a = pk.View([n, n], pk.double)
    a.data[:] = 1.0
    with pyfuser.unfused():
        for k in range(30):
            pk.parallel_for(pk.MDRangePolicy([k + 1, k + 1], [n, n]), update, a=a, k=k)
    region = region_of(np.zeros((n, n)), DType.FLOAT64)
    found = entry("update", Space((20, 20), (n, n)), region, 3)
    assert found is not None
    for low, high in itertools.product((20, 24, 25, 30), (32, 35, 40, 41)):
        sizes = (high - low).bit_length() == 5 and high <= n
        assert hold(found[2], (20, 40, low, high, 3)) is sizes
        assert hold(found[2], (low, high, 20, 40, 3)) is sizes
    assert not hold(found[2], (20, 40, 20, 40, 40))


def test_an_empty_range_is_no_less_than_empty() -> None:
    with pyfuser.unfused():
        shifts(40)
    x, y = (region_of(np.zeros(100), DType.FLOAT64) for _ in range(2))
    found = entry("shifted", Space((0,), (10,)), y, x, 30)
    assert holds(found, 10, 10, 30) and not holds(found, 10, 9, 30)


def test_without_conditions_only_the_same_numbers_are_served() -> None:
    with pyfuser.unfused():
        shifts(4)
    SESSION.clear()  # of what it knows; the code of the calls stays, as they have run
    with pyfuser.unfused():
        pk.parallel_for(pk.RangePolicy(1, 4), shifted, y=pk.View([4]), x=pk.View([8]), k=3)
    x, y = (region_of(np.zeros(n), DType.FLOAT64) for n in (8, 4))
    found = entry("shifted", Space((1,), (4,)), y, x, 3, looked_at=False)
    for numbers in itertools.product((0, 1, 2), (3, 4, 5), (2, 3, 4)):
        assert holds(found, *numbers) is (numbers == (1, 4, 3))


@pytest.mark.parametrize("workunit", [squared, stepped])
def test_what_is_not_affine_is_served_for_numbers_that_were_used(workunit) -> None:
    x, y = pk.View([2000], pk.double), pk.View([8], pk.double)
    x.data[:] = np.arange(2000.0)
    with pyfuser.unfused():
        for k in range(1, 40):
            y.data[:] = 0
            pk.parallel_for(8, workunit, y=y, x=x, k=k)
            first = k * k if workunit is squared else sum(range(0, 5, k))
            assert y.data[3] == (first + 3 if workunit is squared else first)
    given = (region_of(np.zeros(n), DType.FLOAT64) for n in (8, 2000))
    found = entry(workunit.__name__, Space((0,), (8,)), *given, 7)
    for numbers in itertools.product((0, 1), (7, 8), (6, 7, 8)):
        assert holds(found, *numbers) is (numbers == (0, 8, 7))


def test_a_proof_of_what_is_no_number_of_the_call_serves_nothing() -> None:
    with pyfuser.unfused():
        shifts(40)
    ready = next(r for r in eager.READY.values() if r.workunit.name == "shifted")
    (family,) = [f for key, f in ready.families.items() if key[0]]
    numbers, places = (0, 10, 30), sorted(ready.matters)
    changing = frozenset(places)
    assert eager._box(family, places, changing, numbers, 99) == [(0, 99), (0, 99), (0, 99)]
    assert eager._box(family, places, frozenset(), numbers, 99) == [(0, 99), (0, 99), (30, 30)]
    other = Sym("other", 77, DType.INT32)
    strange = family.proof._replace(ranges={**family.proof.ranges, other: (0, 9)})
    family = family._replace(proof=strange)
    assert eager._box(family, places, changing, numbers, 99) is None
    call = Call("for", Space((0,), (10,)), ready.workunit, (30,), None, None, CODE, 0)
    arguments = [region_of(np.zeros(60), DType.FLOAT64), region_of(np.zeros(60), DType.FLOAT64), 30]
    assert eager._conditions(family, call, arguments, ready, changing, numbers) is None


@pk.workunit
def line(i, y, x, k, m):
    y[i] += x[2 * i - k + 20] + x[k + m]


@pk.workunit
def guarded(i, y, x, k, m):
    if i + k < m:
        y[i] = x[i + k] - y[i]


@pk.workunit
def looped(i, y, x, k, m):
    for j in range(m):
        y[i] += x[i + j] * k + x[k]


@pytest.mark.parametrize("seed", range(24))
def test_random_numbers_compute_what_numpy_does_and_leave_no_view(seed: int) -> None:
    """Beside the calls that run: those that leave a view are refused, whatever served others."""
    rng = random.Random(seed)
    workunit = rng.choice((line, guarded, looped))
    size, end = rng.choice((40, 60)), rng.choice((4, 9))
    x, y = pk.View([size], pk.double), pk.View([size], pk.double)
    x.data[:] = np.arange(float(size))
    expected, refused = np.zeros(size), 0
    steady, moves = rng.random() < 0.5, seed % 2 == 1
    with pyfuser.unfused(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(150):
            k, m = rng.randint(-1, 22), 3 if steady else rng.randint(0, 22)
            begin = rng.randint(0, end - 1) if moves else 0
            inside = _expected(workunit, expected, x.data, range(begin, end), k, m)
            if inside:
                pk.parallel_for(pk.RangePolicy(begin, end), workunit, y=y, x=x, k=k, m=m)
            else:
                refused += 1
                with pytest.raises(IndexError):
                    pk.parallel_for(pk.RangePolicy(begin, end), workunit, y=y, x=x, k=k, m=m)
            end += moves and rng.randint(-1, 1) * (2 < end < 12)
            np.testing.assert_array_equal(y.data, expected)
    assert refused or workunit is guarded


def _expected(workunit, y, x, places: range, k: int, m: int) -> bool:
    """Do what the workunit does; whether all subscripts are inside."""
    if workunit is guarded:
        within = [i for i in places if i + k < m]
        if any(not 0 <= i + k < len(x) for i in within):
            return False
        for i in within:
            y[i] = x[i + k] - y[i]
        return True
    if workunit is line:
        reads = [(2 * i - k + 20, k + m) for i in places]
    else:
        reads = [(i + j, k) for i in places for j in range(m)]
    if any(not 0 <= place < len(x) for pair in reads for place in pair):
        return False
    for i in places:
        if workunit is line:
            y[i] += x[2 * i - k + 20] + x[k + m]
        else:
            for j in range(m):
                y[i] += x[i + j] * k + x[k]
    return True


def warned(first: int, count: int) -> list[str]:
    x, y = pk.View([4], pk.int64), pk.View([4], pk.int64)
    with pyfuser.unfused(), warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for k in range(first, first + count):
            pk.parallel_for(4, wide, y=y, x=x, k=k)
        pk.parallel_for(4, wide, y=y, x=x, k=2**31 - 2)
    return [str(w.message) for w in found]


def test_warnings_are_of_the_first_shapes_and_where_numbers_grow() -> None:
    """Of integers that overflow; where values never end, others of their size are not looked at."""
    assert warned(1, 3)
    SESSION.clear()
    assert warned(1, 40)
    SESSION.clear()
    assert warned(2**30, LOOKED - 1)
    SESSION.clear()
    assert not warned(2**30, LOOKED)


def test_a_table_that_is_shorter_has_code_of_its_own() -> None:
    """Elements of tables are loaded whether or not a condition holds, where they are there."""
    x, y = pk.View([100], pk.double), pk.View([100], pk.double)
    table, short_one = pk.View([3], pk.double), pk.View([2], pk.double)
    with pyfuser.unfused():
        for n in range(40):
            pk.parallel_for(40 + n, limited, y=y, x=x, p=table)
        ready = next(r for r in eager.READY.values() if r.workunit.name == "limited")
        (family,) = ready.families.values()
        for view, served in ((table, True), (short_one, False)):
            regions = y._region, x._region, view._region
            call = Call("for", Space((0,), (97,)), ready.workunit, regions, None, None, CODE, 0)
            assert eager._serves(family, call, regions) == served
            assert (eager.served(call) is not None) == served
