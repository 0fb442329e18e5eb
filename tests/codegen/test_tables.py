"""Small tables that threads tally in copies of their own: when, and that nothing changes."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyfuser
from pyfuser.engine.launchable import team
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.runtime.session import SESSION
from pyfuser.support.settings import SETTINGS
from tests.fuzz.wavefront import forced

pytestmark = pytest.mark.skipif(
    shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler"
)
N = 5000


@pk.workunit
def counted(i, t, key):
    pk.atomic_add(t, [key[i] % 7], 1)
    pk.atomic_sub(t, [key[i] % 5], 3)


@pk.workunit
def highest(i, t, key):
    pk.atomic_max(t, [key[i] % 7], key[i])


@pk.workunit
def lowest(i, t, key):
    if key[i] % 2 == 0:
        pk.atomic_min(t, [key[i] % 7], key[i])


@pk.workunit
def bits_set(i, t, key):
    pk.atomic_or(t, [key[i] % 7], 1 << (key[i] % 31))


@pk.workunit
def bits_kept(i, t, key):
    pk.atomic_and(t, [key[i] % 7], ~(1 << (key[i] % 31)))


@pk.workunit
def bits_turned(i, t, key):
    pk.atomic_xor(t, [key[i] % 7], key[i])


@pk.workunit
def counted_twice(i, t, key):
    """The table is read, too."""
    if t[key[i] % 7] < 100000000:
        pk.atomic_add(t, [key[i] % 7], 1)


@pk.workunit
def numbered(i, t, key):
    """Somebody sees the old values."""
    key[i] += 7 * pk.atomic_fetch_add(t, [key[i] % 7], 1)


@pk.workunit
def stored_beside(i, t, key):
    pk.atomic_add(t, [key[i] % 6], 1)
    if i == 0:
        t[6] = 5


@pk.workunit
def two_kinds(i, t, key):
    pk.atomic_add(t, [key[i] % 3], 1)
    pk.atomic_max(t, [3 + key[i] % 3], key[i])


@pk.workunit
def over_itself(i, t, key):
    """The keys are the table."""
    pk.atomic_add(t, [i % 7], key[i % 7] - key[i % 7] + 1)


def keys(n: int = N) -> Any:
    return np.random.default_rng(5).integers(0, 1 << 30, n).astype(np.int32)


def table(dtype: Any = np.int32) -> Any:
    return np.arange(90, 97).astype(dtype)


def run(workunit: Any, t: Any, key: Any, policy: Any = N) -> bool:
    """Run a call; whether its kernel has a copy of the table for each thread."""
    SESSION.flushes.clear()
    with pyfuser.fusing():
        pk.parallel_for(policy, workunit, t=t, key=key)
    return has_copies()


def has_copies() -> bool:
    """Whether threads of the latest kernel, if there are several, have copies of a table."""
    (launch,) = SESSION.flushes[-1].program.launches
    return bool(launch.launchable.spec.tables)


def by_hand(workunit: Any, t: Any, key: Any) -> None:
    """What the iterations do one after the other."""
    serial = pk.RangePolicy(pk.Serial, 0, N)
    with pyfuser.unfused():
        pk.parallel_for(serial, workunit, t=t, key=key)


TALLIES = [counted, highest, lowest, bits_set, bits_kept, bits_turned]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    ("workunit", "dtype"),
    [
        *itertools.product(TALLIES, (np.int32, np.uint8)),
        *itertools.product((counted, highest, lowest), (np.float64, np.float32)),
    ],
)
def test_tallies(workunit: Any, dtype: Any, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "count", threads)
    found, wanted = table(dtype), table(dtype)
    assert run(workunit, found, keys())
    by_hand(workunit, wanted, keys())
    assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    "workunit", [counted_twice, stored_beside, two_kinds], ids=lambda w: w.__name__
)
def test_what_sees_the_table_otherwise_has_no_copy(workunit: Any) -> None:
    found, wanted = table(), table()
    assert not run(workunit, found, keys())
    by_hand(workunit, wanted, keys())
    assert found.tolist() == wanted.tolist()


def test_old_values_that_are_seen() -> None:
    found, key = np.zeros(7, np.int32), keys() % 7
    assert not run(numbered, found, key)
    assert sorted((key // 7).tolist()) == sorted(k for count in found for k in range(count))


def twice_as_long() -> Any:
    return np.zeros(14, np.int32)[::2]


@pytest.mark.parametrize(
    ("make", "policy"),
    [
        (twice_as_long, N),  # not contiguous
        (table, 55),  # few iterations: 7 * 8 would do
        (lambda: table(np.complex128), N),
        (table, pk.RangePolicy(pk.Serial, 0, N)),  # nobody is there to lock out
    ],
    ids=["strided", "few", "complex", "serial"],
)
def test_tables_without_copies(make: Callable[[], Any], policy: Any) -> None:
    t = make()
    assert not run(counted, t, keys(), policy)
    assert run(counted, table(), keys(), 56)


@pk.workunit
def weighted(i, t, key):
    pk.atomic_add(t, [key[i] % 7], 0.1 * key[i])


@pytest.mark.parametrize("n", [64, N])
def test_one_thread_adds_in_order(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several have no order; what they add up is as near."""
    wanted = np.linspace(0.1, 0.7, 7)
    np.add.at(wanted, keys(n) % 7, 0.1 * keys(n))
    for threads in (1, 3):
        monkeypatch.setattr(team, "count", threads)
        found = np.linspace(0.1, 0.7, 7)
        assert run(weighted, found, keys(n), n)
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
        assert (found == wanted).all() or threads > 1


