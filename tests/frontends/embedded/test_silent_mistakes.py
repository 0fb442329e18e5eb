"""Mistakes that an eager program would not be told of: each has a legal twin that is not mentioned.

The workunits of MISTAKES raise or warn; `# WRONG` marks the line that the message names.
"""

from __future__ import annotations

import linecache
import re
import warnings
from collections.abc import Callable
from typing import Any, List  # noqa: UP035  # as programs write it

import numpy as np
import pytest

import pyfuser
from pyfuser import WorkunitWarning
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.frontends.embedded.decorators import WorkunitState
from pyfuser.support.errors import BoundsError, DivisionError, PyFuserError, WorkunitError

# ruff: noqa: F821, F841, UP006

N = 8


# ----------------------------------------------------------------- indices


@pk.workunit
def one_too_far(i, v):
    v[i] = v[i + 1]  # WRONG


@pk.workunit
def one_before(i, v):
    v[i] = v[i - 1]  # WRONG


@pk.workunit
def from_the_end(i, v, k):
    v[i] = v[k]  # WRONG


@pk.workunit
def swapped_axes(i, j, m):
    m[j][i] = 1.0  # WRONG


@pk.workunit
def a_loop_too_long(i, v, n):
    for j in range(n + 1):
        pk.atomic_add(v, [j], 1.0)  # WRONG


@pk.workunit
def a_guard_that_is_off_by_one(i, v):
    if i <= 3:
        v[2 * i + 2] = 1.0  # WRONG


@pk.workunit
def a_remainder_too_large(i, m):
    m[i // 3][i % 7] = 1.0  # WRONG


@pk.workunit
def the_neighbour_around_the_end(i, v, w, n):
    w[i] = v[(i - 1) % n]  # WRONG


@pk.workunit
def half_an_index(i, v):
    v[i] = v[i / 2]  # WRONG


@pk.workunit
def a_float_as_an_index(i, v, a):
    v[a] = 1.0  # WRONG


@pk.workunit
def a_float_as_an_atomics_index(i, v):
    pk.atomic_add(v, [i * 0.5], 1.0)  # WRONG


@pk.workunit
def a_float_that_bounds_a_loop(i, v):
    for j in range(i / 2):  # WRONG
        v[i] = j


# ----------------------------------------------------------------- accumulators


@pk.workunit
def swapped(acc, i, v):
    acc += v[i]  # WRONG


@pk.workunit
def swapped_with_annotations(acc: pk.Acc[pk.double], i: int, v):  # WRONG
    acc += 1.0


@pk.workunit
def swapped_without_a_view(acc, i):  # WRONG
    acc += 1


@pk.workunit
def swapped_in_two(i, acc, j, m):
    acc += m[i][j]  # WRONG


@pk.workunit
def nothing_added(i, acc, v):  # WRONG
    v[i] = 1.0


@pk.workunit
def assigned(i, acc, v):
    acc = v[i]  # WRONG


@pk.workunit
def maximum(i, acc, v):
    acc = fmax(acc, v[i])  # WRONG


@pk.workunit
def partial_sums(i, acc, v, w):
    acc += v[i]  # WRONG
    w[i] = acc


@pk.workunit
def twice(i, acc, last, v, w):  # WRONG
    acc += v[i]
    w[i] += acc


@pk.workunit
def integers(i, acc: pk.Acc[int], v):
    acc += 0.25 * v[i]  # WRONG


@pk.workunit
def long_integers(i, acc, n):
    acc += n[i]  # WRONG


# ----------------------------------------------------------------- races


@pk.workunit
def counted_then_read(i, v, c):
    pk.atomic_add(c, [0], 1)
    v[c[0] % 2] = i  # WRONG


@pk.workunit
def read_then_counted(i, v, c):
    v[i] = c[0]  # WRONG
    pk.atomic_add(c, [0], 1)


@pk.workunit
def the_sum_before(i, acc, last, v):
    acc += 1.0
    if last:
        v[i] = v[i - 1] + acc  # WRONG


@pk.workunit
def last_one_wins(i, v, w):
    v[0] = w[i]  # WRONG


@pk.workunit
def two_to_one(i, v, w):
    v[i // 2] = w[i]  # WRONG


@pk.workunit
def counter(i, v):
    v[0] += 1.0  # WRONG


@pk.workunit
def histogram(i, v):
    v[i % 4] += 1.0  # WRONG


@pk.workunit
def in_place(i, v):
    if i > 0:
        v[i] = v[i - 1]  # WRONG


@pk.workunit
def reversed_in_place(i, v, n):
    v[i] = v[n - 1 - i]  # WRONG


@pk.workunit
def a_row_too_many(i, j, v, m):
    v[i] = m[i][j]  # WRONG


@pk.workunit
def neighbours_at_once(i, v):
    if i < 7:
        v[i] = 1.0  # WRONG
        v[i + 1] = 2.0


@pk.workunit
def counts(i, c, k):
    j: int = k[i] + 1
    c[j] += 1.0  # WRONG


# ----------------------------------------------------------------- numbers, and what is lost


@pk.workunit
def a_product_too_large(i, k):
    k[i] = (i + 1) * 1000000000  # WRONG


@pk.workunit
def a_square_too_large(i, j, q):
    x: int = i * 15446
    y = x + j
    q[i, j] = y * y  # WRONG


@pk.workunit
def half_of_what_is_negative(i, k):
    k[i] = (i - 3) // 2  # WRONG


@pk.workunit
def a_quotient_that_is_read_later(i, k):
    p: int = (i - 1) // 2  # WRONG
    q: int = p + 1
    for j in range(2):
        k[i] += q + j


@pk.workunit
def a_quotient_that_is_looked_at(i, k):
    p: int = (i - 1) // 2  # WRONG
    if p >= 0:
        k[i] = p


@pk.workunit
def bits_of_each(i, k, n):
    k[0] |= n + i  # WRONG


@pk.workunit
def a_bit_too_many(i, k):
    k[i] += 1 << (i + 25)  # WRONG


@pk.workunit
def by_zero(i, k, a):
    k[i] = 7 // a  # WRONG


@pk.workunit
def rest_by_zero(i, k, a):
    k[i] %= a  # WRONG


@pk.workunit
def a_half_as_an_integer(i, k):
    k[i] = 0.5  # WRONG


@pk.workunit
def by_an_element(i, k, d):
    k[i] = 10 // d[i]  # WRONG


@pk.workunit
def rest_by_a_local_element(i, k, d):
    b: int = d[i + 1]
    k[i] = i % b  # WRONG


@pk.workunit
def a_quotient_as_an_integer(i, k):
    k[i] = i / 2  # WRONG


@pk.workunit
def by_a_local_zero(i, k):
    a = 0
    k[i] = i // a  # WRONG


@pk.workunit
def by_the_index(i, k):
    k[i] = 10 // i  # WRONG


@pk.workunit
def rest_by_a_distance(i, j, q):
    q[i, j] = i % (2 * i - j - 3)  # WRONG


@pk.workunit
def by_a_counter(i, k):
    if i > 4:
        for j in range(3):
            k[i] += i // j  # WRONG


@pk.workunit
def a_number_too_large(i, k):
    k[i] = 3000000000  # WRONG


@pk.workunit
def a_local_that_loses(i, k):
    x: int = 2.5  # WRONG
    k[i] = x


@pk.workunit
def a_loop_backwards(i, v):
    for j in range(5, 0):  # WRONG
        v[i] += j


@pk.workunit
def nothing_kept(i, v):  # WRONG
    x: float = v[i]
    x += 1.0


@pk.workunit
def past_a_list(i, v):
    t: List[float] = [0.0, 1.0, 2.0]
    v[i] = t[i]  # WRONG


@pk.workunit
def past_scratch(team: pk.TeamMember, v, n):
    t: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), 4)

    def put(k: int):
        t[k] = k  # WRONG

    pk.parallel_for(pk.TeamThreadRange(team, n), put)
    v[team.league_rank()] = t[3]


