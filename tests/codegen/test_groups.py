"""Many sums of one loop: which are computed a few at a time, and that no bit of them changes."""
# ruff: noqa: F821

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.engine import native
from pyfuser.ir.nodes import Accumulator, Body, Stmt, Sym, Update, Workunit
from pyfuser.ir.visit import assigned, statements, substitute_syms
from pyfuser.nest.passes import split_accumulators
from pyfuser.support.caches import Table
from pyfuser.tuning.thresholds import DEFAULT
from tests.codegen.build import Case, case
from tests.vendors import tune

MANY = DEFAULT.fewest_groups
ROUND, RUN = split_accumulators.LANES, 4 * DEFAULT.block
SIZES = [1, ROUND - 1, ROUND, ROUND + 1, RUN, RUN + ROUND + 1, 3 * RUN - 1, 40_007]


def many(given: Case, sums: int = MANY) -> Case:
    """The kernel with so many accumulators that take the statements of the one that it has."""
    kernel = given.kernel
    workunit, (one,) = kernel.workunit, kernel.workunit.accumulators
    syms = [one.sym, *(replace(one.sym, uid=10**9 + k) for k in range(1, sums))]

    def copies(stmt: Stmt) -> Body:
        if one.sym not in assigned((stmt,)):
            return (stmt,)
        return tuple(s for sym in syms for s in substitute_syms((stmt,), {one.sym: sym}))

    body = tuple(copy for stmt in workunit.body for copy in copies(stmt))
    accumulators = tuple(map(Accumulator, syms))
    changed = replace(workunit, body=body, accumulators=accumulators)
    return Case(replace(kernel, workunit=changed, results=tuple(range(sums))), given.arguments)


def in_groups(given: Case) -> bool:
    return "void pf_run(" in emit(spec_of(given.kernel))


