"""Launches that are replayed as graphs, also when their scalars change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.codegen.gpu.scalars import WORDS, emit
from pyfuser.codegen.gpu.unit import CUDA, HIP
from pyfuser.engine.gpu import graphs
from pyfuser.runtime.session import SESSION
from pyfuser.support.counters import COUNTERS
from tests.gpu.compilers import (
    MISSING_CLANG,
    MISSING_NVRTC,
    clang,
    compile_cuda,
    compile_hip,
    nvrtc,
)

N = 300
PARTS = 5


@pk.workunit
def push(i, x, dt, force):
    x[i] = x[i] * dt + force


@pk.workunit
def push_single(i, x, dt: pk.float):
    x[i] = x[i] * dt


@pk.workunit
def count(i, x, step):
    x[i] += step


@pk.workunit
def total(i, acc, x):
    acc += x[i]


@pytest.fixture(autouse=True)
def no_graphs_of_other_tests() -> None:
    SESSION.programs.clear()
    SESSION.families.clear()


def several() -> list[Any]:
    """Views of different sizes: a launch for each."""
    views = [pk.View([N + 64 * k], pk.double) for k in range(PARTS)]
    for view in views:
        view.fill(1.0)
    return views


def advance(views: list[Any], dt: float, force: float = 0.25) -> None:
    with pyfuser.fusing():
        for view in views:
            pk.parallel_for(len(view), push, x=view, dt=dt, force=force)


def replays(before: list[int]) -> int:
    """How many there were since the last time."""
    before.append(COUNTERS.graph_launches)
    return before[-1] - before[-2]


def test_a_loop_whose_scalars_change_is_replayed(cupy: Any) -> None:
    views, seen = several(), [COUNTERS.graph_launches]
    expected = [np.ones(len(view)) for view in views]
    for k in range(12):
        dt = 1.0 / (k + 3)
        advance(views, dt)
        expected = [x * dt + 0.25 for x in expected]
    assert replays(seen) == 8  # one before anything changes, three until it is captured
    for view, x in zip(views, expected, strict=True):
        assert np.array_equal(view, x)


def test_a_scalar_that_begins_to_change_is_no_replay_of_the_old_one(cupy: Any) -> None:
    views, seen = several(), [COUNTERS.graph_launches]
    expected = 1.0
    changes = [(0.5, 0.25)] * 6 + [(1 / (k + 3), 0.25) for k in range(8)]
    changes += [(0.5, 0.1 * k) for k in range(8)] + [(0.5, 0.7)] * 3
    counts = []
    for dt, force in changes:
        advance(views, dt, force)
        expected = expected * dt + force
        counts.append(replays(seen))
    for view in views:
        assert np.array_equal(view, np.full(len(view), expected))
    assert counts == [0] * 3 + [1] * 3 + [0] * 3 + [1] * 5 + [0] * 3 + [1] * 8


def test_replays_that_nobody_waits_for_have_their_own_scalars(cupy: Any) -> None:
    """All of them are queued before the first one runs."""
    views = several()
    for k in range(6):
        advance(views, 1.0 / (k + 3))
    pyfuser.sync()
    start = [np.asarray(view).copy() for view in views]
    views = several()
    for k in range(20):
        advance(views, 1.0 / (k + 3))
    expected = np.ones(N)
    for k in range(20):
        expected = expected * (1.0 / (k + 3)) + 0.25
    for view in views:
        assert view[3] == expected[3]
    assert start[0][3] != expected[3]


def test_two_streams_have_their_own_scalars(cupy: Any) -> None:
    sides = [(pk.ExecutionSpaceInstance(pk.Cuda, cupy.cuda.Stream()), several()) for _ in range(2)]
    seen = [COUNTERS.graph_launches]
    expected = [1.0, 1.0]
    for k in range(10):
        for n, (instance, views) in enumerate(sides):
            dt = 1.0 / (k + 3 + n)
            with pyfuser.fusing():
                for view in views:
                    policy = pk.RangePolicy(instance, 0, len(view))
                    pk.parallel_for(policy, push, x=view, dt=dt, force=0.25)
            expected[n] = expected[n] * dt + 0.25
    assert replays(seen) >= 10
    for (_, views), x in zip(sides, expected, strict=True):
        assert all(view[view.shape[0] - 1] == x for view in views)


def test_results_and_single_precision_among_scalars(cupy: Any) -> None:
    views, seen = several(), [COUNTERS.graph_launches]
    single = pk.View([N], pk.float)
    single.fill(1.0)
    expected, narrow = [np.ones(len(view)) for view in views], np.ones(N, np.float32)
    for k in range(12):
        dt = 1.0 / (k + 3)
        with pyfuser.fusing():
            result = pk.parallel_reduce(N, total, x=views[0])
            pk.parallel_for(N, push_single, x=single, dt=np.float32(dt))
            for view in views[1:]:
                pk.parallel_for(len(view), push, x=view, dt=dt, force=result)
        expected[1:] = [x * dt + N for x in expected[1:]]
        narrow *= np.float32(dt)
    assert replays(seen) == 8
    assert np.array_equal(single, narrow)
    for view, x in zip(views, expected, strict=True):
        assert np.array_equal(view, x)


def test_integers_that_change_are_no_replay(cupy: Any) -> None:
    views, seen = several(), [COUNTERS.graph_launches]
    for k in range(8):
        with pyfuser.fusing():
            for view in views:
                pk.parallel_for(len(view), count, x=view, step=k)
    assert replays(seen) == 0
    assert all(view[1] == 1 + sum(range(8)) for view in views)


@pytest.mark.parametrize("limit", ["WORDS", "CHANGING"])
def test_too_much_or_too_little_stays_plain(
    cupy: Any, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, limit, {"WORDS": PARTS - 1, "CHANGING": PARTS + 1}[limit])
    views, seen = several(), [COUNTERS.graph_launches]
    for k in range(8):
        advance(views, 1.0 / (k + 3))
    assert replays(seen) == 0
    assert len({view[0] for view in views}) == 1


# --------------------------------------------------------------------------- the kernel


@pytest.mark.nvrtc
@pytest.mark.skipif(nvrtc() is None, reason=MISSING_NVRTC)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_cuda_compiles_what_sets_scalars(arch: str) -> None:
    assert str(WORDS) in emit(CUDA).source
    compile_cuda(emit(CUDA).source, arch)


@pytest.mark.hip
@pytest.mark.skipif(clang() is None, reason=MISSING_CLANG)
def test_hip_compiles_what_sets_scalars() -> None:
    compile_hip(emit(HIP).source, "gfx90a")