@pk.workunit
def gathered(i, v, w, k):
    v[i] = w[k[i]]  # WRONG


@pk.workunit
def scattered(i, v, k):
    j: int = k[i]
    v[j] = 1.0  # WRONG


@pk.workunit
def gathered_by_rows(i, m, k):
    for j in range(2):
        m[i, j] += m[k[i], 0]  # WRONG


@pk.workunit
def a_negative_factor(i, v):
    v[i] = 0.5 * ((i - 5) % 3)  # WRONG


@pk.workunit
def unsigned_below_zero(i, u):
    t: pk.uint32 = 3
    u[i] = t - 5  # WRONG


@pk.workunit
def short_float(i, v, k):
    v[i] = float(k[i])  # WRONG


@pk.workunit
def constants_below_zero(i, u):
    u[i] = 3 - 5  # WRONG


@pk.workunit
def sums_in_the_last_pass(i, acc, last, v, w):
    if last:
        acc += v[i]  # WRONG
        w[i] = acc


@pk.workunit
def stored_where_others_store(i, v, k, w):
    v[k[i]] = w[i]  # WRONG


@pk.workunit
def stored_where_others_store_by_a_local(i, v, k):
    if i > 1:
        j: int = k[i - 1]
        v[j] = i  # WRONG


@pk.workunit
def added_where_others_add(i, v, k, w):
    v[k[i]] += w[i]  # WRONG


@pk.workunit
def bits_where_others_set_them(i, k, p):
    j = p[i]
    k[j] |= 1 << i  # WRONG


@pk.workunit
def divided_by_what_a_branch_sets(i, k, n):
    t = n
    if i == 3:
        t = 0
    k[i] = 7 // t  # WRONG


@pk.workunit
def divided_by_what_is_zero_at_times(i, k, n):
    t = n if i < 3 else i - 3
    k[i] = 7 % t  # WRONG


@pk.workunit
def divided_by_an_element_it_cleared(i, k, d):
    if i > 2:
        d[i] = 0
    k[i] = 7 // d[i]  # WRONG


@pk.workunit
def divided_by_an_element_it_counted(i, k, d):
    d[i] = i - 5
    k[i] //= d[i]  # WRONG


@pk.workunit
def sums_in_some_last_passes(i, acc, last, v, w):
    if last and v[i] < 1.0:
        acc += 1.0  # WRONG
        w[i] = acc


@pk.workunit
def a_sum_of_elements(i, acc: pk.Acc[pk.int32], k):
    acc += k[i]  # WRONG


@pk.workunit
def a_sum_of_rows(i, acc: pk.Acc[pk.int32], k):
    for j in range(3):
        acc += k[i]  # WRONG
        acc += j


@pk.workunit
def a_sum_of_indices(i, acc: pk.Acc[pk.int32]):
    acc += i  # WRONG


@pk.workunit
def below_unsigned(i, v, u):
    k = -1
    if k < u[i]:  # WRONG
        v[i] = 1.0


@pk.workunit
def an_argument_below_unsigned(i, v, u, k):
    v[i] = 1.0 if u[i] >= k else 0.0  # WRONG


@pk.workunit
def all_threads_add(team: pk.TeamMember, v):
    v[team.league_rank()] += 1.0  # WRONG


@pk.workunit
def all_threads_add_all(team: pk.TeamMember, v):
    for k in range(2):
        v[2 * team.league_rank() + k] += 1.0  # WRONG


@pk.workunit
def all_trips_add(team: pk.TeamMember, v, n):
    j: int = team.league_rank()

    def add(k: int):
        v[j] += k  # WRONG

    pk.parallel_for(pk.TeamThreadRange(team, n), add)


Run = Callable[[Any], None]


def over(policy: Any, **arguments: Any) -> Run:
    return lambda workunit: pk.parallel_for(policy, workunit, **arguments)


