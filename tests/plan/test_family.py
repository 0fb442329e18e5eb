"""Plans that are taken over from traces of other sizes, and those that must not be."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import pytest

from pyfuser.analysis.dependences import DependenceGraph, dependences
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Workunit
from pyfuser.lower.lower import ScalarType, ViewType, lower
from pyfuser.plan import cost_model, plan_cache
from pyfuser.plan.capabilities import ALL, Capabilities
from pyfuser.plan.legality import reasons
from pyfuser.plan.plan import Plan
from pyfuser.support.caches import Table
from pyfuser.trace.call import Space
from pyfuser.trace.shape import (
    ClusterShape,
    TraceShape,
)
from pyfuser.tuning.host import Machine
from tests.analysis.build import S, View, call, call_on, known, region, trace, when, workunit
from tests.plan.test_scans import scan
from tests.plan.test_sweeps import COPY, NEAR, X, Y
from tests.rewrites import searching
from tests.vendors import tune

planned = searching("coarsen", "enlarge-domain")

DOUBLES, INT, FLOAT = (
    ViewType(DType.FLOAT64, 1),
    ScalarType(DType.INT32),
    ScalarType(DType.FLOAT64),
)


def put(i, x, v):
    x[i] = v


def add(i, x, y):
    y[i] += x[i]


def copy_from(i, x, y, k):
    y[i] = x[i + k]


def mirror(i, x, y):
    y[i] = x[x.extent(0) - 1 - i]


def spread(i, x, y):
    y[2 * i] = x[i]


def total(i, acc, x):
    acc += x[i]


def lowered(function: Callable[..., Any], **types: ViewType | ScalarType) -> Workunit:
    return lower(function, "for", 1, types).workunit


PUT = lowered(put, x=DOUBLES, v=FLOAT)
ADD = lowered(add, x=DOUBLES, y=DOUBLES)
COPY_FROM = lowered(copy_from, x=DOUBLES, y=DOUBLES, k=INT)
MIRROR = lowered(mirror, x=DOUBLES, y=DOUBLES)
SPREAD = lowered(spread, x=DOUBLES, y=DOUBLES)
TOTAL = lower(total, "reduce", 1, {"x": DOUBLES}).workunit


@pytest.fixture(autouse=True)
def analysed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[TraceShape]]:
    """The traces that were looked at closely; nothing is known at the start."""
    seen: list[TraceShape] = []

    plain = plan_cache.plan_anew

    def watched(trace: TraceShape, capabilities: Capabilities) -> tuple[DependenceGraph, Plan]:
        seen.append(trace)
        return plain(trace, capabilities)

    monkeypatch.setattr(plan_cache, "plan_anew", watched)
    monkeypatch.setattr(plan_cache, "FAMILIES", Table("of a test", 99))
    yield seen


def groups(shape: TraceShape) -> list[tuple[int, ...]]:
    shape, _, plan = planned(shape, ALL)
    assert_respects(plan, shape)
    return [group.calls for group in plan.groups]


def assert_respects(plan: Plan, shape: TraceShape) -> None:
    """The plan against what an analysis of these very sizes says."""
    legality = reasons(shape, dependences(shape))
    home = {c: n for n, group in enumerate(plan.groups) for c in group.calls}
    assert sorted(home) == list(range(len(shape.calls)))
    for group in plan.groups:
        for second in group.calls:
            for first in group.calls:
                assert first >= second or legality.may_share_loop(first, second) is None
    for later, before in enumerate(legality.predecessors):
        for first in range(len(shape.calls)):
            assert not before >> first & 1 or home[first] <= home[later]


def chain(n: int) -> TraceShape:
    x, y = region(0, n), region(1, n)
    return trace(call_on(PUT, n, x, 1.0), call_on(ADD, n, x, y), call_on(ADD, n, y, x))


def test_a_size_that_changes_is_analysed_once_for_many(analysed):
    for n in range(1000, 1025):
        assert groups(chain(n)) == [(0, 1, 2)]
    # 1000 alone; then 1001, and 1024 for all of its kind
    assert [s.calls[0].space.end for s in analysed] == [(1000,), (1001,), (1024,)]
    for n in (513, 700, 1023):
        assert groups(chain(n)) == [(0, 1, 2)]
    assert len(analysed) == 3
    for n in (512, 1025):
        assert groups(chain(n)) == [(0, 1, 2)]
    assert len(analysed) == 6  # 512 is a power of two


def test_one_size_is_analysed_once(analysed):
    groups(chain(1000))
    assert len(analysed) == 1


def reach(n: int, k: int) -> TraceShape:
    x, y = region(0, 64), region(1, 64)
    return trace(call_on(PUT, n, x, 1.0), call_on(COPY_FROM, n, x, y, k))


@pytest.mark.parametrize("sizes", [range(20), range(19, -1, -1), (5, 6, 7, 9, 12, 7, 16, 15, 11)])
@pytest.mark.parametrize("k", [8, 12])
def test_a_range_that_grows_into_what_is_read(sizes, k):
    for n in sizes:
        found = groups(reach(n, k))
        if n > k:
            assert found == [(0,), (1,)]
        elif n and n + k <= 64:
            assert found == [(0, 1)], n


def slices(n: int) -> TraceShape:
    low, high = region(0, n), region(0, n, offset=64)
    return trace(call_on(PUT, n, low, 1.0), call_on(ADD, n, high, low), call_on(PUT, n, high, 2.0))


@pytest.mark.parametrize("sizes", [range(20), range(19, -1, -1), (5, 6, 7, 9, 12, 7, 16, 15, 11)])
def test_slices_that_grow_into_each_other(sizes):
    for n in sizes:
        assert (groups(slices(n)) == [(0, 1, 2)]) == (0 < n <= 8) or n == 0


def two_spaces(n: int, m: int) -> TraceShape:
    x, y = region(0, 64), region(1, 64)
    return trace(call_on(PUT, n, x, 1.0), call_on(ADD, m, x, y))


@pytest.mark.parametrize(
    "pairs", [[(9, 9), (10, 10), (11, 11), (11, 12)], [(9, 10), (10, 11), (12, 12), (13, 14)]]
)
def test_spaces_that_differ_share_a_loop_with_guards_alone(pairs, monkeypatch):
    tune(monkeypatch, common=1.0)
    for n, m in pairs:
        assert (groups(two_spaces(n, m)) == [(0, 1)]) == (n == m)
    monkeypatch.undo()
    plan_cache.FAMILIES.clear()
    for n, m in pairs:
        assert groups(two_spaces(n, m)) == [(0, 1)]


def inner(n: int, m: int) -> TraceShape:
    """Over [0, n), then over [1, m)."""
    x, y = region(0, 64), region(1, 64)
    space = Space((1,), (m,))
    return trace(call_on(PUT, n, x, 1.0), call_on(ADD, m, x, y)._replace(space=space))


def test_guarded_plans_are_taken_over(analysed):
    """Each size has its own hull, and the guards of its own boxes."""
    for n, m, so_far in ((29, 28, 2), (27, 26, 6), (28, 27, 6), (24, 23, 7), (25, 26, 8)):
        found, _, plan = planned(inner(n, m), ALL)
        assert [group.calls for group in plan.groups] == [(0, 1)]
        put, add = found.calls
        assert put.space == add.space == Space((0,), (max(n, m),))
        assert put.arguments[2:] == ((known(n),) if n < m else ())
        assert add.arguments[2:] == ((known(1), known(m)) if m < n else (known(1),))
        # With guards and without: the first, the second, and the larger ones that prove it. Without
        # guards only sizes in between are known; and 25:26 has others.
        assert len(analysed) == so_far


@cache
def limited(moving: bool) -> tuple[Workunit, Workunit]:
    """`if i < m: x[i] = 1`, or `x[i + m % 2] = 1`; and `y[i] = x[i + 10]`, or `x[i]`."""
    i, limit, x, y = S("i"), S("m"), View("x"), View("y")
    put = x[i + limit % 2 if moving else i] << 1.0
    return (
        workunit("put", [i], [x, limit], [when(i < limit, [put])]),
        workunit("get", [i], [x, y], [y[i] << x[i if moving else i + 10]]),
    )


def within(m: int, moving: bool = False) -> TraceShape:
    put, get = limited(moving)
    x, y = region(0, 64), region(1, 64)
    return trace(call(put, 20, x, known(m)), call(get, 20, x, y))


@pytest.mark.parametrize("ends", [range(20), range(19, -1, -1), (5, 6, 7, 9, 12, 7, 16, 15, 11)])
def test_guards_that_grow_into_what_is_read(ends):
    """A plan without them would hold for smaller ends alone."""
    for m in ends:
        assert (groups(within(m)) == [(0, 1)]) == (m <= 10), m


def test_ends_of_guards_are_sizes(analysed):
    for m in (13, 14, 15, 14):
        groups(within(m))
    assert len(analysed) == 3  # the first, the second, and 16, which proves it


def test_what_does_more_than_end_a_guard_is_no_size(analysed):
    for m in (12, 14, 15, 13):
        assert (groups(within(m, moving=True)) == [(0, 1)]) == (m % 2 == 0), m
    assert len(analysed) == 4


def test_sums_are_not_taken_into_larger_hulls():
    """The box of a sum was the hull where the plan was proved, and is not for all sizes."""
    x = region(0, 64)

    def summed(n: int, m: int) -> TraceShape:
        put = call_on(PUT, n, x, 1.0)._replace(space=Space((1,), (n,)))
        return trace(put, call(TOTAL, m, x, pattern="reduce"))

    for n, m, together in ((29, 31, True), (27, 30, True), (26, 28, True), (27, 25, False)):
        assert (groups(summed(n, m)) == [(0, 1)]) is together, (n, m)


def test_which_spaces_are_equal_belongs_to_the_structure(analysed):
    def three(*sizes: int) -> TraceShape:
        x, y = region(0, 64), region(1, 64)
        functions = (PUT, x, 1.0), (ADD, x, y), (ADD, y, x)
        calls = [call_on(f, n, *rest) for n, (f, *rest) in zip(sizes, functions, strict=True)]
        return trace(*calls)

    for n in range(11, 15):
        assert groups(three(n, n, n + 10)) == [(0, 1), (2,)]
    assert len(analysed) == 3  # of four: the last is proved
    assert groups(three(14, 24, 24)) == [(0,), (1, 2)]


def mirrored(n: int) -> TraceShape:
    x, y = region(0, n), region(1, 64)
    return trace(call_on(PUT, 6, x, 1.0), call_on(MIRROR, 6, x, y))


@pytest.mark.parametrize("sizes", [(13, 14, 15, 12, 11, 10, 9), (16, 15, 9, 10, 12, 8)])
def test_what_asks_for_extents_is_analysed_for_each(sizes, analysed):
    for n in sizes:
        before = len(analysed)
        assert (groups(mirrored(n)) == [(0, 1)]) == (n >= 11), n
        assert len(analysed) == before + 1


def test_scalars_in_subscripts_belong_to_the_structure(analysed):
    for k in (40, 41, 2, 42):
        assert (groups(reach(10, k)) == [(0, 1)]) == (k > 9)
    assert len(analysed) == 4


@pytest.fixture
def small_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose cache does not hold a million numbers."""
    monkeypatch.setattr(cost_model, "machine_for", lambda trace: Machine(cache=1 << 20))


