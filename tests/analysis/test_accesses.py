"""What the abstract interpretation knows of single workunits."""

from pyfuser.analysis.accesses import Mode, accesses, structural_scalars
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Eval, Extent, Select
from tests.analysis.build import (
    E,
    S,
    View,
    assign,
    call,
    known,
    let,
    loop,
    region,
    when,
    workunit,
)

N = 100
X = region(0, N)


def structural(indices, params, body):
    unit = workunit("w", indices, params, body)
    return {params[k].sym.name for k in structural_scalars(unit)}


def test_structural_scalars():
    i, x, k, a, n = S("i"), View("x"), S("k"), S("a", DType.FLOAT64), S("n")
    assert structural([i], [x, a, k], [x[i + k] << a]) == {"k"}
    assert structural([i], [x, k], [x[i] << k]) == set()  # a value, not a place
    assert structural([i], [x, n], [when(i < n, [x[i] << 1.0])]) == {"n"}
    assert structural([i], [x, n], [when(n > 0, [x[i] << 1.0])]) == set()


def test_structural_through_locals_and_loops():
    i, x, k, n, t, j = S("i"), View("x"), S("k"), S("n"), S("t"), S("j")
    assert structural([i], [x, k], [let(t, k * 2), x[i + t] << 1.0]) == {"k"}
    assert structural([i], [x, k], [let(t, 0), assign(t, k), x[i + t] << 1.0]) == {"k"}
    assert structural([i], [x, n], [loop(j, 0, n, [x[j] << 1.0])]) == {"n"}
    repeat = [loop(j, 0, n, [x[i].update("+", 1.0)])]
    assert structural([i], [x, n], repeat) == set()
    guarded = [loop(j, 0, n, [when(j < k, [x[j] << 1.0])])]
    assert structural([i], [x, n, k], guarded) == {"n", "k"}


def found(indices, params, body, *arguments, n=N):
    return accesses(call(workunit("w", indices, params, body), n, *arguments))


def test_modes_and_order():
    i, x, y = S("i"), View("x"), View("y")
    body = [
        y[i].update("+", x[i]),
        y[i].update("max", 1.0, atomic=True),
        Eval(x[0].fetch("+", 1.0).node),
    ]
    assert [(a.param, a.mode, a.op) for a in found([i], [x, y], body, X, region(1, N))] == [
        (0, Mode.READ, ""),
        (1, Mode.READ, ""),
        (1, Mode.WRITE, ""),
        (1, Mode.REDUCE, "max"),
        (0, Mode.READ, ""),
        (0, Mode.WRITE, ""),
    ]


def test_exact_means_nothing_was_left_out():
    i, x = S("i"), View("x")

    def exact(*body):
        return [a.exact for a in found([i], [x], body, X)]

    assert exact(x[i] << 1.0) == [True]
    assert exact(when(i > 3, [x[i] << 1.0])) == [True]
    assert exact(when(x[i] > 0.0, [x[0] << 1.0])) == [True, False]
    t = S("t")
    assert exact(let(t, i), assign(t, t * t), x[t] << 1.0) == [False]


def test_a_guard_that_never_holds_hides_its_body():
    i, x, k = S("i"), View("x"), S("k")
    body = [when(k > 3, [x[i] << 1.0], [x[0] << 1.0])]
    assert len(found([i], [x, k], body, X, known(7))) == 1
    assert len(found([i], [x, k], body, X, known(None))) == 2
    assert found([i], [x], [when(i >= N, [x[i] << 1.0])], X) == ()
    assert found([i], [x], [loop(k, 5, 5, [x[k] << 1.0])], X) == ()


def test_select_and_extent():
    i, x, y = S("i"), View("x"), View("y")
    neighbour = E(Select((i > 0).node, x[i - 1].node, x[i].node))
    below, at = found([i], [x, y], [y[i] << neighbour], X, region(1, N))[:2]
    assert (below.relation.ranges[0], at.relation.ranges[0]) == ((1, N - 1), (0, 0))
    last = E(Extent(x.sym, 0)).cast(DType.INT32) - 1
    (access,) = found([i], [x], [x[last - i] << 1.0], X)
    assert access.relation.indices[0] is not None
    assert access.relation.indices[0].constant == N - 1


