"""Programs whose stencils and gathers compute again what they read."""

from __future__ import annotations

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.runtime import execute
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.errors import PyFuserError
from tests.rewrites import kept_whatever_it_costs
from tests.sessions import fresh
from tests.soundness.plans import groups

N = 1000


@pk.workunit
def scale(i, t, x):
    t[i] = 0.1 * x[i] + 1.0


@pk.workunit
def blur(i, y, t):
    y[i] = 0.25 * t[i - 1] + 0.5 * t[i] + 0.25 * t[i + 1]


@pk.workunit
def gather(i, y, t, places):
    y[i] = t[places[i]]


@pk.workunit
def clear(i, x):
    x[i] = 0.0


@pytest.fixture(autouse=True)
def whatever_it_costs(monkeypatch):
    kept_whatever_it_costs(monkeypatch, "recompute")


def made(dtype=pk.double):
    x, y = pk.View([N], dtype), pk.View([N], dtype)
    np.asarray(x)[:] = np.random.default_rng(1).random(N)
    return x, y


def blurred(x, dtype=np.float64):
    t = (0.1 * np.asarray(x).astype(np.float64) + 1.0).astype(dtype)
    want = np.zeros(N, dtype)
    want[1:-1] = 0.25 * t[:-2] + 0.5 * t[1:-1] + 0.25 * t[2:]
    return want


@pytest.mark.parametrize(("dtype", "kind"), [(pk.double, np.float64), (pk.float, np.float32)])
def test_a_stencil(dtype, kind):
    x, y = made(dtype)
    with pyfuser.fusing():
        t = pk.View([N], dtype)
        pk.parallel_for(N, scale, t=t, x=x)
        pk.parallel_for(pk.RangePolicy(1, N - 1), blur, y=y, t=t)
        del t
    assert groups() == ["scale+blur"]
    text = str(pyfuser.explain())
    assert "recomputed where blur reads it: scale (3 times)\n" in text
    assert "2 calls ran as 1" in text
    (kernel,) = SESSION.flushes[-1].program.kernels
    assert [param.sym.name for param in kernel.workunit.params if param.rank] == ["y", "x"]
    t = (0.1 * np.asarray(x).astype(np.float64) + 1.0).astype(kind).astype(np.float64)
    want = np.zeros(N, kind)
    want[1:-1] = 0.25 * t[:-2] + 0.5 * t[1:-1] + 0.25 * t[2:]
    assert np.array_equal(np.asarray(y), want)


@pk.workunit
def square(i, acc, t):
    acc += t[i] * t[i]


@pk.workunit
def divide(i, y, t, total):
    y[i] = t[i] / pk.sqrt(total)


def test_on_both_sides_of_a_sum_that_has_to_be_known():
    x, y = made()

    def norm():
        t = pk.View([N], pk.double)
        pk.parallel_for(N, scale, t=t, x=x)
        total = pk.parallel_reduce(N, square, t=t)
        pk.parallel_for(N, divide, y=y, t=t, total=total)
        return total

    with pyfuser.unfused():
        want = float(norm())
    expected, y.data[:] = np.array(y), 0.0
    with pyfuser.fusing():
        total = norm()
    assert groups() == ["scale+square", "divide"]
    text = str(pyfuser.explain())
    assert "recomputed where divide reads it: scale (once)\n" in text
    assert "and computed by itself as well: scale\n" in text
    assert "no memory needed: t (" in text
    assert float(total) == want and np.array_equal(np.array(y), expected)


def test_a_gather_and_its_replays():
    x, y = made()
    places = pk.View([N], pk.int32)
    np.asarray(places)[:] = np.random.default_rng(2).integers(0, N, N)
    for turn in range(3):
        np.asarray(x)[:] += turn
        with pyfuser.fusing():
            t = pk.View([N], pk.double)
            pk.parallel_for(N, scale, t=t, x=x)
            pk.parallel_for(N, gather, y=y, t=t, places=places)
            del t
        assert groups() == ["scale+gather"]
        want = (0.1 * np.asarray(x) + 1.0)[np.asarray(places)]
        assert np.array_equal(np.asarray(y), want)


def test_a_view_that_is_read_later_is_stored():
    x, y = made()
    t = pk.View([N], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(N, scale, t=t, x=x)
        pk.parallel_for(pk.RangePolicy(1, N - 1), blur, y=y, t=t)
    assert np.array_equal(np.asarray(t), 0.1 * np.asarray(x) + 1.0)
    assert np.array_equal(np.asarray(y), blurred(x))


def test_what_it_is_made_of_is_overwritten_later():
    x, y = made()
    want = blurred(x)
    with pyfuser.fusing():
        t = pk.View([N], pk.double)
        pk.parallel_for(N, scale, t=t, x=x)
        pk.parallel_for(pk.RangePolicy(1, N - 1), blur, y=y, t=t)
        pk.parallel_for(N, clear, x=x)
        del t
    assert len(groups()) == 2 and "recomputed" in str(pyfuser.explain())
    assert np.array_equal(np.asarray(y), want)


def test_what_it_is_made_of_is_overwritten_between():
    x, y = made()
    want = blurred(x)
    with pyfuser.fusing():
        t = pk.View([N], pk.double)
        pk.parallel_for(N, scale, t=t, x=x)
        pk.parallel_for(N, clear, x=x)
        pk.parallel_for(pk.RangePolicy(1, N - 1), blur, y=y, t=t)
        del t
    assert "recomputed" not in str(pyfuser.explain())
    assert np.array_equal(np.asarray(y), want)


def test_a_failure_leaves_what_is_not_computed_yet(monkeypatch):
    """The stencil's launch fails: what it reads is stored, and it runs later.

    A flush that repeats one before is launched by the extension, past `run_launch`; so nothing may
    be known of this one, whichever tests the process has run.
    """
    with fresh():
        _fail_and_go_on(monkeypatch)


def _fail_and_go_on(monkeypatch):
    x, y = made()
    pyfuser.sync()
    run_launch = execute.run_launch

    def fails(launch, *rest):
        if "blur" in {TRACER.calls[n].name for n in launch.calls}:
            raise PyFuserError("for the test")
        return run_launch(launch, *rest)

    with pyfuser.fusing():
        t = pk.View([N], pk.double)
        pk.parallel_for(N, scale, t=t, x=x)
        pk.parallel_for(pk.RangePolicy(1, N - 1), blur, y=y, t=t)
        del t
        monkeypatch.setattr(execute, "run_launch", fails)
        with pytest.raises(PyFuserError, match="for the test"):
            pyfuser.sync()
        assert [call.name for call in TRACER.calls] == ["blur"]
        monkeypatch.setattr(execute, "run_launch", run_launch)
    assert np.array_equal(np.asarray(y), blurred(x))
