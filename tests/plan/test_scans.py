"""Which maps share a launch with a scan: each legal case with its illegal twin."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Accumulator,
    AtomicFetch,
    Call,
    Const,
    Declare,
    Eval,
    If,
    Read,
    Store,
    Update,
)
from pyfuser.plan.plan import SCAN_TILE
from pyfuser.trace.call import Space
from pyfuser.trace.shape import FutureShape
from pyfuser.tuning.host import Machine
from tests.analysis.build import S, View, call, known, loop, region, workunit
from tests.plan.test_sweeps import (
    COPY,
    INNER,
    LEFT,
    MACHINE,
    NEAR,
    N,
    W,
    X,
    Y,
    Z,
    planned,
    summed,
    why,
)

PLACES = region(5, N, dtype=DType.INT32)


def scan(source, target, space=INNER, shift=0, dtype=DType.FLOAT64):
    """`acc += x[i + shift]`, kept in `out[i]`."""
    i, x, out = S("i"), View("x", dtype=dtype), View("out", dtype=dtype)
    acc, last = S("acc", dtype), S("last", DType.BOOL)
    keep = Store(out.sym, (i.node,), Read(acc.sym))
    body = [Update("+", acc.sym, (), x[i + shift].node), If(Read(last.sym), (keep,), ())]
    unit = workunit("scan", [i], [x, out], body, [Accumulator(acc.sym, last.sym)])
    return call(unit, space, source, target, pattern="scan")


def packed(source, target, space=INNER):
    """`y[k[i]] = x[i]`, by the sums of a scan."""
    i, x, y, k = S("i"), View("x"), View("y"), View("k", dtype=DType.INT32)
    unit = workunit("pack", [i], [x, y, k], [y[k[i]] << x[i]])
    return call(unit, space, source, target, PLACES)


def together(*calls, **options):
    """Whether all calls share a launch."""
    found = planned(*calls, **options)
    if [sweep.groups for sweep in found] != [tuple(range(len(calls)))]:
        return False
    (sweep,) = found
    assert sweep.wave == SCAN_TILE and not sweep.rolling
    assert all(stage.lag == stage.ahead == 0 for stage in sweep.stages)
    return True


def test_maps_before_and_after():
    assert together(COPY(X, Y), scan(Y, Z))
    assert together(scan(X, Y), COPY(Y, Z))
    assert together(COPY(X, Y), scan(Y, Z), COPY(Z, W))


def test_no_iteration_may_need_another_one():
    """Tiles run in any order, so even one step of a sweep is too far."""
    assert not together(LEFT(X, Y), scan(Y, Z, shift=1))
    assert not together(COPY(X, Y), scan(Y, Z, shift=1))
    assert not together(scan(X, Y), NEAR(Y, Z))
    assert not together(COPY(X, Y), scan(Y, Z), LEFT(Y, W))  # not of the scan's, but of a map's
    assert together(NEAR(X, Y), scan(Y, Z), NEAR(X, W))  # of what nobody writes
    assert "no iteration can use values of another" in why(scan(X, Y), NEAR(Y, Z))


def test_anti_and_output_dependences():
    assert together(NEAR(X, Y), scan(Y, Z))
    assert not together(NEAR(X, Y), scan(Y, X))  # the sums overwrite what neighbours read
    assert together(scan(X, Y), COPY(Z, X))
    assert not together(scan(X, Y, shift=1), COPY(Z, X))


def test_elements_named_by_the_sums():
    whole = scan(region(6, N, dtype=DType.INT32), PLACES, dtype=DType.INT32)
    assert together(whole, packed(X, Y))
    assert together(COPY(Z, X), whole, packed(X, Y))
    assert not together(COPY(Z, Y), whole, packed(X, Y))  # two loops write there
    assert not together(whole, packed(X, Y), COPY(Y, Z))


def test_one_space():
    other = Space((3,), (N - 4,))
    assert not together(COPY(X, Y, other), scan(Y, Z))
    assert not together(COPY(X, W), scan(Y, Z, other))
    assert "the same range" in why(COPY(X, W), scan(Y, Z, other))
    serial = Space((3,), (N - 3,), "Serial")
    assert not together(COPY(X, Y), scan(Y, Z, serial))
    assert together(COPY(X, Y, serial), scan(Y, Z, serial))


def test_one_scan_and_no_sums():
    assert not together(scan(X, Y), scan(Z, W))
    assert "two scans" in why(scan(X, Y), scan(Z, W))
    assert not together(summed()(X), scan(X, Y))
    assert "only a parallel_for can" in why(summed()(X), scan(X, Y))
    calls = COPY(X, Y), scan(Y, Z), COPY(Z, W), scan(W, X)
    assert [sweep.groups for sweep in planned(*calls)] == [(0, 1, 2)]


def test_effects_forbid():
    i, x = S("i"), View("x")
    shows = workunit("shows", [i], [x], [Eval(Call("printf", (x[i].node,), DType.INT32))])
    assert not together(call(shows, INNER, X), scan(X, Y))
    plain = scan(X, Y)
    text = Eval(Call("printf", (), DType.INT32))
    unit = replace(plain.workunit, body=(*plain.workunit.body, text))
    loud = plain._replace(workunit=unit)
    assert not together(COPY(Z, X), loud)


def test_a_scan_writes_in_its_last_pass_only():
    """What the first pass writes, too, is written twice by some tiles."""
    plain = scan(X, Y)
    add, keep = plain.workunit.body
    assert isinstance(keep, If)
    both = If(keep.condition, (), keep.then)  # if not last
    out = plain.workunit.params[1].sym
    old = AtomicFetch("+", out, (Const(0, DType.INT32),), Const(1.0, DType.FLOAT64))
    fetch = Declare(S("old", DType.FLOAT64).sym, old)
    deep = If(Const(True, DType.BOOL), (keep,), ())
    for body, expected in [
        ((add, keep), True),
        ((add, deep), True),
        ((add, *keep.then), False),
        ((add, both), False),
        ((add, If(Const(True, DType.BOOL), keep.then, ())), False),
        ((add, loop(S("k"), 0, 2, keep.then)), False),
        ((add, loop(S("k"), 0, 2, ()), keep), True),
        ((add, fetch, keep), False),
        ((add, If(keep.condition, (fetch,), ()), keep), True),
    ]:
        changed = plain._replace(workunit=replace(plain.workunit, body=body))
        assert together(COPY(Z, X), changed) is expected


def test_a_later_loop_may_not_take_the_sum():
    i, x, a = S("i"), View("x"), S("a", DType.FLOAT64)
    scale = workunit("scale", [i], [x, a], [x[i].update("*", a)])
    assert together(scan(X, Y), call(scale, INNER, Z, known(None, DType.FLOAT64)))
    assert not together(scan(X, Y), call(scale, INNER, Z, FutureShape(DType.FLOAT64, 0)))


@pytest.mark.parametrize(
    ("cache", "expected"), [(1 << 23, False), (1 << 20, True), (1 << 16, False)]
)
def test_a_tile_must_fit_and_the_arrays_must_not(cache, expected):
    machine = Machine(cache=cache)
    calls = COPY(X, Y), scan(Y, Z), COPY(Z, W)
    assert together(*calls, machine=machine) is expected


def test_what_one_loop_alone_touches_may_be_large():
    whole = scan(region(6, N, dtype=DType.INT32), PLACES, dtype=DType.INT32)
    assert together(whole, packed(X, Y), machine=MACHINE)
    table = packed(X, Y)
    i, y, k = S("i"), View("y"), View("k", dtype=DType.INT32)
    again = workunit("again", [i], [y, k, z := View("z")], [z[i] << y[k[i]]])
    read = call(again, INNER, X, PLACES, W)  # X is then needed all the time
    assert not together(whole, read, packed(X, Y), machine=MACHINE)
    assert together(whole, table, machine=MACHINE)