def test_local_arrays_and_accumulators_are_no_memory():
    i, x, local = S("i"), View("x"), View("local")
    assert [a.param for a in found([i], [x], [local[i] << x[i]], X)] == [0]


def test_analysis_is_shared_by_calls_that_differ_in_place_only():
    i, x = S("i"), View("x")
    unit = workunit("w", [i], [x], [x[i] << 1.0])
    assert accesses(call(unit, N, X)) is accesses(call(unit, N, region(5, N, offset=64)))


def test_a_loop_that_never_runs_hides_nothing_behind_it():
    i, x, y, j, n = S("i"), View("x"), View("y"), S("j"), S("n")
    body = [
        loop(j, 0, n, [x[j] << 1.0]),
        when(i >= 3, [loop(S("k"), 5, 5, [x[i] << 1.0])], [y[i] << 1.0]),
        when(i < 2, [x[i] << 1.0]),
    ]
    accesses_found = found([i], [x, y, n], body, X, region(1, N), known(0))
    assert [(a.param, a.mode, a.relation.ranges[0]) for a in accesses_found] == [
        (1, Mode.WRITE, (0, 2)),
        (0, Mode.WRITE, (0, 1)),
    ]


def test_what_bounds_say_of_one_subscript_is_not_known_of_the_next():
    """A local of which only bounds are known may be one element, but is surely none."""
    i, q, x, y, t = S("i"), View("q", dtype=DType.INT32), View("x"), View("y"), S("t")
    body = [let(t, q[i] & 7), x[t] << 1.0, y[t] << 1.0, y[i + t] << 2.0]
    arguments = region(2, N, dtype=DType.INT32), X, region(1, N)
    stores = [a for a in found([i], [q, x, y], body, *arguments) if a.mode is Mode.WRITE]
    assert [(a.exact, a.relation.vague) for a in stores] == [(False, True)] * 3


def test_a_way_that_is_never_taken_gives_a_local_no_value():
    """Each side of a border has a correction of its own: `i - 2` is never beyond the last."""
    i, x, y, n = S("i"), View("x"), View("y"), S("n")

    def reads_at(step):
        p, r = S("p"), S("r")
        body = [
            let(p, i + step),
            let(r, 0),
            when(
                p < 0,
                [assign(r, p * -1)],
                [when(p >= n, [assign(r, n * 2 - 2 - p)], [assign(r, p)])],
            ),
            y[i] << x[r],
        ]
        given = found([i], [x, y, n], body, X, region(1, N), known(N))
        return [(a.exact, a.relation.vague, a.relation.ranges[0]) for a in given if not a.param]

    assert reads_at(-2) == [(True, False, (0, 1)), (True, False, (2, N - 1))]
    assert reads_at(2) == [(True, False, (N - 2, N - 1)), (True, False, (0, N - 3))]
    assert reads_at(0) == [(True, False, (0, N - 1))]


def test_a_way_that_may_be_taken_does():
    """Where it is not known whether a condition holds, neither side's value is certain."""
    i, x, y, n, r = S("i"), View("x"), View("y"), S("n"), S("r")
    body = [let(r, i), when(n > 3, [assign(r, n * n)]), y[i] << x[r]]
    (read,) = (a for a in found([i], [x, y, n], body, X, region(1, N), known(None)) if not a.param)
    assert not read.exact
    (read,) = (a for a in found([i], [x, y, n], body, X, region(1, N), known(2)) if not a.param)
    assert read.exact and read.relation.indices[0].terms == ((0, 1),)
    (read,) = (a for a in found([i], [x, y, n], body, X, region(1, N), known(5)) if not a.param)
    assert read.exact and read.relation.indices[0].constant == 25
