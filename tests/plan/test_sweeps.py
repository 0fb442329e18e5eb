"""Which loops sweep, and how far apart: each legal case with its illegal twin."""

from __future__ import annotations

import random

import pytest

from pyfuser.analysis.distances import call_distance
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Accumulator, Assign, Call, Const, Declare, Eval, Update
from pyfuser.plan.cost_model import CostModel
from pyfuser.plan.plan import STRIP, Group, Plan, Stage, Sweep
from pyfuser.plan.wavefront import MAX_CALLS, search, sweeps
from pyfuser.trace.call import Space
from pyfuser.trace.shape import FutureShape
from pyfuser.tuning.host import Machine
from pyfuser.tuning.thresholds import DEFAULT
from tests.analysis.build import S, View, call, expr, known, loop, region, trace, workunit
from tests.fuzz.wavefront import forced
from tests.nest.sweeps import cuts_of, schedule
from tests.vendors import tune

N = 1_000_000
X, Y, Z, W = (region(k, N) for k in range(4))
INNER, WHOLE = Space((3,), (N - 3,)), Space((0,), (N,))
MACHINE = Machine(cache=1 << 20)


def planned(*calls, temporary=(), machine=MACHINE, groups=None):
    """The sweeps of calls, of which each is a loop of its own."""
    shape = trace(*calls, temporary=temporary)
    loops = tuple(Group(g) for g in groups or [(n,) for n in range(len(calls))])
    return sweeps(shape, loops, CostModel(shape, machine))


def stages(*calls, **options):
    """The (lag, ahead) of each loop, if all make one sweep wherever that is legal; else None."""
    with forced(4):
        found = planned(*calls, **options)
    loops = len(options.get("groups") or calls)
    if len(found) != 1 or found[0].groups != tuple(range(loops)):
        return None
    return [(stage.lag, stage.ahead) for stage in found[0].stages]


def stencil(*shifts, name="stencil"):
    """A call-maker: `y[i] = x[i + shift] + ...`."""
    i, x, y = S("i"), View("x"), View("y")
    total = sum((x[i + shift] for shift in shifts[1:]), start=x[i + shifts[0]])
    unit = workunit(name, [i], [x, y], [y[i] << total])
    return lambda source, target, space=INNER: call(unit, space, source, target)


COPY, NEAR, LEFT, RIGHT = stencil(0), stencil(-1, 0, 1), stencil(-1), stencil(1)


def summed(shift=0, dtype=DType.FLOAT64):
    i, x, acc = S("i"), View("x", dtype=dtype), S("acc", dtype)
    unit = workunit(
        "sum", [i], [x], [Update("+", acc.sym, (), x[i + shift].node)], [Accumulator(acc.sym)]
    )
    return lambda source, space=INNER: call(unit, space, source, pattern="reduce")


# --------------------------------------------------------------------------- lags


@pytest.mark.parametrize(
    ("reader", "expected"),
    [
        (COPY, (0, 0)),
        (LEFT, (0, 1)),  # needs what lies behind: no lag, but nothing before the share
        (RIGHT, (1, 0)),
        (NEAR, (1, 1)),
        (stencil(-2, 3), (3, 2)),
    ],
)
def test_a_reader_lags_by_what_it_reads_ahead(reader, expected):
    assert stages(COPY(X, Y), reader(Y, Z)) == [(0, 0), expected]


def test_lags_add_up_along_a_chain():
    chain = stages(NEAR(X, Y), NEAR(Y, Z), NEAR(Z, W))
    assert chain == [(0, 0), (1, 1), (2, 2)]
    assert stages(NEAR(X, Y), RIGHT(Y, Z), LEFT(Z, W)) == [(0, 0), (1, 0), (0, 1)]


def test_lags_do_not_add_up_without_a_chain():
    assert stages(NEAR(X, Y), NEAR(Y, Z), NEAR(Y, W)) == [(0, 0), (1, 1), (1, 1)]
    assert stages(NEAR(X, Y), NEAR(X, Z)) == [(0, 0), (0, 0)]


def test_ping_pong():
    """The second step writes what the first reads: flow and anti dependences alike."""
    assert stages(NEAR(X, Y), NEAR(Y, X)) == [(0, 0), (1, 1)]
    steps = [NEAR(*((X, Y) if k % 2 == 0 else (Y, X))) for k in range(6)]
    assert stages(*steps) == [(k, k) for k in range(6)]


