"""Mistakes in traces that run unfused as their plans do not pay: they end the trace, as fused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.runtime import budget
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import BoundsError, WorkunitWarning
from pyfuser.support.extension import HOT

N = 20


@pk.workunit
def more(i, y):
    y[i] += 1


@pk.workunit
def shifted(i, z, k):
    z[i + k] += 1


@pk.workunit
def divided(i, z, k):
    z[i] += 100 // (i + k)


@pk.workunit
def chosen(i, z, at):
    z[at[i]] += 1


@pytest.fixture(autouse=True)
def budgeted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(budget, "SETTINGS", replace(budget.SETTINGS, arbitrate=True))
    monkeypatch.setattr(budget, "KERNEL", 0.0)
    SESSION.clear()
    yield
    TRACER.discard()
    SESSION.clear()


def closed() -> None:
    """Run traces as they are without a look, as where no account covers plans."""
    SESSION.budget._plans.credit = SESSION.budget._kernels.credit = 0.0, 0.0


@pytest.mark.parametrize("way", [closed, lambda: None], ids=["closed", "passing"])
@pytest.mark.parametrize(
    ("unit", "wrong", "error"),
    [(shifted, 9, BoundsError), (divided, 0, ZeroDivisionError)],
)
def test_a_mistake_ends_the_trace(
    unit: Callable[..., None], wrong: int, error: type[Exception], way: Callable[[], None]
) -> None:
    """What was called before it has run, once; what was called after it has not."""
    way()
    for n, k in [(6, 1), (7, 2), (8, 3), (9, 4), (10, 1), (11, 2), (12, wrong), (12, 2)]:
        if HOT is not None:
            HOT.forget()  # else some calls run at once
        y, z = pk.View([N], pk.int64), pk.View([N], pk.int64)
        apart = COUNTERS.apart
        with pyfuser.fusing():
            pk.parallel_for(n, more, y=y)
            pk.parallel_for(n, unit, z=z, k=k)
            pk.parallel_for(n, more, y=y)
            if k != wrong:
                pyfuser.sync()
            else:
                with pytest.raises(error, match=r"will not run:\n    'more'"):
                    pyfuser.sync()
        assert not TRACER.calls
        assert COUNTERS.apart > apart or n < 8 or k == wrong  # two are planned
        np.testing.assert_array_equal(y.data[:n], 1 if k == wrong else 2)
        assert k != wrong or not np.any(z.data)


def test_a_mistake_in_what_elements_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(6, 14):
        y, z, at = (pk.View([size], pk.int64) for size in (N, 15, N))
        at[:] = np.arange(N)
        at[n - 1] = 15 if n == 13 else 0
        with pyfuser.fusing():
            pk.parallel_for(n, more, y=y)
            pk.parallel_for(n, chosen, z=z, at=at)
            if n < 13:
                pyfuser.sync()
            else:
                with pytest.raises(BoundsError):
                    pyfuser.sync()
    assert COUNTERS.apart and not TRACER.calls


@pytest.mark.filterwarnings("error")
def test_a_warning_that_is_an_error_ends_the_trace() -> None:
    closed()
    with pyfuser.fusing():
        y, z = pk.View([N], pk.int64), pk.View([N], pk.int32)
        pk.parallel_for(9, more, y=y)
        pk.parallel_for(9, overflowing, z=z, k=1 << 30)
        pk.parallel_for(9, more, y=y)
        with pytest.raises(WorkunitWarning):
            pyfuser.sync()
    assert not TRACER.calls
    np.testing.assert_array_equal(y.data[:9], 1)


@pk.workunit
def overflowing(i, z, k):
    z[i] = i * k
