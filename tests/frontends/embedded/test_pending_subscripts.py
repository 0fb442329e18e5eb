"""Subscripts that are elements are looked at in memory, unless something pending writes them.

Each way that leads to a launch is gone twice: with the call that puts the subscripts right pending,
and without it.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.frontends.embedded import careful
from pyfuser.frontends.embedded.decorators import WorkunitState
from pyfuser.frontends.embedded.dispatch import watched_for
from pyfuser.frontends.modes import SWITCHES
from pyfuser.runtime.session import TRACER
from pyfuser.support.errors import BoundsError, PyFuserError
from pyfuser.trace.reason import SYNC

N = 8


@pk.workunit
def backwards(i, k):
    k[i] = 7 - i


@pk.workunit
def gathered(i, v, w, k):
    v[i] = w[k[i]]


W = np.arange(float(N))
Gather = Callable[[], None]
Way = Callable[[Any, Gather], None]


def put_right(k: Any) -> None:
    if k is not None:
        pk.parallel_for(N, backwards, k=k)


def one_by_one(k: Any, gather: Gather) -> None:
    with pyfuser.unfused():
        put_right(k)
        gather()


def in_a_block(k: Any, gather: Gather) -> None:
    with pyfuser.fusing():
        put_right(k)
        gather()


def in_a_block_of_a_block(k: Any, gather: Gather) -> None:
    with pyfuser.fusing():
        put_right(k)
        with pyfuser.fusing():
            gather()


def unfused_in_a_block(k: Any, gather: Gather) -> None:
    with pyfuser.fusing():
        put_right(k)
        with pyfuser.unfused():
            gather()


def by_parts(k: Any, gather: Gather) -> None:
    with pyfuser.fusing():
        put_right(None if k is None else k[:])
        gather()


def by_another_name(k: Any, gather: Gather) -> None:
    with pyfuser.fusing():
        put_right(None if k is None else np.asarray(k))
        gather()


def again_and_again(k: Any, gather: Gather) -> None:
    with pyfuser.fusing():
        for _ in range(3):
            put_right(k)
            gather()


def in_a_captured_step(k: Any, gather: Gather) -> None:
    @pyfuser.capture
    def step() -> None:
        put_right(k)
        gather()

    step()
    pyfuser.sync()


def before_a_captured_step(k: Any, gather: Gather) -> None:
    with pyfuser.fusing():
        put_right(k)
        pyfuser.capture(gather)()


def in_another_thread(k: Any, gather: Gather) -> None:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            gather()
        except PyFuserError as error:
            raised.append(error)

    with pyfuser.fusing():
        put_right(k)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    for error in raised:
        raise error


def in_a_handler(k: Any, gather: Gather) -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: gather())
    try:
        with pyfuser.fusing():
            put_right(k)
            signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)


def watched(k: Any, gather: Gather) -> None:
    """As code calls that `pyfuser run` has rewritten."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SWITCHES, "careful", True)
        patch.setattr(SWITCHES, "everywhere", True)
        patch.setattr(careful, "_other_threads", lambda: 0)
        patch.setattr(pk, "parallel_for", watched_for)
        put_right(k)
        gather()
        pyfuser.sync()


def looked_after_by_nobody(k: Any, gather: Gather) -> None:
    """As other code calls under `pyfuser run`: what cannot wait runs at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SWITCHES, "careful", True)
        patch.setattr(SWITCHES, "everywhere", True)
        put_right(k)
        gather()
        pyfuser.sync()


WAYS = [
    one_by_one, in_a_block, in_a_block_of_a_block, unfused_in_a_block, by_parts, by_another_name,
    again_and_again, in_a_captured_step, before_a_captured_step, in_another_thread, in_a_handler,
    watched, looked_after_by_nobody,
]  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_pending() -> Iterator[None]:
    for workunit in (backwards, gathered):  # nothing is kept of earlier calls
        workunit.__pyfuser__ = WorkunitState(workunit.__pyfuser__.function, {}, False)
    yield
    with contextlib.suppress(PyFuserError):
        TRACER.flush(SYNC)


@pytest.mark.parametrize("memory", ["view", "array"])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_pending_counts(way: Way, memory: str) -> None:
    k = np.full(N, 100, np.int32) if memory == "array" else pk.View([N], pk.int32)
    k[:] = 100
    v = pk.View([N])

    def gather() -> None:
        pk.parallel_for(N, gathered, v=v, w=W, k=k)

    way(k, gather)
    np.testing.assert_array_equal(np.asarray(v), W[::-1])


@pytest.mark.parametrize("memory", ["view", "array"])
@pytest.mark.parametrize("way", WAYS)
def test_a_subscript_outside_is_refused(way: Way, memory: str) -> None:
    k = np.full(N, 100, np.int32) if memory == "array" else pk.View([N], pk.int32)
    k[:] = 100

    def gather() -> None:
        pk.parallel_for(N, gathered, v=pk.View([N]), w=W, k=k)

    with pytest.raises(BoundsError, match=r"k\[0\], which is 100, but its extent is 8"):
        way(None, gather)