def views(**shapes: Any) -> dict[str, Any]:
    return {name: pk.View(shape) for name, shape in shapes.items()}


def summed(**arguments: Any) -> Run:
    return lambda workunit: float(pk.parallel_reduce(N, workunit, **arguments))


def scanned(**arguments: Any) -> Run:
    return lambda workunit: float(pk.parallel_scan(N, workunit, **arguments))


V = {"v": pk.View([N])}
VW = {"v": pk.View([N]), "w": pk.View([N])}
VM = {"v": pk.View([4]), "m": pk.View([4, 6])}


def divisors(*zeros: int) -> Any:
    view = pk.View([N], pk.int32)
    view[:] = np.arange(1, N + 1)
    view[list(zeros)] = 0
    return view


def filled_before(workunit: Any) -> None:
    d = pk.View([N], pk.int32)
    pk.parallel_for(N, one_more_than_the_index, d=d)
    pk.parallel_for(N, workunit, d=d, **K)


def indices(*outside: int) -> Any:
    view = pk.View([N], pk.int32)
    view[:] = np.arange(N) % 4
    view[1 : 1 + len(outside)] = outside
    return view


LONG = pk.View([N], pk.int64)
LARGE = pk.View([N], pk.int32)
LARGE[:] = 1 << 30
U = pk.View([N], pk.uint32)
K = {"k": pk.View([N], pk.int32)}
ZEROS = {"k": pk.View([N], pk.int32)}  # indices: nothing writes them
Q = {"q": pk.View([4, 6], pk.int32)}
BOX = pk.MDRangePolicy([0, 0], [4, 6])

