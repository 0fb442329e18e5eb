"""An integer that is divided by 0 is an error with a line, not the end of the process."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import pyfuser
from pyfuser.codegen.cpu.unit import emit
from pyfuser.engine import native
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.ir.divisions import scalar_divisors
from pyfuser.runtime import eager
from pyfuser.support.caches import Table
from pyfuser.support.errors import DivisionError, PyFuserError
from pyfuser.support.extension import HOT
from pyfuser.support.settings import SETTINGS
from tests.test_check import Check, check  # noqa: F401 - a fixture
from tests.test_looked import unit_of

pytestmark = pytest.mark.skipif(
    shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler"
)
N = 100


@pk.workunit
def quotient(i, y, x, d):
    y[i] = x[i] // d[i]


@pk.workunit
def rest(i, y, x, d):
    y[i] = x[i] % d[i]


@pk.workunit
def divide(i, y, x, d):
    y[i] = x[i]
    y[i] //= d[i]


@pk.workunit
def reduce_by(i, y, x, d):
    k: pk.int64 = x[i]
    k %= d[i]
    y[i] = k


@pk.workunit
def atomically(i, y, x, d):
    y[i] = x[i]
    pk.atomic_div(y, [i], d[i])


@pk.workunit
def fetching(i, y, x, d):
    y[i] = x[i]
    y[i] += 0 * pk.atomic_fetch_mod(y, [i], d[i])


@pk.workunit
def guarded(i, y, x, d):
    y[i] = 0
    if d[i] != 0:
        y[i] = x[i] // d[i]


@pk.workunit
def chosen(i, y, x, d):
    y[i] = x[i] // d[i] if d[i] != 0 else 0


@pk.workunit
def in_a_loop(i, y, x, d):
    k: pk.int64 = 0
    for j in range(i, i + 1):
        if d[j] != 0 and x[i] % d[j] < 1000:
            k += x[i] // d[j]
    y[i] = k


@pk.workunit
def doubled(i, y):
    y[i] = 2 * y[i]


@pk.workunit
def added(i, acc, y):
    acc += y[i]


@pk.workunit
def added_quotients(i, acc, y, x, d):
    acc += x[i] // d[i]


@pk.workunit
def added_real_quotients(i, acc: pk.Acc[pk.double], y, x, d):
    acc += x[i] // d[i]


@pk.workunit
def prefix(i, acc, last, y, x, d):
    acc += x[i] // d[i]
    if last:
        y[i] = acc


@pk.workunit
def scaled(i, y, factor):
    y[i] = factor * y[i]


@pk.workunit
def pair(i, j, a, d):
    a[i][j] = a[i][j] // d[j]


@pk.workunit
def twice(i, y, x, d):
    y[i] = x[i] // d[i]
    y[i] += x[i] % d[i]


@pk.workunit
def halves(i, y, x, d):
    y[i] = x[i] // 2 + x[i] % 3 + d[i]


def numbers(dtype: Any = np.int64) -> tuple[Any, Any, Any]:
    """Results, dividends, and divisors of which none is 0."""
    x, d = np.arange(N) * 7 - 300, np.arange(N) % 13 - 6
    d[d == 0] = 5
    return np.zeros(N, dtype), x.astype(dtype), d.astype(dtype)


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


DIVISIONS = [quotient, rest, divide, reduce_by, atomically, fetching]
QUOTIENTS = (quotient, divide, atomically)


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize("workunit", DIVISIONS)
def test_other_divisions_are_as_in_c(workunit: Any, dtype: Any) -> None:
    y, x, d = numbers(dtype)
    pk.parallel_for(N, workunit, y=y, x=x, d=d)
    quotients = [truncated(int(a), int(b)) for a, b in zip(x, d, strict=True)]
    np.testing.assert_array_equal(y, quotients if workunit in QUOTIENTS else x - quotients * d)


def test_the_least_number_by_minus_one() -> None:
    """The quotient wraps around; the processor's instruction would trap."""
    least = np.iinfo(np.int64).min
    for workunit, value in (divide, least), (reduce_by, 0), (atomically, least), (fetching, 0):
        y, x, d = np.zeros(N, np.int64), np.full(N, least), np.full(N, -1)
        pk.parallel_for(N, workunit, y=y, x=x, d=d)
        assert set(y.tolist()) == {value}


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@pytest.mark.parametrize("policy", [lambda: N, lambda: pk.RangePolicy(pk.Serial, 0, N)])
@pytest.mark.parametrize("workunit", DIVISIONS)
@pytest.mark.parametrize("fused", [False, True])
def test_zero(workunit: Any, policy: Any, dtype: Any, fused: bool) -> None:
    y, x, d = numbers(dtype)
    d[N - 1] = 0
    line = workunit.__code__.co_firstlineno + (2 if workunit in (quotient, rest) else 3)
    with pytest.raises(ZeroDivisionError) as caught:
        if fused:
            with pyfuser.fusing():
                pk.parallel_for(policy(), workunit, y=y, x=x, d=d)
                pk.parallel_for(policy(), doubled, y=y)
        else:
            pk.parallel_for(policy(), workunit, y=y, x=x, d=d)
    assert isinstance(caught.value, PyFuserError)
    lines = str(caught.value).splitlines()
    assert lines[0] == f"{__file__}:{line}: an integer was divided by 0"
    assert "d[i]" in lines[1] and "PYFUSER_CHECK=bounds" in lines[3]
    assert [text.split(" at ")[0] for text in lines[4:]] == fused * [
        f"  called as {workunit.__name__!r}",
        "  called after it, and has run, too:",
        "    'doubled'",
    ]
    d[N - 1] = 1
    pk.parallel_for(policy(), workunit, y=y, x=x, d=d)  # and no error is left over