MILLION = 1_000_000
SCAN = scan(X, Y).workunit


def sweeping(n: int, follower: Callable[..., Any], where: int = 0) -> bool:
    """Whether a scan and a map of what it wrote, or what lies behind that, share a launch."""
    space = Space((2,), (n - 2,))
    x, y, z = (region(k, n) for k in range(3))
    other = region(1, n, offset=8 * where)
    shape = trace(call(SCAN, space, x, y, pattern="scan"), follower(other, z, space))
    shape, _, plan = planned(shape, ALL)
    assert_respects(plan, shape)
    return [sweep.groups for sweep in plan.sweeps] == [(0, 1)]


@pytest.mark.usefixtures("small_cache")
def test_loops_beside_a_scan_are_analysed_once_for_many_sizes(analysed):
    for n in range(MILLION, MILLION + 20):
        assert sweeping(n, COPY)
    assert len(analysed) == 3
    assert sweeping((1 << 20) + 1, COPY)
    assert len(analysed) == 5


@pytest.mark.usefixtures("small_cache")
def test_loops_beside_a_scan_that_grow_into_each_other(analysed):
    apart = MILLION + 4
    for n in (MILLION, MILLION + 1, apart + 3, apart + 5, apart + 6, apart + 3, apart + 5):
        # from y[2] to y[n - 3]; the other one begins with y[apart + 2]
        assert sweeping(n, COPY, apart) == (n - 3 < apart + 2)