MISTAKES: dict[Any, tuple[type[BaseException], str, Run]] = {
    one_too_far: (
        BoundsError,
        "index of axis 0 of 'v' runs from 1 to 8, but its ext",
        over(N, **V),
    ),
    one_before: (BoundsError, "runs from -1 to 6, but its extent is 8", over(N, **V)),
    from_the_end: (BoundsError, "is -1, but its extent is 8", over(N, k=-1, **V)),
    swapped_axes: (BoundsError, "runs from 0 to 5, but its extent is 4", over(BOX, m=VM["m"])),
    a_loop_too_long: (BoundsError, "runs from 0 to 8, but its extent is 8", over(2, n=N, **V)),
    a_guard_that_is_off_by_one: (BoundsError, "runs from 2 to 8, but its ext", over(N, **V)),
    a_remainder_too_large: (BoundsError, "runs from 0 to 6, but its ext", over(12, m=VM["m"])),
    the_neighbour_around_the_end: (BoundsError, "-1 % n is -1", over(N, n=N, **VW)),
    past_a_list: (BoundsError, "index of axis 0 of 't' runs from 0 to 7, but its ex", over(N, **V)),
    past_scratch: (
        BoundsError,
        "index of axis 0 of 't' runs from 0 to 4, but its extent is 4",
        over(pk.TeamPolicy(2, pk.AUTO), n=5, **V),
    ),
    gathered: (
        BoundsError,
        "the index of axis 0 of 'w' is k[2], which is 8, but its extent is 8",
        over(N, k=indices(7, 8), **VW),
    ),
    scattered: (
        BoundsError,
        "the index of axis 0 of 'v' is k[1], which is -1, but its extent is 8",
        over(N, k=indices(-1), **V),
    ),
    gathered_by_rows: (
        BoundsError,
        "the index of axis 0 of 'm' is k[2], which is 4, but its extent is 4",
        over(4, k=indices(0, 4), m=VM["m"]),
    ),
    a_negative_factor: (WorkunitWarning, "is 1 in Python where i = 0, and not here", over(N, **V)),
    unsigned_below_zero: (WorkunitWarning, "-2, which does not fit into uint32", over(N, u=U)),
    short_float: (
        WorkunitWarning,
        "`float(k[i])` has 32 bits, as in C++, not 64: write pk.double(k[i])",
        over(N, k=indices(), **V),
    ),
    constants_below_zero: (WorkunitWarning, "uint32 cannot hold -2, which it gets, ", over(N, u=U)),
    sums_in_the_last_pass: (WorkunitWarning, "write acc += ... before `if last:`", scanned(**VW)),
    stored_where_others_store: (
        WorkunitWarning,
        "write one element of 'v', as k[0] and k[4] are both 0, so chance decides whose value",
        over(N, k=indices(), **VW),
    ),
    stored_where_others_store_by_a_local: (
        WorkunitWarning,
        "write one element of 'v', as k[1] and k[5] are both 1, so chance decides whose value",
        over(N, k=indices(), **V),
    ),
    added_where_others_add: (
        WorkunitWarning,
        "element of 'v' at the same time, as k[0] and k[4] are both 0, so that changes get lost",
        over(N, k=indices(), **VW),
    ),
    bits_where_others_set_them: (
        WorkunitWarning,
        "element of 'k' at the same time, as p[0] and p[4] are both 0, so that changes get lost",
        over(N, p=indices(), **K),
    ),
    divided_by_what_a_branch_sets: (
        DivisionError,
        "an integer is divided by 't', which is 0",
        over(N, n=2, **K),
    ),
    divided_by_what_is_zero_at_times: (
        DivisionError,
        "an integer is divided by 't', which is 0 where i = 3",
        over(N, n=2, **K),
    ),
    divided_by_an_element_it_cleared: (
        DivisionError,
        "an integer is divided by an element of 'd' that the iteration has set, which is 0",
        over(N, d=divisors(), **K),
    ),
    divided_by_an_element_it_counted: (
        DivisionError,
        "by an element of 'd' that the iteration has set, which is 0 where i = 5",
        over(N, d=divisors(), **K),
    ),
    sums_in_some_last_passes: (
        WorkunitWarning,
        "write acc += ... before `if last:`",
        scanned(**VW),
    ),
    a_sum_of_elements: (
        WorkunitWarning,
        "the sum 'acc' is 8589934592, which does not fit into int32, so another number comes back",
        summed(k=LARGE),
    ),
    a_sum_of_rows: (WorkunitWarning, "the sum 'acc' is 25769803800, which", summed(k=LARGE)),
    a_sum_of_indices: (
        WorkunitWarning,
        "the sum 'acc' is 4999950000, which",
        lambda workunit: int(pk.parallel_reduce(100_000, workunit)),
    ),
    below_unsigned: (
        WorkunitWarning,
        "-1 is compared with unsigned integers, and becomes 4294967295 for that",
        over(N, u=U, **V),
    ),
    an_argument_below_unsigned: (
        WorkunitWarning,
        "-3 is compared with unsigned integers where i = 0, and becomes 4294967293",
        over(N, u=U, k=-3, **V),
    ),
    all_threads_add: (
        WorkunitWarning,
        "all 4 threads of a team change one element of 'v' at the same time",
        over(pk.TeamPolicy(N, 4), **V),
    ),
    all_threads_add_all: (
        WorkunitWarning,
        "all 4 threads of a team change one element of 'v' at the same time",
        over(pk.TeamPolicy(4, 4), **V),
    ),
    all_trips_add: (
        WorkunitWarning,
        "threads of a team change one element of 'v' at the same time",
        over(pk.TeamPolicy(N, 4), n=8, **V),
    ),
    half_an_index: (WorkunitError, "an index has to be one: write i // 2", over(N, **V)),
    a_float_as_an_index: (WorkunitError, "has to be one: write int(a)", over(N, a=1.0, **V)),
    a_float_as_an_atomics_index: (WorkunitError, "write int(i * 0.5)", over(N, **V)),
    a_float_that_bounds_a_loop: (WorkunitError, "range needs integers", over(N, **V)),
    swapped: (WorkunitError, "are swapped: the index comes before", summed(**V)),
    swapped_with_annotations: (WorkunitError, "write `def swapped_with_annot", summed(**V)),
    swapped_without_a_view: (WorkunitError, "write `def swapped_without_a_view(i, acc)`", summed()),
    swapped_in_two: (
        WorkunitError,
        "write `def swapped_in_two(i, j, acc, m)`",
        lambda workunit: pk.parallel_reduce(BOX, workunit, m=VM["m"]),
    ),
    nothing_added: (WorkunitWarning, "nothing is added to the accumulator 'acc'", summed(**V)),
    assigned: (WorkunitWarning, "is assigned to, not added to", summed(**V)),
    maximum: (WorkunitWarning, "gets more than sums", summed(**V)),
    partial_sums: (WorkunitWarning, "a view gets the accumulator 'acc'", summed(**VW)),
    twice: (WorkunitWarning, "write `if last:` before the change", scanned(**VW)),
    integers: (WorkunitWarning, "annotate it pk.Acc[pk.double]", summed(**V)),
    long_integers: (WorkunitWarning, "annotate it pk.Acc[pk.int64]", summed(n=LONG)),
    counted_then_read: (WorkunitWarning, "k = pk.atomic_fetch_add(", over(N, c=LONG, **V)),
    read_then_counted: (WorkunitWarning, "k = pk.atomic_fetch_add(", over(N, c=LONG, **V)),
    the_sum_before: (
        WorkunitWarning,
        "elements of 'v' that others read",
        lambda workunit: float(pk.parallel_scan(pk.RangePolicy(1, N), workunit, **V)),
    ),
    last_one_wins: (WorkunitWarning, "write one element of 'v', so chance", over(N, **VW)),
    two_to_one: (WorkunitWarning, "write one element of 'v', so chance", over(N, **VW)),
    counter: (WorkunitWarning, "changes get lost: use pk.atomic_add", over(N, **V)),
    histogram: (WorkunitWarning, "changes get lost: use pk.atomic_add", over(N, **V)),
    counts: (WorkunitWarning, "use pk.atomic_add", over(N, c=pk.View([4]), **ZEROS)),
    in_place: (WorkunitWarning, "elements of 'v' that others read", over(N, **V)),
    reversed_in_place: (WorkunitWarning, "that others read", over(N, n=N, **V)),
    a_row_too_many: (WorkunitWarning, "write one element of 'v'", over(BOX, **VM)),
    neighbours_at_once: (WorkunitWarning, "write one element of 'v' (line", over(N, **V)),
    a_product_too_large: (WorkunitWarning, "8000000000 where i = 7, which", over(N, **K)),
    a_square_too_large: (WorkunitWarning, "where i = 3 and j = 5, which", over(BOX, **Q)),
    half_of_what_is_negative: (WorkunitWarning, "is -2 in Python where i = 0", over(N, **K)),
    a_quotient_that_is_read_later: (WorkunitWarning, "is -1 in Python", over(N, **K)),
    a_quotient_that_is_looked_at: (WorkunitWarning, "is -1 in Python", over(N, **K)),
    bits_of_each: (WorkunitWarning, "changes get lost", over(N, n=1, **K)),
    a_bit_too_many: (WorkunitWarning, "4294967296 where i = 7", over(N, **K)),
    by_zero: (DivisionError, "divided by 'a', which is 0", over(N, a=0, **K)),
    by_a_local_zero: (DivisionError, "divided by 'a', which is 0", over(N, **K)),
    by_the_index: (DivisionError, "divided by 'i', which is 0 where i = 0", over(N, **K)),
    rest_by_a_distance: (DivisionError, "divided by what is 0 where i = 2", over(BOX, **Q)),
    by_a_counter: (DivisionError, "divided by 'j', which is 0 where i = 5", over(N, **K)),
    by_an_element: (DivisionError, "by d[0], which is 0", over(N, d=divisors(0), **K)),
    rest_by_a_local_element: (DivisionError, "by d[5], which", over(N - 1, d=divisors(5), **K)),
    a_quotient_as_an_integer: (WorkunitWarning, "write `//`, or int", over(N, **K)),
    rest_by_zero: (DivisionError, "divided by 'a', which is 0", over(N, a=0, **K)),
    a_half_as_an_integer: (WorkunitWarning, "0.5 does not fit into int32", over(N, **K)),
    a_number_too_large: (WorkunitWarning, "3000000000 does not fit into int32", over(N, **K)),
    a_local_that_loses: (WorkunitWarning, "2.5 does not fit into int32", over(N, **K)),
    a_loop_backwards: (WorkunitWarning, "range(5, 0) is empty", over(N, **V)),
    nothing_kept: (WorkunitWarning, "changes no view, so the call does nothing", over(N, **V)),
}


