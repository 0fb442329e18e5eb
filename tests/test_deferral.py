"""Calls that wait for the next launch when a result is read: which may, and what runs them."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.frontends import modes
from pyfuser.runtime import partial_flush
from pyfuser.runtime.partial_flush import Deferral
from pyfuser.runtime.session import SESSION

N = 1000


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """What may wait does, from the first read on, whatever it gains."""
    pyfuser.sync()
    monkeypatch.setattr(partial_flush, "STEADY", 1)
    monkeypatch.setattr(partial_flush.Site, "pays", property(lambda _: True))
    monkeypatch.setattr(partial_flush.Site, "judge", lambda *_: None)
    monkeypatch.setattr(SESSION.deferral, "on", True)
    SESSION.deferral._sites.clear()
    yield
    pyfuser.discard()
    SESSION.deferral._sites.clear()


@pyfuser.fuse
@pk.workunit
def advance(i, x, p, a):
    x[i] += a * p[i]


@pyfuser.fuse
@pk.workunit
def put(i, x, a):
    x[i] = a * i


@pyfuser.fuse
@pk.workunit
def copy(i, x, y):
    x[i] = y[i]


@pyfuser.fuse
@pk.workunit
def from_right(i, x, y):
    x[i] = y[i + 1]


@pyfuser.fuse
@pk.workunit
def count(i, x):
    pk.atomic_add(x, [i // 2], 1.0)


@pyfuser.fuse
@pk.workunit
def tell(i, x):
    x[i] = 1.0
    pk.printf("")


@pyfuser.fuse
@pk.workunit
def total(i, acc, x):
    acc += x[i]


@pyfuser.fuse
@pk.workunit
def scaled(i, acc, x, a):
    acc += a * x[i]


def view(value=0.0, n=N):
    made = pk.View([n], pk.double)
    made.fill(value)
    pyfuser.sync()
    return made


def names():
    return [text.split()[0] for text in pyfuser.pending()]


def recorded(x, p, r):
    """`x += 2 p`, which the sum of r does not need; the sum."""
    pk.parallel_for(N, advance, x=x, p=p, a=2.0)
    return pk.parallel_reduce(N, total, x=r)


def test_what_a_result_does_not_need_waits():
    x, p, r = view(1.0), view(3.0), view(1.0)
    before = pyfuser.stats()
    assert recorded(x, p, r) == N
    after = pyfuser.stats()
    assert names() == ["advance"]
    assert after.deferred - before.deferred == 1 and after.launches - before.launches == 1
    assert x[N - 1] == 7.0
    assert names() == []


def test_it_runs_with_the_calls_that_follow():
    x, p, r = view(1.0), view(3.0), view(1.0)
    assert recorded(x, p, r) == N
    before = pyfuser.stats().launches
    pk.parallel_for(N, put, x=p, a=5.0)
    pyfuser.sync()
    assert pyfuser.stats().launches - before == 1
    assert (x[4], p[4]) == (7.0, 20.0)


def test_nothing_waits_for_two_flushes():
    x, p, r = view(1.0), view(3.0), view(1.0)
    assert recorded(x, p, r) == N
    assert recorded(r, p, x) == 7.0 * N
    assert names() == ["advance"]  # the second one
    assert pk.parallel_reduce(N, total, x=p) == 3.0 * N
    assert names() == []
    assert r[0] == 7.0


# --------------------------------------------------------------------------- what does not wait


def _flow(x, p, r):
    pk.parallel_for(N, copy, x=r, y=p)


def _anti(x, p, r):
    pk.parallel_for(N, copy, x=x, y=r)
    pk.parallel_for(N, put, x=r, a=1.0)


def _anti_elsewhere(x, p, r):
    pk.parallel_for(N - 1, from_right, x=x, y=r)
    pk.parallel_for(N, put, x=r, a=1.0)


def _output(x, p, r):
    pk.parallel_for(N, put, x=r, a=3.0)
    pk.parallel_for(N // 2, put, x=r, a=1.0)


def _by_way_of_another(x, p, r):
    pk.parallel_for(N, put, x=p, a=1.0)
    pk.parallel_for(N, copy, x=x, y=p)
    pk.parallel_for(N, copy, x=r, y=x)


def _printing(x, p, r):
    pk.parallel_for(N, tell, x=x)


def _atomics(x, p, r):
    pk.parallel_for(N, count, x=x)


@pytest.mark.parametrize(
    "calls", [_flow, _anti, _anti_elsewhere, _output, _by_way_of_another, _printing, _atomics]
)
def test_what_a_result_needs_runs(calls):
    x, p, r = view(1.0), view(2.0), view(3.0)
    calls(x, p, r)
    want = pk.parallel_reduce(N, total, x=r)
    value = float(want)
    assert names() == []
    x2, p2, r2 = view(1.0), view(2.0), view(3.0)
    with pyfuser.unfused():
        calls(x2, p2, r2)
        assert value == pk.parallel_reduce(N, total, x=r2)
    for a, b in ((x, x2), (p, p2), (r, r2)):
        assert np.array_equal(np.array(a), np.array(b))


def test_another_result_does_not_wait_nor_what_it_needs():
    x, p, r = view(1.0), view(3.0), view(1.0)
    pk.parallel_for(N, advance, x=x, p=p, a=2.0)
    other = pk.parallel_reduce(N, total, x=x)
    assert pk.parallel_reduce(N, total, x=r) == N
    assert names() == [] and other == 7.0 * N


def test_a_result_of_a_pending_result_is_needed():
    x, p, r = view(1.0), view(3.0), view(1.0)
    first = pk.parallel_reduce(N, total, x=p)
    pk.parallel_for(N, advance, x=x, p=p, a=first)
    assert pk.parallel_reduce(N, scaled, x=r, a=first) == 3.0 * N * N
    assert names() == ["advance"]
    assert x[1] == 1.0 + 9.0 * N


@pytest.mark.parametrize("wait", [True, False])
def test_parts_of_one_view_are_compared_by_their_memory(wait):
    x, p = view(1.0, 2 * N), view(3.0)
    part = x[N:] if wait else x[N - 1 : 2 * N - 1]
    pk.parallel_for(N, advance, x=part, p=p, a=2.0)
    assert pk.parallel_reduce(N, total, x=x[:N]) == (N if wait else N + 6.0)
    assert names() == (["advance"] if wait else [])


@pytest.mark.parametrize("kind", ["array", "view of an array", "exposed", "exposed part"])
def test_memory_that_others_reach_does_not_wait(kind):
    x, p, r = view(1.0), view(3.0), view(1.0)
    array = np.ones(N)
    if kind == "array":
        x = array
    elif kind == "view of an array":
        x = pk.array(array)
    else:
        array = x.data if kind == "exposed" else x[:N].data
    assert recorded(x, p, r) == N
    assert names() == []
    assert array[0] == 7.0 if kind != "view of an array" else x[0] == 7.0


@pytest.mark.parametrize("kept", [True, False])
def test_memory_that_is_exposed_later(kept):
    x, p, r = view(1.0), view(3.0), view(1.0)
    arrays = []
    for n in range(1, 4):
        assert recorded(x, p, r) == N
        assert names() == (["advance"] if n == 1 or not kept else [])
        assert np.asarray(x)[0] == 1.0 + 6.0 * n
        if kept:
            arrays.append(np.asarray(x))


# --------------------------------------------------------------------------- what runs it


def test_the_host_writes():
    x, p, r = view(1.0), view(3.0), view(1.0)
    assert recorded(x, p, r) == N
    p[0] = 100.0
    x[1] = 0.0
    assert (x[0], x[1]) == (7.0, 0.0)


def test_whole_views_are_written():
    x, p, r = view(1.0), view(3.0), view(1.0)
    assert recorded(x, p, r) == N
    p[:] = r
    r.fill(0.0)
    assert (x[0], p[0], r[0]) == (7.0, 1.0, 0.0)


@pytest.mark.parametrize(
    "runs", [pyfuser.sync, pk.fence, pyfuser.explain, pyfuser.disable, lambda: pyfuser.sync(1.0)]
)
def test_functions_that_run_everything(runs):
    x, p, r = view(1.0), view(3.0), view(1.0)
    assert recorded(x, p, r) == N
    runs()
    modes.SWITCHES.everywhere = None
    assert names() == []


def test_blocks_run_everything():
    x, p, r = view(1.0), view(3.0), view(1.0)
    with pyfuser.fusing():
        assert recorded(x, p, r) == N
        assert names() == ["advance"]
    assert names() == []
    assert recorded(x, p, r) == N
    with pyfuser.unfused():
        assert names() == []
    assert x[0] == 13.0


def test_a_block_that_raises_runs_everything():
    x, p, r = view(1.0), view(3.0), view(1.0)
    with pytest.raises(ZeroDivisionError), pyfuser.fusing():
        assert 1 / (recorded(x, p, r) - N)
    assert names() == [] and x[0] == 7.0


def test_a_call_that_is_not_traced_runs_everything():
    x, p, r = view(1.0), view(3.0), view(1.0)
    assert recorded(x, p, r) == N
    pk.parallel_for(N, copy.__wrapped__, x=p, y=r)
    assert names() == [] and (x[0], p[0]) == (7.0, 1.0)


def test_discard():
    x, p, r = view(1.0), view(3.0), view(1.0)
    assert recorded(x, p, r) == N
    assert [text.split()[0] for text in pyfuser.discard()] == ["advance"]
    assert recorded(x, p, r) == N
    assert x[0] == 7.0


def test_another_thread_reads():
    x, p, r = view(1.0), view(3.0), view(1.0)
    seen = []
    result = recorded(x, p, r)
    for value in (lambda: float(result), lambda: x[0]):
        thread = threading.Thread(target=lambda value=value: seen.append(value()))
        thread.start()
        thread.join()
    assert seen == [N, 7.0]


def test_the_process_ends():
    code = """
