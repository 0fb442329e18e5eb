"""Blocks of fusing() and unfused() in generators, coroutines and threads: each has an owner."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pyfuser
from pyfuser.frontends import modes
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.runtime.session import TRACER
from pyfuser.trace.reason import SYNC

N = 4


@pk.workunit
def add(i, a, s):
    a[i] = a[i] + s


def launch(a: Any, s: float = 1.0) -> None:
    pk.parallel_for(N, add, a=a, s=s)


def recorded() -> bool:
    """Whether a launch made here is recorded; it is dropped."""
    assert not TRACER.calls
    launch(np.zeros(N))
    found = bool(TRACER.calls)
    pyfuser.discard()
    return found


@pytest.fixture(autouse=True)
def outside(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No block, no switch; and none is left afterwards."""
    monkeypatch.setattr(modes.SWITCHES, "everywhere", None)
    monkeypatch.setattr(modes.SWITCHES, "allowed", True)
    TRACER.flush(SYNC)
    yield
    pyfuser.discard()
    if "fused" in request.fixturenames:  # it ends after this one
        return
    assert modes.block() is None and not modes._OWNED and modes._open(modes._BLOCK.get()) is None


def in_thread(function: Callable[[], Any]) -> Any:
    """What a function returns in another thread."""
    result: list[Any] = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    return result[0]


def steps(a: Any, block: Any = pyfuser.fusing) -> Iterator[bool]:
    with block():
        launch(a)
        yield bool(TRACER.calls)
        launch(a)
        yield bool(TRACER.calls)


def test_a_generator_that_is_suspended_in_a_block() -> None:
    a, b = np.zeros(N), np.zeros(N)
    running = steps(a)
    assert next(running) and not a.any()
    launch(b)  # by code that knows nothing of the block: at once, after what is pending
    assert b[0] == 1.0 and a[0] == 1.0
    assert next(running) and a[0] == 1.0
    assert list(running) == [] and a[0] == 2.0


@pytest.mark.parametrize("end", ["exhausted", "closed", "dropped", "thrown"])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_the_end_of_the_block_wherever_it_is_resumed(end: str, elsewhere: bool) -> None:
    a = np.zeros(N)
    kept = [steps(a)]
    next(kept[0])

    def finish() -> None:
        if end == "exhausted":
            list(kept[0])
        elif end == "closed":
            kept[0].close()  # type: ignore[attr-defined]
        elif end == "dropped":
            kept.clear()
        else:
            with pytest.raises(KeyError):
                kept[0].throw(KeyError("x"))  # type: ignore[attr-defined]

    in_thread(finish) if elsewhere else finish()
    assert a[0] == 1.0 + (end == "exhausted") and pyfuser.pending() == ()
    assert not recorded() and not in_thread(recorded)


def test_a_generator_in_unfused_is_so_on_every_thread() -> None:
    a = np.zeros(N)
    pyfuser.enable()
    running = steps(a, pyfuser.unfused)
    assert not next(running) and a[0] == 1.0
    assert recorded(), "the caller is not in the block"
    assert in_thread(lambda: next(running)) is False and a[0] == 2.0
    list(running)
    pyfuser.disable()


def test_a_function_in_a_generator_ends_its_block_itself() -> None:
    """The twin: nothing is suspended here, and the innermost block wins."""

    def inner() -> tuple[bool, bool]:
        with pyfuser.unfused():
            first = recorded()
            with pyfuser.fusing():
                return first, recorded()

    def generator() -> Iterator[Any]:
        with pyfuser.fusing():
            yield inner(), recorded()

    with pyfuser.unfused():
        running = generator()
        assert next(running) == ((False, True), True)
        assert not recorded()
        running.close()  # type: ignore[attr-defined]
        assert not recorded()


@contextlib.contextmanager
def managed() -> Iterator[None]:
    with pyfuser.fusing():
        yield


@pytest.fixture
def fused() -> Iterator[None]:
    with pyfuser.fusing():
        yield


def test_a_context_manager_made_of_a_generator_is_a_block() -> None:
    """The twin: it is suspended on behalf of the `with` statement."""

    def generator() -> Iterator[bool]:
        with managed():
            yield recorded()

    with managed():
        assert recorded() and not in_thread(recorded)
    running = generator()
    assert next(running) and not recorded()
    running.close()  # type: ignore[attr-defined]
    with contextlib.ExitStack() as stack:
        stack.enter_context(pyfuser.fusing())
        stack.enter_context(managed())
        assert recorded()


def test_a_fixture_is_a_block(fused: None) -> None:
    a = np.zeros(N)
    launch(a)
    assert TRACER.calls
    pyfuser.sync()
    block = pyfuser.unfused()
    block.__enter__()  # by hand
    assert not recorded()
    block.__exit__(None, None, None)
    assert recorded()


def test_tasks() -> None:
    """A task is in its own blocks: not in those of others, nor in those it was started in."""

    async def plain(seen: list[bool]) -> None:
        for _ in range(3):
            seen.append(recorded())
            await asyncio.sleep(0)

    @contextlib.asynccontextmanager
    async def manager() -> AsyncIterator[None]:
        with pyfuser.fusing():
            yield

    async def worker(a: Any, seen: list[bool]) -> None:
        async with manager():
            other = asyncio.create_task(plain(seen))
            launch(a)
            assert TRACER.calls
            pyfuser.sync()
            await asyncio.sleep(0)
            assert recorded()
            assert not await asyncio.to_thread(recorded)
            await other
            launch(a)
            assert a[0] == 1.0
        assert a[0] == 2.0

    async def main() -> None:
        arrays, seen = np.zeros((3, N)), []
        await asyncio.gather(*(worker(a, seen) for a in arrays))
        assert seen == [False] * 9
        assert not recorded()

    asyncio.run(main())
    with pyfuser.fusing():
        asyncio.run(plain(inside := []))
    assert inside == [True] * 3, "the stack below is in the block"


def test_switches_inside_blocks() -> None:
    running = steps(np.zeros(N))
    with pyfuser.fusing():
        pyfuser.disable()
        assert recorded()
        next(running)
        pyfuser.enable()
        assert in_thread(lambda: (pyfuser.sync(), recorded())[1])
    with pyfuser.unfused():
        assert not recorded()
    list(running)
    pyfuser.disable()
    assert not recorded()


def test_one_block_entered_by_several() -> None:
    shared = pyfuser.fusing()

    def generator() -> Iterator[bool]:
        with shared:
            yield recorded()
            yield recorded()

    first, second = generator(), generator()
    assert next(first) and next(second)
    assert in_thread(lambda: list(first)) == [True]
    assert next(second) and not recorded()
    list(second)
    with shared, shared:
        assert recorded()
    block = pyfuser.fusing()
    block.__enter__()
    in_thread(lambda: block.__exit__(None, None, None))
    assert not recorded()
