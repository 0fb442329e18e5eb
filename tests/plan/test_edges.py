"""Calls over edges of grids: which have a place among the rows of a sweep, and which do not."""

from __future__ import annotations

import pytest

from pyfuser.analysis.distances import call_distance
from pyfuser.ir.nodes import Accumulator, Assign, Call, Eval, Update
from pyfuser.ir.verify import verify
from pyfuser.plan.capabilities import ALL, Capabilities
from pyfuser.plan.plan import Declined
from pyfuser.plan.rewrites.embed_boundary import (
    MAX_RANK,
    Placed,
    may_place,
    placed_call,
    targets,
)
from pyfuser.plan.single_rows import REACH, far_rows
from pyfuser.trace.call import Space
from tests.analysis.build import (
    S,
    View,
    call,
    known,
    let,
    loop,
    region,
    trace,
    when,
    workunit,
)
from tests.rewrites import searching

N, M = 2000, 1600
U, V = (region(k, (N, M)) for k in range(2))
INNER = Space((1, 1), (N - 1, M - 1))


def step(source=U, sink=V, space=INNER):
    i, j, x, y = S("i"), S("j"), View("x", 2), View("y", 2)
    value = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]
    return call(workunit("step", [i, j], [x, y], [y[i, j] << value]), space, source, sink)


def edge(*rows, where=V, space=(M,), make=None):
    """`x[target, j] = x[source, j]` for some rows, in one workunit."""
    j, x = S("j"), View("x", 2)
    body = [x[target, j] << x[source, j] for target, source in rows]
    return call(workunit("edge", [j], [x], make(j, x) if make else body), space, where)


def column(target, source, where=V):
    i, x = S("i"), View("x", 2)
    return call(workunit("column", [i], [x], [x[i, target] << x[i, source]]), N, where)


NAMES = "coarsen", "enlarge-domain", "embed-boundary"
planned = searching(*NAMES)


def sweeps_of(*calls, **options):
    """The plan, and how many calls its sweeps have."""
    _, _, plan = planned(trace(*calls), **({"capabilities": ALL} | options))
    return plan, [sum(len(plan.groups[g].calls) for g in s.groups) for s in plan.sweeps]


TOP, BOTTOM = edge((0, 1)), edge((N - 1, N - 2))
SIDES = column(0, 1), column(M - 1, M - 2)


def steps(*between):
    """Three steps, back and forth, and the calls between them on what was written."""
    other = [c._replace(arguments=(U, *c.arguments[1:])) for c in between]
    return step(U, V), *between, step(V, U), *other, step(U, V), *between


# --------------------------------------------------------------------------- places


def test_edges_join_the_sweep_of_the_steps():
    plan, swept = sweeps_of(*steps(TOP, BOTTOM, *SIDES))
    assert swept == [15]
    assert plan.of(Placed)[:2] == (Placed(1, (1,), 1), Placed(2, (N - 2,), 1))
    assert len(plan.of(Placed)) == 6
    # No edge makes the steps lag more than they do alone, but for the corners.
    assert max(stage.lag for stage in plan.sweeps[0].stages) <= 3


@pytest.mark.parametrize("wanted", [{"sweeps": False}, {}])
def test_only_where_there_are_sweeps(wanted):
    plan, swept = sweeps_of(*steps(TOP), capabilities=Capabilities(**wanted))
    assert (swept == [6]) == (not wanted) == bool(plan.of(Placed))


def test_edges_alone_and_small_grids_stay_as_they_are():
    assert not sweeps_of(TOP, BOTTOM)[0].of(Placed)
    assert not targets(trace(TOP, BOTTOM, TOP))
    small = [region(k, (90, 80)) for k in range(2)]
    calls = [step(*small, space=Space((1, 1), (89, 79))), edge((0, 1), where=small[1], space=(80,))]
    assert targets(trace(*calls)) and not sweeps_of(*calls)[0].of(Placed)