def anew(workunit: Any) -> Any:
    """The workunit without anything that is kept of earlier calls."""
    workunit.__pyfuser__ = WorkunitState(workunit.__pyfuser__.function, {}, False)
    return workunit


def run_eagerly(workunit: Any, run: Run) -> None:
    with pyfuser.unfused():
        run(workunit)


def run_fused(workunit: Any, run: Run) -> None:
    with pyfuser.fusing():
        run(workunit)


@pytest.mark.parametrize("way", [run_eagerly, run_fused])
@pytest.mark.parametrize("workunit", MISTAKES, ids=lambda workunit: workunit.__name__)
def test_a_mistake_is_told(workunit: Any, way: Callable[[Any, Run], None]) -> None:
    kind, message, run = MISTAKES[workunit]
    with warnings.catch_warnings():
        warnings.simplefilter("error", WorkunitWarning)
        with pytest.raises(kind, match=re.escape(message)) as caught:
            way(anew(workunit), run)
    assert not pyfuser.pending()
    error = caught.value
    if isinstance(error, PyFuserError):
        line = error.location.line if hasattr(error, "location") else _named(str(error))
        assert linecache.getline(__file__, line).rstrip().endswith("# WRONG")


def _named(message: str) -> int:
    found = re.match(rf"{re.escape(__file__)}:(\d+): ", message)
    assert found is not None
    return int(found[1])


WARNED = [unit for unit in MISTAKES if MISTAKES[unit][0] is WorkunitWarning]


@pytest.mark.parametrize("workunit", WARNED, ids=lambda workunit: workunit.__name__)
def test_a_warning_names_the_line(workunit: Any, idle_kernels: None) -> None:
    _, message, run = MISTAKES[workunit]
    with pytest.warns(WorkunitWarning, match=re.escape(message)) as caught:
        run_fused(anew(workunit), run)
    (warning,) = caught
    assert warning.filename == __file__
    assert linecache.getline(__file__, warning.lineno).rstrip().endswith("# WRONG")


@pk.workunit
def own_count(i, v, c):
    pk.atomic_add(c, [i], 1)
    v[i] = c[i]


@pk.workunit
def number_of_each(i, v, c):
    k: int = pk.atomic_fetch_add(c, [0], 1)
    v[k % 8] = i


@pk.workunit
def own_sum(i, acc, last, v):
    acc += v[i]
    if last:
        v[i] = acc


@pk.workunit
def a_factor_made_positive(i, v):
    v[i] = 0.5 * (((i - 5) % 3 + 3) % 3)


@pk.workunit
def unsigned_that_wraps(i, u):
    h: pk.uint32 = 2166136261
    h = (h ^ i) * 16777619
    u[i] = h - i
    u[i] += 5 - 3


@pk.workunit
def some_of_a_list(i, v):
    t: List[float] = [0.0, 1.0, 2.0]
    v[i] = t[i % 3]
    if i < 3:
        v[i] = t[i]


@pk.workunit
def all_of_scratch(team: pk.TeamMember, v, n):
    t: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), n)

    def put(k: int):
        t[k] = k

    pk.parallel_for(pk.TeamThreadRange(team, n), put)
    v[team.league_rank()] = t[n - 1]


@pk.workunit
def gathered_where_it_may(i, v, w, k):
    if k[i] >= 0 and k[i] < 8:
        v[i] = w[k[i]]


@pk.workunit
def some_gathered(i, v, w, k):
    if i > 2:
        v[i] = w[k[i]]


@pk.workunit
def gathered_by_its_own(i, v, w, k):
    k[i] = i
    v[i] = w[k[i]]


def gathered_by_what_is_pending(workunit: Any) -> None:
    k = indices(100)
    pk.parallel_for(N, one_more_than_the_index, d=k)
    pk.parallel_for(N - 1, workunit, k=k, **VW)


@pk.workunit
def sums_in_both_passes(i, acc, last, v, w):
    acc += v[i]
    if last:
        w[i] = acc
        acc += 0.0


@pk.workunit
def stored_where_it_is_the_same(i, v, k, w):
    v[k[i]] = 1.0
    v[k[i]] = k[i]
    if w[i] > 0.0:
        v[k[i]] = w[i]


@pk.workunit
def added_where_it_may(i, v, k, w, c):
    pk.atomic_add(v, [k[i]], w[i])
    c[k[i]] |= 4
    if w[i] > 0.0:
        c[k[i]] += 1


@pk.workunit
def stored_by_each_iteration_again(i, v, k, w):
    for j in range(3):
        v[k[i]] = w[i] + j


@pk.workunit
def divided_by_what_is_set_again(i, k, d, n):
    t = 0
    if i >= 0:
        t = n
    d[i] = 0
    d[i] = n
    k[i] = 7 // t + 7 // d[i]
    d[i] = 0
    d[i] += 1
    k[i] += 7 // d[i]
    if i > 8:
        d[i] = 0
    k[i] += 7 // d[i]
    d[i] = 0
    if d[i] != 0:
        k[i] += 7 // d[i]


@pk.workunit
def sums_of_some(i, acc: pk.Acc[pk.int32], k):
    if i < 1:
        acc += k[i]
    if k[i] < 0:
        acc += k[i]


