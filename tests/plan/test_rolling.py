"""Which temporaries of a sweep need only a window: each legal case with its illegal twin."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from pyfuser.analysis.accesses import structural_scalars
from pyfuser.ir.dtypes import DType
from pyfuser.ir.reference.interpret import interpret
from pyfuser.pipeline import KERNEL_PASSES, run_passes
from pyfuser.plan import wavefront as plan_wavefront
from pyfuser.plan.cost_model import CostModel
from pyfuser.plan.plan import Group, Plan, Rolling, Stage
from pyfuser.plan.storage_folding import rolling_views
from pyfuser.plan.wavefront import sweeps
from pyfuser.trace.call import Call, Space
from pyfuser.trace.memory import Buffer, Handle, Region
from pyfuser.trace.shape import shape_of
from pyfuser.transform.fuse import fuse
from pyfuser.transform.group import group_shapes
from tests.analysis.build import S, View, call, loop, region, select, trace, when, workunit
from tests.fuzz import wavefront

N = 1000
X, T, Z = (region(k, N) for k in range(3))
WRITER, READER = Space((2,), (N - 2,)), Space((5,), (N - 5,))


def rolling(*calls, temporary=(1,)):
    """The rolling views of a sweep of calls, each a loop of its own; None if there is no sweep."""
    shape = trace(*calls, temporary=temporary)
    with wavefront.forced(4):
        loops = tuple(Group((n,)) for n in range(len(calls)))
        found = sweeps(shape, loops, CostModel(shape))
    return found[0].rolling if len(found) == 1 else None


def moving(source, target):
    """A call-maker: `y[i + target] = x[i + source[0]] + ...`."""
    i, x, y = S("i"), View("x"), View("y")
    total = sum((x[i + s] for s in source[1:]), start=x[i + source[0]])
    unit = workunit("move", [i], [x, y], [y[i + target] << total])
    return lambda a, b, space: call(unit, space, a, b)


WRITE = moving([0], 0)(X, T, WRITER)
READ = moving([-1, 2], 0)(T, Z, READER)


def test_the_numbers_of_a_window():
    assert rolling(WRITE, READ) == (Rolling(1, 8, oldest=-3, made=0, begun=0, until=3),)
    further = moving([0], 1)(X, T, WRITER)  # writes one element on, so the reader lags less
    assert rolling(further, READ) == (Rolling(1, 8, oldest=-2, made=1, begun=1, until=4),)
    again = moving([-3], 0)(T, region(3, N), READER)
    assert rolling(WRITE, READ, again) == (Rolling(1, 8, oldest=-3, made=0, begun=0, until=3),)


def windows(*calls, stages, loops=None):
    """What loops, each behind the front as its stage says, may keep a window of."""
    made = trace(*calls, temporary=(1,))
    groups = tuple(map(Group, loops or [(n,) for n in range(len(calls))]))
    return rolling_views(made, groups, tuple(Stage(*stage) for stage in stages))


def test_a_window_reaches_from_the_last_reader_to_the_front():
    stages = (1, 2), (4, 8)
    assert windows(WRITE, READ, stages=stages) == (Rolling(1, 8, -5, -1, 2, 10),)
    ahead = moving([3, 5], 0)(T, Z, Space((0,), (N - 13,)))
    behind = moving([0], -7)(X, T, Space((7,), (N,)))
    assert windows(behind, ahead, stages=((1, 2), (0, 0))) == (Rolling(1, 8, -8, -8, -5, 5),)


def test_what_is_only_written_only_read_or_of_one_loop_has_no_window():
    stages = (0, 0), (1, 1)
    assert windows(WRITE, READ, stages=stages)
    assert windows(WRITE, READ, stages=stages[:1], loops=[(0, 1)]) == ()
    assert windows(WRITE, WRITE, stages=stages) == () == windows(READ, READ, stages=stages)


def test_only_whole_temporaries_have_windows():
    part = region(1, N - 1, offset=8)
    calls = moving([0], 0)(X, part, WRITER), moving([0], 0)(part, Z, READER)
    assert windows(*calls, stages=((0, 0), (1, 1))) == ()


def grid(write, read):
    """The windows of a grid that a loop writes with `write(i, j, k, t, x)`, and another reads."""
    shapes = (60, 30), (80, 80), (60, 30)
    m = [region(n, shape) for n, shape in enumerate(shapes)]
    i, j, k, q = S("i"), S("j"), S("k"), View("q", dtype=DType.INT32)
    x, t, z = View("x", 2), View("t", 2), View("z", 2)
    first = workunit("first", [i, j], [x, t, q], [write(i, j, k, t, x[i, j])])
    second = workunit("second", [i, j], [t, z, q], [z[i, j] << read(i, j, q, t)])
    places = region(3, 80, dtype=DType.INT32)
    calls = call(first, (50, 20), m[0], m[1], places), call(second, (40, 15), m[1], m[2], places)
    return windows(*calls, stages=((0, 0), (1, 1)))


def own(i, j, k, t, value):
    return t[i, j] << value


def of_own(i, j, q, t):
    return t[i, j]


def test_a_grid_has_a_window_where_a_box_is_written():
    whole = (Rolling(1, 640, -1, 0, 0, 1),)
    assert grid(own, of_own) == whole
    assert grid(lambda i, j, k, t, v: t[i, 20 - j] << v, of_own) == ()  # but not column 0
    assert grid(lambda i, j, k, t, v: t[i, 19 - j] << v, of_own) == whole
    assert grid(lambda i, j, k, t, v: loop(k, 0, 3, [t[i, j + k] << v]), of_own) == ()
    assert grid(lambda i, j, k, t, v: t[i, 2 * j] << v, of_own) == ()
    assert grid(lambda i, j, k, t, v: t[i, i] << v, of_own) == ()
    assert grid(lambda i, j, k, t, v: t[i, j].update("+", v, atomic=True), of_own) == ()
    assert grid(lambda i, j, k, t, v: when(i < 45, [t[i, j] << v]), of_own) == ()
    assert grid(lambda i, j, k, t, v: t[49 - i, j] << v, of_own) == ()
    assert grid(lambda i, j, k, t, v: t[j, i] << v, lambda i, j, q, t: t[j, i]) == ()


def test_what_is_written_or_read_anywhere_has_no_window():
    assert grid(own, lambda i, j, q, t: t[i, q[j]]) == ()
    assert grid(lambda i, j, k, t, v: t[i, v.cast(DType.INT32)] << v, of_own) == ()
    assert grid(own, lambda i, j, q, t: t[q[j], j]) == ()


def test_loops_that_follow_at_once():
    """Of other spaces, so that they cannot share iterations."""
    copy = moving([0], 0)
    assert rolling(WRITE, copy(T, Z, READER)) == (Rolling(1, 8, 0, 0, 0, 0),)


def test_rows_of_a_grid():
    m = [region(k, (60, 30)) for k in range(3)]
    i, j, x, y = S("i"), S("j"), View("x", 2), View("y", 2)
    down = workunit("down", [i, j], [x, y], [y[i, j] << x[i + 1, j]])
    write = call(down, Space((0, 0), (59, 30)), m[0], m[1])
    read = call(down, Space((0, 0), (50, 30)), m[1], m[2])
    assert rolling(write, read) == (Rolling(1, 240, oldest=0, made=0, begun=0, until=1),)
    left = region(1, (60, 30), strides=(8, 480))  # a step is no block of memory
    assert rolling(write._replace(arguments=(m[0], left)), read) == ()
    assert (
        rolling(write._replace(arguments=(m[0], left)), read._replace(arguments=(left, m[2]))) == ()
    )


def test_only_temporaries_roll():
    assert rolling(WRITE, READ, temporary=()) == ()


def of_two_steps(*steps, temporary=()):
    """The views that roll in each of two sweeps, one after the other: their clusters."""
    shape = trace(*(c for step in steps for c in step), temporary=temporary)
    groups, found, first = [], [], 0
    for step in steps:
        groups.append(tuple(Group((n,)) for n in range(first, first + len(step))))
        first += len(step)
    with wavefront.forced(4):
        for loops in groups:
            (sweep,) = sweeps(shape, loops, CostModel(shape))
            found.append([view.cluster for view in sweep.rolling])
    return found


def test_what_the_next_step_overwrites_rolls():
    step = WRITE, READ
    assert of_two_steps(step, step, temporary=(1,)) == [[1], [1]]
    assert of_two_steps(step, step) == [[1], []]  # what the last one writes stays
    wider = moving([0], 0)(X, T, Space((1,), (N - 1,))), READ
    assert of_two_steps(step, wider) == [[1], []]
    smaller = moving([0], 0)(X, T, Space((3,), (N - 2,))), moving([0], 0)(T, Z, READER)
    assert of_two_steps(step, smaller, temporary=(1,)) == [[], [1]]  # T[2] stays


def test_what_the_next_step_reads_before_it_overwrites_it_does_not_roll():
    step = WRITE, READ
    copy = moving([0], 0)(T, region(3, N), Space((900,), (901,)))
    assert of_two_steps(step, (copy, *step), temporary=(1,))[0] == []
    beyond = moving([0], 0)(X, T, Space((3,), (N - 3,))), moving([0], 0)(T, Z, WRITER)
    assert of_two_steps(step, beyond, temporary=(1,)) == [[], []]  # T[2] of the step before
    inside = moving([0], 0)(X, T, WRITER), moving([0], 0)(T, Z, WRITER)
    assert of_two_steps(beyond, inside, temporary=(1,)) == [[], [1]]  # zeros of no step


def test_what_other_calls_see_does_not_roll():
    shape = trace(WRITE, READ, READ, temporary=(1,))
    loops = tuple(Group((n,)) for n in range(3))
    with wavefront.forced(4):
        (first,) = sweeps(shape, loops[:2], CostModel(shape))
        (every,) = sweeps(shape, loops, CostModel(shape))
    assert not first.rolling and every.rolling


def test_zeros_that_are_read_do_not_roll():
    near = moving([-1, 0, 1], 0)
    assert rolling(WRITE, near(T, Z, Space((3,), (N - 3,)))) != ()
    assert rolling(WRITE, near(T, Z, Space((2,), (N - 3,)))) == ()  # T[1], which nobody writes
    assert rolling(WRITE, near(T, Z, Space((3,), (N - 2,)))) == ()
    assert rolling(READ, WRITE) == ()
    first = moving([-1, 2], 0)(T, region(3, N), READER)
    assert rolling(first, WRITE, READ) == ()


def test_what_is_not_written_once_everywhere_does_not_roll():
    i, x, y = S("i"), View("x"), View("y")
    guarded = workunit("some", [i], [x, y], [when(x[i] > 0.0, [y[i] << x[i]])])
    assert rolling(call(guarded, WRITER, X, T), READ) == ()
    i, x, y = S("i"), View("x"), View("y")
    updated = workunit("add", [i], [x, y], [y[i].update("+", x[i])])
    assert rolling(call(updated, WRITER, X, T), READ) == ()
    i, x, y = S("i"), View("x"), View("y")
    strided = workunit("even", [i], [x, y], [y[2 * i] << x[i]])
    assert rolling(call(strided, Space((0,), (N // 2,)), X, T), READ) == ()


def updating(target, factor=2.0):
    """A call-maker: `y[i + target] *= factor`."""
    i, y = S("i"), View("y")
    unit = workunit("scale", [i], [y], [y[i + target].update("*", factor)])
    return lambda a, space: call(unit, space, a)


def test_what_is_written_again_rolls():
    """By loops of their own: their spaces differ."""
    inner = Space((3,), (N - 3,))
    window = (Rolling(1, 8, oldest=-3, made=0, begun=0, until=3),)
    assert rolling(WRITE, updating(0)(T, inner), READ) == window
    assert rolling(WRITE, moving([0], 0)(X, T, inner), READ) == window
    i, x, y = S("i"), View("x"), View("y")
    guarded = workunit("some", [i], [x, y], [when(x[i] > 0.0, [y[i] << x[i]])])
    assert rolling(WRITE, call(guarded, inner, X, T), READ) == window
    behind = rolling(WRITE, READ, updating(-4)(T, Space((6,), (N - 5,))))  # once all have read
    assert behind == (Rolling(1, 8, oldest=-4, made=0, begun=0, until=3),)


def test_what_one_iteration_stores_twice_rolls():
    """As a stencil that copies all, and overwrites the interior."""
    window = (Rolling(1, 8, oldest=-3, made=0, begun=0, until=3),)

    def stores(*statements, space=WRITER):
        unit = workunit("twice", [i], [x, y], statements)
        return rolling(call(unit, space, X, T), READ)

    i, x, y = S("i"), View("x"), View("y")
    inside = when(i > 9, [y[i] << x[i + 1]])
    assert stores(y[i] << x[i], inside) == window
    assert stores(y[i] << x[i], when(i > 9, [y[i - 1] << x[i]])) == ()
    assert stores(y[i] << x[i], when(i > 9, [y[i].update("+", x[i])])) == ()
    assert stores(inside) == ()
    # what an iteration reads before it stores may be a zero
    assert stores(y[i] << x[i], when(i > 9, [y[i] << y[i + 1]])) == ()


def test_what_is_written_outside_does_not_roll():
    assert rolling(WRITE, updating(0)(T, Space((1,), (N - 3,))), READ) == ()
    assert rolling(WRITE, updating(0)(T, Space((3,), (N - 1,))), READ) == ()
    assert rolling(WRITE, updating(1)(T, Space((3,), (N - 2,))), READ) == ()
    assert rolling(updating(0)(T, Space((1,), (N - 1,))), WRITE, READ) == ()


def test_what_is_written_elsewhere_does_not_roll():
    i, y = S("i"), View("y")
    first = workunit("first", [i], [y], [y[7] << 1.0])
    assert rolling(WRITE, call(first, Space((7,), (8,)), T), READ) == ()


def test_what_is_read_elsewhere_does_not_roll():
    i, x, y = S("i"), View("x"), View("y")
    mirror = workunit("mirror", [i], [x, y], [y[i] << x[(N - 1) - i]])
    assert rolling(WRITE, call(mirror, READER, T, Z)) == ()
    i, x, y = S("i"), View("x"), View("y")
    first = workunit("first", [i], [x, y], [y[i] << x[i] + x[7]])
    assert rolling(WRITE, call(first, READER, T, Z)) == ()


@pytest.mark.parametrize(
    ("place", "rolls"),
    [
        (lambda i: select(i > 5, i - 1, 5), True),
        (lambda i: select(i < N - 8, i + 2, N - 6), True),
        (lambda i: select(select(i > 5, i - 1, 5) > 9, i, 9), False),  # further than neighbours
        (lambda i: select(i > 5, i - 1, N - 6), False),  # around the end
        (lambda i: select(i > 5, i - 1, 1), False),  # not written
    ],
)
def test_clamped_neighbours(place, rolls):
    """They are read in the window of the others; the numbers are those without the clamps."""
    i, x, y = S("i"), View("x"), View("y")
    clamped = workunit("clamped", [i], [x, y], [y[i] << x[place(i)] + x[i - 1] + x[i + 2]])
    found = rolling(WRITE, call(clamped, READER, T, Z))
    assert found == ((Rolling(1, 8, oldest=-3, made=0, begun=0, until=3),) if rolls else ())


def test_a_clamped_store_does_not_roll():
    """Iterations at the end would store it in a step that other threads keep."""
    i, x, y = S("i"), View("x"), View("y")
    unit = workunit("stores", [i], [x, y], [when(i < 6, [y[5] << x[i]])])
    assert rolling(WRITE, call(unit, READER, X, T), READ) == ()


def test_slices_do_not_roll():
    tail = region(1, N - 1, offset=8)
    assert rolling(WRITE, READ._replace(arguments=(tail, Z))) == ()


# --------------------------------------------------------------------------- against running it


def random_loop(rng, source, target, space, rank):
    """`target[i + c, j] = ...` of elements near source[i, j], sometimes over an inner loop."""
    indices, k = [S(name) for name in "ij"[:rank]], S("k")
    x, y = View("x", rank), View("y", rank)
    shift = rng.choice([0, 0, 0, 1, -1])
    own = (indices[0] + shift, *indices[1:])

    def near(*inner):
        steps = [rng.randint(-2, 2) for _ in indices]
        first = indices[0] + k if inner else indices[0]
        places = [i + s for i, s in zip((first, *indices[1:]), steps, strict=True)]
        if rng.random() < 0.4:  # clamped
            low, high = space.begin[0], space.end[0] - 1
            places[0] = rng.choice(
                [
                    select(places[0] < low, low, places[0]),
                    select(places[0] > high, high, places[0]),
                ]
            )
        return x[tuple(places)]

    body = [y[own] << near() + near()]
    if rng.random() < 0.2:
        body = [y[own] << near(), loop(k, 0, 2, [y[own].update("+", near(k))])]
    unit = workunit("w", indices, [x, y], body)
    return Call("for", space, unit, (source, target), None, None, random_loop.__code__, 1)


def random_update(rng, source, target, space, rank):
    """A loop that changes elements of the target, in place or to something else."""
    indices, x, y = [S(name) for name in "ij"[:rank]], View("x", rank), View("y", rank)
    shift = rng.choice([0, 0, 0, 1, -1])
    own = (indices[0] + shift, *indices[1:])
    near = x[(indices[0] + rng.randint(-2, 2), *indices[1:])]
    changes = [y[own].update("*", 3.0), y[own].update("+", near), y[own] << near]
    change = rng.choice([*changes, when(near > 0.0, [rng.choice(changes)])])
    unit = workunit("u", indices, [x, y], [change])
    return Call("for", space, unit, (source, target), None, None, random_update.__code__, 1)


def random_chain(rng):
    """Steps through temporaries, which some loops use twice, and the memory at both ends.

    Some are changed after they were made, some of these after they were read.
    """
    rank = rng.choice([1, 1, 2])
    shape = (rng.randint(26, 34), 14)[:rank]
    regions, handles = [], []
    count = rng.randint(3, 5)
    for n in range(count):
        handles.append(Handle())
        strides = (8 * 14, 8)[-rank:]
        buffer = Buffer(8 * int(np.prod(shape)), handles[n])
        regions.append(Region(buffer, 0, strides, shape, View("x").sym.dtype))
    calls, margin = [], 2
    for n in range(1, count):
        margin += rng.choice([3, 3, 3, 1])  # with less, zeros may be read
        margin = min(margin, 6 if rank == 2 else 12)
        outer = Space((margin,) * rank, tuple(max(margin + 1, e - margin) for e in shape))
        source = regions[rng.choice([n - 1, n - 1, n - 1, max(n - 2, 0)])]
        calls.append(random_loop(rng, source, regions[n], outer, rank))
        if rng.random() < 0.4:
            k = rng.choice([n, n, n - 1])
            margin += rng.choice([1, 1, 0])
            outer = Space((margin,) * rank, tuple(max(margin + 1, e - margin) for e in shape))
            if k > 0 and source is not regions[k]:  # iterations would race
                calls.append(random_update(rng, source, regions[k], outer, rank))
    regions[0].array()[...] = np.random.default_rng(rng.randint(0, 99)).normal(size=shape)
    regions[-1].allocate()
    return calls, regions, handles


def run_apart(calls):
    for one in calls:
        arrays = [argument.array() for argument in one.arguments]
        interpret(one.workunit, "for", one.space.begin, one.space.end, arrays)


def run_swept(calls, rng, seed, steps=1):
    """Run a sweep of the calls of each step by the reference schedule; how many views rolled."""
    shape = shape_of(calls, structural_scalars)
    groups = tuple(Group((n,)) for n in range(len(calls)))
    swept, size = [], len(calls) // steps
    for first in range(0, len(calls), size):
        with wavefront.forced(rng.randint(1, 4)):
            found = sweeps(shape, groups[first : first + size], CostModel(shape))
        swept += [replace(s, groups=tuple(n + first for n in s.groups)) for s in found]
    plan = Plan(groups, (), tuple(swept))
    shapes = group_shapes(shape, [g.calls for g in groups])
    kernels = [run_passes(KERNEL_PASSES, fuse(s)) for s in shapes]
    found = {sweep.groups: sweep for sweep in plan.sweeps}
    count = 0
    for places in plan.launches():
        loops = [wavefront.Loop(shape, kernels[n], calls, groups[n].calls) for n in places]
        if places in found:
            wavefront.run_sweep(found[places], loops, rng.randint(1, 3), seed)
            count += len(found[places].rolling)
        else:
            run_apart([calls[places[0]]])
    return count


def test_windows_hold_what_is_read():
    """Random chains, interpreted with poison wherever a window does not reach."""
    windows = 0
    for seed in range(120):
        rng = random.Random(seed)
        calls, regions, handles = random_chain(rng)
        run_apart(calls)
        expected = regions[-1].array().copy()
        rng = random.Random(seed)
        calls, regions, handles = random_chain(rng)
        del handles[1:-1]  # nobody else sees what lies between
        windows += run_swept(calls, rng, seed)
        np.testing.assert_array_equal(regions[-1].array(), expected, err_msg=f"seed {seed}")
    assert windows > 30


def test_windows_of_steps_that_come_again():
    """As above, each chain twice on the same views, of which the program still has some."""
    windows = 0
    for seed in range(120):
        found = []
        for swept in (False, True):
            rng = random.Random(seed)
            calls, regions, handles = random_chain(rng)
            twice = [*calls, *(one.again() for one in calls)]
            kept = [n for n in range(len(regions)) if n in (0, len(regions) - 1) or n % 2]
            for each in regions:
                each.array()
            for n in reversed(range(len(handles))):
                if n not in kept:
                    del handles[n]
            if swept:
                windows += run_swept(twice, rng, seed, steps=2)
            else:
                run_apart(twice)
            found.append([regions[n].array().copy() for n in kept])
        for wanted, got in zip(*found, strict=True):
            np.testing.assert_array_equal(got, wanted, err_msg=f"seed {seed}")
    assert windows > 60


WINDOW = Rolling(0, 8, oldest=-3, made=0, begun=0, until=3)


def overwritten(seed):
    """Three loops, their memory x, s, t and z, of which nobody else sees t, and what z should be.

    The first makes s and t, and the second makes t anew, behind it: so the kernel of the first has
    no store of t, though the window is that of this store.
    """
    i, a, b, c = S("i"), View("a"), View("b"), View("c")
    both = workunit("both", [i], [a, b, c], [b[i] << a[i], c[i] << a[i] * 2.0])
    i, a, b = S("i"), View("a"), View("b")
    near = workunit("near", [i], [a, b], [b[i] << a[i - 1] + a[i + 1]])
    handles = [Handle() for _ in "xstz"]
    x, s, t, z = (Region(Buffer(480, h), 0, (8,), (60,), View("x").sym.dtype) for h in handles)
    calls = [
        Call("for", Space((rim,), (60 - rim,)), unit, given, None, None, overwritten.__code__, 1)
        for rim, unit, given in ((3, both, (x, s, t)), (3, near, (s, t)), (4, near, (t, z)))
    ]
    memory = [visible.array() for visible in (x, s, z)]
    del handles[2]
    memory[0][...] = np.random.default_rng(seed).normal(size=60)
    expected = np.zeros((3, 60))
    expected[0, 3:57] = memory[0][3:57]
    for n, rim in enumerate((3, 4)):
        inside, low, high = (slice(rim + k, 60 - rim + k) for k in (0, -1, 1))
        expected[n + 1, inside] = expected[n, low] + expected[n, high]
    return calls, handles, memory[2], expected[2]


def runs_right(monkeypatch, window):
    """Whether such loops compute in all orders what they should if t has this window."""

    def windows(*given):
        found = rolling_views(*given)  # none before the last loop is there, which reads t, too
        assert [view._replace(cluster=0) for view in found] in ([], [WINDOW])
        return tuple(window._replace(cluster=view.cluster) for view in found)

    monkeypatch.setattr(plan_wavefront, "rolling_views", windows)
    found = []
    for seed in range(12):
        calls, handles, z, expected = overwritten(seed)
        assert run_swept(calls, random.Random(seed), seed) == 1
        found.append(np.array_equal(z, expected))
        del handles
    return all(found)


def test_a_window_is_right_though_its_first_store_is_gone(monkeypatch):
    """What is made further behind the front is there around the cuts, too."""
    assert runs_right(monkeypatch, WINDOW)
    assert runs_right(monkeypatch, WINDOW._replace(made=-1, begun=1))  # of the store that is left


@pytest.mark.parametrize("wrong", [{"oldest": -2}, {"made": -2}, {"begun": 2}, {"until": 2}])
def test_a_wrong_number_of_such_a_window_shows(wrong, monkeypatch):
    assert not runs_right(monkeypatch, WINDOW._replace(**wrong))
