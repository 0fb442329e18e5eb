"""Memory goes from launch to launch inside a flush, and only where nobody needs what was there."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.plan.plan import Plan
from pyfuser.runtime import execute, lifetimes
from pyfuser.runtime.program import Program
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.extension import HOT
from pyfuser.trace import pool

N = 1 << 14  # doubles: more than the pool's smallest block
ROUNDS = 4  # the first runs in Python, the later ones in the extension, if there is one


@pk.workunit
def turned(i, new, old, order):
    t = 0.0
    for _ in range(order[i] % 2 + 1):  # so that nobody computes it again where it is read
        t = old[order[i]] + 1.0
    new[i] = t


@pk.workunit
def turned2(i, j, new, old, order):
    t = 0.0
    for _ in range(order[i] % 2 + 1):
        t = old[order[i]][order[j]] + 1.0
    new[i][j] = t


@pk.workunit
def turned3(i, j, k, new, old, order):
    t = 0.0
    for _ in range(order[i] % 2 + 1):
        t = old[order[i]][order[j]][order[k]] + 1.0
    new[i][j][k] = t


@pk.workunit
def put(i, y, a):
    y[i] = a


@pk.workunit
def total(i, acc, x):
    acc += x[i]


@pk.workunit
def divided(i, y, x, k):
    y[i] = x[i] // k


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    SESSION.clear()
    yield
    SESSION.clear()


def view(n: int = N) -> pk.View:
    return pk.View([n], pk.double)


def start(n: int = N) -> pk.View:
    x = view(n)
    x[:] = np.arange(float(n))
    return x


def backwards(n: int) -> pk.View:
    """An order that no analysis knows: calls with it share no loop."""
    order = pk.View([n], pk.int64)
    order[:] = np.arange(n)[::-1]
    return order


ORDERS = {n: backwards(n) for n in (7, 10, 20, 64, 300, 5000, N // 2, N)}


def turn(old: pk.View, n: int = N) -> pk.View:
    new = view(n)
    pk.parallel_for(n, turned, new=new, old=old, order=ORDERS[n])
    return new


def expected(steps: int, n: int = N) -> np.ndarray:
    x = np.arange(float(n))
    return (x[::-1] if steps % 2 else x) + steps


def blocks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Gets the size of each block that comes from the system from now on."""
    pool.POOL.clear()
    made: list[int] = []
    zeros = pool._zeros

    def note(size: int) -> pool.Array:
        made.append(size)
        return zeros(size)

    monkeypatch.setattr(pool, "_zeros", note)
    return made


def latest() -> Program:
    return SESSION.flushes[-1].program


def test_ten_steps_need_three_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    x = start()
    made = blocks(monkeypatch)
    with pyfuser.fusing():
        for _ in range(ROUNDS):
            u = x
            for _ in range(10):
                u = turn(u)
            np.testing.assert_array_equal(u, expected(10))
            del u
    assert len(latest().launches) == 10
    assert len(made) <= 3  # of which one is a copy of the test's


def test_what_a_name_holds_keeps_its_memory() -> None:
    x = start()
    with pyfuser.fusing():
        for held in (3, 5, None, 3, 3, 5, 5, None, None):  # other liveness each time
            u, kept = x, None
            for step in range(1, 11):
                u = turn(u)
                if step == held:
                    kept = u
            assert u[0] == expected(10)[0]
            np.testing.assert_array_equal(u, expected(10))
            if held is not None:
                np.testing.assert_array_equal(kept, expected(held))


def test_what_an_array_shows_keeps_its_memory() -> None:
    x = start()
    with pyfuser.fusing():
        for _ in range(ROUNDS):
            v = view()
            shown = v.data  # anybody may look at it, and nobody holds the View
            pk.parallel_for(N, turned, new=v, old=x, order=ORDERS[N])
            u = v
            del v
            for _ in range(4):
                u = turn(u)
            np.testing.assert_array_equal(u, expected(5))
            np.testing.assert_array_equal(shown, expected(1))


def test_a_part_keeps_the_whole() -> None:
    x = start()
    half = N // 2
    with pyfuser.fusing():
        for _ in range(ROUNDS):
            u = turn(x)
            part = u[half:]
            del u
            w = x
            for _ in range(5):
                w = turn(w)
            y = view(half)
            pk.parallel_for(half, turned, new=y, old=part, order=ORDERS[half])
            del part
            assert w[0] == expected(5)[0]
            np.testing.assert_array_equal(w, expected(5))
            np.testing.assert_array_equal(y, expected(1)[half:][::-1] + 1.0)


