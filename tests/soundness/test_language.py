"""Less used parts of the language inside a trace, and calls that fail."""

# ruff: noqa: UP006, UP035 - workunits are written in PyKokkos' language, which has no such spelling

from __future__ import annotations

from typing import List

import numpy as np
import pykokkos as pk
import pytest
from numpy.testing import assert_array_equal

import pyfuser
from pyfuser.ir.printer import show
from tests.soundness.plans import groups
from tests.soundness.workunits import copy, count, count2, inc, put, reverse, total

N = 8
I = np.arange(N, dtype=float)


@pk.workunit
def says(i, x, k):
    pk.printf("%d:%d\n", k, i)
    x[i] += 1.0


@pk.workunit
def row_of(i, m, y):
    r = m[i, :]
    r[1] = 5.0 + i
    y[i] = m[i][1]


@pk.workunit
def column_of(i, m, y, k):
    c = m[:, i]
    y[i] = c[k]


@pk.workunit
def local_list(i, x, y):
    a: List[float] = [1.0, 2.0, 4.0]
    a[1] = x[i]
    y[i] = a[0] + a[1] * a[2]


@pk.workunit
def local_list_index(i, x, y):
    a: List[int] = [3, 0, 1, 2]
    y[i] = x[a[i % 4]]


@pk.workunit
def count3(i, j, k, m):
    m[i][j][k] = 100.0 * i + 10.0 * j + k


@pk.workunit
def rotate3(i, j, k, m, t):
    t[i][j][k] = m[j][k][i]


@pk.workunit
def same3(i, j, k, m, t):
    t[i][j][k] = m[i][j][k]


@pk.workunit
def swap2(j, i, m, t):
    t[i][j] = m[i][j]


@pk.workunit
def team_rows(team: pk.TeamMember, m, y, n):
    i: int = team.league_rank()

    def add(j: int, acc: pk.Acc[float]):
        acc += m[i][j]

    s: float = pk.parallel_reduce(pk.TeamThreadRange(team, n), add)
    y[i] = s


@pk.workunit(x=pk.ViewTypeInfo(trait=pk.Atomic))
def atomic_view(i, x):
    x[0] += 1.0


@pk.workunit
def wrong_name(i, x):
    x[i] = undefined_thing  # noqa: F821


@pk.workunit
def wrong_rank(i, x):
    x[i][0] = 1.0


@pk.functor
class Doubler:
    def __init__(self, x):
        self.x: pk.View1D[pk.double] = x

    @pk.workunit
    def double_all(self, i: int):
        self.x[i] *= 2.0


def test_printf_of_two_calls_is_in_order(capfd):
    """An output is an effect: what the first call prints comes before what the second prints."""
    x = I.copy()
    with pyfuser.fusing():
        pk.parallel_for(pk.RangePolicy(pk.Serial, 0, 3), says, x=x, k=1)
        pk.parallel_for(pk.RangePolicy(pk.Serial, 0, 3), says, x=x, k=2)
    pk.fence()
    out = capfd.readouterr().out.split()
    assert sorted(out[:3]) == ["1:0", "1:1", "1:2"]
    assert sorted(out[3:6]) == ["2:0", "2:1", "2:2"]


@pytest.mark.parametrize(("k", "fuses"), [(1, True), (2, False)])
def test_subviews_made_in_a_workunit(k, fuses):
    """Iteration i writes m[i][1] and reads m[k][i]: for k = 1 both meet in m[1][1] only."""
    m, y, z = np.zeros((N, N)), np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, row_of, m=m, y=y)
        pk.parallel_for(N, column_of, m=m, y=z, k=k)
        pk.parallel_for(N, row_of, m=m, y=y)
    want = np.zeros(N)
    want[1] = 5.0 + k
    assert_array_equal(y, I + 5)
    assert_array_equal(z, want)
    assert (len(groups()) == 1) == fuses


def test_lists():
    x, y, z = np.zeros(N), np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=x)
        pk.parallel_for(N, local_list, x=x, y=y)
        pk.parallel_for(N, local_list_index, x=x, y=z)
        pk.parallel_for(N, put, x=x, v=0.0)
    assert_array_equal(y, 4 * (I + 1) + 1)
    assert_array_equal(z, [4, 1, 2, 3] * 2)


