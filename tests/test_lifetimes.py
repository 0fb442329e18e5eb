"""Memory goes from launch to launch inside a flush, and only where nobody needs what was there."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.ir.dtypes import DType
from pyfuser.runtime import execute, lifetimes
from pyfuser.runtime.launch import Launch, Source
from pyfuser.runtime.program import Program
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.extension import HOT
from pyfuser.trace import pool
from pyfuser.trace.memory import Allocation, Buffer, Handle, Region
from tests.analysis.build import S, View, call, known, region, trace, workunit

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
    y[i] = x[i] // (k - 1)  # of `k` itself the call would tell


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
            pk.parallel_for(N, divided, y=v, x=u, k=1 if step == zero else 2)
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


# --------------------------------------------------------------------------- the laws


class Waits:
    """A note: a call that may not be forgotten before others have run."""

    def __init__(self, call: int, until: tuple[int, ...]) -> None:
        self.call, self.until = call, until


def plan(*notes: Waits) -> Any:
    return SimpleNamespace(notes=notes)


def launch(*calls: int, of: Any, ends: Sequence[Source] = ()) -> Any:
    """A launch of calls that take all of their arguments from the trace."""
    arguments = [(n, k) for n in calls for k in range(len(of.calls[n].arguments))]
    return SimpleNamespace(calls=calls, sources=tuple(arguments), ends=tuple(ends))


MOVE = workunit("move", [S("i")], [View("y"), View("x")], [View("y")[S("i")] << View("x")[S("i")]])


def moves(*pairs: tuple[int, int], temporary: Sequence[int], sizes: Sequence[int] = ()) -> Any:
    """Calls that move from one cluster to another, (to, from), of so many elements (9)."""
    size = dict(enumerate(sizes))
    views = [[region(n, size.get(n, 9)) for n in pair] for pair in pairs]
    return trace(*(call(MOVE, 9, *pair) for pair in views), temporary=temporary)


def test_memory_is_needed_until_the_last_launch_that_touches_it() -> None:
    given = moves((1, 0), (2, 1), (3, 2), (4, 1), temporary=(1, 2, 3))
    each = [launch(n, of=given) for n in range(4)]
    assert lifetimes.last_needed(given, plan(), each) == {1: 3, 2: 2, 3: 2}
    both = [launch(0, 1, of=given), launch(2, 3, of=given)]
    assert lifetimes.last_needed(given, plan(), both) == {1: 1, 2: 1, 3: 1}


def test_memory_is_needed_by_calls_that_may_run_again() -> None:
    given = moves((1, 0), (2, 1), (3, 2), (4, 3), temporary=(1, 2, 3))
    each = [launch(n, of=given) for n in range(4)]
    assert lifetimes.last_needed(given, plan(), each) == {1: 1, 2: 2, 3: 3}
    waits = plan(Waits(0, (2, 3)), Waits(0, (1,)))
    assert lifetimes.last_needed(given, waits, each) == {1: 3, 2: 2, 3: 3}
    assert lifetimes.last_needed(given, plan(Waits(0, (3, 77))), each) == {2: 2, 3: 3}
    assert lifetimes.last_needed(given, plan(), each[:-1]) == {1: 1, 2: 2}


def test_memory_that_a_launch_takes_from_another_call() -> None:
    """As where it computes again what the other one does."""
    given = moves((1, 0), (2, 1), (3, 0), temporary=(1, 2))
    each = [launch(n, of=given) for n in range(3)]
    each[2].sources += ((1, 1),)
    assert lifetimes.last_needed(given, plan(), each) == {1: 2, 2: 1}


def test_ends_name_an_argument_of_the_launches() -> None:
    given = moves((1, 0), (2, 1), (3, 2), temporary=(1, 2))
    each = [Launch((n,), ((n, 0), (n, 1)), (), (), None, (), ()) for n in range(3)]  # type: ignore[arg-type]
    ends = [launch.ends for launch in lifetimes.with_ends(given, plan(), each)]
    assert ends == [(), ((0, 0),), ((1, 0),)]


def inherited(given: Any, launches: Sequence[Any], left_out: Sequence[Source] = ()) -> Any:
    stored = [[s for s in launch.sources if s not in left_out] for launch in launches]
    return lifetimes.heirs(given, launches, stored)


def test_an_heir_comes_after_the_end() -> None:
    given = moves((1, 0), (2, 1), (3, 2), (4, 3), temporary=(1, 2, 3, 4))
    ends: list[list[Source]] = [[], [(0, 0)], [(1, 0)], [(2, 0), (3, 0)]]
    each = [launch(n, of=given, ends=ends[n]) for n in range(4)]
    assert inherited(given, each) == {3: (0, 0), 4: (1, 0)}
    assert inherited(given, each, left_out=[(0, 0), (1, 1)]) == {4: (1, 0)}  # it has none to give
    # what is touched earlier has memory by then
    given = moves((1, 0), (2, 1), (4, 0), (4, 2), temporary=(1, 2, 4))
    each = [launch(n, of=given, ends=ends[n][:1]) for n in range(4)]
    assert inherited(given, each) == {4: (0, 0)}


def test_an_heir_has_no_memory_and_is_as_large() -> None:
    ends: list[list[Source]] = [[], [(0, 0)], [], []]
    given = moves((1, 0), (2, 1), (3, 2), temporary=(1, 2))  # 3 may have values
    assert inherited(given, [launch(n, of=given, ends=ends[n]) for n in range(3)]) == {}
    given = moves((1, 0), (2, 1), (3, 2), temporary=(1, 2, 3), sizes=(9, 8, 9, 9))
    assert inherited(given, [launch(n, of=given, ends=ends[n]) for n in range(3)]) == {}
    part = given.calls[2]._replace(arguments=(region(3, 8), region(2, 9)))
    given = given.with_calls({2: part, 1: call(MOVE, 9, region(2, 9), region(1, 9))})
    assert inherited(given, [launch(n, of=given, ends=ends[n]) for n in range(3)]) == {}


def test_only_numbers_have_no_memory() -> None:
    i, y, a = S("i"), View("y"), S("a")
    unit = workunit("put", [i], [y, a], [y[i] << a])
    calls = [call(unit, 9, region(n, 9), known(None)) for n in range(3)]
    given = trace(*calls, temporary=(0, 1, 2))
    each = [launch(n, of=given, ends=[(n, 0)]) for n in range(3)]
    assert lifetimes.last_needed(given, plan(), each) == {0: 0, 1: 1, 2: 2}
    assert inherited(given, each) == {1: (0, 0), 2: (1, 0)}


def test_only_memory_that_nobody_reaches_is_let_go() -> None:
    pool.POOL.clear()
    handle = Handle()

    def let_go(buffer: Buffer) -> bool:
        """Whether it has gone to the pool."""
        bytes_ = Region(buffer, 0, (1,), (buffer.nbytes,), DType.UINT8)
        held, root = pool.POOL.held, buffer.root is not None
        done: Any = SimpleNamespace(ends=((0, 0),))
        lifetimes.let_go(done, [SimpleNamespace(arguments=(bytes_,))])  # type: ignore[list-item]
        gone = root and buffer.root is None
        assert (pool.POOL.held > held) == gone
        return gone

    def made(owner: Handle | None = None) -> Allocation:
        buffer = Allocation(1 << 17, owner or Handle())
        buffer.allocate()
        return buffer

    assert let_go(made())
    assert not let_go(Allocation(1 << 17, Handle()))
    assert not let_go(made(handle))
    lent = made()
    lent.lent = True
    assert not let_go(lent)
    shown = made()
    shown.external = True
    assert not let_go(shown)
    on_gpu = made()
    on_gpu.image = object()  # type: ignore[assignment]
    assert not let_go(on_gpu)
