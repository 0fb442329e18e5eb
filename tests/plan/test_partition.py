"""Legality, cost and the choice of groups."""

import itertools
import random

import pytest

from pyfuser.analysis.dependences import dependences
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Accumulator, Call, Eval, Update
from pyfuser.plan import partition as partition_module
from pyfuser.plan.cost_model import CostModel, bytes_moved, group_cost
from pyfuser.plan.legality import reasons
from pyfuser.plan.partition import MAX_SCALARS, partition
from pyfuser.plan.refine_partition import moved
from pyfuser.trace.call import Space
from pyfuser.trace.shape import FutureShape, TraceShape
from pyfuser.tuning.host import Machine
from tests.analysis.build import S, View, call, known, loop, region, trace, when, workunit
from tests.vendors import tune

N = 100_000
V = [region(k, N) for k in range(60)]


def one_by_one(name="map", shift=0):
    i, x, y = S("i"), View("x"), View("y")
    return workunit(name, [i], [x, y], [y[i] << 2.0 * x[i + shift]])


MAP, NEXT = one_by_one(), one_by_one("next", 1)
INNER = Space((0,), (N - 1,))


def total(op="+", read=False):
    i, x, acc = S("i"), View("x"), S("acc", DType.FLOAT64)
    value = acc + x[i] if read else x[i]
    return workunit("sum", [i], [x], [Update(op, acc.sym, (), value.node)], [Accumulator(acc.sym)])


def scaled():
    i, x, a = S("i"), View("x"), S("a", DType.FLOAT64)
    return workunit("scaled", [i], [x, a], [x[i].update("*", a)])


def plan(shape: TraceShape):
    return partition(shape, dependences(shape))


def groups(*calls, temporary=()):
    return [g.calls for g in plan(trace(*calls, temporary=temporary)).groups]


def why(first, second):
    shape = trace(first, second)
    rejection = reasons(shape, dependences(shape)).may_share_loop(0, 1)
    return rejection and rejection.reason


# --------------------------------------------------------------------------- legality


def test_reasons():
    a_map = call(MAP, INNER, V[0], V[1])
    assert why(a_map, call(MAP, INNER, V[1], V[2])) is None
    assert why(a_map, call(NEXT, INNER, V[1], V[2])) == "flow"
    assert why(call(NEXT, INNER, V[1], V[2]), call(MAP, INNER, V[0], V[1])) == "anti"
    assert why(a_map, call(MAP, N - 2, V[1], V[2])) == "space"
    device = Space((0,), (N - 1,), "Cuda")
    assert why(a_map, call(MAP, device, V[1], V[2])) == "space"


def test_patterns():
    a_map = call(MAP, INNER, V[0], V[1])
    a_sum = call(total(), INNER, V[1], pattern="reduce")
    assert why(a_map, a_sum) is None
    assert why(a_sum, call(total(), INNER, V[0], pattern="reduce")) is None
    assert why(a_map, call(total("max"), INNER, V[1], pattern="reduce")) == "pattern"
    assert why(a_map, call(total(read=True), INNER, V[1], pattern="reduce")) == "pattern"
    assert why(a_map, call(MAP, INNER, V[1], V[2], pattern="scan")) == "pattern"


def test_a_result_that_a_later_call_takes():
    a_sum = call(total(), INNER, V[0], pattern="reduce")
    uses = call(scaled(), INNER, V[5], FutureShape(DType.FLOAT64, 0))
    assert why(a_sum, uses) == "scalar"
    assert why(a_sum, call(scaled(), INNER, V[5], known(None, DType.FLOAT64))) is None
    # The second sum reads what `uses` writes: it cannot move up to the first.
    assert groups(a_sum, uses, call(total(), INNER, V[5], pattern="reduce")) == [(0,), (1, 2)]


def test_effects_keep_their_order_and_stay_alone():
    i, x = S("i"), View("x")
    body = [Eval(Call("printf", (x[i].node,), DType.INT32))]
    shows = call(workunit("shows", [i], [x], body), INNER, V[0])
    assert why(shows, call(MAP, INNER, V[1], V[2])) == "opaque"
    other = call(workunit("shows", [i], [x], body), 5, V[9])
    assert groups(shows, other, shows) == [(0,), (1,), (2,)]


