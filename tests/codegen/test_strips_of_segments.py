"""Strips in the segments of a body: fused bodies keep what each of their parts had alone."""
# ruff: noqa: F821

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyfuser

# isort: split
import pykokkos as pk

from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.engine.native import prepare as compile_kernels
from pyfuser.plan.plan import STRIP
from pyfuser.tuning.thresholds import DEFAULT
from tests.codegen.build import Case, case
from tests.vendors import decide_with_maths

M = 21
SIZES = [
    1,
    STRIP - 1,
    STRIP,
    STRIP + 1,
    8 * STRIP - 1,
    8 * STRIP,
    8 * STRIP + 1,
    DEFAULT.block + 9,
    300,
]


@pytest.fixture(autouse=True)
def vector_maths(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decisions of a machine that has vector maths, wherever the tests run."""
    decide_with_maths(monkeypatch, "exp", "log", "sin")


def table(n: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).uniform(0.1, 1.0, (n, M))


def built(work: Callable[..., None], n: int, pattern: str = "for") -> Case:
    return case(work, [n], lambda: [table(n), table(n, 1), table(n, 2)[:, 0].copy(), M], pattern)


def loops(given: Case) -> tuple[int, int]:
    """The loops over the iterations of a block, and those over its strips."""
    code = emit(spec_of(given.kernel))
    return len(re.findall(r"step < count", code)), code.count("strip += ")


def same(given: Case) -> None:
    """The compiled kernel does what the interpreter does, and strips change no bit."""
    (launchable,) = compile_kernels([given.kernel])
    found, results = given.run(launchable)
    expected, wanted = given.interpreted()
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    np.testing.assert_allclose(results, wanted, rtol=1e-12)


def after_a_map(i, x, y, v, m):
    scale: float = math.exp(v[i]) * math.sin(v[i])
    total: float = 0.0
    for j in range(m):
        total = 0.5 * total + scale * x[i][j]
    y[i][0] = total


def between_maps(i, x, y, v, m):
    total: float = math.exp(v[i]) * math.sin(v[i])
    for j in range(m):
        total = 0.5 * total + x[i][j]
    for j in range(m):
        y[i][j] = x[i][j] / total
    v[i] = math.log(total) * math.exp(-total)


def changed_between(i, x, y, v, m):
    """A cheap function of a local that the loop changes: of its value before."""
    total: float = math.exp(v[i]) * math.sin(v[i])
    for j in range(m):
        total = 0.5 * total + x[i][j]
    half: float = 0.5 * total
    for j in range(m):
        total = 0.25 * total + half * x[i][j]
    y[i][0] = total
    y[i][1] = half


def changed_later(i, x, y, v, m):
    """Its first value is cheap, and a later segment needs it."""
    share: float = 0.5
    total: float = 0.0
    for j in range(m):
        total = share * total + x[i][j]
    share = share + math.exp(-total) * math.sin(v[i])
    y[i][0] = share


def two_loops(i, x, y, v, m):
    low: float = math.exp(v[i]) * math.sin(v[i])
    high: float = low
    for j in range(m):
        low = 0.5 * low - x[i][j]
    middle: float = math.exp(-low * low) + math.sin(high)
    for j in range(m):
        high = 0.25 * high + middle * x[i][j]
    y[i][0] = low
    y[i][1] = high


def own_array(i, x, y, v, m):
    parts: List[float] = [0.0, 0.0, 0.0]
    total: float = math.exp(v[i]) * math.sin(v[i])
    for j in range(m):
        parts[j % 3] = parts[j % 3] + x[i][j]
    for j in range(m):
        total = 0.5 * total + parts[j % 3]
    y[i][0] = math.exp(-0.01 * parts[0]) * math.sin(parts[1]) + total


def added(i, acc, x, y, v, m):
    total: float = math.exp(v[i]) * math.sin(v[i])
    for j in range(m):
        total = 0.5 * total + x[i][j]
    for j in range(m):
        acc += x[i][j] * total
    acc += math.exp(-total) * math.sin(total)
    y[i][0] = total


LEGAL = {
    after_a_map: (1, 1),
    between_maps: (2, 1),
    changed_between: (1, 1),
    changed_later: (1, 1),
    two_loops: (2, 2),
    own_array: (2, 1),
    added: (2, 1),
}


@pytest.mark.parametrize("work", LEGAL)
def test_segments_have_strips(work: Callable[..., None]) -> None:
    given = built(work, 300, "reduce" if work is added else "for")
    assert loops(given) == LEGAL[work]
    same(given)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("work", [between_maps, own_array, added])
def test_strips_of_any_length(work: Callable[..., None], n: int) -> None:
    same(built(work, n, "reduce" if work is added else "for"))


def own_trips(i, x, y, v, m):
    total: float = math.exp(v[i]) * math.sin(v[i])
    for j in range(i % m):
        total = 0.5 * total + x[i][j]
    y[i][0] = total


def arriving_trips(i, x, y, v, m):
    first: float = math.exp(v[i]) * math.sin(v[i])
    last: int = int(first * m) % m
    total: float = 0.0
    for j in range(last):
        total = 0.5 * total + x[i][j]
    y[i][0] = total


def until(i, x, y, v, m):
    total: float = math.exp(v[i]) * math.sin(v[i])
    for j in range(m):
        if x[i][j] > 0.9:
            break
        total = 0.5 * total + x[i][j]
    y[i][0] = total


def counted(i, x, y, v, m):
    total: float = math.exp(v[i]) * math.sin(v[i])
    for j in range(m):
        total = 0.5 * total + pk.atomic_fetch_add(y, [i, 0], x[i][j])
    y[i][1] = total


@pytest.mark.parametrize("work", [own_trips, arriving_trips, until, counted])
def test_other_loops_of_segments_stay_one_iteration_after_the_other(
    work: Callable[..., None],
) -> None:
    given = built(work, 100)
    assert loops(given)[1] == 0
    same(given)


# --------------------------------------------------------------------------- fused programs


@pk.workunit
def angles(i, t, v):
    t[i] = pk.exp(v[i]) * pk.sin(v[i])


@pk.workunit
def recurrence(i, r, t, m):
    s: float = 0.0
    for _k in range(m):
        s = s * 0.5 + t[i]
    r[i] = s


@pk.workunit
def scaled(i, t, x, v, m):
    e: float = pk.exp(v[i])
    for j in range(m):
        t[i][j] = x[i][j] * e


@pk.workunit
def row_sum(i, r, t, m):
    s: float = 0.0
    for j in range(m):
        s += t[i][j]
    r[i] = s


@pk.workunit
def divided(i, y, t, r, m):
    for j in range(m):
        y[i][j] = t[i][j] / r[i]


@pytest.mark.parametrize("m", [1, 20, 300])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 63, 64, 65])
def test_fused_programs_have_the_bits_of_unfused_ones(n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    x, v = rng.random((n, m)), rng.random(n)

    def run() -> list[np.ndarray[Any, Any]]:
        r, y, q = np.zeros(n), np.zeros((n, m)), np.zeros(n)
        t, u = pk.View([n, m], pk.double), pk.View([n], pk.double)
        pk.parallel_for(n, angles, t=u, v=v)
        pk.parallel_for(n, recurrence, r=q, t=u, m=m)
        pk.parallel_for(n, scaled, t=t, x=x, v=v, m=m)
        pk.parallel_for(n, row_sum, r=r, t=t, m=m)
        pk.parallel_for(n, divided, y=y, t=t, r=r, m=m)
        pyfuser.sync()
        return [r, y, q]

    with pyfuser.unfused():
        unfused = run()
    with pyfuser.fusing():
        fused = run()
    assert len(pyfuser.explain().groups) == 1
    for a, b in zip(fused, unfused, strict=True):
        np.testing.assert_array_equal(a, b)