@pytest.mark.parametrize("layout", [pk.LayoutRight, pk.LayoutLeft])
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("first", [False, True])
def test_what_is_not_written_is_zero(rank: int, layout: pk.Layout, first: bool) -> None:
    """Memory that was somebody else's, where a kernel leaves a border.

    first: the border is one that ends at the first element, else all around.
    """
    n = {1: 300, 2: 20, 3: 10}[rank]
    step = {1: turned, 2: turned2, 3: turned3}[rank]
    low, high = (1, n) if first else (2, n - 1)
    policy = (
        pk.MDRangePolicy([low] * rank, [high] * rank) if rank > 1 else pk.RangePolicy(low, high)
    )
    x = pk.View([n] * rank, pk.double, layout=layout)
    x[...] = rng = np.random.default_rng(3).normal(size=(n,) * rank)
    wanted = rng
    for _ in range(7):
        inner = np.zeros_like(wanted)
        box = (slice(low, high),) * rank
        inner[box] = wanted[(slice(None, None, -1),) * rank][box] + 1.0
        wanted = inner
    with pyfuser.fusing():
        for _ in range(ROUNDS):
            u = x
            for _ in range(7):
                v = pk.View([n] * rank, pk.double, layout=layout)
                pk.parallel_for(policy, step, new=v, old=u, order=ORDERS[n])
                u = v
            del v
            np.testing.assert_array_equal(u, wanted)
    assert len(latest().launches) == 7
    assert heirs_of(latest())


def heirs_of(program: Program) -> dict[int, tuple[int, int]]:
    stored = [la.sources for la in program.launches]
    return lifetimes.heirs(program.given, program.launches, stored)


def test_what_is_read_before_it_is_written_is_zero() -> None:
    x = start()
    with pyfuser.fusing():
        for _ in range(ROUNDS):
            u = turn(turn(turn(x)))
            fresh = view()
            w = turn(fresh)
            del fresh
            sum_ = pk.parallel_reduce(N, total, x=u)
            np.testing.assert_array_equal(w, np.ones(N))
            assert float(sum_) == expected(3).sum()


