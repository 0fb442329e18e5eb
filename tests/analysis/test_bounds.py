"""Bounds of locals that change, and what accesses may touch with them in a subscript."""

from __future__ import annotations

from pyfuser.analysis.accesses import accesses
from pyfuser.analysis.bounds import bounded_locals
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Assign, Const, Declare, For, If, Update
from tests.analysis.build import S, View, call, region, workunit


def const(value):
    return Const(value, DType.INT32)


def loop(sym, start, stop, *body):
    return For(sym.sym, const(start), const(stop), const(1), body)


def argmin(*, counts: bool = False, far: bool = False):
    """best = 0; for c in range(1, 4): if x[c] > x[best]: best = c (or best + 1, or 9 * c)."""
    i, c, best, x, y = S("i"), S("c"), S("best"), View("x"), View("y")
    value = best + 1 if counts else 9 * c if far else c
    step = If((x[i * 4 + c] > x[i * 4 + best]).node, (Assign(best.sym, value.node),))
    body = [Declare(best.sym, const(0)), loop(c, 1, 4, step), y[i] << x[i * 4 + best]]
    return workunit("w", [i], [x, y], body), best.sym, c.sym


def test_the_values_that_a_local_is_given():
    unit, best, c = argmin()
    assert bounded_locals(unit.body, {}) == {best: (0, 3), c: (1, 3)}


def test_a_counter_has_no_bounds():
    unit, _, c = argmin(counts=True)
    assert bounded_locals(unit.body, {}) == {c: (1, 3)}


def test_an_update_or_a_load_has_no_bounds():
    best, x = S("best"), View("x", dtype=DType.INT32)
    start = Declare(best.sym, const(2))
    assert bounded_locals((start,), {}) == {best.sym: (2, 2)}
    assert bounded_locals((start, Update("+", best.sym, (), const(1))), {}) == {}
    assert bounded_locals((start, Assign(best.sym, x[0].node)), {}) == {}


def test_an_uninitialised_local_is_zero_at_first():
    best = S("best")
    assert bounded_locals((Declare(best.sym, None), Assign(best.sym, const(3))), {}) == {
        best.sym: (0, 3)
    }


def test_a_scalar_that_changes_is_not_what_it_was():
    a, b = S("a"), S("b")
    declared = Declare(b.sym, a.node)
    known = {a.sym: (1, 1)}
    assert bounded_locals((declared,), known) == {b.sym: (1, 1)}
    assert bounded_locals((Assign(a.sym, const(5)), declared), known) == {}


def test_locals_that_feed_each_other():
    a, b = S("a"), S("b")
    swap = (Assign(a.sym, b.node), Assign(b.sym, a.node))
    body = (Declare(a.sym, const(1)), Declare(b.sym, const(4)), *swap)
    assert bounded_locals(body, {}) == {a.sym: (1, 4), b.sym: (1, 4)}
    grow = (Assign(a.sym, (b + 1).node), Assign(b.sym, a.node))
    assert bounded_locals((*body[:2], *grow), {}) == {}


def test_a_place_between_bounds_is_vague_and_never_certain():
    (*_, last, store) = accesses(call(argmin()[0], 8, region(0, 32), region(1, 8)))
    assert last.relation.vague
    assert not (last.exact or last.relation.box)
    low, high = last.relation.indices[0].span(last.relation.ranges)
    assert (low, high) == (0, 7 * 4 + 3)
    assert store.exact
    assert not store.relation.vague


def test_a_place_without_bounds_is_unknown():
    (*_, last, _) = accesses(call(argmin(counts=True)[0], 8, region(0, 32), region(1, 8)))
    assert last.relation.indices == (None,)
    assert not last.relation.vague


def test_a_loop_that_may_begin_beyond_its_type_has_no_bounds():
    start, c = S("start", dtype=DType.INT64), S("c")
    counting = For(c.sym, start.node, const(10), const(1), ())
    assert bounded_locals((counting,), {start.sym: (0, 2**31 - 1)}) == {c.sym: (0, 9)}
    assert bounded_locals((counting,), {start.sym: (0, 2**31)}) == {}