@pytest.mark.parametrize("rows", [(0, 1), (1, 0), (0, 3), (N - 1, N - 2), (N - 3, N - 1)])
def test_the_distance_to_other_loops_is_bounded(rows):
    (parts,) = targets(trace(step(), edge(*[rows]))).values()
    made = placed_call(edge(*[rows]), parts)
    low, high = call_distance(step(), made)
    assert -3 <= low <= high <= 3
    low, high = call_distance(step(), edge(*[rows]))
    assert high - low > M // 2


def test_constants():
    plan, swept = sweeps_of(*steps(edge(make=lambda j, x: [x[0, j] << 1.5])))
    assert swept == [6] and len(plan.of(Placed)) == 3


def test_steps_by_rows_and_edges_in_one_iteration():
    i, k, x, y = S("i"), S("k"), View("x", 2), View("y", 2)
    row = [loop(k, 1, M - 1, [y[i, k] << x[i - 1, k] + x[i + 1, k]])]
    rows = workunit("rows", [i], [x, y], row)
    i, k, x = S("i"), S("k"), View("x", 2)
    last = workunit("last", [i], [x], [loop(k, 0, M, [x[N - 1, k] << x[N - 2, k]])])
    space = Space((1,), (N - 1,))
    calls = [call(rows, space, U, V), call(last, 1, V), call(rows, space, V, U)]
    plan, swept = sweeps_of(*calls)
    assert swept == [3] and plan.of(Placed) == (Placed(1, (N - 2,), 1),)


def test_single_elements_of_a_line():
    length = 4_000_000
    x, y = region(0, length), region(1, length)

    def line(source, sink):
        i, a, b = S("i"), View("a"), View("b")
        unit = workunit("line", [i], [a, b], [b[i] << a[i - 1] + a[i + 1]])
        return call(unit, Space((1,), (length - 1,)), source, sink)

    def end(target, source, where):
        i, a = S("i"), View("a")
        return call(workunit("end", [i], [a], [a[target] << a[source]]), 1, where)

    calls = [line(x, y), end(0, 1, y), end(length - 1, length - 2, y), line(y, x)]
    plan, swept = sweeps_of(*calls)
    assert swept == [4]
    assert plan.of(Placed) == (Placed(1, (1,), 1), Placed(2, (length - 2,), 1))


def test_an_iteration_that_is_read_keeps_its_value():
    i, x = S("i"), View("x", 2)
    own = call(workunit("own", [i], [x], [x[i + N - 3, i] << 1.0]), Space((1,), (2,)), V)
    moved = placed_call(own, ((N - 1, (0,)),))
    assert moved.space == Space((N - 1,), (N,))
    assert call_distance(step(), moved) == (1, 1)


def test_slices_of_one_buffer_are_aligned():
    rest = region(1, (N - 10, M), offset=10 * M * 8)
    (parts,) = targets(trace(step(), edge((0, 1), where=rest))).values()
    assert 9 <= parts[0][0] <= 12


# --------------------------------------------------------------------------- not so


def test_rows_far_from_those_that_others_walk_over_have_no_place():
    def place(first, *calls):
        space = Space((first, 1), (N - 1, M - 1))
        return targets(trace(step(space=space), *calls))

    zero = edge(make=lambda j, x: [x[0, j] << 1.5])
    assert place(REACH, zero) == {1: ((REACH, (0,)),)}
    assert not place(REACH + 1, zero)


def test_a_place_is_where_the_row_is_written():
    i, j, x, y = S("i"), S("j"), View("x", 2), View("y", 2)
    later = workunit("later", [i, j], [x, y], [y[i + 5, j] << x[i, j]])
    row = edge(make=lambda j, x: [x[100, j] << 1.5])
    assert targets(trace(call(later, Space((1, 1), (N - 5, M)), U, V), row)) == {1: ((95, (0,)),)}