def test_other_sizes_get_other_memory() -> None:
    x, y = start(), start(N // 2)
    with pyfuser.fusing():
        for _ in range(ROUNDS):
            u, v = x, y
            for _ in range(4):
                u, v = turn(u), turn(v, N // 2)
            assert u[0] == expected(4)[0]
            np.testing.assert_array_equal(u, expected(4))
            np.testing.assert_array_equal(v, expected(4, N // 2))


@pytest.mark.parametrize("fails", [1, 3, 5])
@pytest.mark.parametrize("warm", [0, 3])
def test_a_division_in_the_middle(fails: int, warm: int) -> None:
    """What ran before is right, and what is recorded later starts anew."""
    x = pk.View([N], pk.int64)
    x[:] = np.arange(N)

    def steps(zero: int) -> tuple[pk.View, pk.View]:
        u, kept = x, x
        for step in range(6):
            v = pk.View([N], pk.int64)
            w = pk.View([N], pk.int64)
            pk.parallel_for(N, divided, y=v, x=u, k=0 if step == zero else 1)
            pk.parallel_for(pk.RangePolicy(1, N), turned, new=w, old=v, order=ORDERS[N])
            if step == fails - 1:
                kept = w
            u = w
        return u, kept

    def wanted(count: int) -> np.ndarray:
        u = np.arange(N)
        for _ in range(count):
            u = u[::-1] + 1
            u[0] = 0
        return u

    with pyfuser.fusing():
        for _ in range(warm):
            u, _ = steps(-1)
            np.testing.assert_array_equal(u, wanted(6))
        u, kept = steps(fails)
        with pytest.raises(ZeroDivisionError):
            np.asarray(u)
        np.testing.assert_array_equal(kept, wanted(fails))
        u, _ = steps(-1)
        np.testing.assert_array_equal(u, wanted(6))


def test_a_failure_in_the_middle_leaves_what_has_to_run_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = start()
    run, left = execute.run_launch, [3]

    def fail(*args: object) -> None:
        left[0] -= 1
        if not left[0]:
            raise MemoryError
        run(*args)  # type: ignore[arg-type]

    with pyfuser.fusing():
        u = x
        for _ in range(8):
            u = turn(u)
        monkeypatch.setattr(execute, "run_launch", fail)
        np.testing.assert_array_equal(u, expected(8))
    assert left[0] < 0


@pytest.mark.parametrize("seed", range(40))
def test_random_traces(seed: int) -> None:
    """Random traces of three kinds of calls that come back, each time with other views alive."""
    rng = random.Random(seed)
    n = rng.choice([7, 64, 5000])
    program = _program(rng)
    x = start(n)
    shared = 0
    with pyfuser.fusing():
        for round_ in range(6):
            rng_ = random.Random(seed if round_ % 3 else seed + round_)
            _run(program, x, n, rng_)
            shared += bool(heirs_of(latest())) if SESSION.flushes else 0
    if seed == 0:
        assert shared


Step = tuple[str, int, int, int]


def _program(rng: random.Random) -> list[Step]:
    """Kind, what is read and written (views are numbered, 0 is the input), where it begins."""
    steps: list[Step] = []
    views = 1
    for _ in range(rng.randint(4, 14)):
        kind = rng.choice(["turn", "turn", "turn", "again", "put"])
        source = rng.choice([views - 1, views - 1, rng.randrange(views)])
        if kind == "turn":
            steps.append((kind, source, views, rng.choice([0, 0, 1])))
            views += 1
        elif source:
            target = rng.randrange(1, views) if kind == "again" else source
            if kind == "put" or source != target:
                steps.append((kind, source, target, rng.choice([0, 2])))
    return steps


def _run(program: list[Step], x: pk.View, n: int, rng: random.Random) -> None:
    views, values = {0: x}, {0: np.arange(float(n))}
    last = {place: at for at, step in enumerate(program) for place in step[1:3]}
    kept = [place for place in last if place and rng.random() < 0.3]
    for at, (kind, source, target, begin) in enumerate(program):
        if target not in views:
            views[target], values[target] = view(n), np.zeros(n)
        policy = pk.RangePolicy(begin, n)
        if kind == "put":
            pk.parallel_for(policy, put, y=views[target], a=float(at))
            values[target][begin:] = float(at)
        else:
            pk.parallel_for(policy, turned, new=views[target], old=views[source], order=ORDERS[n])
            values[target][begin:] = values[source][::-1][begin:] + 1.0
        for place in {source, target}:
            if place and last[place] == at and place not in kept:
                del views[place]
    pyfuser.sync()
    for place, found in views.items():
        np.testing.assert_array_equal(found, values[place], err_msg=f"view {place}")


# --------------------------------------------------------------------------- the laws


def traced(make: Callable[[], object]) -> Program:
    """The program of what is recorded; what `make` returns is alive when it is made."""
    with pyfuser.fusing():
        alive = make()
        pyfuser.sync()
    del alive
    return latest()


def ends(program: Program) -> list[int]:
    return [len(launch.ends) for launch in program.launches]


def test_ends() -> None:
    x = start()
    assert ends(traced(lambda: turn(turn(turn(x))))) == [0, 1, 1]
    assert ends(traced(lambda: (a := turn(x), turn(turn(a))))) == [0, 0, 1]
    assert TRACER.calls == []


def test_a_call_that_may_run_again_keeps_what_it_touches() -> None:
    """A call that another one computes as well is forgotten with that one."""
    x = start()
    program = traced(lambda: turn(turn(turn(turn(x)))))
    given, launches = program.given, program.launches
    assert lifetimes.last_needed(given, program.plan, launches) == {0: 1, 3: 2, 4: 3}

    class Waits:
        call, until = 0, (3,)

    waits = Plan(program.plan.groups, program.plan.rejections, notes=(Waits(),))  # type: ignore[arg-type]
    assert lifetimes.last_needed(given, waits, launches) == {0: 3, 3: 2, 4: 3}
    Waits.until = (3, 77)  # which does not run
    assert lifetimes.last_needed(given, waits, launches) == {3: 2, 4: 3}
    assert lifetimes.last_needed(given, program.plan, launches[:-1]) == {0: 1, 3: 2}


@pytest.mark.skipif(HOT is None, reason="the extension is not compiled")
def test_the_extension_hands_memory_on() -> None:
    x = start(64)
    addresses = []
    with pyfuser.fusing():
        for _ in range(ROUNDS):
            u = x
            for _ in range(10):
                u = turn(u, 64)
            calls = list(TRACER.calls)
            np.testing.assert_array_equal(u, expected(10, 64))
            addresses.append(len({call.arguments[0].buffer.address for call in calls}))
            del calls
    assert addresses[-1] <= 2