def test_zero_in_other_patterns() -> None:
    y, x, d = numbers()
    d[3] = 0
    a = np.ones((5, N), np.int64)
    for run in (
        lambda: pk.parallel_reduce(N, added_quotients, y=y, x=x, d=d),
        lambda: pk.parallel_scan(N, prefix, y=y, x=x, d=d),
        lambda: pk.parallel_for(pk.MDRangePolicy([0, 0], [5, N]), pair, a=a, d=d),
    ):
        with pytest.raises(DivisionError, match="an integer was divided by 0\n"):
            run()


def test_a_sweep_with_a_zero() -> None:
    y, x, d = numbers()
    d[3] = 0
    with pytest.raises(DivisionError), pyfuser.fusing():
        pk.parallel_scan(N, prefix, y=y, x=x, d=d)
        pk.parallel_for(N, quotient, y=x, x=y, d=d)


@pytest.mark.parametrize("workunit", [guarded, chosen, in_a_loop])
def test_a_division_that_is_not_made_is_none(workunit: Any) -> None:
    y, x, d = numbers()
    d[::3] = 0
    with pyfuser.fusing():
        pk.parallel_for(N, workunit, y=y, x=x, d=d)
        pk.parallel_for(N, doubled, y=y)
        total = pk.parallel_reduce(N, added, y=y)
    wanted = [2 * truncated(int(a), int(b)) if b else 0 for a, b in zip(x, d, strict=True)]
    assert y.tolist() == wanted and total == sum(wanted)


def test_a_zero_ends_the_trace() -> None:
    """As it would have ended an eager program: what was called before runs, once."""
    before, after = np.ones(N), np.ones(N + 1)
    y, x, d = numbers()
    d[5] = 0
    with pytest.raises(DivisionError), pyfuser.fusing():
        pk.parallel_for(N, doubled, y=before)
        inside = pk.parallel_reduce(N, added_quotients, y=y, x=x, d=d)
        pk.parallel_for(N + 1, scaled, y=after, factor=inside)
        later = pk.parallel_reduce(N + 1, added, y=after)
    assert all(text.startswith("doubled") for text in pyfuser.pending())
    for future in inside, later:
        with pytest.raises(DivisionError, match=f"test_divisions.py:{_line(added_quotients)}: "):
            float(future)
    pyfuser.sync()
    assert set(before) == {2.0} and set(after) == {1.0}


