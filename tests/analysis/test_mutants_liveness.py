"""Overwrites that only seem certain; each case was found by a mutant that survived."""

from __future__ import annotations

import pytest

from pyfuser.analysis.liveness import Lifetime, Liveness
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Break, Continue, While
from tests.analysis.build import S, View, call, expr, known, loop, region, trace, when, workunit
from tests.analysis.test_liveness import COPY, FILL, N, X, Y, fill, lifetime


def test_a_full_box_of_other_elements():
    one_element = call(fill(lambda i: expr(0)), N, X)
    assert lifetime(one_element).escapes
    assert not lifetime(call(FILL, N, X)).escapes


def test_a_reader_through_another_view_of_the_memory():
    inner = region(0, N - 1, offset=8)
    again = call(FILL, N, X)
    assert lifetime(call(COPY, N - 1, inner, Y), again) == Lifetime(0b10, False)
    beyond = region(0, N, offset=8 * N)
    assert lifetime(call(COPY, N, beyond, Y), again) == Lifetime(0, False)


def test_a_store_in_a_while_loop_may_not_happen():
    def unit(body):
        i, x, y = S("i"), View("x"), View("y")
        return call(workunit("unit", [i], [x, y], body(x[i] << 1.0, y[i])), N, X, Y)

    assert lifetime(unit(lambda store, y: [While((y > 0.0).node, (store,))])).escapes
    assert not lifetime(unit(lambda store, y: [store])).escapes


@pytest.mark.parametrize("leave", [Break, Continue])
def test_a_loop_that_may_be_left_early(leave):
    square = region(0, (N, N))

    def rows(leave):
        i, j, m, y = S("i"), S("j"), View("m", 2), View("y")
        body = [when(y[j] > 0.0, [leave])] if leave else []
        unit = workunit("rows", [i], [m, y], [loop(j, 0, N, [*body, m[i, j] << 1.0])])
        return call(unit, N, square, region(1, N))

    assert Liveness(trace(rows(None), rows(leave()))).lifetime(0, 0).escapes
    assert not Liveness(trace(rows(None), rows(None))).lifetime(0, 0).escapes


def test_a_loop_whose_bound_compares_unsigned():
    """`range(-1, n)` has no iteration if n is unsigned: -1 becomes the greatest number."""

    def shifted(dtype, start):
        i, k, x, n = S("i"), S("k"), View("x"), S("n", dtype)
        unit = workunit("shifted", [i], [x, n], [loop(k, start, n, [x[k + 1] << 1.0])])
        return call(unit, 1, region(0, N), known(N - 1, dtype))

    def escapes(dtype, start):
        first, second = shifted(DType.INT32, start), shifted(dtype, start)
        return Liveness(trace(first, second)).lifetime(0, 0).escapes

    assert not escapes(DType.INT32, -1)
    assert escapes(DType.UINT32, -1)
    assert not escapes(DType.UINT32, 0)


def test_a_loop_whose_start_or_step_is_loaded():
    def walk(start, step, dtype=DType.INT32):
        i, k, x, y = S("i"), S("k"), View("x"), View("y", dtype=DType.INT32)
        n = S("n", dtype)
        ends = [y[expr(0)] if end is None else end for end in (start, step)]
        body = [loop(k, ends[0], n, [x[k] << 1.0], step=ends[1])]
        unit = workunit("walk", [i], [x, y, n], body)
        return call(unit, 1, region(0, N), region(1, 1, dtype=DType.INT32), known(N, dtype))

    def overwritten(*options):
        trace_ = trace(walk(0, 1), walk(*options))
        return not Liveness(trace_).lifetime(0, 0).escapes

    assert overwritten(0, 1)
    assert overwritten(0, 1, DType.UINT32)
    assert not overwritten(None, 1)
    assert not overwritten(None, 1, DType.UINT32)
    assert not overwritten(0, None)
    assert not overwritten(0, 2)
    assert not overwritten(0, 0)


def test_a_loop_whose_step_differs_between_iterations():
    def walk(step):
        i, k, m = S("i"), S("k"), View("m", 2)
        body = [loop(k, 0, N, [m[i, k] << 1.0], step=step(i))]
        return call(workunit("walk", [i], [m], body), N, region(0, (N, N)))

    def overwritten(step):
        return not Liveness(trace(walk(lambda i: 1), walk(step))).lifetime(0, 0).escapes

    assert overwritten(lambda i: 1)
    assert not overwritten(lambda i: i + 1)


def test_elements_that_nobody_knows_are_not_overwritten():
    i, x, q = S("i"), View("x"), View("q", dtype=DType.INT32)
    scatter = workunit("scatter", [i], [x, q], [x[q[i]] << 1.0])
    places = region(1, N, dtype=DType.INT32)
    twice = trace(call(scatter, N, X, places), call(scatter, N, X, places))
    assert Liveness(twice).lifetime(0, 0).escapes