def test_rows_of_other_memory_or_another_order_of_axes_have_no_place():
    assert not targets(trace(step(), edge((0, 1), where=region(2, (N, M)))))
    turned = region(1, (M, N), strides=(8, 8 * M))
    row = edge(make=lambda j, x: [x[j, 0] << 1.5], where=turned)
    assert not targets(trace(step(), row))
    calls = [step(sink=turned, space=Space((1, 1), (M - 1, N - 1))), row]
    assert targets(trace(*calls)) == {}  # the first index walks over columns


def test_statements_that_store_nothing_go_where_they_are_used():
    t = S("t", V.dtype)

    def make(j, x):
        add = Update("+", t.sym, (), x[1, j].node)
        return [let(t, 2.0), add, x[0, j] << t, x[N - 1, j] << x[N - 2, j]]

    assert targets(trace(step(), edge(make=make))) == {1: ((1, (2,)), (N - 2, (3,)))}


def test_a_call_over_a_row_and_a_line_walks_over_the_line():
    j, x, y = S("j"), View("x", 2), View("y")
    both = workunit("both", [j], [x, y], [x[0, j] << 1.0, y[j] << 2.0])
    i, y = S("i"), View("y")
    one = workunit("one", [i], [y], [y[3] << 4.0])
    line = region(2, M)
    assert targets(trace(call(both, M, V, line), call(one, 1, line))) == {1: ((3, (0,)),)}


def test_one_statement_that_has_no_place_keeps_the_others():
    i, x = S("i"), View("x", 2)
    either = [when(i < 5, [x[0, i] << 1.0], [x[N - 1, i] << 2.0]), x[0, i] << 1.0]
    assert not targets(trace(step(), call(workunit("either", [i], [x], either), M, V)))


def test_what_may_be_named_by_another_index_too():
    def line(space, pattern="for", extra=()):
        indices = [S(name) for name in "hijklm"][: len(space.begin)]
        x = View("x", len(indices))
        body = [x[tuple(indices)] << 1.0, *extra]
        return call(workunit("line", indices, [x], body), space, region(1, space.end))

    def cube(rank):
        return Space((0,) * rank, (2,) * rank)

    assert may_place(line(cube(MAX_RANK - 1))) and not may_place(line(cube(MAX_RANK)))
    assert may_place(line(Space((3,), (4,)))) and not may_place(line(Space((3,), (3,))))


def test_periodic_copies_end_sweeps_and_are_told():
    plan, swept = sweeps_of(*steps(edge((0, N - 2)), edge((N - 1, 1))))
    assert not swept and not plan.of(Placed)
    assert plan.of(Declined)[0].why == f"edge copies to row 0 from row {N - 2}, too far for a sweep"
    assert not targets(trace(step(), edge((0, N - 2))))
    assert far_rows(edge((0, N - 2))) == (0, N - 2)
    assert far_rows(TOP) is None and far_rows(SIDES[0]) is None


def test_periodic_columns_sweep():
    assert sweeps_of(*steps(column(0, M - 2), column(M - 1, 1)))[1] == [9]


def test_an_index_of_one_value_is_a_row():
    """A source of one cell: `x[row + i, column]` over [0, 1)."""

    def source(begin, end):
        i, x, row = S("i"), View("x", 2), S("row")
        unit = workunit("source", [i], [x, row], [x[row + i, 70] << x[row + i, 70] + 1.0])
        return call(unit, Space((begin,), (end,)), V, known(900, row.sym.dtype))

    calls = steps(source(3, 4))
    plan, swept = sweeps_of(*calls)
    assert swept == [6] and plan.of(Placed)[0] == Placed(1, (903,), 2)
    assert not targets(trace(step(), source(3, 5)))


def test_rows_that_data_decides_have_no_place():
    q = region(2, 8)
    i, x, y = S("i"), View("x", 2), View("q")
    found = workunit("found", [i], [x, y], [x[y[0].cast(i.sym.dtype), i] << 1.0])
    assert not targets(trace(step(), call(found, M, V, q)))