def test_a_result_that_a_zero_left_out_is_no_argument() -> None:
    y, x, d = numbers()
    d[5] = 0
    z = np.ones(N)
    with pytest.raises(DivisionError), pyfuser.fusing():
        total = pk.parallel_reduce(N, added_real_quotients, y=y, x=x, d=d)
    for _ in range(2):
        with (
            pytest.raises(DivisionError, match=f":{_line(added_real_quotients)}: "),
            pyfuser.fusing(),
        ):
            pk.parallel_for(N, scaled, y=z, factor=total)
    assert len(pyfuser.pending()) == 2, "as with any result that will never be"
    pyfuser.discard()
    assert set(z) == {1.0}


def _line(workunit: Any) -> int:
    return int(workunit.__code__.co_firstlineno) + 2


def test_several_places() -> None:
    y, x, d = numbers()
    d[5] = 0
    with pytest.raises(DivisionError) as caught:
        pk.parallel_for(N, twice, y=y, x=x, d=d)
    text, line = str(caught.value), _line(twice)
    assert "in one of these places (PYFUSER_CHECK=bounds tells in which" in text
    assert f"{__file__}:{line}:\n    " in text and f"{__file__}:{line + 1}:\n    " in text


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("workunit", DIVISIONS)
def test_a_check_tells_the_iteration(workunit: Any, dtype: Any, check: Check) -> None:  # noqa: F811
    check("bounds")
    y, x, d = numbers(dtype)
    pk.parallel_for(N, workunit, y=y, x=x, d=d)
    d[7] = 0
    line = _line(workunit) + (workunit not in (quotient, rest))
    with pytest.raises(DivisionError) as caught:
        pk.parallel_for(N, workunit, y=y, x=x, d=d)
    assert str(caught.value).startswith(
        f"{__file__}:{line}: an integer is divided by 0; workunit {workunit.__name__!r}, "
        "iteration i = 7\n"
    )
    assert "  called as" in str(caught.value)