@pytest.mark.usefixtures("small_cache")
def test_sweeps_at_a_distance_are_analysed_for_each_size(analysed):
    for n in range(MILLION, MILLION + 5):
        space = Space((2,), (n - 2,))
        x, y, z = (region(k, n) for k in range(3))
        plan = planned(trace(NEAR(x, y, space), NEAR(y, z, space)), ALL)[2]
        assert [sweep.groups for sweep in plan.sweeps] == [(0, 1)]
    assert len(analysed) == 5


def test_random_sizes_of_random_programs():
    chance = random.Random(5)
    for _ in range(150):
        make = program(chance)
        for _ in range(8):
            groups(make(chance.choice((3, 9, 17, 33)) + chance.randrange(8)))


def program(chance: random.Random) -> Callable[[int], TraceShape]:
    """A few calls on slices of two buffers, as a function of one size."""
    choices: list[Sequence[int]] = [
        tuple(chance.randrange(k) for k in (5, 2, 2, 3, 3, 2, 20, 3))
        for _ in range(chance.randrange(2, 6))
    ]

    def make(n: int) -> TraceShape:
        calls = []
        for kind, a, b, start, other, extra, k, cut in choices:
            x = region(a, n + extra, offset=64 * start)
            y = region(b, 2 * n if kind == 4 else n, offset=40 * other)
            length = n - cut
            if kind == 0:
                calls.append(call_on(PUT, length, x, 1.0))
            elif kind == 1:
                calls.append(call_on(ADD, length, x, y))
            elif kind == 2:
                calls.append(call_on(COPY_FROM, length, x, y, k))
            else:
                calls.append(call_on(MIRROR if kind == 3 else SPREAD, length, x, y))
        shapes = [c for c in calls if c.space.size >= 0]
        return TraceShape(tuple(shapes), (ClusterShape(False, False),) * 2)

    return make