def test_unknown_access():
    i, x, y, k = S("i"), View("x"), View("y"), View("k", dtype=DType.INT32)
    gather = workunit("gather", [i], [x, y, k], [y[i] << x[k[i]]])
    picks = region(3, N, dtype=DType.INT32)
    written, fresh = call(MAP, INNER, V[0], V[1]), call(MAP, INNER, V[0], V[4])
    assert why(written, call(gather, INNER, V[1], V[2], picks)) == "unknown-access"
    assert why(fresh, call(gather, INNER, V[1], V[2], picks)) is None


# --------------------------------------------------------------------------- profit


def test_fusing_saves_the_launch_and_the_second_read():
    shape = trace(call(MAP, N, V[0], V[1]), call(MAP, N, V[1], V[2]))
    one = 8 * N
    assert bytes_moved(shape, (0,)) == 3 * one  # a store reads the line first
    assert bytes_moved(shape, (0, 1)) == 5 * one
    assert group_cost(shape, (0, 1)) < group_cost(shape, (0,)) + group_cost(shape, (1,))


def test_a_temporary_is_free_only_inside_one_group():
    chain = [call(MAP, N, V[0], V[1]), call(MAP, N, V[1], V[2])]
    one = 8 * N
    assert bytes_moved(trace(*chain, temporary=[1]), (0, 1)) == 3 * one
    assert bytes_moved(trace(*chain, temporary=[1]), (0,)) == 3 * one
    later = [*chain, call(MAP, N, V[1], V[3])]
    assert bytes_moved(trace(*later, temporary=[1]), (0, 1)) == 5 * one
    shifted = [chain[0], call(NEXT, INNER, V[1], V[2])]
    assert bytes_moved(trace(*shifted, temporary=[1]), (0, 1)) > 4.9 * one


def test_crowding_splits_what_shares_nothing():
    big = [region(k, 40_000_000) for k in range(40)]
    calls = [call(MAP, 40_000_000, big[2 * k], big[2 * k + 1]) for k in range(12)]
    shape = trace(*calls)
    assert len(plan(shape).groups) > 1
    small = [call(MAP, 1000, region(2 * k, 1000), region(2 * k + 1, 1000)) for k in range(12)]
    assert len(plan(trace(*small)).groups) == 1


# --------------------------------------------------------------------------- partition


def test_a_chain_is_one_group():
    assert groups(*(call(MAP, N, V[k], V[k + 1]) for k in range(8))) == [tuple(range(8))]


def test_independent_calls_move_past_a_barrier():
    calls = [
        call(MAP, INNER, V[0], V[1]),
        call(NEXT, INNER, V[1], V[2]),  # not with 0
        call(MAP, INNER, V[0], V[3]),  # with either
    ]
    assert groups(*calls) in ([(0, 2), (1,)], [(0,), (1, 2)])


def test_no_cycle_through_another_group():
    # 0 and 2 could share a loop, but 1, of another space, comes between them.
    calls = [
        call(MAP, N, V[0], V[1]),
        call(MAP, N - 1, V[1], V[2]),
        call(MAP, N, V[2], V[3]),
    ]
    result = plan(trace(*calls))
    assert [g.calls for g in result.groups] == [(0,), (1,), (2,)]
    independent = [calls[0], call(MAP, N - 1, V[7], V[8]), calls[2]]
    assert sorted(groups(*independent)) == [(0, 2), (1,)]


def test_the_choice_follows_the_bytes():
    # 2 may go with 0 or with 1; with 1 it saves reading the large array.
    wide = region(9, 1000 * N, strides=(8,))
    i, x, y, s = S("i"), View("x"), View("y"), S("s")
    unit = workunit("strided", [i], [x, y, s], [y[i] << x[i]])
    size = 1000 * N
    outs = [region(20 + k, size) for k in range(4)]
    calls = [
        call(unit, size, region(30, size), outs[0], known(None)),
        call(NEXT, Space((0,), (size,)), outs[0], outs[1]),
        call(unit, size, wide, outs[2], known(None)),
        call(unit, size, outs[1], outs[3], known(None)),
    ]
    assert wide in calls[2].arguments
    assert any(set(g) >= {1, 3} for g in groups(*calls))