def test_a_call_over_rows_has_its_place_already():
    assert not targets(trace(step(), *SIDES))


def test_calls_whose_iterations_are_not_free_have_no_place():
    j, x, c = S("j"), View("x", 2), S("c", V.dtype)
    changing = workunit("changing", [j], [x, c], [x[0, j] << c, Assign(c.sym, (c + 1.0).node)])
    assert not targets(trace(step(), call(changing, M, V, known(None, V.dtype))))
    j, x, acc = S("j"), View("x", 2), S("acc", V.dtype)
    add = Update("+", acc.sym, (), x[1, j].node)
    total = workunit("total", [j], [x], [x[0, j] << 1.0, add], [Accumulator(acc.sym)])
    assert not targets(trace(step(), call(total, M, V, pattern="reduce")))
    printing = Eval(Call("printf", (j.node,), j.sym.dtype))
    j, x = S("j"), View("x", 2)
    assert not targets(trace(step(), edge(make=lambda j, x: [x[0, j] << 1.0, printing])))


# --------------------------------------------------------------------------- several rows


def test_edges_in_one_workunit_run_at_their_own_rows():
    calls = steps(edge((0, 1), (N - 1, N - 2)))
    plan, swept = sweeps_of(*calls)
    assert swept == [6]
    assert plan.of(Placed)[0] == Placed(1, (1, N - 2), 1)
    made = placed_call(calls[1], ((1, (0,)), (N - 2, (1,))))
    assert made.space == Space((1,), (N - 1,))
    assert [a.value for a in made.arguments[1:]] == [1, N - 2, 0, M]
    assert call_distance(step(), made) == (0, 0)
    verify(made.workunit)


def test_iterations_that_may_wait_stay_side_by_side():
    def waiting(j, x):
        k = S("k")
        return [x[0, j] << x[1, j], loop(k, 0, 9, [x[N - 1, j] << x[N - 1, j].fetch("+", 1.0)])]

    assert not targets(trace(step(), edge(make=waiting)))
    assert targets(trace(step(), edge((0, 1), (N - 1, N - 1))))


def test_statements_for_one_row_keep_their_order():
    two = edge((0, 1), (0, 2))
    assert len(targets(trace(step(), two))[1]) == 1
    assert sweeps_of(*steps(two))[1] == [6]


@pytest.mark.parametrize(
    "rows",
    [
        [(0, 1), (4, 0)],  # the second part reads what the first one stores
        [(0, 4), (4, 5)],  # the second part overwrites what the first one reads
        [(4, 5), (0, 4)],
    ],
)
def test_parts_that_touch_each_other_stay_together(rows):
    assert not targets(trace(step(), edge(*rows)))


def test_parts_that_touch_each_other_elsewhere():
    """What comes before both is a part of those that use it."""

    def shared(j, x):
        t = S("t", V.dtype)
        return [let(t, x[1, j]), x[0, j] << t, x[N - 1, j] << x[N - 2, j]]

    ((first, _), (last, _)) = parts = targets(trace(step(), edge(make=shared)))[1]
    assert (first, last) == (1, N - 2)
    by_rows = placed_call(edge(make=shared), parts).workunit.body
    assert [len(part.then[0].body) for part in by_rows] == [2, 1], "each has what it needs"

    def changed(j, x):
        t = S("t", V.dtype)
        return [let(t, x[5, j]), x[5, j] << 1.0, x[2, j] << t + x[0, j]]

    assert not targets(trace(step(), edge(make=changed)))


def test_guards_inside_edges():
    guarded = edge(make=lambda j, x: [when(j > 5, [x[0, j] << x[1, j]])])
    assert sweeps_of(*steps(guarded))[1] == [6]


def test_the_cheaper_plan_is_taken():
    assert sweeps_of(*steps(TOP))[1]
    dear = searching(*NAMES, gain=0.99)(trace(*steps(TOP)))
    assert not dear.plan.sweeps and not dear.plan.of(Placed)