def test_three_dimensions():
    m, t, u = (np.zeros((3, 3, 3)) for _ in range(3))
    space = pk.MDRangePolicy([0, 0, 0], [3, 3, 3])
    with pyfuser.fusing():
        pk.parallel_for(space, count3, m=m)
        pk.parallel_for(space, same3, m=m, t=u)
        pk.parallel_for(space, rotate3, m=m, t=t)
        pk.parallel_for(space, rotate3, m=m.transpose(2, 0, 1), t=u)
    want = sum(s * v for s, v in zip((100.0, 10.0, 1.0), np.indices((3, 3, 3)), strict=True))
    assert_array_equal(t, np.einsum("jki->ijk", want))
    assert_array_equal(u, np.einsum("jki->ijk", want.transpose(2, 0, 1)))


def test_spaces_of_other_shape_over_one_matrix():
    m, t = np.zeros((3, 5)), np.zeros((3, 5))
    with pyfuser.fusing():
        pk.parallel_for(pk.MDRangePolicy([0, 0], [3, 5]), count2, m=m)
        pk.parallel_for(pk.MDRangePolicy([0, 0], [5, 3]), swap2, m=m, t=t)
        pk.parallel_for(pk.MDRangePolicy([1, 1], [2, 4]), count2, m=m[1:])
        pk.parallel_for(15, inc, x=m.reshape(-1))
    want = np.add.outer(10.0 * np.arange(3), np.arange(5))
    assert_array_equal(t, want)
    want[2, 1:4] = 10.0 + np.arange(1, 4)
    assert_array_equal(m, want + 1)


def test_layouts():
    left = pk.View([4, 4], pk.double, layout=pk.LayoutLeft)
    right = pk.View([4, 4], pk.double, layout=pk.LayoutRight)
    space = pk.MDRangePolicy([0, 0], [4, 4])
    with pyfuser.fusing():
        pk.parallel_for(space, count2, m=left)
        pk.parallel_for(space, swap2, m=left, t=right)
        pk.parallel_for(space, count2, m=left)
    want = np.add.outer(10.0 * np.arange(4), np.arange(4))
    assert_array_equal(np.asarray(left), want)
    assert_array_equal(np.asarray(right), want)


def test_teams_in_a_trace():
    m, y, z = np.zeros((4, 6)), np.zeros(4), np.zeros(4)
    with pyfuser.fusing():
        pk.parallel_for(pk.MDRangePolicy([0, 0], [4, 6]), count2, m=m)
        pk.parallel_for(pk.TeamPolicy(4, 1), team_rows, m=m, y=y, n=6)
        pk.parallel_for(4, reverse, x=y, y=z, n=4)
        pk.parallel_for(24, put, x=m.reshape(-1), v=0.0)
    want = np.add.outer(10.0 * np.arange(4), np.arange(6)).sum(axis=1)
    assert_array_equal(y, want)
    assert_array_equal(z, want[::-1])


def test_functors_in_a_trace():
    x, y = pk.View([N], pk.double), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=x)
        f = Doubler(x)
        pk.parallel_for(N, f.double_all)
        pk.parallel_for(N, reverse, x=x, y=y, n=N)
        pk.parallel_for(N, f.double_all)
    assert_array_equal(y, 2 * (I + 1)[::-1])
    assert_array_equal(np.asarray(x), 4 * (I + 1))


@pytest.mark.parametrize("workunit", [atomic_view, pyfuser.fuse(atomic_view)])
def test_a_view_with_the_atomic_trait(workunit):
    x, y = np.zeros(2), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, workunit, x=x)
        pk.parallel_for(N, workunit, x=x)
        pk.parallel_for(1, copy, x=x, y=y)
        pk.parallel_for(2, put, x=x, v=0.0)
    assert y[0] == 2 * N
    (binding,) = workunit.__pyfuser__.bindings.values()
    assert "atomic" in show(binding.workunit)
    assert_array_equal(x, [0, 0])