@pk.workunit
def sums_that_cancel(i, acc: pk.Acc[pk.int32], k):
    acc += k[i]
    acc += -1073741824


@pk.workunit
def sums_of_what_it_writes(i, acc: pk.Acc[pk.int32], k):
    k[i] = i
    acc += k[i]


@pk.workunit
def above_unsigned(i, v, u):
    k = 2
    if k < u[i]:
        v[i] = 1.0
    if i > 8 and u[i] > -1:
        v[i] = 2.0
    wide: pk.int64 = u[i]
    if wide > -1:
        v[i] = 3.0


@pk.workunit
def threads_add_apart(team: pk.TeamMember, v, w):
    j: int = team.league_rank()
    r: int = team.team_rank()
    v[4 * j + r] += 1.0
    if r == 0:
        w[j] += 1.0

    def once():
        w[j] += 1.0

    def some(k: int, acc: pk.Acc[float]):
        acc += k

    def each(k: int):
        t: int = 4 * j
        v[t + k] += 1.0
        pk.atomic_add(w, [j], 1.0)

    pk.single(pk.PerTeam(team), once)
    s: float = pk.parallel_reduce(pk.TeamThreadRange(team, 4), some)
    s += 1.0
    pk.parallel_for(pk.TeamThreadRange(team, 4), each)
    pk.atomic_add(w, [j], s)


@pk.workunit
def long_sum(i, acc: pk.Acc[pk.double], n):
    acc += n[i]


@pk.workunit
def exact_sum(i, acc: pk.Acc[pk.int64], n):
    acc += n[i]


@pk.workunit
def meant_to_be_short(i, v, k):
    v[i] = pk.float(k[i]) + float(pk.float(v[i])) + pk.double(k[i])


@pytest.mark.parametrize(
    ("workunit", "run"),
    [
        (meant_to_be_short, over(N, k=indices(), **V)),
        (own_count, over(N, c=LONG, **V)),
        (number_of_each, over(N, c=LONG, **V)),
        (own_sum, scanned(**V)),
        (a_factor_made_positive, over(N, **V)),
        (unsigned_that_wraps, over(N, u=U)),
        (some_of_a_list, over(N, **V)),
        (all_of_scratch, over(pk.TeamPolicy(2, pk.AUTO), n=5, **V)),
        (gathered, over(N, k=indices(7, 0), **VW)),
        (gathered, gathered_by_what_is_pending),
        (gathered_where_it_may, over(N, k=indices(8, -1), **VW)),
        (some_gathered, over(N, k=indices(8, -1), **VW)),
        (gathered_by_its_own, over(N, k=indices(8, -1), **VW)),
        (sums_in_both_passes, scanned(**VW)),
        (stored_where_others_store, over(N, k=indices(7, 6, 5, 4, 3, 2, 1), **VW)),
        (stored_where_others_store, over(4, k=indices(), **VW)),
        (stored_where_it_is_the_same, over(N, k=indices(), **VW)),
        (added_where_others_add, over(N, k=indices(7, 6, 5, 4, 3, 2, 1), **VW)),
        (added_where_others_add, over(4, k=indices(), **VW)),
        (added_where_it_may, over(N, k=indices(), c=LONG, **VW)),
        (stored_by_each_iteration_again, over(N, k=indices(7, 6, 5, 4, 3, 2, 1), **VW)),
        (divided_by_what_is_set_again, over(N, d=divisors(), n=3, **K)),
        (sums_of_some, summed(k=LARGE)),
        (sums_that_cancel, summed(k=LARGE)),
        (sums_of_what_it_writes, summed(k=indices(1 << 30, 1 << 30))),
        (above_unsigned, over(N, u=U, **V)),
        (threads_add_apart, over(pk.TeamPolicy(2, 4), **VW)),
        (long_sum, summed(n=LONG)),
        (exact_sum, summed(n=LONG)),
    ],
)
def test_what_is_meant_is_not_told(workunit: Any, run: Run, request: pytest.FixtureRequest) -> None:
    if run is not gathered_by_what_is_pending:
        request.getfixturevalue("idle_kernels")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_eagerly(anew(workunit), run)


@pk.workunit
def the_least_by_minus_one(i, k):
    k[i] = (0 * i - 2147483647 - 1) // (0 * i - 1)


def test_a_quotient_may_not_fit() -> None:  # it is not launched: processors trap
    with warnings.catch_warnings():
        warnings.simplefilter("error", WorkunitWarning)
        with pytest.raises(WorkunitWarning, match="2147483648 where i = 0, which does not fit"):
            pk.parallel_for(N, the_least_by_minus_one, **K)


def test_a_warning_comes_once_for_a_line() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for length in (N, N + 1, N + 2):
            pk.parallel_for(length, anew(counter), v=pk.View([length]))
    assert len(caught) == 1, [str(each.message) for each in caught]


def test_a_warning_can_be_turned_off() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", WorkunitWarning)
        pk.parallel_for(N, anew(counter), v=pk.View([N]))


# ----------------------------------------------------------------- what is no mistake


@pk.workunit
def fill(i, v, a):
    v[i] = a


@pk.workunit
def guarded(i, v, n):
    if i + 1 < n:
        v[i] = 1.0
    if i > 0 and i < n - 1 and n < 0:
        v[i + 1] = 2.0


@pk.workunit
def guarded_by_data(i, v, k):
    if k[i] > 0:
        v[i + 100] = 1.0


@pk.workunit
def until_it_is_found(i, v, k):
    j: int = 0
    while k[j] == 0 and j < 3:
        j += 1
    v[j + 1] = 1.0


@pk.workunit
def a_mark(i, v, k):
    if k[i] == 0:
        v[0] = 1.0
    v[1] = 3.0


@pk.workunit
def a_mark_that_is_looked_at(i, v):
    if v[0] == 0.0:
        v[0] = 1.0


