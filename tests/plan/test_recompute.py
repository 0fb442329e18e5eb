"""Calls that compute again what others would store: when that is legal, and what pays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyfuser.analysis.accesses import structural_scalars
from pyfuser.plan.plan import Plan
from pyfuser.plan.rewrites.recompute import Recomputed, Vanished, rewritten
from pyfuser.runtime.launch import forgettable
from pyfuser.trace.shape import RegionShape, TraceShape, shape_of
from tests.fuzz.harness import _Memory, check_interpreted, lowered
from tests.fuzz.oracle import run
from tests.fuzz.program import Base, Call, Program, Statement

N, M = 12, 6
SEEDS = range(1, 9)  # some have groups cut, or boxes that differ a lot
BASES = (
    *(Base(name, (N,), "float64") for name in "ABCD"),
    *(Base(name, (N,), "float64", True) for name in "TU"),
    *(Base(name, (M, M), "float64") for name in "XY"),
    Base("Z", (M, M), "float64", True),
    Base("F", (N,), "float32", True),
    Base("K", (N,), "int32", True),
    Base("Q", (N,), "int32"),
)


def lines(*texts: str) -> tuple[Statement, ...]:
    return tuple(Statement(text) for text in texts)


def over(text: str, begin: int = 0, end: int = N, **views: str) -> Call:
    return Call("for", (begin,), (end,), lines(*text.split("; ")), tuple(views.items()))


def guarded(guard: str, text: str, **views: str) -> Call:
    body = (Statement(f"if {guard}:", (), (lines(text),)),)
    return Call("for", (0,), (N,), body, tuple(views.items()))


def either(guard: str, then: str, orelse: str, **views: str) -> Call:
    body = (Statement(f"if {guard}:\nelse:", (), (lines(then), lines(orelse))),)
    return Call("for", (0,), (N,), body, tuple(views.items()))


def box(text: str, rim: int = 0, **views: str) -> Call:
    return Call("for", (rim, rim), (M - rim, M - rim), lines(text), tuple(views.items()))


def trace_of(*calls: Call) -> TraceShape:
    program = Program(BASES, calls, 1)
    expected = run(program)
    memory = _Memory(program)
    memory.forget(())
    return shape_of(memory.record(calls, lowered(program, expected[1]), []), structural_scalars)


def again(*calls: Call) -> tuple[dict[int, dict[int, int]], tuple[int, ...]]:
    """Which calls compute others again, and how often; and which then do nothing.

    After comparing the program's results.
    """
    for seed in SEEDS:
        check_interpreted(Program(BASES, calls, seed))
    notes = [change.note for _, change in sorted(rewritten(trace_of(*calls)).items())]
    users = {note.call: dict(note.producers) for note in notes if isinstance(note, Recomputed)}
    return users, tuple(note.call for note in notes if isinstance(note, Vanished))


NOTHING: tuple[dict[int, dict[int, int]], tuple[int, ...]] = ({}, ())
PRODUCER = over("t[i] = 2.0 * x[i] + 1.0", t="T", x="A")
STENCIL = over("y[i] = t[i - 1] + t[i + 1]", 1, N - 1, y="B", t="T")
GATHER = over("y[i] = t[q[i]]", y="B", t="T", q="Q")

# --------------------------------------------------------------------------- legality


def test_a_stencil_and_a_gather():
    assert again(PRODUCER, STENCIL) == ({1: {0: 2}}, (0,))
    assert again(PRODUCER, over("y[i] = t[q[i] % 12]", y="B", t="T", q="Q")) == ({1: {0: 1}}, (0,))


def test_an_own_element_is_passed_on_in_the_loop():
    assert again(PRODUCER, over("y[i] = t[i]", y="B", t="T")) == NOTHING


def test_an_own_element_that_another_launch_reads():
    """Loops cannot pass it on where a result has to be known in between."""
    reader = over("y[i] = 3.0 * t[i]", y="B", t="T")
    trace = large(trace_of(PRODUCER, reader), 100_000)
    assert not rewritten(trace, (0, 0))
    made = rewritten(trace, (0, 1))
    assert [type(made[n].note) for n in range(2)] == [Vanished, Recomputed]
    between = over("v[i] = 7.0", v="A")
    assert not rewritten(large(trace_of(PRODUCER, between, reader), 100_000), (0, 1, 2))
    kept = replace(reader, views=(("y", "B"), ("t", "C")))
    stored = replace(PRODUCER, views=(("t", "C"), ("x", "A")))
    assert not rewritten(large(trace_of(stored, kept), 100_000), (0, 1))  # in memory anyway


def test_what_is_read_later_is_stored_as_well():
    live = replace(PRODUCER, views=(("t", "C"), ("x", "A")))
    assert again(live, replace(STENCIL, views=(("y", "B"), ("t", "C")))) == ({1: {0: 2}}, ())
    later = over("y[i] = t[i]", y="D", t="T")
    assert again(PRODUCER, STENCIL, later) == ({1: {0: 2}}, ())


@pytest.mark.parametrize("place", [1, 2])
@pytest.mark.parametrize("target", ["A", "T", "A[3:]", "T[:2]"])
def test_what_is_read_keeps_its_value_until_then(target, place):
    """Neither what the expression reads is overwritten, nor what it stands for."""
    size = {"A[3:]": N - 3, "T[:2]": 2}.get(target, N)
    other = over("v[i] = 7.0", 0, size, v=target)
    calls = [PRODUCER, STENCIL]
    calls.insert(place, other)
    if place == 2:
        assert again(*calls) == ({1: {0: 2}}, (0,))
    else:
        assert again(*calls) == NOTHING


def test_a_reader_that_overwrites_what_the_values_are_made_of():
    assert again(PRODUCER, replace(STENCIL, views=(("y", "A"), ("t", "T")))) == NOTHING
    part = over("y[i] = t[i] + t[i + 1]", 0, 3, y="A[9:]", t="T")
    assert again(PRODUCER, part) == NOTHING


def test_a_producer_that_reads_what_it_stores():
    update = over("t[i] = t[i] + x[i]", t="T", x="A")
    assert again(update, STENCIL) == NOTHING
    alias = over("t[i] = x[i] + 1.0", 0, 6, t="T[:6]", x="T[:6]")
    assert again(alias, over("y[i] = t[i + 1]", 0, 5, y="B", t="T[:6]")) == NOTHING


def test_only_elements_that_were_stored():
    """The other ones are zero, or what an earlier call stored."""
    inner = over("t[i] = 2.0 * x[i] + 1.0", 1, N - 1, t="T", x="A")
    assert again(inner, STENCIL) == NOTHING
    assert again(inner, over("y[i] = t[i - 1] + t[i + 1]", 2, N - 2, y="B", t="T"))[1] == (0,)
    assert again(inner, over("y[i] = t[q[i] % 12]", y="B", t="T", q="Q")) == NOTHING
    last = over("t[i] = 2.0 * x[i] + 1.0", 0, N - 1, t="T", x="A")
    assert again(last, STENCIL) == NOTHING


def test_elements_stored_under_a_condition():
    some = guarded("i > 2", "t[i] = x[i]", t="T", x="A")
    assert again(some, STENCIL) == NOTHING
    assert again(some, over("y[i] = t[i - 1]", 4, N, y="B", t="T"))[1] == (0,)
    assert again(guarded("x[i] > 0.5", "t[i] = x[i]", t="T", x="A"), STENCIL) == NOTHING
    both = either("x[i] > 0.5", "t[i] = x[i]", "t[i] = 0.25", t="T", x="A")
    assert again(both, STENCIL)[1] == (0,)
    apart = either("i > 2", "t[i] = x[i]", "t[2 - i] = 0.25", t="T", x="A")
    assert again(apart, STENCIL) == NOTHING


def test_places_that_are_no_iteration_of_their_own():
    halves = over("t[i // 2 + 2] = 1.0", 0, 1, t="T")
    assert again(halves, over("y[i] = t[i + 2]", 0, 1, y="B", t="T")) == NOTHING
    double = over("t[2 * i] = x[i]", 0, 6, t="T", x="A")
    assert again(double, over("y[i] = t[2 * i + 2]", 0, 5, y="B", t="T")) == NOTHING
    behind = over("t[11 - i] = x[i]", t="T", x="A")
    assert again(behind, STENCIL) == ({1: {0: 2}}, (0,))


def test_several_axes():
    made = box("z[j, i] = 2.0 * x[i, j]", x="X", z="Z")
    read = box("y[i, j] = z[i - 1, j] + z[i, j + 1]", 1, y="Y", z="Z")
    assert again(made, read) == ({1: {0: 2}}, (0,))
    column = Call("for", (0, 0), (M, 1), lines("z[i, i] = x[i, j]"), (("x", "X"), ("z", "Z")))
    assert again(column, read) == NOTHING


def test_a_chain():
    """A call computes one again that computes another."""
    second = over("u[i] = t[i] - t[i - 1]", 1, N, u="U", t="T")
    third = over("y[i] = u[i - 1] + u[i]", 2, N, y="B", u="U")
    assert again(PRODUCER, second, third) == ({2: {0: 4, 1: 2}}, (0, 1))


def test_a_call_computes_two_others():
    """Each as often as it is named, whatever of it another one names."""
    second = over("u[i] = 3.0 * x[i] - 1.0", u="U", x="C")
    both = over("y[i] = t[i - 1] - u[i + 1]", 1, N - 1, y="B", t="T", u="U")
    assert again(PRODUCER, second, both) == ({2: {0: 1, 1: 1}}, (0, 1))
    second = over("u[i] = t[i] + t[i - 1]", 1, N, u="U", t="T")
    twice = over("y[i] = t[i - 2] + u[i - 1] - u[i]", 2, N, y="B", t="T", u="U")
    assert again(PRODUCER, second, twice) == ({2: {0: 5, 1: 2}}, (0, 1))


def test_a_producer_that_reads_what_it_stores_by_another_name():
    update = over("t[i] = u[i] + 1.0", 0, N - 1, t="T", u="T[:11]")
    assert again(update, over("y[i] = t[i + 1]", 0, N - 2, y="B", t="T")) == NOTHING


def test_a_view_of_another_shape():
    """Its elements have other subscripts."""
    assert again(PRODUCER, over("y[i] = t[i + 1]", 0, 8, y="B", t="T[2:]")) == NOTHING


def test_what_is_no_expression():
    loop = Statement("for k in range(2):", (), (lines("t[i] = x[i] + k"),))
    assert again(Call("for", (0,), (N,), (loop,), (("t", "T"), ("x", "A"))), STENCIL) == NOTHING
    sums = Call("reduce", (0,), (N,), lines("t[i] = x[i]", "acc += 1"), PRODUCER.views, (), "int")
    assert again(sums, STENCIL) == NOTHING


def test_values_are_rounded_as_stores_round():
    single = over("t[i] = 0.1 * x[i]", t="F", x="A")
    assert again(single, over("y[i] = float(t[i - 1]) * 3.0", 1, N, y="B", t="F"))[1] == (0,)
    whole = over("t[i] = int(4.0 * x[i] + 0.5)", t="K", x="A")
    assert again(whole, over("y[i] = 0.5 * t[i - 1]", 1, N, y="B", t="K"))[1] == (0,)


def test_an_exponent_stays_what_it_is():
    """A power by a constant is another function than one by a local of the same value."""
    constant = over("t[i] = x[i] ** 2.0", t="T", x="A")
    assert again(constant, STENCIL)[1] == (0,)
    assert again(over("k: float = 2.0; t[i] = x[i] ** k", t="T", x="A"), STENCIL) == NOTHING
    two = over("t[i] = x[i]", t="T", x="C")
    assert again(two, over("y[i] = 2.0 ** t[i - 1]", 1, N, y="B", t="T")) == NOTHING


def test_a_changed_index_and_locals():
    text = "k: int = i + 1; i = 11 - i; t[i] = x[i] * k"
    assert again(over(text, t="T", x="A"), STENCIL)[1] == (0,)


# --------------------------------------------------------------------------- cost, and running it


def large(trace: TraceShape, factor: int) -> TraceShape:
    """The trace with so many times as long arrays and ranges."""
    return TraceShape(
        tuple(
            call._replace(
                space=call.space._replace(end=tuple(factor * n for n in call.space.end)),
                arguments=tuple(
                    a._replace(shape=tuple(factor * n for n in a.shape))
                    if isinstance(a, RegionShape)
                    else a
                    for a in call.arguments
                ),
            )
            for call in trace.calls
        ),
        trace.clusters,
    )


def test_dear_values_are_not_computed_often():
    dear = over("t[i] = math.exp(math.sin(x[i])) + math.exp(x[i])", t="T", x="A")
    gather = over("y[i] = t[q[i] % 12]", y="B", t="T", q="Q")
    many = over("y[i] = t[i - 1] + t[i] + t[i + 1]", 1, N - 1, y="B", t="T")
    assert rewritten(large(trace_of(dear, gather), 100_000), (0, 1))
    assert not rewritten(large(trace_of(dear, many), 100_000), (0, 1))
    assert rewritten(large(trace_of(PRODUCER, STENCIL), 100_000), (0, 1))


def test_a_vanished_call_is_needed_until_all_who_compute_it_have_run():
    again = [Recomputed(n, (), ((0, 1),), frozenset()) for n in (1, 2)]
    plan = Plan((), (), notes=(*again, Vanished(0, (1, 2))))
    assert forgettable(plan, [0, 1]) == [1]
    assert forgettable(plan, [0, 1, 2]) == [0, 1, 2]
    assert forgettable(replace(plan, notes=tuple(again)), [0, 1]) == [0, 1]
