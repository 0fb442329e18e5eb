"""Equal index text is no proof, and different text no disproof: only the maps count."""

from __future__ import annotations

import numpy as np
import pykokkos as pk
import pytest
from numpy.testing import assert_array_equal

import pyfuser
from tests.soundness.plans import groups, reasons
from tests.soundness.workunits import copy, inc

N = 12


@pk.workunit
def put_mod(i, x):
    x[i % 4] = 7.0


@pk.workunit
def get_mod(i, x, y):
    y[i] = x[i % 4]


@pk.workunit
def put_half(i, x):
    x[i // 2] = 7.0


@pk.workunit
def get_half(i, x, y):
    y[i] = x[i // 2]


@pk.workunit
def add_half_atomically(i, x):
    pk.atomic_add(x, [i // 2], 1.0)


@pk.workunit
def double_all(i, x):
    x[i] *= 2.0


@pk.workunit
def put_shifted(i, x, k):
    x[i + k] = 1.0 * i


@pk.workunit
def get_shifted(i, x, y, k):
    y[i] = x[i + k]


@pk.workunit
def get_reversed(i, x, y, n):
    y[i] = x[n - 1 - i]


@pk.workunit
def put_reversed(i, x, n):
    x[n - 1 - i] = 1.0 * i


@pk.workunit
def put_strided(i, x, s, k):
    x[s * i + k] = 1.0 * i


@pk.workunit
def get_strided(i, x, y, s, k):
    y[i] = x[s * i + k]


@pk.workunit
def scatter(i, x, idx):
    x[idx[i]] = 1.0 * i


@pk.workunit
def gather(i, x, y, idx):
    y[i] = x[idx[i]]


@pk.workunit
def last_writes_first(i, x, n):
    if i == n - 1:
        x[0] = 5.0


@pk.workunit
def one_writes(i, x, k):
    if i == k:
        x[k] = 5.0


@pk.workunit
def broadcast(i, x, y, k):
    y[i] = x[k]


@pk.workunit
def only_own_when_zero(i, x, y):
    if i == 0:
        y[i] = x[0]


@pk.workunit
def prefix(i, x, y):
    y[i] = 0.0
    for j in range(i + 1):
        y[i] += x[j]


@pk.workunit
def own_range(i, x):
    for j in range(3 * i, 3 * i + 3):
        x[j] += 1.0


@pk.workunit
def own_range_sum(i, x, y):
    s: float = 0.0
    for j in range(3 * i, 3 * i + 3):
        s += x[j]
    y[i] = s


@pk.workunit
def while_put(i, x):
    j: int = i
    while j > 3:
        j -= 3
    x[j] = 2.0


@pk.workunit
def through_local(i, x, n):
    j: int = i
    j = n - 1 - j
    x[j] = 1.0 * i


@pk.workunit
def square_index(i, x):
    x[i * i] = 1.0 * i


@pk.workunit
def get_square(i, x, y):
    y[i] = x[i * i]


@pk.workunit
def far(i, x, k):
    x[i + k - k] = 1.0 * i


@pk.workunit
def wrapped(i, x, k):
    # i * 65536 * 65536 is 0 in 32 bits, so every iteration reads and writes cell 0 or k.
    x[i * 65536 * 65536 + k] = 3.0


@pk.workunit
def get_wrapped(i, x, y, k):
    y[i] = x[i * 65536 * 65536 + k]


@pk.workunit
def put_and(i, x):
    x[i & 3] = 4.0


@pk.workunit
def get_and(i, x, y):
    y[i] = x[i & 3]


@pk.workunit
def put_shift_right(i, x):
    x[i >> 1] = 4.0


@pk.workunit
def get_float_index(i, x, y):
    y[i] = x[int(i * 0.5)]


@pk.workunit
def move_index(i, x, y):
    i = i // 2
    y[i] = x[i]


@pk.workunit
def guard_even_put(i, x):
    if i % 2 == 0:
        x[i] = 1.0


@pk.workunit
def guard_even_put_next(i, x):
    if i % 2 == 0:
        x[i + 1] = 2.0


@pk.workunit
def put_in_inner_loop(i, x, n):
    for j in range(n):
        x[j] = 6.0


def fresh():
    return np.arange(N, dtype=float), np.zeros(N)


@pytest.mark.parametrize(
    ("put", "get", "f"),
    [
        (put_mod, get_mod, lambda i: i % 4),
        (put_half, get_half, lambda i: i // 2),
        (put_and, get_and, lambda i: i & 3),
    ],
)
def test_equal_text_that_is_not_injective(put, get, f):
    x, y = fresh()
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=x)
        pk.parallel_for(N, get, x=x, y=y)
        pk.parallel_for(N, put, x=x)
    want = np.arange(N) + 1.0
    i = np.arange(N)
    assert_array_equal(y, want[f(i)])
    want[f(i)] = x[0]
    assert_array_equal(x, want)
    assert len(groups()) == 3
    assert reasons()[f"{get.__name__}|{put.__name__}"] in {"anti", "unknown-access"}


def test_accumulation_through_half_then_read():
    x, y = fresh()
    with pyfuser.fusing():
        pk.parallel_for(N, add_half_atomically, x=x)
        pk.parallel_for(N, get_half, x=x, y=y)
    want = np.arange(N, dtype=float)
    want[: N // 2] += 2
    assert_array_equal(x, want)
    assert_array_equal(y, want[np.arange(N) // 2])
    assert len(groups()) == 2


@pytest.mark.parametrize(
    ("first", "second", "fuses"), [(0, 0, True), (1, 1, True), (0, 1, False), (1, 0, False)]
)
def test_shift_by_another_scalar(first, second, fuses):
    x, y = np.zeros(N + 1), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, put_shifted, x=x, k=first)
        pk.parallel_for(N, get_shifted, x=x, y=y, k=second)
    want = np.zeros(N + 1)
    want[first : first + N] = np.arange(N)
    assert_array_equal(x, want)
    assert_array_equal(y, want[second : second + N])
    assert (len(groups()) == 1) == fuses


@pytest.mark.parametrize(
    ("s", "a", "b", "fuses"),
    [
        (2, 0, 1, True),
        (2, 0, 0, True),
        (2, 0, 2, False),
        (0, 3, 3, False),
        (0, 3, 4, None),
        (-1, N - 1, N - 1, True),
    ],
)
def test_strides(s, a, b, fuses):
    x, y = np.full(3 * N, -1.0), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, get_strided, x=x, y=y, s=s, k=b)
        if s:
            pk.parallel_for(N, put_strided, x=x, s=s, k=a)
        else:
            pk.parallel_for(1, put_strided, x=x, s=s, k=a)
    i = np.arange(N if s else 1)
    want = np.full(3 * N, -1.0)
    assert_array_equal(y, want[s * np.arange(N) + b])
    want[s * i + a] = i
    assert_array_equal(x, want)
    if s:
        assert (len(groups()) == 1) == fuses


@pytest.mark.parametrize("same", [True, False])
def test_the_same_text_with_another_index_view(same):
    x, y = np.zeros(N), np.zeros(N)
    first = np.arange(N, dtype=np.int32)[::-1].copy()
    second = first if same else np.arange(N, dtype=np.int32)
    with pyfuser.fusing():
        pk.parallel_for(N, scatter, x=x, idx=first)
        pk.parallel_for(N, gather, x=x, y=y, idx=second)
    want = np.arange(N, dtype=float)[::-1]
    assert_array_equal(x, want)
    assert_array_equal(y, want[second])
    assert len(groups()) == 2
    assert reasons()["scatter|gather"] == "unknown-access"


def test_last_iteration_writes_what_all_read():
    x, y = fresh()
    with pyfuser.fusing():
        pk.parallel_for(N, last_writes_first, x=x, n=N)
        pk.parallel_for(N, broadcast, x=x, y=y, k=0)
    assert_array_equal(y, np.full(N, 5.0))
    assert len(groups()) == 2


def test_all_read_then_one_writes():
    x, y = fresh()
    x += 1
    with pyfuser.fusing():
        pk.parallel_for(N, broadcast, x=x, y=y, k=3)
        pk.parallel_for(N, one_writes, x=x, k=3)
    assert_array_equal(y, np.full(N, 4.0))
    assert x[3] == 5.0
    assert reasons()["broadcast|one_writes"] == "anti"


def test_one_writes_what_the_same_one_reads():
    x, y = fresh()
    with pyfuser.fusing():
        pk.parallel_for(N, one_writes, x=x, k=0)
        pk.parallel_for(N, only_own_when_zero, x=x, y=y)
    assert y[0] == 5.0
    assert groups() == ["one_writes+only_own_when_zero"]


@pytest.mark.parametrize(("k", "fuses"), [(0, False), (N, True)])
def test_uniform_scalar_index_in_and_out_of_the_range(k, fuses):
    x, y = np.arange(N + 1, dtype=float), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=x)
        pk.parallel_for(N, broadcast, x=x, y=y, k=k)
    assert_array_equal(y, np.full(N, k + (k < N)))
    assert (len(groups()) == 1) == fuses


def test_loop_bound_of_the_index():
    x, y = fresh()
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=x)
        pk.parallel_for(N, prefix, x=x, y=y)
        pk.parallel_for(N, inc, x=x)
    assert_array_equal(y, np.cumsum(np.arange(N) + 1.0))
    assert_array_equal(x, np.arange(N) + 2.0)
    assert len(groups()) == 3


def test_disjoint_inner_ranges_fuse():
    x, y = np.zeros(3 * N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, own_range, x=x)
        pk.parallel_for(N, own_range_sum, x=x, y=y)
    assert_array_equal(y, np.full(N, 3.0))
    assert groups() == ["own_range+own_range_sum"]


def test_elementwise_then_inner_ranges_do_not():
    x, y = np.zeros(3 * N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=x)
        pk.parallel_for(N, own_range_sum, x=x, y=y)
    assert y[0] == 3.0
    assert y[N // 3 :].sum() == 0.0
    assert len(groups()) == 2


def test_index_of_a_while_loop():
    x, y = fresh()
    with pyfuser.fusing():
        pk.parallel_for(N, while_put, x=x)
        pk.parallel_for(N, copy, x=x, y=y)
    want = np.arange(N, dtype=float)
    want[:4] = 2.0
    assert_array_equal(y, want)
    assert len(groups()) == 2


@pytest.mark.usefixtures("nothing_recomputed")
def test_index_through_a_local():
    x, y = fresh()
    with pyfuser.fusing():
        pk.parallel_for(N, through_local, x=x, n=N)
        pk.parallel_for(N, copy, x=x, y=y)
    assert_array_equal(y, np.arange(N)[::-1])
    assert len(groups()) == 2


def test_reversed_write_and_read_fuse():
    x, y = fresh()
    with pyfuser.fusing():
        pk.parallel_for(N, put_reversed, x=x, n=N)
        pk.parallel_for(N, get_reversed, x=x, y=y, n=N)
    assert_array_equal(y, np.arange(N))
    assert len(groups()) == 1


def test_squares():
    x, y = np.zeros(N * N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=x)
        pk.parallel_for(N, square_index, x=x)
        pk.parallel_for(N, get_square, x=x, y=y)
        pk.parallel_for(N, inc, x=x)
    want = np.zeros(N * N)
    want[:N] += 1
    want[np.arange(N) ** 2] = np.arange(N)
    assert_array_equal(y, np.arange(N))
    want[:N] += 1
    assert_array_equal(x, want)


def test_index_that_wraps_to_one_cell():
    x, y = fresh()
    with pyfuser.fusing():
        pk.parallel_for(N, get_wrapped, x=x, y=y, k=0)
        pk.parallel_for(N, double_all, x=x)
        pk.parallel_for(1, wrapped, x=x, k=2)
        pk.parallel_for(N, get_wrapped, x=x, y=y, k=2)
    assert_array_equal(y, np.full(N, 3.0))
    want = 2.0 * np.arange(N)
    want[2] = 3.0
    assert_array_equal(x, want)


def test_large_offsets_that_cancel():
    x, y = fresh()
    with pyfuser.fusing():
        pk.parallel_for(N, far, x=x, k=2**31 - 20)
        pk.parallel_for(N, copy, x=x, y=y)
    assert_array_equal(y, np.arange(N))


def test_float_index():
    x, y = fresh()
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=x)
        pk.parallel_for(N, get_float_index, x=x, y=y)
    assert_array_equal(y, np.arange(N) // 2 + 1.0)
    assert len(groups()) == 2


def test_shifted_right():
    x, y = fresh()
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=x)
        pk.parallel_for(N, put_shift_right, x=x)
        pk.parallel_for(N, copy, x=x, y=y)
    want = np.arange(N) + 1.0
    want[: N // 2] = 4.0
    assert_array_equal(y, want)
    assert len(groups()) == 3


def test_the_index_is_assigned_to():
    x, y = fresh()
    z = np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=x)
        pk.parallel_for(N, move_index, x=x, y=y)
        pk.parallel_for(N, copy, x=y, y=z)
    want = np.zeros(N)
    want[: N // 2] = np.arange(N // 2) + 1.0
    assert_array_equal(z, want)
    assert len(groups()) == 3


def test_guards_that_are_disjoint():
    x = np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, guard_even_put, x=x)
        pk.parallel_for(N, guard_even_put_next, x=x)
    assert_array_equal(x, np.tile([1.0, 2.0], N // 2))
    assert len(groups()) == 1


def test_every_iteration_writes_all():
    x, y = fresh()
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=x)
        pk.parallel_for(1, put_in_inner_loop, x=x, n=N)
        pk.parallel_for(N, copy, x=x, y=y)
    assert_array_equal(y, np.full(N, 6.0))


# Two dimensions


@pk.workunit
def fill2(i, j, m, v):
    m[i][j] = v + 10.0 * i + j


@pk.workunit
def transpose(i, j, m, t):
    t[i][j] = m[j][i]


@pk.workunit
def same2(i, j, m, t):
    t[i][j] = m[i][j]


@pk.workunit
def diagonal(i, m, y):
    y[i] = m[i][i]


@pk.workunit
def put_diagonal(i, m):
    m[i][i] = -1.0


@pk.workunit
def row_sum(i, m, y, n):
    s: float = 0.0
    for j in range(n):
        s += m[i][j]
    y[i] = s


@pk.workunit
def column_sum(i, m, y, n):
    s: float = 0.0
    for j in range(n):
        s += m[j][i]
    y[i] = s


@pk.workunit
def row_put(i, m, n):
    for j in range(n):
        m[i][j] = 10.0 * i + j


@pk.workunit
def diagonal_write(i, j, m):
    if i == j:
        m[i][j] = -1.0


@pk.workunit
def beyond_row(i, j, m, t, first):
    t[i][j] = m[first[0]][4 * i + j]  # a row that is known is refused: see test_mistakes


M = 4


def matrix():
    return np.add.outer(10.0 * np.arange(M), np.arange(M))


def square():
    return pk.MDRangePolicy([0, 0], [M, M])


@pytest.mark.parametrize(
    ("get", "want", "fuses"), [(same2, matrix(), True), (transpose, matrix().T, False)]
)
@pytest.mark.usefixtures("nothing_recomputed")
def test_two_dimensions(get, want, fuses):
    m, t = np.zeros((M, M)), np.zeros((M, M))
    with pyfuser.fusing():
        pk.parallel_for(square(), fill2, m=m, v=0.0)
        pk.parallel_for(square(), get, m=m, t=t)
    assert_array_equal(t, want)
    assert (len(groups()) == 1) == fuses


def test_a_transposed_view_of_one_array():
    m, t = np.zeros((M, M)), np.zeros((M, M))
    with pyfuser.fusing():
        pk.parallel_for(square(), fill2, m=m, v=0.0)
        pk.parallel_for(square(), same2, m=m.T, t=t)
        pk.parallel_for(square(), fill2, m=m.T, v=1.0)
    assert_array_equal(t, matrix().T)
    assert_array_equal(m, matrix().T + 1.0)
    assert groups()[0] == "fill2"


def test_transposed_twice_is_itself():
    m, t = np.zeros((M, M)), np.zeros((M, M))
    with pyfuser.fusing():
        pk.parallel_for(square(), fill2, m=m, v=0.0)
        pk.parallel_for(square(), transpose, m=m.T, t=t)
    assert_array_equal(t, matrix())
    assert len(groups()) == 1


@pytest.mark.parametrize(("get", "axis", "fuses"), [(row_sum, 1, True), (column_sum, 0, False)])
def test_rows_and_columns(get, axis, fuses):
    m, y = np.zeros((M, M)), np.zeros(M)
    with pyfuser.fusing():
        pk.parallel_for(M, row_put, m=m, n=M)
        pk.parallel_for(M, get, m=m, y=y, n=M)
    assert_array_equal(y, matrix().sum(axis=axis))
    assert (len(groups()) == 1) == fuses


def test_rows_then_diagonal_fuse():
    m, y = np.zeros((M, M)), np.zeros(M)
    with pyfuser.fusing():
        pk.parallel_for(M, row_put, m=m, n=M)
        pk.parallel_for(M, diagonal, m=m, y=y)
        pk.parallel_for(M, put_diagonal, m=m)
    assert_array_equal(y, np.diag(matrix()))
    assert_array_equal(np.diag(m), np.full(M, -1.0))
    assert len(groups()) == 1


def test_columns_then_diagonal_do_not():
    m, y = matrix(), np.zeros(M)
    with pyfuser.fusing():
        pk.parallel_for(M, column_sum, m=m, y=y, n=M)
        pk.parallel_for(M, put_diagonal, m=m)
        pk.parallel_for(M, row_sum, m=m, y=y, n=M)
    want = matrix()
    np.fill_diagonal(want, -1.0)
    assert_array_equal(y, want.sum(axis=1))


def test_diagonal_guard_and_transpose():
    m, t = matrix(), np.zeros((M, M))
    with pyfuser.fusing():
        pk.parallel_for(square(), diagonal_write, m=m)
        pk.parallel_for(square(), transpose, m=m, t=t)
    want = matrix().T.copy()
    np.fill_diagonal(want, -1.0)
    assert_array_equal(t, want)


def test_an_index_that_runs_into_the_next_row():
    m, t = np.zeros((M, M)), np.zeros((M, M))
    with pyfuser.fusing():
        pk.parallel_for(square(), fill2, m=m, v=0.0)
        pk.parallel_for(square(), beyond_row, m=m, t=t, first=np.zeros(1, np.int32))
    assert_array_equal(t, matrix())
