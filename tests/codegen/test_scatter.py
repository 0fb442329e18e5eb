"""Which loops run without vectors as they mostly scatter, and that nothing changes."""
# ruff: noqa: F821

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.c.statements import ONE_BY_ONE
from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from tests.codegen.build import Case, as_interpreted, case

N = 1000


def pack(i, x, y, to, kept):
    if kept[i] == 1:
        y[to[i]] = x[i]
    if kept[i] == 1:
        y[1000 + to[i]] = 2.0 * x[i]


def through_a_local(i, x, y, to, kept):
    place: int = to[i]
    if kept[i] == 0:
        place = place + 1000
    y[place] = x[i]


def permuted_sum(i, x, y, to, kept):
    y[to[i]] += x[i]


def packed_function(i, x, y, to, kept):
    """What is computed in vectors is worth a scatter."""
    v: float = x[i] * (x[i] + 1.0) * (x[i] + 2.0) / (x[i] * x[i] + 1.0)
    w: float = v * (v + 1.0) * (v + 2.0) / (v * v + 1.0)
    y[to[i]] = w * (w + 1.0) / (w * w + 2.0)


def fetched(i, x, y, to, kept):
    y[i] = x[to[i]]


def strided(i, x, y, to, kept):
    y[2 * i + 1] = x[i]


def own_array(i, x, y, to, kept):
    parts: List[float] = [0.0, 0.0, 0.0]
    parts[kept[i]] = x[i]
    y[i] = parts[0] - parts[1]


def inner_loop(i, x, y, to, kept):
    for k in range(kept[i]):
        y[to[i] + k] = x[i]


def of(work: Callable[..., None], pattern: str = "for") -> Case:
    def arguments() -> list[Any]:
        rng = np.random.default_rng(5)
        to = rng.permutation(N).astype(np.int32)
        kept = rng.integers(0, 2, N).astype(np.int32)
        return [rng.normal(size=N), np.zeros(2 * N + 1), to, kept]

    return case(work, [N], arguments, pattern)


def without_vectors(given: Case) -> bool:
    return ONE_BY_ONE in emit(spec_of(given.kernel))


@pytest.mark.parametrize("work", [pack, through_a_local, permuted_sum])
def test_loops_that_mostly_scatter_have_no_vectors(work: Callable[..., None]) -> None:
    given = of(work)
    assert without_vectors(given)
    as_interpreted(given)


@pytest.mark.parametrize("work", [packed_function, fetched, strided, own_array, inner_loop])
def test_other_loops_may_have_vectors(work: Callable[..., None]) -> None:
    given = of(work)
    assert not without_vectors(given)
    as_interpreted(given)


def test_a_sum_beside_it() -> None:
    def work(i, acc, x, y, to, kept):
        y[to[i]] = x[i]
        acc += x[i]

    given = of(work, "reduce")
    assert without_vectors(given)
    as_interpreted(given)


def test_equal_branches_may_be_joined() -> None:
    assert "no-thread-jumps" not in emit(spec_of(of(pack).kernel))
