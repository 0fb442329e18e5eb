"""Where calls wait for the next launch: only where a steady loop gains by it."""

from __future__ import annotations

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from kernels import cg_poisson
from pyfuser.frontends import modes
from pyfuser.runtime import partial_flush
from pyfuser.runtime.session import SESSION
from tests.test_deferral import advance, copy, put, total

N = 1 << 16


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """A gain is a gain, however small."""
    pyfuser.sync()
    monkeypatch.setattr(partial_flush, "PAYBACK", 0.0)
    monkeypatch.setattr(partial_flush, "WORTH", 0.0)
    monkeypatch.setattr(SESSION.deferral, "on", True)
    SESSION.deferral._sites.clear()
    yield
    pyfuser.sync()
    SESSION.deferral._sites.clear()


def view(value):
    made = pk.View([N], pk.double)
    made.fill(value)
    pyfuser.sync()
    return made


def deferred():
    return pyfuser.stats().deferred


def step(x, p, r, follows):
    """A read that `x += p` may wait for; what follows uses x and p, or other Views."""
    pk.parallel_for(N, advance, x=x, p=p, a=1.0)
    value = float(pk.parallel_reduce(N, total, x=r))
    pk.parallel_for(N, put, x=p if follows else r, a=1.0)
    if follows:
        pk.parallel_for(N, copy, x=r, y=x)
    pyfuser.sync()
    return value


def test_a_steady_loop_that_gains():
    x, p, r = view(0.0), view(1.0), view(1.0)
    before, seen = deferred(), []
    for _ in range(8):
        step(x, p, r, True)
        seen.append(deferred() - before)
    assert seen == [0, 0, 0, 1, 2, 3, 4, 5]  # the fourth is the first that knows
    assert x[3] == 1.0 + 7 * 3.0


def test_a_loop_that_gains_nothing():
    x, p, r = view(0.0), view(1.0), view(1.0)
    before = deferred()
    for _ in range(8):
        step(x, p, r, False)
    assert deferred() == before
    assert [site.closed for site in SESSION.deferral._sites.values()] == [True]
    assert x[3] == 8.0


def test_misses_close_a_site():
    x, p, r = view(0.0), view(1.0), view(1.0)
    for _ in range(4):
        step(x, p, r, True)
    (site,) = SESSION.deferral._sites.values()
    assert site.balance == pytest.approx(site.gain) and not site.closed
    site.loss = 3.0 * site.gain
    before = deferred()
    for _ in range(4):
        pk.parallel_for(N, advance, x=x, p=p, a=1.0)
        float(pk.parallel_reduce(N, total, x=r))
        assert deferred() - before == 1
        pyfuser.sync()  # runs it alone
    assert site.closed


def test_a_short_loop_is_left_alone(monkeypatch):
    monkeypatch.setattr(partial_flush, "PAYBACK", 1.0)
    x, p, r = view(0.0), view(1.0), view(1.0)
    before = deferred()
    for _ in range(8):
        step(x, p, r, True)
    assert deferred() == before


def test_conjugate_gradients_have_the_same_bits(monkeypatch):
    pyfuser.enable()
    try:
        states = [cg_poisson.setup(200) for _ in range(2)]
        before = deferred()
        for _ in range(3):
            cg_poisson.run(states[0])
            pyfuser.sync()
        assert deferred() - before > 10
        monkeypatch.setattr(SESSION.deferral, "on", False)
        cg_poisson.run(states[1])
        found, wanted = map(cg_poisson.outputs, states)
    finally:
        pyfuser.disable()
        modes.SWITCHES.everywhere = None
    for name, value in wanted.items():
        assert np.array_equal(found[name], value), name