@pytest.mark.parametrize(
    ("workunit", "dtype", "tested"),
    [(quotient, np.int64, True), (quotient, np.int32, False), (halves, np.int64, False)],
)
def test_which_divisors_are_tested(
    workunit: Any, dtype: Any, tested: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None that cannot be 0; no 32-bit one, as a test would keep its loop from vectors."""
    texts = []

    def noted(spec: Any) -> str:
        texts.append(emit(spec))
        return texts[-1]

    monkeypatch.setattr("pyfuser.codegen.cpu.unit.emit", noted)
    monkeypatch.setattr(native, "KERNELS", Table("of a test", 999))
    monkeypatch.setattr(eager, "READY", Table("calls of a test", 999))
    if HOT is not None:
        HOT.forget()
    y, x, d = numbers(dtype)
    pk.parallel_for(N, workunit, y=y, x=x, d=d)
    assert ["pf_zero" in text for text in texts] == [tested]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_mistake_found_before_the_launch_lists_what_is_dropped(place):
    k, made = np.zeros(4, dtype=np.int32), [pk.View([4], pk.double) for _ in range(3)]
    calls = [(added_one, {"x": view}) for view in made]
    calls.insert(place, (divided_early, {"x": np.zeros(4), "k": k}))
    with pytest.raises(ZeroDivisionError) as caught, pyfuser.fusing():
        for work, arguments in calls:
            pk.parallel_for(4, work, **arguments)
    message = str(caught.value)
    assert ("dropped and will not run" in message) == (place < 3)
    assert message.count("'added_one' at ") == 3 - place
    assert [view[0] for view in made] == [1.0] * place + [0.0] * (3 - place)


@pk.workunit
def added_one(i, x):
    x[i] += 1.0


@pk.workunit
def divided_early(i, x, k):
    x[i] = 3 // k[i]


@pk.workunit
def by_scalar(i, y, k):
    y[i] += 60 // k


@pk.workunit
def rest_by_scalar(i, y, k):
    n: int = 7
    n %= k
    y[i] += n


@pk.workunit
def by_scalar_if_any(i, y, k):
    if k != 0:
        y[i] += 60 // k


@pk.workunit
def in_steps(i, y, k):
    for j in range(0, 6, k):
        y[i] += j + 1


@pk.workunit
def summed_by_scalar(i, acc, y, k):
    acc += y[i] // k


ENDS = {by_scalar: "an integer is divided by", rest_by_scalar: "an integer is divided by"}
ENDS |= {in_steps: "the step of the loop", summed_by_scalar: "an integer is divided by"}


@pytest.mark.parametrize("number", [int, np.int64, np.int32], ids=["int", "int64", "int32"])
@pytest.mark.parametrize("fused", [False, True], ids=["unfused", "fused"])
@pytest.mark.parametrize("unit", ENDS, ids=lambda unit: unit.__name__)
def test_a_scalar_that_becomes_0(unit: Any, fused: bool, number: Any) -> None:
    """It is no part of the shape of a call; what was called before it has run."""
    y = pk.View([N], pk.int64)
    with pyfuser.fusing() if fused else pyfuser.unfused():
        for _ in range(3):
            for k in (1, 2, 7, 3, 5, 4, 6):
                if unit is summed_by_scalar:
                    assert pk.parallel_reduce(N, unit, y=y, k=number(k)) == 0
                else:
                    pk.parallel_for(N, unit, y=y, k=number(k))
            y.fill(0)
            pk.parallel_for(N, by_scalar, y=y, k=number(6))
            with pytest.raises((ZeroDivisionError, ValueError), match=ENDS[unit]):
                run = pk.parallel_reduce if unit is summed_by_scalar else pk.parallel_for
                run(N, unit, y=y, k=number(0))
            np.testing.assert_array_equal(y, 10)
            y.fill(0)
            if unit is by_scalar:
                pk.parallel_for(N, unit, y=y, k=number(-7))
                np.testing.assert_array_equal(y, -8)  # as C++ rounds
                y.fill(0)


@pytest.mark.parametrize("fused", [False, True], ids=["unfused", "fused"])
def test_a_scalar_that_is_0_and_divides_nothing(fused: bool) -> None:
    """The twin of the one above."""
    y = pk.View([N], pk.int64)
    with pyfuser.fusing() if fused else pyfuser.unfused():
        for k in (1, 2, 0, 3, 0, 0, 60):
            pk.parallel_for(N, by_scalar_if_any, y=y, k=k)
    np.testing.assert_array_equal(y, 60 + 30 + 20 + 1)


@pk.function
def row_of(i: int, n: int) -> int:
    return i // n


@pk.function
def row_of_changed(i: int, n: int) -> int:
    n -= 2
    return i // n


@pk.function
def row_of_few(i: int, n: pk.int8) -> int:
    return i // n


def through(i, x, k):
    x[i] = row_of(i, k)


def through_two(i, x, k):
    m: int = k
    x[i] = row_of(i, m)


def by_two(i, x, k):
    x[i] = k + row_of(i, 2)


def by_zero(i, x, k):
    x[i] = k + row_of(i, 0)


def changed(i, x, k):
    x[i] = row_of_changed(i, k)


def narrowed(i, x, k):
    x[i] = row_of_few(i, k)


def computed(i, x, k):
    x[i] = row_of(i, k - 2)


def reassigned(i, x, k):
    m: int = k
    if i > 3:
        m = i - 4
    x[i] = row_of(i, m)


@pytest.mark.parametrize(
    ("function", "by_scalar", "by_others"),
    [
        (through, True, False),
        (through_two, True, False),
        (by_two, False, False),
        (by_zero, False, True),
        (changed, False, True),
        (narrowed, False, True),  # 256 is not 0, and its eight bits are
        (computed, False, True),
        (reassigned, False, True),
    ],
)
def test_what_a_function_divides_by(function: Any, by_scalar: bool, by_others: bool) -> None:
    unit = unit_of(function)
    n = next(place for place, param in enumerate(unit.params) if not param.rank)
    assert scalar_divisors(unit) == (frozenset({n} if by_scalar else ()), by_others)