@pk.workunit
def the_same_for_two(i, v, w):
    v[i // 2] = w[i // 2]


@pk.workunit
def the_same_by_name(i, v, w):
    j: int = i // 2
    x: float = 2.0
    v[j] = x * w[j]


@pk.workunit
def red_and_black(i, v):
    if i % 2 == 1:
        v[i] = v[i - 1]


@pk.workunit
def one_iteration_only(i, v):
    if i == 3:
        v[0] = v[i] + i


@pk.workunit
def atomically(i, v):
    pk.atomic_add(v, [0], 1.0)


@pk.workunit
def by_data(i, v, k):
    v[k[i]] = i


@pk.workunit
def scattered_by_remainder(i, v, n):
    v[(3 * i) % n] = i


@pk.workunit
def into_rows(i, m):
    m[i // 6][i % 6] = 1.0


@pk.workunit
def division_that_is_guarded(i, k, a):
    if a != 0:
        k[i] = 7 // a
    k[i] += 7 // a if a != 0 else 1


@pk.workunit
def numbers_that_fit(i, k):
    k[i] = 2147483647
    k[i] = int(2.5)


@pk.workunit
def nothing_at_all(i, v):
    pass


@pk.workunit
def said_only(i, v):
    if v[i] > 1e9:
        pk.printf("%f\n", v[i])


@pk.workunit
def a_local_index(i, v):
    a: List[float] = [1.0, 2.0]
    v[i] = a[i % 2]


@pk.workunit
def plus(i, acc, v):
    acc += v[i]


@pk.workunit
def written_out(i, acc, v):
    acc = acc + 2.0 * v[i]


@pk.workunit
def minus(i, acc, v):
    acc -= v[i]


@pk.workunit
def sometimes(i, acc, v):
    if v[i] > 0.0:
        acc = v[i] + acc


@pk.workunit
def of_integers(i, acc: pk.Acc[int], v):
    acc += int(v[i])


@pk.workunit
def an_index_that_moves(i, acc, v):
    i = i // 2
    acc += v[i]


@pk.workunit
def a_sum_and_a_store(i, acc, v, w):
    acc += v[i]
    w[i] = v[i]


@pk.workunit
def scan_that_stores(i, acc, last, v, w):
    acc += v[i]
    w[i] = acc


@pk.workunit
def scan_that_changes(i, acc, last, v, w):
    acc += v[i]
    if last:
        w[i] += acc


@pk.workunit
def by_a_local_that_grows(i, k):
    a = 0
    for j in range(3):
        a += j
    k[i] = i // a


@pk.workunit
def by_a_local_zero_in_no_case(i, k):
    a = 0
    if a > 0:
        k[i] = i // a


@pk.workunit
def by_an_index_that_is_not_0(i, k):
    if i > 0:
        k[i] = 10 // i
    k[i] = 10 // i if i != 0 else 0
    if i != 0 and 10 // i > 3:
        k[i] = 10 // (2 * i - 7)
    k[i] += 10 // (i + 1)


@pk.workunit
def by_a_counter_that_is_not_0(i, k):
    for j in range(1, 4):
        k[i] += i // j


@pk.workunit
def by_what_a_loop_may_not_reach(i, k):
    j: int = i
    while j > 0:
        k[i] = 10 // j
        j -= 1


@pk.workunit
def around_the_end(i, v, w, n):
    w[i] = v[(i - 1 + n) % n]


@pk.workunit
def rest_of_what_is_negative(i, v, w):
    w[i] = v[((i - 1) % 8 + 8) % 8]


@pk.workunit
def in_64_bits(i, k, m):
    wide: pk.int64 = i
    m[i] = wide * 1000000000 * 1000
    k[i] = i * 100000000


@pk.workunit
def that_wraps(i, u):
    u[i] = u[i] * 3 + (pk.uint32(i) - 1) * 4000000000


@pk.workunit
def a_product_that_is_guarded(i, k):
    if i < 2:
        k[i] = i * 1000000000
    k[i] = 0 if i > 1 else i * 1000000000


@pk.workunit
def a_factor_that_is_not_known(i, k):
    x: int = 1000000
    for _ in range(3):
        x = x // 100
    k[i] = x * 1000000


@pk.workunit
def a_quotient_for_a_branch(i, k):
    p: int = (i - 1) // 2
    if i > 0:
        k[i] = p
    k[i] += p if i > 0 else 0


@pk.workunit
def a_quotient_that_a_branch_mends(i, k):
    p: int = (i - 1) // 2
    if i == 0:
        p = 0
    k[i] = p


@pk.workunit
def a_local_that_is_replaced(i, k):
    wide: int = i * 1000000000
    wide = i
    k[i] = wide


@pk.workunit
def a_bit_that_is_set(i, k, m, n):
    k[0] |= 4
    m[i // 2] &= n


@pk.workunit
def one_more_than_the_index(i, d):
    d[i] = i + 1


@pk.workunit
def one_by_what_was_filled(i, k, d):
    k[i] = 1 // d[i]


@pk.workunit
def by_an_element_that_is_guarded(i, k, d):
    if d[i] != 0:
        k[i] = 10 // d[i]


@pk.workunit
def by_an_element_that_was_written(i, d):
    d[i] = i + 1
    d[i] = 10 // d[i]


@pk.workunit
def by_an_element_of_a_later_one(i, k, d):
    j: int = 0
    b: int = d[j]
    j = 1
    k[i] = 10 // d[j]


@pk.workunit
def a_quotient_that_is_meant(i, k):
    k[i] = int(i / 2)


@pk.workunit
def a_quotient_of_doubles(i, k, v):
    k[i] = v[i] / 2


LEGAL: dict[Any, Run] = {
    by_an_element: over(pk.RangePolicy(1, N), d=divisors(0), **K),
    rest_by_a_local_element: over(N - 1, d=divisors(0), **K),
    one_by_what_was_filled: filled_before,
    by_an_element_that_is_guarded: over(N, d=divisors(0), **K),
    by_an_element_that_was_written: over(N, d=pk.View([N], pk.int32)),
    by_an_element_of_a_later_one: over(N, d=divisors(0), **K),
    a_quotient_that_is_meant: over(N, **K),
    a_quotient_of_doubles: over(N, **K, **V),
    around_the_end: over(N, n=N, **VW),
    in_64_bits: over(N, m=pk.View([N], pk.int64), **K),
    that_wraps: over(N, u=pk.View([N], pk.uint32)),
    a_product_that_is_guarded: over(N, **K),
    a_factor_that_is_not_known: over(N, **K),
    a_quotient_for_a_branch: over(N, **K),
    a_quotient_that_a_branch_mends: over(N, **K),
    a_local_that_is_replaced: over(N, **K),
    a_bit_that_is_set: over(N, n=3, m=pk.View([N], pk.int32), **K),
    by_an_index_that_is_not_0: over(N, k=pk.View([N], pk.int32)),
    by_a_counter_that_is_not_0: over(N, k=pk.View([N], pk.int32)),
    by_what_a_loop_may_not_reach: over(N, k=pk.View([N], pk.int32)),
    a_sum_and_a_store: summed(**VW),
    scan_that_stores: scanned(**VW),
    scan_that_changes: scanned(**VW),
    by_a_local_that_grows: over(N, **K),
    by_a_local_zero_in_no_case: over(N, **K),
    fill: over(N, a=2.0, **V),
    guarded: over(N, n=N, **V),
    guarded_by_data: over(N, **V, **ZEROS),
    until_it_is_found: over(N, **V, **ZEROS),
    a_mark: over(N, **V, **ZEROS),
    a_mark_that_is_looked_at: over(N, **V),
    the_same_for_two: over(N, **VW),
    the_same_by_name: over(N, **VW),
    red_and_black: over(N, **V),
    one_iteration_only: over(N, **V),
    atomically: over(N, **V),
    by_data: over(N, k=indices(7, 6, 5, 4, 3, 2, 1), **V),
    scattered_by_remainder: over(N, n=N, **V),
    into_rows: over(24, m=VM["m"]),
    division_that_is_guarded: over(N, a=0, **K),
    numbers_that_fit: over(N, **K),
    nothing_at_all: over(N, **V),
    said_only: over(N, **V),
    a_local_index: over(N, **V),
    plus: summed(**V),
    written_out: summed(**V),
    minus: summed(**V),
    sometimes: summed(**V),
    of_integers: summed(**V),
    an_index_that_moves: summed(**V),
    # What is a mistake over other numbers, and in other spaces.
    one_too_far: over(pk.RangePolicy(pk.Serial, 0, N - 1), **V),
    one_before: over(pk.RangePolicy(pk.Serial, 1, N), **V),
    half_of_what_is_negative: over(pk.RangePolicy(3, N), **K),
    rest_of_what_is_negative: over(N, **VW),
    the_neighbour_around_the_end: over(pk.RangePolicy(1, N), n=N, **VW),
    a_product_too_large: over(2, **K),
    counts: over(4, c=pk.View([4]), **ZEROS),
    last_one_wins: over(pk.RangePolicy(pk.Serial, 0, N), **VW),
    counter: over(1, **V),
    a_guard_that_is_off_by_one: over(3, **V),
    swapped_axes: over(pk.MDRangePolicy([0, 0], [4, 4]), m=VM["m"]),
    by_zero: over(N, a=2, **K),
    half_an_index: lambda _: None,
}


@pytest.mark.parametrize("way", [run_eagerly, run_fused])
@pytest.mark.parametrize("workunit", LEGAL, ids=lambda workunit: workunit.__name__)
def test_no_alarm(
    workunit: Any, way: Callable[[Any, Run], None], request: pytest.FixtureRequest
) -> None:
    if workunit is not one_by_what_was_filled:
        request.getfixturevalue("idle_kernels")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        way(anew(workunit), LEGAL[workunit])


# ----------------------------------------------------------------- what becomes of the rest


def test_calls_before_a_mistake_run_and_those_after_it_are_forgotten() -> None:
    v, w = pk.View([N]), pk.View([N])
    with pytest.raises(IndexError, match="'one_too_far' at"), pyfuser.fusing():
        pk.parallel_for(N, fill, v=v, a=1.0)
        pk.parallel_for(N, anew(one_too_far), v=v)
        pk.parallel_for(N, fill, v=w, a=1.0)
    assert set(v) == {1.0} and set(w) == {0.0} and not pyfuser.pending()
    with pyfuser.fusing():
        pk.parallel_for(N, fill, v=w, a=1.0)
    assert set(w) == {1.0}


def test_a_result_that_is_never_computed_raises_the_mistake() -> None:
    with pytest.raises(BoundsError), pyfuser.fusing():
        pk.parallel_for(N, anew(one_too_far), v=V["v"])
        total = pk.parallel_reduce(N, plus, v=V["v"])
        float(total)
    with pytest.raises(BoundsError):
        float(total)


def test_a_mistake_comes_again() -> None:
    for _ in range(2):
        with pytest.raises(BoundsError) as caught, pyfuser.fusing():
            pk.parallel_for(N, anew(one_too_far), v=V["v"])
        assert (caught.value.view, caught.value.index, caught.value.extent) == ("v", 8, 8)


def test_no_memory_is_touched_outside() -> None:
    memory = np.zeros(N + 1)
    with pytest.raises(BoundsError):
        pk.parallel_for(N + 1, fill, v=memory[:N], a=1.0)
    assert not memory.any()


def test_an_option_that_workunit_does_not_have() -> None:
    with pytest.warns(WorkunitWarning, match="no option 'reducer', which is ignored"):

        @pk.workunit(reducer="max", v=pk.ViewTypeInfo(layout=pk.LayoutRight))
        def f(i, v):
            v[i] = i