@pytest.mark.parametrize("workunit", [highest, lowest, counted])
def test_values_that_change_nothing(workunit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not-a-numbers stay, and so does what nobody adds to, with its sign."""
    monkeypatch.setattr(team, "count", 3)
    key = np.full(N, 8, np.int32)
    found, wanted = (np.array([-0.0, np.nan, np.inf, -np.inf, -0.0, 1.0, 2.0]) for _ in "12")
    assert run(workunit, found, key)
    by_hand(workunit, wanted, key)
    assert found.tobytes() == wanted.tobytes()


@pk.workunit
def added(i, acc: pk.Acc[pk.double], x):
    acc += 0.1 * x[i]


@pk.workunit
def counted_and_added(i, acc: pk.Acc[pk.double], t, key):
    pk.atomic_add(t, [key[i] % 7], 1)
    acc += 0.1 * key[i]


@pk.workunit
def counted_and_multiplied(i, acc: pk.Acc[pk.double], t, key):
    pk.atomic_add(t, [key[i] % 7], 1)
    acc *= 1.0 + 0.1 * key[i]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("n", [64, N, 50 * N])
@pytest.mark.parametrize("workunit", TALLIES, ids=lambda workunit: workunit.__name__)
def test_beside_a_sum(workunit: Any, n: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "count", threads)
    found, wanted, key = table(), table(), keys(n)
    with pyfuser.fusing():
        result = pk.parallel_reduce(n, added, x=key)
        pk.parallel_for(n, workunit, t=found, key=key)
        total = float(result)
    assert has_copies()
    with pyfuser.unfused():
        pk.parallel_for(pk.RangePolicy(pk.Serial, 0, n), workunit, t=wanted, key=key)
        assert total == float(pk.parallel_reduce(n, added, x=key))
    assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("workunit", "copied"), [(counted_and_added, True), (counted_and_multiplied, False)]
)
def test_beside_what_one_thread_computes_nothing_is_locked(workunit: Any, copied: bool) -> None:
    t, key = np.zeros(7, np.int32), keys()
    with pyfuser.fusing():
        float(pk.parallel_reduce(N, workunit, t=t, key=key))
    (launch,) = SESSION.flushes[-1].program.launches
    assert ("pf_tables" in launch.launchable.source) is copied
    assert copied or "__atomic_fetch_add(&t" not in launch.launchable.source
    assert t.tolist() == np.bincount(key % 7, minlength=7).tolist()


def test_a_table_under_two_names() -> None:
    t = table()
    assert not run(over_itself, t, t)
    assert (t - table()).sum() == N


def test_in_a_sweep_the_table_is_shared() -> None:
    """Its loops are run a few steps at a time."""

    def program() -> list[Any]:
        x, t, u = keys(), table(), table()
        with pyfuser.fusing():
            pk.parallel_for(pk.RangePolicy(1, N - 1), turned, x=x, y=(y := keys()))
            pk.parallel_for(pk.RangePolicy(2, N - 2), from_both, x=y, t=t, u=u)
        return [t.tolist(), u.tolist()]

    with pyfuser.unfused():
        wanted = program()
    with forced(64):
        SESSION.programs.clear()
        SESSION.families.clear()
        assert program() == wanted
    assert SESSION.flushes[-1].program.plan.sweeps
    SESSION.programs.clear()
    SESSION.families.clear()


@pk.workunit
def turned(i, x, y):
    y[i] = x[i - 1] ^ x[i + 1]


@pk.workunit
def from_both(i, x, t, u):
    pk.atomic_add(t, [(x[i - 1] & 1023) % 7], 1)
    pk.atomic_max(u, [(x[i + 1] & 1023) % 7], x[i])