import atexit, pyfuser
pyfuser.enable()
from pyfuser.runtime import partial_flush
from pyfuser.runtime.session import TRACER
partial_flush.STEADY, partial_flush.Site.pays = 1, True
atexit.unregister(pyfuser.api._finish)
atexit.register(lambda: print(len(TRACER.calls), x[0]))
atexit.register(pyfuser.api._finish)
import pykokkos as pk
from tests.test_deferral import recorded, view
x, p, r = view(1.0), view(3.0), view(1.0)
print(float(recorded(x, p, r)), len(pyfuser.pending()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1000.0", "1", "0", "7.0"]


# --------------------------------------------------------------------------- memory


def test_a_dead_view_that_a_waiting_call_reads():
    x, p, r = view(1.0), view(3.0), view(1.0)
    made = pk.View([N], pk.double)
    pk.parallel_for(N, put, x=made, a=1.0)
    result = pk.parallel_reduce(N, total, x=made)
    pk.parallel_for(N, advance, x=x, p=made, a=2.0)
    del made  # nobody but the call that waits reads it again
    assert result == N * (N - 1) / 2
    assert names() == ["advance"]
    gc.collect()
    assert x[5] == 11.0 and p[0] == 3.0 and r[0] == 1.0


def test_memory_of_a_dead_view_is_not_used_again_while_a_call_waits():
    n = 1 << 16
    x, r = view(1.0, n), view(1.0, n)
    for k in range(4):
        made = pk.View([n], pk.double)
        pk.parallel_for(n, put, x=made, a=float(k))
        result = pk.parallel_reduce(n, total, x=made)
        pk.parallel_for(n, copy, x=x, y=made)
        del made
        float(result)
        assert names() == ["copy"]
        others = [view(-1.0, n) for _ in range(3)] if k % 2 else []
        assert x[n - 1] == k * (n - 1)
        assert all(other[0] == -1.0 for other in others) and r[0] == 1.0


def test_a_view_that_only_waiting_calls_touched_is_new():
    x, p, r = pk.View([N], pk.double), view(3.0), view(1.0)
    assert recorded(x, p, r) == N
    assert names() == ["advance"]
    assert x[3] == 6.0


# --------------------------------------------------------------------------- errors, reports


def test_an_error_of_a_call_that_waited_names_its_line():
    huge, p, r = pk.View([1 << 50], pk.double), view(3.0), view(1.0)
    assert recorded(huge, p, r) == N  # does not need it
    with pytest.raises(MemoryError, match=r"called as 'advance' at .*test_deferral"):
        pyfuser.sync()
    assert names() == ["advance"]


def test_an_error_of_what_is_needed_leaves_the_rest():
    huge, x, p = pk.View([1 << 50], pk.double), view(1.0), view(3.0)
    result = recorded(x, p, huge)
    with pytest.raises(MemoryError, match="'total'"):
        float(result)
    assert names() == ["advance", "total"]
    with pytest.raises(MemoryError):
        float(result)
    pyfuser.discard()


def test_explain_says_what_waits():
    x, p, r = view(1.0), view(3.0), view(1.0)
    assert recorded(x, p, r) == N
    assert SESSION.flushes[-1].waiting == ("advance",)
    text = str(pyfuser.explain())
    assert text.startswith("2 calls ran as 2 kernels")
    assert "1 call waited for the next launch:\n  advance" in text


@pytest.mark.parametrize(
    "change", [{"defer": False}, {"verify": True}, {"check": frozenset({"bounds"})}, {"debug": 1}]
)
def test_settings_that_let_nothing_wait(monkeypatch, change):
    assert Deferral().on
    monkeypatch.setattr(partial_flush, "SETTINGS", replace(partial_flush.SETTINGS, **change))
    assert not Deferral().on


def test_nothing_waits_where_it_is_off(monkeypatch):
    monkeypatch.setattr(SESSION.deferral, "on", False)
    x, p, r = view(1.0), view(3.0), view(1.0)
    assert recorded(x, p, r) == N
    assert names() == []
