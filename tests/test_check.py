"""PYFUSER_CHECK finds indices outside views, and iterations that race; and nothing else."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, List  # noqa: UP035 - as PyKokkos programs have it

import numpy as np
import pytest

import pyfuser
from pyfuser.checks.accesslog import ATOMIC, READ, WRITE, AccessLog
from pyfuser.compare import serve
from pyfuser.runtime import checked as runtime_checked
from pyfuser.runtime import flush as runtime_flush
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support import settings
from pyfuser.support.errors import (
    BoundsError,
    PyFuserError,
    PyFuserWarning,
    RaceError,
    SettingError,
)
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.reason import SYNC
from tests.vendors import tune

pk = pytest.importorskip("pykokkos")
pytestmark = pytest.mark.skipif(
    shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler"
)

KERNELS = Path(__file__).parents[1] / "kernels"
Check = Callable[..., None]


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> Iterator[Check]:
    """check("bounds") does what PYFUSER_CHECK=bounds does."""
    TRACER.flush(SYNC)

    def switch(*names: str) -> None:
        changed = dataclasses.replace(SETTINGS, check=frozenset(names))
        monkeypatch.setattr(runtime_checked, "SETTINGS", changed)
        monkeypatch.setattr(runtime_flush, "SETTINGS", changed)
        monkeypatch.setattr(SESSION, "run", runtime_checked.run)

    yield switch
    TRACER.calls.clear()


# ----------------------------------------------------------------- bounds


@pk.workunit
def ahead(i, x, y, k):
    y[i] = 2 * x[i + k]


@pk.workunit
def put(i, y, k):
    y[i + k] = 7


@pk.workunit
def bump(i, y, k):
    y[i + k] += 7


@pk.workunit
def atomically(i, y, k):
    pk.atomic_add(y, [i + k], 7.0)


@pk.workunit
def swapped(i, y, k):
    old: float = pk.atomic_fetch_add(y, [i + k], 7.0)
    y[i] = old


@pk.workunit
def summed(i, acc, y, k):
    acc += y[i + k]


@pk.workunit
def highest(i, acc, y, k):
    if y[i + k] > acc:
        acc = y[i + k]


@pk.workunit
def prefix(i, acc, last_pass, y, k):
    acc += y[i]
    if last_pass:
        y[i + k] = acc


@pk.workunit
def moved(i, j, a, k):
    a[i][j] = a[i][j + k]


@pk.workunit
def from_array(i, y, k):
    t: List[float] = [1.0, 2.0, 3.0]  # noqa: UP006
    y[i] = t[i % 3 + k]


@pk.workunit
def divided(i, x, y, k):
    d: int = x[i + k]
    y[i] = 100 // d


@pk.workunit
def searching(i, y, k):
    j: int = k
    while y[j] == 0:
        j += 1


def _for(workunit: Any, n: Any = 4, **arguments: Any) -> Callable[[Any, int], Any]:
    return lambda y, k: pk.parallel_for(n, workunit, y=y, k=k, **arguments)


PROGRAMS: dict[str, Callable[[Any, int], Any]] = {
    "load": lambda y, k: pk.parallel_for(4, ahead, x=y, y=np.zeros(4), k=k),
    "store": _for(put),
    "update": _for(bump),
    "atomic": _for(atomically),
    "fetch": _for(swapped),
    "sum": lambda y, k: pk.parallel_reduce(4, summed, y=y, k=k),
    "max": lambda y, k: pk.parallel_reduce(4, highest, y=y, k=k),
    "scan": lambda y, k: pk.parallel_scan(4, prefix, y=y, k=k),
    "serial": _for(put, pk.RangePolicy(pk.Serial, 0, 4)),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("step", [1, -2])
def test_no_memory_outside_is_touched(name: str, step: int, check: Check) -> None:
    check("bounds")
    memory = np.arange(20.0)
    y = memory[8:12] if step == 1 else memory[12:4:-2]
    outside = np.setdiff1d(np.arange(20.0), y)
    PROGRAMS[name](y, 0)
    for k, index, iteration in ((1, 4, 3), (-1, -1, 0), (10**6, 10**6, 0)):
        with pytest.raises(BoundsError) as caught:
            PROGRAMS[name](y, k)
        error = caught.value
        assert (error.view, error.axis, error.extent) == ("y" if name != "load" else "x", 0, 4)
        assert (error.index, error.iteration) == (index, (iteration,))
    rest = np.delete(memory, np.arange(8, 12) if step == 1 else np.arange(12, 4, -2))
    np.testing.assert_array_equal(rest, outside)


def test_message(check: Check) -> None:
    check("bounds")
    with pytest.raises(IndexError) as caught:
        pk.parallel_for("my label", 4, ahead, x=np.zeros(4), y=np.zeros(4), k=1)
    lines = str(caught.value).splitlines()
    place, code = f"{__file__}:", ahead.__code__
    assert lines[0] == (
        f"{place}{code.co_firstlineno + 2}: index 4 is outside axis 0 of 'x', which has extent 4; "
        "workunit 'ahead', iteration i = 3"
    )
    assert lines[1].strip() == "y[i] = 2 * x[i + k]"
    assert lines[2].index("^") == lines[1].index("x[i")
    assert lines[3].startswith(f"  called as 'my label' at {place}")
    with pytest.raises(IndexError, match="does not count from the end"):
        pk.parallel_for(4, ahead, x=np.zeros(4), y=np.zeros(4), k=-1)


def test_names_of_one_view_under_two_names(check: Check) -> None:
    check("bounds")
    y = np.zeros(4)
    with pytest.raises(BoundsError, match="of 'x', which"):
        pk.parallel_for(4, ahead, y=y, x=y, k=1)


def test_two_dimensions_name_the_axis(check: Check) -> None:
    check("bounds")
    policy = pk.MDRangePolicy([0, 0], [2, 3])
    for a in (np.zeros((2, 3)), np.zeros((3, 2)).T, np.asfortranarray(np.zeros((2, 3)))):
        pk.parallel_for(policy, moved, a=a, k=0)
        with pytest.raises(BoundsError) as caught:
            pk.parallel_for(policy, moved, a=a, k=1)
        assert (caught.value.axis, caught.value.iteration) == (1, (0, 2))


def test_empty_views(check: Check) -> None:
    check("bounds")
    for y in (np.zeros(0), pk.View([0], pk.double)):
        pk.parallel_for(0, put, y=y, k=0)
        with pytest.raises(BoundsError, match="extent 0"):
            pk.parallel_for(1, put, y=y, k=0)


def test_local_arrays(check: Check) -> None:
    check("bounds")
    y = np.zeros(4)
    pk.parallel_for(4, from_array, y=y, k=0)
    np.testing.assert_array_equal(y, [1, 2, 3, 1])
    with pytest.raises(BoundsError, match="index 3 is outside axis 0 of 't', which has extent 3"):
        pk.parallel_for(4, from_array, y=y, k=1)


def test_nothing_is_computed_from_a_failed_access(check: Check) -> None:
    """No division by a made-up zero, no loop that waits for a made-up value to change."""
    check("bounds")
    with pytest.raises(BoundsError):
        pk.parallel_for(4, divided, x=np.ones(4, np.int32), y=np.zeros(4), k=1)
    with pytest.raises(BoundsError, match="index 4 "):
        pk.parallel_for(1, searching, y=np.zeros(4), k=0)


def test_elements_that_are_not_aligned(check: Check) -> None:
    check("bounds")
    records = np.zeros(4, dtype=[("a", "i1"), ("v", "f8")])
    pk.parallel_for(4, put, y=records["v"], k=0)
    assert records["v"].tolist() == [7.0] * 4
    with pytest.raises(BoundsError):
        pk.parallel_for(4, put, y=records["v"], k=1)


def test_locations_of_equal_workunits_differ(check: Check) -> None:
    """One compiled kernel, two places in the source."""
    check("bounds")

    @pk.workunit
    def other(i, y, k):
        y[i + k] = 7

    found = []
    for workunit in (put, other):
        with pytest.raises(BoundsError) as caught:
            pk.parallel_for(4, workunit, y=np.zeros(4), k=1)
        found.append(caught.value.location.line - workunit.__code__.co_firstlineno)
    assert found == [2, 2]


def test_a_mistake_ends_the_trace(check: Check) -> None:
    check("bounds")
    x, y = np.ones(4), np.zeros(4)
    with pytest.raises(BoundsError), pyfuser.fusing():
        pk.parallel_for(4, ahead, x=x, y=y, k=0)
        pk.parallel_for(4, put, y=x, k=1)
        later = pk.parallel_reduce(4, summed, y=y, k=0)
    assert y.tolist() == [2.0] * 4, "what comes before has run"
    assert pyfuser.pending() == ()
    with pytest.raises(BoundsError):
        float(later)


@pytest.mark.parametrize("name", ["heat2d_md", "kmeans", "lennard_jones", "naive_bayes"])
def test_kernels_are_found_free_of_mistakes(
    name: str, check: Check, recwarn: pytest.WarningsRecorder
) -> None:
    check("bounds", "races")
    module = serve.load(KERNELS / f"{name}.py")
    size = module.SIZES["small"]
    with pyfuser.fusing():
        state = module.setup(size)
        module.run(state)
    module.check(state, size, 1)
    assert not [w for w in recwarn if "not checked" in str(w.message)]


# ----------------------------------------------------------------- races


@pk.workunit
def shift(i, x, y, k):
    y[i] = x[i + k]


@pk.workunit
def histogram(i, bins, b):
    bins[b[i]] += 1


@pk.workunit
def atomic_histogram(i, bins, b):
    pk.atomic_add(bins, [b[i]], 1)


@pk.workunit
def ticket(i, bins, b):
    b[i] = pk.atomic_fetch_add(bins, [0], 1)


@pk.workunit
def mixed(i, bins, b):
    pk.atomic_add(bins, [0], 1)
    b[i] = bins[0]


@pk.workunit
def transpose(i, j, a, b):
    a[i][j] = b[j][i]


BINS, ALL, TWICE = np.zeros(4, np.int32), np.arange(4, dtype=np.int32), np.array([0, 1, 1, 2], "i4")


@pytest.mark.parametrize(
    ("workunit", "arguments", "racing"),
    [
        (shift, lambda x: {"x": x, "y": np.zeros(4), "k": 1}, False),
        (shift, lambda x: {"x": x, "y": x, "k": 0}, False),
        (shift, lambda x: {"x": x, "y": x, "k": 1}, True),
        (shift, lambda x: {"x": x, "y": x[1:], "k": 1}, False),
        (shift, lambda x: {"x": x, "y": x[::2], "k": 1}, True),
        (shift, lambda x: {"x": x, "y": x.view("i4")[1:5], "k": 0}, True),
        (histogram, lambda x: {"bins": BINS.copy(), "b": ALL}, False),
        (histogram, lambda x: {"bins": BINS.copy(), "b": TWICE}, True),
        (atomic_histogram, lambda x: {"bins": BINS.copy(), "b": TWICE}, False),
        (ticket, lambda x: {"bins": BINS.copy(), "b": ALL.copy()}, False),
        (mixed, lambda x: {"bins": BINS.copy(), "b": ALL.copy()}, True),
    ],
)
def test_races(workunit: Any, arguments: Any, racing: bool, check: Check) -> None:
    check("races")
    bound = arguments(np.arange(8.0))
    before = {name: np.copy(value) for name, value in bound.items()}
    if not racing:
        pk.parallel_for(4, workunit, **bound)
        return
    with pytest.raises(RaceError) as caught:
        pk.parallel_for(4, workunit, **bound)
    first, second = caught.value.iterations or ((0,), (0,))
    assert first != second
    for name, value in bound.items():
        np.testing.assert_array_equal(value, before[name], "an error comes before anything runs")
    pk.parallel_for(pk.RangePolicy(pk.Serial, 0, 4), workunit, **bound)  # one after the other


def test_race_names_both_accesses(check: Check) -> None:
    check("races")
    x = np.zeros(8)
    with pytest.raises(RaceError) as caught:
        pk.parallel_for(4, shift, x=x, y=x, k=1)
    text, line = str(caught.value), shift.__code__.co_firstlineno + 2
    assert f"{__file__}:{line}: read of 'x' by i = 0\n" in text
    assert f"{__file__}:{line}: write of 'y' by i = 1\n" in text
    assert [location.line for location in caught.value.locations if location] == [line, line]
    assert caught.value.iterations == ((0,), (1,))


def test_race_in_two_dimensions(check: Check) -> None:
    check("races")
    a = np.arange(9.0).reshape(3, 3)
    policy = pk.MDRangePolicy([0, 0], [3, 3])
    pk.parallel_for(policy, transpose, a=np.zeros((3, 3)), b=a)
    with pytest.raises(RaceError) as caught:
        pk.parallel_for(policy, transpose, a=a, b=a)
    assert caught.value.iterations == ((0, 1), (1, 0))


def test_large_spaces_are_proved_or_warned_of(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    check("races")
    tune(monkeypatch, race_iterations=3)
    x = np.zeros(8)
    pk.parallel_for(4, shift, x=x, y=x[:4], k=4)
    with pytest.raises(RaceError, match="write of 'y'") as caught:
        pk.parallel_for(4, shift, x=x, y=x, k=1)
    assert caught.value.iterations is None
    with pytest.warns(PyFuserWarning, match="'histogram' at .* was not checked for races: more"):
        pk.parallel_for(4, histogram, bins=BINS.copy(), b=ALL)


def test_undefined_behaviour_is_no_race(check: Check) -> None:
    check("races")
    bins, places = np.zeros(8, np.int32)[:4], np.array([0, 1], np.int32)
    pk.parallel_for(2, histogram, bins=bins, b=places)  # elements are looked at once a shape
    places[:] = 5, 6
    with pytest.warns(PyFuserWarning, match=r"not checked for races: .*\[5\] is outside"):
        pk.parallel_for(2, histogram, bins=bins, b=places)


def test_log_agrees_with_the_definition() -> None:
    """Random accesses of two views that overlap, against all pairs of them."""
    rng = np.random.default_rng(3)
    memory = np.zeros(6)
    views = {"a": memory, "b": memory.view(np.float32)[1:11]}
    kinds = {"read": READ, "atomic +": ATOMIC, "write": WRITE}
    outcomes = []
    for _ in range(300):
        log = AccessLog(0)
        notes = log.watch(views)
        made = []
        for (point,) in log.iterations([(p,) for p in range(3)]):
            for _ in range(2):
                name, kind = str(rng.choice(["a", "b"])), str(rng.choice(list(kinds)))
                index = int(rng.integers(len(views[name])))
                notes[name](kind, index)
                first = 2 * index if name == "a" else index + 1
                cells = {first, first + 1} if name == "a" else {first}
                made.append((point, kinds[kind], cells))
        racing = any(
            p != q and c & d and (WRITE in (k, m) or {k, m} == {READ, ATOMIC})
            for p, k, c in made
            for q, m, d in made
        )
        found = log.race()
        assert (found is not None) is racing
        outcomes.append(racing)
        if found:
            assert found[0].iteration < found[1].iteration
    assert set(outcomes) == {True, False}


# ----------------------------------------------------------------- the setting


@pytest.mark.parametrize(
    ("text", "names"),
    [("", set()), ("bounds", {"bounds"}), (" races, bounds", {"bounds", "races"}), ("sync", set())],
)
def test_setting(text: str, names: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYFUSER_CHECK", text)
    assert settings._read().check == names


@pytest.mark.parametrize("text", ["bound", "bounds races", "1"])
def test_setting_with_a_slip(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYFUSER_CHECK", text)
    with pytest.raises(SettingError, match="expected one or more of bounds, races, sync"):
        settings._read()


def test_errors_have_one_base() -> None:
    assert issubclass(BoundsError, PyFuserError) and issubclass(RaceError, PyFuserError)
