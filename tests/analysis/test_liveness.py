"""A value is dead when it is certainly overwritten before anybody reads it."""

import pytest

from pyfuser.analysis.liveness import MAX_LATER, Lifetime, Liveness
from pyfuser.trace.call import Space
from tests.analysis.build import S, View, call, known, loop, region, trace, when, workunit

N = 100
X, Y = region(0, N), region(1, N)


def fill(index=lambda i: i, guard=None):
    i, x = S("i"), View("x")
    store = x[index(i)] << 1.0
    body = [when(guard(i), [store])] if guard else [store]
    return workunit("fill", [i], [x], body)


def copy(shift=0):
    i, x, y = S("i"), View("x"), View("y")
    return workunit("copy", [i], [x, y], [y[i] << x[i + shift]])


FILL, COPY = fill(), copy()


def lifetime(*later, temporary=()):
    """Of what a first call writes to x."""
    return Liveness(trace(call(FILL, N, X), *later, temporary=temporary)).lifetime(0, 0)


def test_at_the_end_only_temporaries_die():
    assert lifetime() == Lifetime(0, True)
    assert lifetime(temporary=[0]) == Lifetime(0, False)
    assert lifetime(call(COPY, N, X, Y), temporary=[0]) == Lifetime(0b10, False)


def test_a_full_overwrite_ends_it():
    again = call(fill(), N, X)
    assert lifetime(again) == Lifetime(0, False)
    assert lifetime(call(COPY, N, X, Y), again, call(COPY, N, X, Y)) == Lifetime(0b10, False)


@pytest.mark.parametrize(
    "later",
    [
        call(fill(), N - 1, X),
        call(fill(), Space((1,), (N,)), X),
        call(fill(guard=lambda i: i > 0), N, X),
        call(fill(lambda i: (N - 1) - i, guard=lambda i: i < N - 1), N, X),
        call(fill(), N, region(0, N, offset=8)),
        call(fill(), N, Y),
    ],
)
def test_what_may_leave_an_element_does_not(later):
    assert lifetime(later, call(COPY, N, X, Y)).escapes
    assert lifetime(later, call(COPY, N, X, Y)).readers == 0b100


def test_a_guarded_write_is_ended_by_a_full_one():
    guarded = call(fill(guard=lambda i: i < 5), N, X)
    live = Liveness(trace(guarded, call(FILL, N, X), call(COPY, N, X, Y)))
    assert live.lifetime(0, 0) == Lifetime(0, False)


def test_a_data_dependent_guard_overwrites_nothing():
    i, x, y = S("i"), View("x"), View("y")
    unit = workunit("some", [i], [x, y], [when(y[i] > 0.0, [x[i] << 1.0])])
    assert lifetime(call(unit, N, X, Y)).escapes


def test_inner_loops_overwrite_what_their_ranges_cover():
    square = region(0, (N, N))

    def rows(stop):
        i, j, m, n = S("i"), S("j"), View("m", 2), S("n")
        unit = workunit("rows", [i], [m, n], [loop(j, 0, n, [m[i, j] << 1.0])])
        return call(unit, N, square, known(stop))

    assert not Liveness(trace(rows(50), rows(60))).lifetime(0, 0).escapes
    assert Liveness(trace(rows(60), rows(50))).lifetime(0, 0).escapes
    assert Liveness(trace(rows(50), rows(None))).lifetime(0, 0).escapes


def test_an_update_reads_before_it_overwrites():
    i, x = S("i"), View("x")
    double = workunit("double", [i], [x], [x[i].update("*", 2.0)])
    assert lifetime(call(double, N, X)) == Lifetime(0b10, False)
    i, x = S("i"), View("x")
    add = workunit("add", [i], [x], [x[i].update("+", 2.0, atomic=True)])
    assert lifetime(call(add, N, X)) == Lifetime(0b10, True)


def test_groups():
    live = Liveness(trace(call(FILL, N, X), call(COPY, N, X, Y), call(FILL, N, X)))
    assert live.is_dead_after(0, [0, 1])
    assert not live.is_dead_after(0, [0])
    assert not live.is_dead_after(0, [0, 1, 2])


def test_gives_up_far_away():
    others = [call(COPY, N, X, region(k + 1, N)) for k in range(MAX_LATER)]
    assert lifetime(*others, call(FILL, N, X), temporary=[0]).escapes
    assert not lifetime(*others[1:], call(FILL, N, X), temporary=[0]).escapes