def test_anti_dependences_alone():
    i, x = S("i"), View("x")
    double = call(workunit("double", [i], [x], [x[i].update("*", 2.0)]), INNER, X)
    assert stages(RIGHT(X, Y), double) == [(0, 0), (0, 1)]
    assert stages(LEFT(X, Y), double) == [(0, 0), (1, 0)]
    assert stages(LEFT(X, Y), COPY(Z, X)) == [(0, 0), (1, 0)]


def test_output_dependences_alone():
    i, x, y = S("i"), View("x"), View("y")
    after = call(workunit("after", [i], [x, y], [y[i + 2] << x[i]]), INNER, X, Y)
    assert stages(COPY(Z, Y), after) == [(0, 0), (2, 0)]
    assert stages(after, COPY(Z, Y)) == [(0, 0), (0, 2)]


def test_other_spaces():
    early, late = Space((0,), (N // 2,)), Space((N // 4,), (N,))
    assert stages(COPY(X, Y, early), COPY(Y, Z, late)) == [(0, 0), (0, 0)]
    i, x, y = S("i"), View("x"), View("y")
    shifted = call(
        workunit("shifted", [i], [x, y], [y[i] << x[i + 5]]), Space((0,), (N - 5,)), Y, Z
    )
    assert stages(COPY(X, Y, WHOLE), shifted) == [(0, 0), (5, 0)]


def test_slices_of_one_buffer():
    tail = region(1, N - 1, offset=8)
    space = Space((0,), (N - 1,))
    assert stages(COPY(X, Y, space), COPY(tail, Z, space)) == [(0, 0), (1, 0)]
    assert stages(COPY(X, tail, space), COPY(Y, Z, space)) == [(0, 0), (0, 1)]


def test_calls_of_a_group_share_a_lag():
    calls = [COPY(X, Y), COPY(X, Z), RIGHT(Y, W), NEAR(Z, region(4, N))]
    assert stages(*calls, groups=[(0, 1), (2, 3)]) == [(0, 0), (1, 1)]


ROWS, COLUMNS = 2000, 1000
GRID = [region(k, (ROWS, COLUMNS)) for k in range(3)]


def grid_stencil(down, right):
    i, j, x, y = S("i"), S("j"), View("x", 2), View("y", 2)
    unit = workunit("grid", [i, j], [x, y], [y[i, j] << x[i, j] + x[i + down, j + right]])
    space = Space((2, 2), (ROWS - 2, COLUMNS - 2))
    return lambda source, target: call(unit, space, source, target)


def test_rows_of_a_grid():
    write = grid_stencil(0, 0)(GRID[0], GRID[1])
    for down, right, expected in [(1, 0, (1, 0)), (-1, 1, (0, 1)), (0, 2, (0, 0)), (2, -2, (2, 0))]:
        assert stages(write, grid_stencil(down, right)(GRID[1], GRID[2])) == [(0, 0), expected]


def test_a_line_of_rows_follows_a_grid():
    """Loops of other ranks share their outermost axis."""
    i, k, x, y = S("i"), S("k"), View("x", 2), View("y")
    row_sums = workunit("rows", [i], [x, y], [loop(k, 0, COLUMNS, [y[i].update("+", x[i, k])])])
    write = grid_stencil(0, 0)(GRID[0], GRID[1])
    sums = call(row_sums, Space((2,), (ROWS - 2,)), GRID[1], region(5, ROWS))
    assert stages(write, sums) == [(0, 0), (0, 0)]


# --------------------------------------------------------------------------- legality


def short(*calls, **options):
    """`stages` where all but a few steps between the shares are forbidden."""
    with forced(4), pytest.MonkeyPatch.context() as patch:
        tune(patch, sweep_shares=DEFAULT.sweep_shares)
        return bool(planned(*calls, **options))


def test_unbounded_distances_do_not_sweep():
    i, x, y, k = S("i"), View("x"), View("y"), View("k", dtype=DType.INT32)
    picks = region(5, N, dtype=DType.INT32)
    gather = call(workunit("gather", [i], [x, y, k], [y[i] << x[k[i]]]), INNER, Y, Z, picks)
    i, x, y = S("i"), View("x"), View("y")
    mirror = call(workunit("mirror", [i], [x, y], [y[i] << x[(N - 1) - i]]), INNER, Y, Z)
    i, x, y = S("i"), View("x"), View("y")
    half = call(workunit("half", [i], [x, y], [y[i] << x[i // 2]]), INNER, Y, Z)
    for reader in (gather, mirror, half):
        assert not short(COPY(X, Y), reader)
        assert short(COPY(X, W), reader)  # of what nobody writes
    assert short(COPY(X, Y), NEAR(Y, Z))


def test_a_gather_is_bounded_by_its_space():
    i, x, y, k = S("i"), View("x"), View("y"), View("k", dtype=DType.INT32)
    unit = workunit("gather", [i], [x, y, k], [y[i] << x[k[i]]])
    picks = region(5, N, dtype=DType.INT32)
    few = Space((0,), (10,))
    assert stages(COPY(X, Y, few), call(unit, few, Y, Z, picks)) == [(0, 0), (9, 9)]


def test_a_result_that_a_later_loop_takes_forbids():
    i, x, a = S("i"), View("x"), S("a", DType.FLOAT64)
    scale = workunit("scale", [i], [x, a], [x[i].update("*", a)])
    total = summed()(X)
    assert stages(total, call(scale, INNER, Y, known(None, DType.FLOAT64))) is not None
    taken = call(scale, INNER, Y, FutureShape(DType.FLOAT64, 0))
    assert stages(total, taken) is None
    between = [total, COPY(Z, W), taken]  # not the neighbour: a sweep further on
    with forced(4):
        assert [sweep.groups for sweep in planned(*between)] == [(0, 1)]
    with forced(4):
        assert [sweep.groups for sweep in planned(total, taken, COPY(Y, W))] == [(1, 2)]


def test_effects_forbid():
    i, x = S("i"), View("x")
    shows = workunit("shows", [i], [x], [Eval(Call("printf", (x[i].node,), DType.INT32))])
    assert stages(COPY(X, Y), call(shows, INNER, X)) is None
    assert stages(call(shows, INNER, X), COPY(X, Y)) is None


def test_only_sums_sweep():
    i, x, acc = S("i"), View("x"), S("acc", DType.FLOAT64)
    largest = workunit(
        "max", [i], [x], [Update("max", acc.sym, (), x[i].node)], [Accumulator(acc.sym)]
    )
    assert stages(COPY(X, Y), call(largest, INNER, X, pattern="reduce")) is None
    flags = region(6, N, dtype=DType.BOOL)
    assert stages(COPY(X, Y), summed(dtype=DType.BOOL)(flags)) is None
    whole = region(6, N, dtype=DType.INT32)
    assert stages(COPY(X, Y), summed(dtype=DType.INT32)(whole)) is not None


@pytest.mark.parametrize("place", range(3))
def test_a_reduction_at_any_place(place):
    calls = [NEAR(X, Y), NEAR(Y, Z)]
    calls.insert(place, summed(1)((X, Y, Z)[place]))
    expected = [[(0, 0), (0, 0), (1, 1)], [(0, 0), (1, 0), (1, 1)], [(0, 0), (1, 1), (2, 0)]]
    assert stages(*calls) == expected[place]


def test_execution_spaces_keep_apart():
    serial = Space((3,), (N - 3,), "Serial")
    assert stages(COPY(X, Y), NEAR(Y, Z, serial)) is None
    assert stages(COPY(X, Y, serial), NEAR(Y, Z, serial)) is not None


def test_an_empty_loop_does_not_sweep():
    assert stages(COPY(X, Y), NEAR(Y, Z, Space((5,), (5,)))) is None
    assert stages(NEAR(Y, Z, Space((5,), (5,))), COPY(X, Y)) is None


def test_a_sweep_has_a_limit():
    calls = [COPY(X, Y)] * (MAX_CALLS + 1)
    with forced(4):
        assert [len(sweep.groups) for sweep in planned(*calls)] == [MAX_CALLS]


def test_no_calls_no_sweeps():
    assert planned() == ()
    assert planned(COPY(X, Y)) == ()


# --------------------------------------------------------------------------- profit


def sweeps_for_real(*calls, machine=MACHINE, **options):
    return [sweep.groups for sweep in planned(*calls, machine=machine, **options)]


def test_what_stays_in_cache_anyway_does_not_sweep():
    pair = NEAR(X, Y), NEAR(Y, Z)
    assert sweeps_for_real(*pair) == [(0, 1)]
    assert sweeps_for_real(*pair, machine=Machine(cache=1 << 24)) == []


def test_a_window_that_does_not_fit_does_not_sweep():
    far = stencil(-10_000, 10_000)
    space = Space((10_000,), (N - 10_000,))
    pair = COPY(X, Y, space), far(Y, Z, space)
    assert sweeps_for_real(*pair, machine=Machine(cache=1 << 20)) == [(0, 1)]
    assert sweeps_for_real(*pair, machine=Machine(cache=1 << 18)) == []


def test_a_short_axis_does_not_sweep():
    flat = [region(k, (40, 100_000)) for k in range(3)]
    i, j, x, y = S("i"), S("j"), View("x", 2), View("y", 2)

    def rows(down):
        unit = workunit("rows", [i, j], [x, y], [y[i, j] << x[i + down, j]])
        return lambda a, b: call(unit, Space((0, 0), (39, 100_000)), a, b)

    big = Machine(cache=1 << 23)
    assert sweeps_for_real(rows(0)(*flat[:2]), rows(0)(*flat[1:]), machine=big) == [(0, 1)]
    assert DEFAULT.sweep_shares < 39 < 2 * DEFAULT.sweep_shares
    assert sweeps_for_real(rows(0)(*flat[:2]), rows(1)(*flat[1:]), machine=big) == [(0, 1)]
    i, j, x, y = S("i"), S("j"), View("x", 2), View("y", 2)
    both_ways = workunit("both", [i, j], [x, y], [y[i, j] << x[i + 1, j] + x[i - 1, j]])
    wide = call(both_ways, Space((1, 0), (39, 100_000)), *flat[1:])
    assert sweeps_for_real(rows(0)(*flat[:2]), wide, machine=big) == []


def test_columns_that_lie_together_do_not_sweep_by_rows():
    left = [region(k, (ROWS, COLUMNS), strides=(8, 8 * ROWS)) for k in range(3)]
    step = grid_stencil(1, 0)
    assert sweeps_for_real(step(GRID[0], GRID[1]), step(GRID[1], GRID[2])) == [(0, 1)]
    assert sweeps_for_real(step(left[0], left[1]), step(left[1], left[2])) == []


def test_one_transpose_of_a_large_array_keeps_a_sweep_away():
    """Steps would take an element of every line; blocks of both axes take whole lines."""
    i, j, x, y = S("i"), S("j"), View("x", 2), View("y", 2)
    unit = workunit("turn", [i, j], [x, y], [y[j, i] << x[i, j]])
    space = Space((0, 0), (1000, 1000))
    a, b, c = (region(k, (1000, 1000)) for k in range(3))
    copy = call(workunit("copy", [i, j], [x, y], [y[i, j] << x[i, j]]), space, a, b)
    again = call(workunit("copy", [i, j], [x, y], [y[i, j] << x[i, j]]), space, b, c)
    assert sweeps_for_real(copy, again) == [(0, 1)]
    assert sweeps_for_real(copy, call(unit, space, b, c)) == []


def test_waves_of_a_line_are_whole_vectors():
    (sweep,) = planned(NEAR(X, Y), NEAR(Y, Z))
    assert sweep.wave % 64 == 0 and sweep.wave > 0


def solve(width, waits=True):
    """Rows, of which each element needs the one before it, or none."""
    i, k, x, y, last = S("i"), S("k"), View("x", 2), View("y", 2), S("last", DType.FLOAT64)
    step = (
        [Assign(last.sym, (x[i, k] + last).node), y[i, k] << last]
        if waits
        else [y[i, k] << x[i, k]]
    )
    start = Declare(last.sym, Const(0.0, DType.FLOAT64))
    unit = workunit("solve", [i], [x, y], [start, loop(k, 0, width, step)])
    return lambda source, target: call(unit, Space((0,), (ROWS,)), source, target)


def test_waves_of_rows_are_whole_strips():
    """Rows that wait for themselves run side by side; those left over would run alone."""
    width = 5 * (1 << 20) // (8 * ROWS)
    grids = [region(k, (ROWS, width)) for k in range(3)]
    steps = solve(width)(*grids[:2]), solve(width)(*grids[1:])
    (sweep,) = planned(*steps)
    assert sweep.wave > STRIP and sweep.wave % STRIP == 0


def test_rows_that_do_not_wait_need_no_strip():
    width = 2500
    grids = [region(k, (ROWS, width)) for k in range(3)]
    waves = []
    for waits in (True, False):
        unit = solve(width, waits)
        (sweep,) = planned(unit(*grids[:2]), unit(*grids[1:]))
        waves.append(sweep.wave)
    assert waves[1] > waves[0] == waves[1] // STRIP * STRIP


def test_cells_that_wait_are_no_rows():
    """Strips are of the innermost index, so a wave of rows of cells may have any height."""
    grids = [region(k, (ROWS, 4000)) for k in range(3)]
    i, j, k, x, y, s = S("i"), S("j"), S("k"), View("x", 2), View("y", 2), S("s", DType.FLOAT64)
    body = [
        Declare(s.sym, Const(0.0, DType.FLOAT64)),
        loop(k, 0, 3, [Assign(s.sym, (s + x[i, j + k]).node)]),
        y[i, j] << s,
    ]
    unit = workunit("cells", [i, j], [x, y], body)
    space = Space((0, 0), (ROWS, 3990))
    (sweep,) = planned(*(call(unit, space, *grids[n : n + 2]) for n in range(2)))
    assert 0 < sweep.wave < STRIP


# --------------------------------------------------------------------------- why not


def why(*calls, machine=MACHINE):
    """What is said of the last call, which must not be in a sweep with the one before it."""
    shape = trace(*calls)
    groups = [Group((n,)) for n in range(len(calls))]
    found, declined = search(shape, groups, CostModel(shape, machine))
    place = len(calls) - 1
    assert not any(place in sweep.groups for sweep in found)
    (last,) = (d for d in declined if d.call == place)
    assert last.after == {place} and place - 1 in last.before
    assert last.why_apart(place - 1, place) == last.why_apart(place, place - 1) == last.why
    assert not last.why_apart(place, place)
    return last.why


def test_a_sweep_that_is_made_is_not_declined():
    shape = trace(NEAR(X, Y), NEAR(Y, Z))
    assert search(shape, [Group((0,)), Group((1,))], CostModel(shape, MACHINE))[1] == ()


def test_it_is_told_why_neighbours_do_not_sweep():
    write = COPY(X, Y)
    mirror = workunit("mirror", [(i := S("i"))], [(x := View("x")), (y := View("y"))],
                      [y[i] << x[N - 1 - i]])  # fmt: skip
    assert "any distance" in why(write, call(mirror, WHOLE, Y, Z))
    far = stencil(-10_000, 10_000)
    space = Space((10_000,), (N - 10_000,))
    text = why(COPY(X, Y, space), far(Y, Z, space), machine=Machine(cache=1 << 18))
    assert "do not fit in cache" in text
    wide = stencil(-40_000, 40_000)(Y, Z, Space((40_000,), (N - 40_000,)))
    assert "80000 steps" in why(write, wide) and "too far" in why(write, wide)
    for cache, text in (
        (25, "the 22.89 MiB stay in the cache (32 MiB) between"),
        (24, "the 22.89 MiB are less than 4 times the cache (16 MiB)"),
    ):
        assert text in why(NEAR(X, Y), NEAR(Y, Z), machine=Machine(cache=1 << cache))


# --------------------------------------------------------------------------- plans, schedules


def test_launches_follow_the_order_of_groups():
    groups = tuple(Group((n,)) for n in range(6))
    stage = Stage(0, 0)
    plan = Plan(groups, (), (Sweep((1, 2), (stage,) * 2, 8), Sweep((3, 4), (stage,) * 2, 8)))
    assert plan.launches() == ((0,), (1, 2), (3, 4), (5,))


def random_loop(rng, regions):
    """A stencil or a sum over a random space, of regions that may be slices of one buffer."""
    i, x, y = S("i"), View("x"), View("y")
    begin = rng.randint(3, 9)
    space = Space((begin,), (begin + rng.randint(3, 17),))
    cell = x[rng.choice([1, 1, 2]) * i + rng.randint(-3, 3)]
    target = y[i + rng.randint(-2, 2)]
    unit = workunit("random", [i], [x, y], [target << expr(cell)])
    return call(unit, space, rng.choice(regions), rng.choice(regions))


@pytest.mark.parametrize("seed", range(60))
def test_schedules_keep_every_dependence(seed):
    """Whatever is planned, every iteration runs once, after all those it depends on."""
    rng = random.Random(seed)
    regions = [region(0, 64), region(1, 64), region(1, 60, offset=16), region(2, 64)]
    calls = [random_loop(rng, regions) for _ in range(4)]
    with forced(rng.randint(1, 5)):
        found = planned(*calls)
    for sweep in found:
        loops = [calls[n] for n in sweep.groups]
        spaces = [c.space for c in loops]
        cuts = cuts_of(sweep, spaces, rng.randint(1, 5))
        runs = {}
        for when, piece in enumerate(schedule(sweep, spaces, cuts, seed)):
            for step in range(piece.first, piece.last):
                assert (piece.stage, step) not in runs, "runs twice"
                runs[piece.stage, step] = when
        everything = {(k, n) for k, s in enumerate(spaces) for n in range(s.begin[0], s.end[0])}
        assert runs.keys() == everything
        for (k, p), early in runs.items():
            for (m, q), late in runs.items():
                bounds = call_distance(loops[k], loops[m]) if k < m else None
                if bounds and bounds[0] <= q - p <= bounds[1]:
                    assert early < late