def points(n: int) -> np.ndarray[Any, Any]:
    """Numbers of many sizes, with zeros of both signs."""
    rng = np.random.default_rng(3)
    found = rng.normal(size=n) * 10.0 ** rng.integers(-8, 8, n)
    found[rng.integers(0, n, n // 4)] = -0.0
    found[rng.integers(0, n, n // 4)] = 0.0
    return found


def arguments(n: int) -> list[Any]:
    return [points(n), np.zeros(n), np.zeros(n, np.int32), 3]


def labelled(i, acc, x, y, label, k):
    nearest: int = 0
    if x[i] > 0.001:
        nearest = 3
    label[i] = nearest
    y[i] = x[i] * 0.5 + nearest
    if nearest == k:
        acc += x[i]


def of_locals(i, acc, x, y, label, k):
    value: float = x[i] * x[i] + k
    y[i] = value
    acc += value * x[i]


def subtracted(i, acc, x, y, label, k):
    y[i] = x[i] + k
    if y[i] > 1.0:
        acc -= x[i]
    else:
        acc -= -0.0


def only_sums(i, acc, x, y, label, k):
    if x[i] > k:
        acc += x[i]


def all_negative_zeros(i, acc, x, y, label, k):
    y[i] = k
    acc += -0.0 * (x[i] * x[i])


GROUPED = [labelled, of_locals, subtracted, only_sums, all_negative_zeros]


def bits(given: Case) -> tuple[bytes, ...]:
    (launchable,) = native.prepare([given.kernel])
    arrays, results = given.run(launchable)
    written = [a.tobytes() for a in arrays if isinstance(a, np.ndarray)]
    return (*written, *(np.float64(value).tobytes() for value in results))


@pytest.mark.parametrize("work", GROUPED)
def test_groups_change_no_bit(work: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    def build(n: int, begin: int) -> Case:
        return many(case(work, [n], lambda: arguments(n), "reduce", [begin]))

    spaces = [(n, begin) for n in SIZES for begin in (0, 5) if begin < n]
    found = {}
    for threads in (1, 3):
        monkeypatch.setattr(native.team, "count", threads)
        for space in spaces:
            assert in_groups(build(*space))
            found[space, threads] = bits(build(*space))
    tune(monkeypatch, fewest_groups=1000)
    monkeypatch.setattr(native, "KERNELS", Table("of a test", 999))
    for (space, _), value in found.items():
        assert not in_groups(build(*space))
        assert value == bits(build(*space)), space


def test_sums_are_right() -> None:
    given = many(case(labelled, [5000], lambda: arguments(5000), "reduce"))
    (launchable,) = native.prepare([given.kernel])
    arrays, results = given.run(launchable)
    expected, wanted = given.interpreted()
    for a, b in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(results, wanted, rtol=1e-13)


def test_two_axes_and_an_odd_number_of_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    def squares(i, j, acc, x, y):
        y[i][j] = x[i][j] * x[i][j]
        if y[i][j] > 0.01:
            acc += x[i][j]

    def build(columns: int) -> Case:
        def fresh() -> list[Any]:
            return [points(7 * columns).reshape(7, columns), np.zeros((7, columns))]

        return many(case(squares, [7, columns], fresh, "reduce", [1, 2]), MANY + 4)

    columns = (
        20,
        33,
        600,
        3000,
    )  # rows that are parts of a round, and tiles of one row and of many
    assert all(in_groups(build(n)) for n in columns)
    found = [bits(build(n)) for n in columns]
    tune(monkeypatch, fewest_groups=1000)
    monkeypatch.setattr(native, "KERNELS", Table("of a test", 999))
    assert found == [bits(build(n)) for n in columns]


# --------------------------------------------------------------------------- what stays as it was


def overwritten(i, acc, x, y, label, k):
    acc += x[i]
    x[i] = 2.0 * y[i]


def reassigned(i, acc, x, y, label, k):
    value: float = x[i]
    if value > 0.0:
        acc += value
    value = 2.0 * value
    y[i] = value


def twice(i, acc, x, y, label, k):
    acc += x[i]
    if y[i] > 0.0:
        acc += y[i]


def gathered(i, acc, x, y, label, k):
    acc += x[label[i]]


def shared(i, acc, x, y, label, k):
    acc += x[i] * y[k]


def also_stores(i, acc, x, y, label, k):
    if x[i] > 0.0:
        acc += x[i]
        y[i] = x[i]


def called(i, acc, x, y, label, k):
    acc += math.exp(x[i])


def looped(i, acc, x, y, label, k):
    for _ in range(k):
        acc += x[i]


def local_array(i, acc, x, y, label, k):
    pair: list[float] = [x[i], y[i]]
    pair[k % 2] = 1.0
    acc += pair[0]


OTHERS = [overwritten, reassigned, twice, gathered, shared, also_stores, called, looped]


@pytest.mark.parametrize("work", [*OTHERS, local_array])
def test_other_sums_stay_in_one_loop(work: Callable[..., None]) -> None:
    assert not in_groups(many(case(work, [5000], lambda: arguments(5000), "reduce")))


@pytest.mark.parametrize("work", [overwritten, reassigned])
def test_what_changes_after_a_sum_was_read_before(work: Callable[..., None]) -> None:
    given = many(case(work, [1000], lambda: arguments(1000), "reduce"))
    (launchable,) = native.prepare([given.kernel])
    (_, results), (_, wanted) = given.run(launchable), given.interpreted()
    np.testing.assert_allclose(results, wanted, rtol=1e-13)


def test_few_sums_stay_in_one_loop() -> None:
    assert not in_groups(many(case(labelled, [50], lambda: arguments(50), "reduce"), MANY - 1))


def test_sums_of_other_sizes_stay_in_one_loop() -> None:
    def fresh() -> list[Any]:
        return arguments(50)

    given = many(case(labelled, [50], fresh, "reduce"))
    single = _retyped(given.kernel.workunit)
    assert not in_groups(Case(replace(given.kernel, workunit=single), fresh))


def _retyped(workunit: Workunit) -> Workunit:
    """With the last accumulator a float32."""
    last = workunit.accumulators[-1].sym
    narrow = Sym(last.name, last.uid, type(last.dtype).FLOAT32)
    body = substitute_syms(workunit.body, {last: narrow})
    assert any(isinstance(s, Update) and s.target == narrow for s in statements(body))
    sums = (*workunit.accumulators[:-1], Accumulator(narrow))
    return replace(workunit, body=body, accumulators=sums)


def test_views_that_overlap_stay_in_one_loop() -> None:
    def fresh() -> list[Any]:
        memory = np.zeros(101)
        return [memory[1:], memory[:-1], np.zeros(100, np.int32), 3]

    assert not in_groups(many(case(of_locals, [100], fresh, "reduce")))


def test_columns_stay_in_one_loop() -> None:
    def fresh() -> list[Any]:
        return [np.zeros((100, 4))[:, 1], *arguments(100)[1:]]

    assert not in_groups(many(case(labelled, [100], fresh, "reduce")))


def test_a_serial_space_stays_in_one_loop() -> None:
    given = case(labelled, [50], lambda: arguments(50), "reduce", execution="Serial")
    assert spec_of(many(given).kernel).serial
    assert not in_groups(many(given))