@pytest.mark.parametrize("workunit", [wrong_name, wrong_rank])
def test_a_workunit_with_an_error_leaves_the_calls_around_it(workunit):
    x, y = I.copy(), np.zeros(N)
    raised = None
    try:
        with pyfuser.fusing():
            pk.parallel_for(N, inc, x=x)
            try:
                pk.parallel_for(N, workunit, x=x)
            except Exception as error:
                raised = error
            pk.parallel_for(N, reverse, x=x, y=y, n=N)
            pk.parallel_for(N, inc, x=x)
    except Exception as error:
        raised = error
    assert raised is not None
    assert "test_language.py" in str(raised)
    pyfuser.sync()
    assert_array_equal(y, (I + 1)[::-1])
    assert_array_equal(x, I + 2)


def test_an_array_whose_shape_is_set_after_the_call():
    x, y = np.zeros((2, 4)), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(pk.MDRangePolicy([0, 0], [2, 4]), count2, m=x)
        x.shape = (8,)
        pk.parallel_for(N, reverse, x=x, y=y, n=N)
        pk.parallel_for(N, put, x=x, v=0.0)
        x.shape = (4, 2)
    assert_array_equal(y, [13, 12, 11, 10, 3, 2, 1, 0])
    assert_array_equal(x, np.zeros((4, 2)))


def test_a_name_bound_to_another_array_after_the_call():
    x, y = I.copy(), np.zeros(N)
    first = x
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=x)
        x = -I
        pk.parallel_for(N, reverse, x=x, y=y, n=N)
        x = first
        pk.parallel_for(N, inc, x=x)
    assert_array_equal(first, I + 2)
    assert_array_equal(y, -I[::-1])


def test_futures_outlive_their_views_and_their_traces():
    sums = []
    for k in range(30):
        with pyfuser.fusing():
            v = pk.View([N], pk.double)
            pk.parallel_for(N, put, x=v, v=float(k))
            sums.append(pk.parallel_reduce(N, total, x=v))
            pk.parallel_for(N, put, x=v, v=-1.0)
            del v
    assert [float(s) for s in sums] == [8.0 * k for k in range(30)]


def test_a_future_of_one_block_used_in_the_next():
    x, y = I.copy(), np.zeros(N)
    with pyfuser.fusing():
        s = pk.parallel_reduce(N, total, x=x)
        with pyfuser.unfused():
            pk.parallel_for(N, put, x=x, v=s)
        pk.parallel_for(N, put, x=x, v=s + x[0])
    with pyfuser.fusing():
        t = pk.parallel_reduce(N, total, x=x)
        pk.parallel_for(N, put, x=y, v=t - s)
    assert_array_equal(x, np.full(N, 56.0))
    assert_array_equal(y, np.full(N, 8 * 56.0 - 28.0))


def test_marked_and_unmarked_workunits_keep_their_order():
    marked = pyfuser.fuse(inc)
    x, y = I.copy(), np.zeros(N)
    pk.parallel_for(N, marked, x=x)
    pk.parallel_for(N, reverse, x=x, y=y, n=N)  # not marked: runs now, after what is pending
    assert_array_equal(y, (I + 1)[::-1])
    pk.parallel_for(N, marked, x=x)
    s = pk.parallel_reduce(N, total, x=x)
    assert s == (I + 2).sum()


def test_view_operations_on_the_host_in_a_trace():
    v = pk.View([N], pk.double)
    y = np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=v)
        w = pk.zeros_like(v)
        o = pk.ones([N], dtype=pk.double)
        f = pk.full([N], 3.0, dtype=pk.double)
        pk.parallel_for(N, copy, x=v, y=w)
        pk.parallel_for(N, inc, x=o)
        pk.parallel_for(N, inc, x=f)
        pk.parallel_for(N, reverse, x=w, y=y, n=N)
        v.fill(0.0)
    assert_array_equal(y, (I + 1)[::-1])
    assert_array_equal(np.asarray(o), np.full(N, 2.0))
    assert_array_equal(np.asarray(f), np.full(N, 4.0))
    assert_array_equal(np.asarray(v), np.zeros(N))


def test_astype_and_full_like_of_a_pending_view():
    v = pk.View([N], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=v)
        a = pk.astype(v, pk.int32)
        pk.parallel_for(N, put, x=v, v=0.0)
    assert_array_equal(np.asarray(a), I + 1)