def test_limits():
    tiny = [call(MAP, 10, region(2 * k, 10), region(2 * k + 1, 10)) for k in range(50)]
    sizes = [len(g) for g in groups(*tiny)]
    assert max(sizes) <= partition_module.MAX_VIEWS // 2 and sum(sizes) == 50
    same = [call(MAP, 10, region(0, 10), region(1, 10))] * 100
    assert max(len(g) for g in groups(*same)) <= partition_module.MAX_CALLS


@pytest.mark.parametrize(("scalars", "kernels"), [(MAX_SCALARS, 1), (MAX_SCALARS + 1, 2)])
def test_scalars_have_a_limit_of_their_own(scalars, kernels):
    scale = call(scaled(), INNER, V[0], known(None, DType.FLOAT64))
    i, x, a, b = S("i"), View("x"), S("a", DType.FLOAT64), S("b", DType.FLOAT64)
    twice = workunit("twice", [i], [x, a, b], [x[i].update("*", a), x[i].update("*", b)])
    both = call(twice, INNER, V[0], known(None, DType.FLOAT64), known(None, DType.FLOAT64))
    found = groups(*[both] * (scalars // 2), *[scale] * (scalars % 2))
    assert len(found) == kernels


def test_a_complex_scalar_counts_twice():
    i, x, a = S("i"), View("x", dtype=DType.COMPLEX128), S("a", DType.COMPLEX128)
    unit = workunit("scaled", [i], [x, a], [x[i].update("*", a)])
    memory = region(0, N, dtype=DType.COMPLEX128)
    scale = call(unit, INNER, memory, known(None, DType.COMPLEX128))
    half = MAX_SCALARS // 2
    assert len(groups(*[scale] * half)) == 1
    assert len(groups(*[scale] * (half + 1))) == 2


def test_rejections_name_the_access():
    result = plan(trace(call(MAP, INNER, V[0], V[1]), call(NEXT, INNER, V[1], V[2])))
    (rejection,) = result.rejections
    assert (rejection.first, rejection.second, rejection.reason) == (0, 1, "flow")
    assert rejection.dependence is not None
    assert (rejection.dependence.first_view, rejection.dependence.second_view) == ("y", "x")


# --------------------------------------------------------------------------- against brute force


def of_rows(name, by_column, shift=0, extent=40):
    """`y[i, k] = 2 x[i + shift, k]` over k, or the same of columns `x[k, i]`."""
    i, k, x, y = S("i"), S("k"), View("x", 2), View("y", 2)
    to, source = (y[k, i], x[k, i + shift]) if by_column else (y[i, k], x[i + shift, k])
    return workunit(name, [i], [x, y], [loop(k, 0, extent, [to << 2.0 * source])])


@pytest.mark.parametrize(
    ("shift", "extent", "inside"), [(0, 40, True), (1, 40, False), (0, 300, False)]
)
@pytest.mark.parametrize("by_column", [False, True])
def test_rows_and_columns_that_pass_within_iterations_need_no_memory(
    by_column, shift, extent, inside
):
    a, t, b = (region(k, (extent, N) if by_column else (N, extent)) for k in range(3))
    calls = [
        call(of_rows("first", by_column, 0, extent), INNER, a, t),
        call(of_rows("second", by_column, shift, extent), INNER, t, b),
    ]
    moved = bytes_moved(trace(*calls, temporary=[1]), [0, 1])
    assert moved == 8 * extent * (N - 1) * (3 if inside else 5)


def random_trace(rng, size):
    spaces = [INNER, INNER, INNER, Space((0,), (N - 2,))]
    calls = []
    for _ in range(size):
        a, b = rng.sample(range(5), 2)
        calls.append(call(rng.choice([MAP, MAP, NEXT]), rng.choice(spaces), V[a], V[b]))
    return trace(*calls, temporary=[4])


def set_partitions(items):
    if not items:
        yield []
        return
    first, *rest = items
    for smaller in set_partitions(rest):
        yield [[first], *smaller]
        for k in range(len(smaller)):
            yield [*smaller[:k], [first, *smaller[k]], *smaller[k + 1 :]]


def is_legal(shape, parts):
    """All pairs compared anew, and an order of the parts that respects every conflict."""
    home = {c: n for n, part in enumerate(parts) for c in part}
    edges = set()
    for a, b in itertools.combinations(range(len(shape.calls)), 2):
        pair = TraceShape((shape.calls[a], shape.calls[b]), shape.clusters)
        graph = dependences(pair)
        if home[a] == home[b]:
            if reasons(pair, graph).may_share_loop(0, 1):
                return False
        elif graph.dependences:
            edges.add((home[a], home[b]))
    waiting = set(range(len(parts)))
    while waiting:
        free = {n for n in waiting if not any(e == n and s in waiting for s, e in edges)}
        if not free:
            return False
        waiting -= free
    return True


def in_order(shape, parts):
    place = {c: n for n, part in enumerate(parts) for c in part}
    return all(place[d.source] <= place[d.sink] for d in dependences(shape).dependences)


@pytest.mark.parametrize("seed", range(12))
def test_exact_search_finds_the_best(seed):
    shape = random_trace(random.Random(seed), 5)
    model = CostModel(shape)
    best = min(
        sum(model.cost(sorted(part)) for part in parts)
        for parts in set_partitions(list(range(5)))
        if is_legal(shape, parts)
    )
    chosen = [g.calls for g in plan(shape).groups]
    assert is_legal(shape, chosen) and in_order(shape, chosen)
    assert sum(model.cost(part) for part in chosen) == pytest.approx(best)


@pytest.mark.parametrize("seed", range(4))
def test_greedy_is_legal(seed, monkeypatch):
    tune(monkeypatch, exact_calls=0)
    shape = random_trace(random.Random(seed), 24)
    chosen = [g.calls for g in plan(shape).groups]
    assert sorted(c for part in chosen for c in part) == list(range(24))
    assert is_legal(shape, chosen) and in_order(shape, chosen)


# --------------------------------------------------------------------------- moves


def cost(shape: TraceShape, parts):
    return sum(CostModel(shape).cost(tuple(part)) for part in parts)


def regrouped(shape: TraceShape, parts):
    legality = reasons(shape, dependences(shape))
    return moved(
        parts, legality.compatible, legality.predecessors, CostModel(shape), lambda _: True
    )


def solver_step():
    """x += alpha p; r -= alpha ap; rr = r . r; p = r + beta p, the last with the sum's result."""
    i, a, x, y = S("i"), S("a", DType.FLOAT64), View("x"), View("y")
    add = workunit("add", [i], [x, y, a], [x[i].update("+", a * y[i])])
    direction = workunit("direction", [i], [x, y, a], [y[i] << x[i] + a * y[i]])
    p, r, ap, to = V[:4]
    alpha = known(None, DType.FLOAT64)
    return trace(
        call(add, INNER, to, p, alpha),
        call(add, INNER, r, ap, alpha),
        call(total(), INNER, r, pattern="reduce"),
        call(direction, INNER, r, p, FutureShape(DType.FLOAT64, 2)),
    )


def test_a_call_moves_to_where_its_data_is_used(monkeypatch):
    """Behind a sum of which only the last call needs the result."""
    shape = solver_step()
    assert regrouped(shape, [(0, 1, 2), (3,)]) == [(1, 2), (0, 3)]
    tune(monkeypatch, exact_calls=0)
    assert [g.calls for g in plan(shape).groups] == [(1, 2), (0, 3)]


def test_no_call_moves_where_it_may_not():
    shape = solver_step()
    first, second, third, fourth = shape.calls
    other = trace(first._replace(space=Space((0,), (N,))), second, third, fourth)
    assert regrouped(other, [(0,), (1, 2), (3,)]) == [(0,), (1, 2), (3,)]


@pytest.mark.parametrize("seed", range(30))
def test_moves_are_legal_and_save(seed):
    rng = random.Random(seed)
    shape = random_trace(rng, 9)
    every = [(n,) for n in range(9)]
    parts = list(every)
    for _ in range(20):  # any legal groups, joined at random
        a, b = rng.sample(range(len(parts)), 2)
        joined = [p for n, p in enumerate(parts) if n not in (a, b)]
        joined.append(tuple(sorted(parts[a] + parts[b])))
        if len(joined) > 1 and is_legal(shape, joined):
            parts = joined
    found = regrouped(shape, parts)
    assert sorted(c for part in found for c in part) == list(range(9))
    assert is_legal(shape, found)
    assert cost(shape, found) <= cost(shape, parts)


def test_some_moves_save(monkeypatch):
    """The greedy alone is beaten, and never better."""
    gains = []
    for seed in range(15):
        shape = random_trace(random.Random(seed), 20)
        tune(monkeypatch, exact_calls=0)
        better = cost(shape, [g.calls for g in plan(shape).groups])
        with monkeypatch.context() as patch:
            patch.setattr(partition_module, "moved", lambda groups, *_: groups)
            gains.append(cost(shape, [g.calls for g in plan(shape).groups]) - better)
    assert min(gains) >= 0.0 and sum(gain > 0.0 for gain in gains) > 2


def test_long_traces_plan_fast_and_without_isl(monkeypatch):
    def never(*_):
        raise AssertionError("isl was asked")

    monkeypatch.setattr("pyfuser.analysis.polyhedra.is_empty", never)
    i, u, v = S("i"), View("u"), View("v")
    stencil = workunit("stencil", [i], [u, v], [v[i] << u[i - 1] + u[i + 1]])
    inner = Space((1,), (N - 1,))
    steps = [call(stencil, inner, V[k % 2], V[1 - k % 2]) for k in range(256)]
    rows = [call(MAP, 10, region(5, 10), region(6, 10, offset=80 * k)) for k in range(256)]
    result = plan(trace(*steps, *rows))
    assert sum(len(g.calls) == 1 for g in result.groups) == 256
    assert len(result.groups) < 256 + 10


# --------------------------------------------------------------------------- long inner loops


def row_products(trips=400, guard=False):
    """Of a table in cache, so that arithmetic takes longer than memory."""
    i, k, x, w, y = S("i"), S("k"), View("x"), View("w"), View("y")
    loops = [loop(k, 0, trips, [y[i].update("+", x[i] * w[k])])]
    body = [when(i > 0, loops)] if guard else loops
    return workunit("product", [i], [x, w, y], body)


@pytest.mark.parametrize(("trips", "together"), [(400, False), (16, True), (0, True)])
def test_products_of_long_rows_keep_their_loops(trips, together):
    """Alone their inner loops are blocked; what sharing one saves is a small part of their time."""
    table = region(50, 400)
    calls = [call(row_products(trips), N, V[0], table, V[n]) for n in (1, 2)]
    assert groups(*calls) == ([(0, 1)] if together else [(0,), (1,)])


def test_long_loops_that_wait_for_memory_share_theirs():
    i, k, x, y = S("i"), S("k"), View("x", 2), View("y", 2)
    walk = workunit("walk", [i], [x, y], [loop(k, 0, 400, [y[i, k] << x[i, k] * 2.0])])
    x, y, z = (region(n, (5_000, 400)) for n in (50, 51, 52))
    assert groups(call(walk, 5_000, x, y), call(walk, 5_000, y, z)) == [(0, 1)]


def test_loops_under_conditions_count_as_little_as_they_may_run():
    table = region(50, 400)
    calls = [call(row_products(guard=True), N, V[0], table, V[n]) for n in (1, 2)]
    assert groups(*calls) == [(0, 1)]


def test_what_long_loops_lose_is_a_number_of_the_machine():
    table = region(50, 400)
    shape = trace(*(call(row_products(), N, V[0], table, V[n]) for n in (1, 2)))
    free = CostModel(shape, Machine(looping=0.0))
    slow = CostModel(shape, Machine(looping=0.5))
    assert free.cost((0, 1)) < free.cost((0,)) + free.cost((1,))
    assert slow.cost((0, 1)) > slow.cost((0,)) + slow.cost((1,))
    assert slow.cost((0,)) == free.cost((0,))
    assert slow.sweep_cost((0, 1), frozenset()) > free.sweep_cost((0, 1), frozenset())
    assert slow.sweep_cost((0,), frozenset()) == free.sweep_cost((0,), frozenset())
