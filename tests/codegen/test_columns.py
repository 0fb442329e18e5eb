"""Columns: which loops run trip by trip for strips of iterations, and that nothing changes."""
# ruff: noqa: F821

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.engine import native
from pyfuser.engine.native import prepare as compile_kernels
from pyfuser.nest.build import nest_of
from pyfuser.nest.passes import scalar_expansion
from pyfuser.nest.passes.columns import columns_of
from pyfuser.support.caches import Table
from pyfuser.tuning.thresholds import DEFAULT
from tests.codegen.build import Case, as_interpreted, case
from tests.vendors import tune

M = 37
FEWEST = DEFAULT.fewest_columns
IF_LONG = "if (count >= "  # how the code of strips begins, and no other code
SIZES = [1, FEWEST - 1, FEWEST, 75]


def table(n: int, seed: int = 0, rows: int = M) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=(rows, n))


def weights(seed: int = 3, rows: int = M) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=rows)


def in_columns(given: Case) -> bool:
    return columns_of(nest_of(spec_of(given.kernel))) is not None


def same(given: Case) -> None:
    """See `as_interpreted`; the sums here are of more terms."""
    as_interpreted(given, rtol=1e-12)


def usual(given: Case) -> Any:
    """The results of the code that does without strips."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "KERNELS", Table("of a test", 999))
        tune(patch, fewest_columns=1 << 30)
        (launchable,) = compile_kernels([given.kernel])
        return given.run(launchable)


def unchanged(given: Case) -> None:
    """Strips change no bit, and the interpreter finds the same."""
    (launchable,) = compile_kernels([given.kernel])
    found, results = given.run(launchable)
    expected, wanted = usual(given)
    assert results == wanted
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(found, given.interpreted()[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def on(work: Callable[..., None], n: int, pattern: str = "for", **options: Any) -> Case:
    """The work on two tables, a line, weights, and the number of rows."""
    return case(
        work, [n], lambda: [table(n), table(n, 1), table(n, 2)[0], weights(), M], pattern, **options
    )


def total(i, x, z, y, w, m):
    value: float = 0.0
    for j in range(m):
        value += x[j][i]
    y[i] = value


def variance(i, x, z, y, w, m):
    mean: float = 0.0
    for j in range(m):
        mean += x[j][i]
    mean /= m
    far: float = 0.0
    for j in range(m):
        d: float = x[j][i] - mean
        far += d * d
    y[i] = far / m


def recurrence(i, x, z, y, w, m):
    for j in range(1, m):
        x[j][i] = x[j][i] - 0.5 * x[j - 1][i]


def tridiagonal(i, x, z, y, w, m):
    last: float = 0.0
    for j in range(1, m - 1):
        last = (x[j][i] + 0.3 * last) * w[j]
        x[j][i] = last
    last = 0.0
    for j in range(m - 2, 0, -1):
        last = x[j][i] + 0.3 * w[j] * last
        x[j][i] = last


def product(i, x, z, y, w, m):
    for j in range(m):
        y[i] += x[j][i] * w[j]


def least(i, x, z, y, w, m):
    best: float = x[0][i]
    where: int = 0
    for j in range(1, m):
        if x[j][i] < best:
            best = x[j][i]
            where = j
    y[i] = best + where


def softmax(i, x, z, y, w, m):
    top: float = x[0][i]
    for j in range(1, m):
        top = fmax(top, x[j][i])
    sum: float = 0.0
    for j in range(m):
        sum += exp(x[j][i] - top)
    for j in range(m):
        z[j][i] = exp(x[j][i] - top) / sum


def nested(i, x, z, y, w, m):
    half: int = m // 4
    for b in range(4):
        first: int = b * half
        value: float = 0.25
        for j in range(half):
            value += x[first + j][i] * w[j]
        z[b][i] = value
        for j in range(b, half):
            y[i] -= value * x[j][i]


def reversed_and_every_third(i, x, z, y, w, m):
    value: float = 1.0
    for j in range(m):
        k: int = m - 1 - j
        value = 0.5 * value + x[k][i]
    for j in range(1, m, 3):
        value = 0.5 * value + x[j][i]
    y[i] = value


def backwards(i, x, z, y, w, m):
    """The subscript is a local of the trip."""
    last: float = y[i]
    for j in range(1, m):
        k: int = m - 1 - j
        last = x[k][i] + w[k] * last
        x[k][i] = last


def kept_array(i, x, z, y, w, m):
    parts: List[float] = [0.0, 0.0, 0.0, 0.0]
    for j in range(m):
        parts[j % 4] += x[j][i]
    y[i] = parts[0] + parts[1] * parts[2] - parts[3]


def kept_column(i, x, z, y, w, m):
    """Loops over what an iteration keeps run along strips as well."""
    d: List[float] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    last: float = 0.0
    for j in range(8):
        d[j] = x[j][i] * w[j]
    for j in range(8):
        last = d[j] - 0.5 * last
        d[j] = last
    for j in range(8):
        k: int = 7 - j
        z[k][i] += d[k]
    y[i] = d[3]


def of_a_place(i, x, z, y, w, m):
    """A subscript that data decide stands beside those that run on."""
    k: int = int(fabs(y[i])) % 3
    value: float = 0.0
    for j in range(m):
        value += x[j][i] * z[j][i] * z[m - 1 - j][i] * w[k]
    y[i] = value


def everyones(i, x, z, y, w, m):
    """All iterations read the same elements."""
    value: float = 0.0
    for j in range(m):
        value += w[j] * y[i]
    y[i] = value


COLUMNS = [
    everyones,
    total, variance, recurrence, tridiagonal, product, least, softmax, nested,
    reversed_and_every_third, of_a_place, backwards, kept_array, kept_column,
]  # fmt: skip


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("work", COLUMNS)
def test_loops_along_columns_keep_their_bits(work: Callable[..., None], n: int) -> None:
    given = on(work, n)
    assert in_columns(given)
    unchanged(given)


def test_what_is_kept_has_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_columns(on(kept_column, M))
    monkeypatch.setattr(scalar_expansion, "MOST_KEPT", 63)
    assert not in_columns(on(kept_column, M))


def test_loops_over_what_is_kept_run_along_strips() -> None:
    found = columns_of(nest_of(spec_of(on(kept_column, M).kernel)))
    assert found is not None
    assert sum(isinstance(part, scalar_expansion.Trips) for part in found.parts) == 3


def test_several_strips_and_the_rest() -> None:
    def arguments() -> list[Any]:
        return [table(5000, rows=3), table(1), table(5000, 2, 1)[0], weights(rows=3), 3]

    same(case(variance, [5000], arguments))
    same(case(recurrence, [5000], arguments, begin=[7]))

    def kept() -> list[Any]:
        return [table(5000, rows=8), table(5000, 1, 8), table(5000, 2, 1)[0], weights(rows=8), 8]

    for work in (kept_column, kept_array):
        same(case(work, [5000], kept))


@pytest.mark.parametrize("m", [0, 1, 2, 3, 4, 5, 8])
def test_any_number_of_trips(m: int) -> None:
    for work in (total, recurrence, tridiagonal, reversed_and_every_third):
        same(case(work, [40], lambda: [table(40), table(40), table(40)[0], weights(), m]))


def rounded(i, x, z, y, w, m):
    half: int = m * 0.5
    value: float = 0.0
    for j in range(half * 2):
        value += x[j][i]
    y[i] = value


def test_bounds_that_are_rounded() -> None:
    given = on(rounded, 40)  # half of 37
    assert in_columns(given)
    same(given)


def squares(i, acc, x, z, y, w, m):
    value: float = 0.0
    for j in range(m):
        value += x[j][i]
    acc += value * value


def everything(i, acc, x, z, y, w, m):
    for j in range(1, m):
        acc += x[j][i] * w[j]


def everything_and_more(i, acc, x, z, y, w, m):
    acc += y[i]
    for j in range(m):
        if x[j][i] > 0.0:
            acc += x[j][i]
        z[j][i] = x[j][i] * w[j]
    for j in range(4):
        acc -= z[j][i]


@pytest.mark.parametrize("m", [5, 23, 24, 25, 33, 70])
@pytest.mark.parametrize("work", [squares, everything, everything_and_more])
def test_sums_keep_the_order_of_their_additions(work: Callable[..., None], m: int) -> None:
    n = 5000 if m == 33 else 700
    given = case(
        work,
        [n],
        lambda: [table(n, rows=70), table(n, 1, 70), table(n, 2, 1)[0], weights(rows=70), m],
        "reduce",
    )
    assert in_columns(given)
    unchanged(given)


def plane(i, j, c, y, m):
    value: float = 0.0
    for k in range(m):
        value += c[k][i][j]
    y[i][j] = value


def multiplied(i, j, a, b, y, m):
    value: float = 0.0
    for k in range(m):
        value += a[i][k] * b[k][j]
    y[i][j] = value


def test_spaces_of_two_axes() -> None:
    rng = np.random.default_rng(1)
    cube = rng.normal(size=(9, 5, 33))
    first = case(plane, [5, 33], lambda: [cube.copy(), np.zeros((5, 33)), 9])
    second = case(
        multiplied,
        [20, 40],
        lambda: [table(37, rows=20), table(40), np.zeros((20, 40)), 37],
    )
    for given in (first, second):
        assert in_columns(given)
        same(given)


def flattened(i, x, y, m, n):
    value: float = 0.0
    for j in range(m):
        value += x[j * n + i]
    y[i] = value


def test_flattened_tables() -> None:
    given = case(flattened, [40], lambda: [table(40).ravel(), np.zeros(40), M, 40])
    assert in_columns(given)
    same(given)


def test_narrow_types() -> None:
    for dtype in (np.float32, np.int32, np.int64):

        def arguments(dtype: Any = dtype) -> list[Any]:
            x = (10 * table(50)).astype(dtype)
            return [x, x.copy(), x[0].copy(), weights(), M]

        for work in (least, product, recurrence):
            same(case(work, [50], arguments))


# --------------------------------------------------------------------------- others


def own_trips(i, x, z, y, w, m):
    value: float = 0.0
    for j in range(i % m):
        value += x[j][i]
    y[i] = value


def trips_of_data(i, x, z, y, w, m):
    value: float = 0.0
    stop: int = int(fabs(y[i])) % m
    for j in range(stop):
        value += x[j][i]
    y[i] = value


def changing_trips(i, x, z, y, w, m):
    value: float = 0.0
    stop: int = m
    for j in range(stop):
        value += x[j][i]
    if x[0][i] > 0.0:
        stop = 2
    for j in range(stop):
        value += x[j][i]
    y[i] = value


def until(i, x, z, y, w, m):
    value: float = 0.0
    for j in range(m):
        if x[j][i] > 1.0:
            break
        value += x[j][i]
    y[i] = value


def skipping(i, x, z, y, w, m):
    value: float = 0.0
    for j in range(m):
        if x[j][i] > 1.0:
            continue
        value += x[j][i]
    y[i] = value


def own_bounds_sometimes(i, x, z, y, w, m):
    """Under a condition loops need equal trips as well."""
    value: float = 0.0
    if y[i] > 0.0:
        for j in range(i % m):
            value += x[j][i]
    y[i] = value


def until_sometimes(i, x, z, y, w, m):
    value: float = 0.0
    if y[i] > 0.0:
        for j in range(m):
            if x[j][i] > 1.0:
                break
            value += x[j][i]
    y[i] = value


def counted(i, x, z, y, w, m):
    for j in range(m):
        pk.atomic_add(y, [0], x[j][i])


def changed_index(i, x, z, y, w, m):
    i = i // 2 * 2
    value: float = 0.0
    for j in range(m):
        value += x[j][i]
    z[0][i] = value


def rows_again(i, x, z, y, w, m):
    """Rows that two loops walk along would not stay near while columns come in between."""
    value: float = 0.0
    for k in range(m):
        value += z[i][k]
    for j in range(m):
        value += x[j][i]
    for k in range(m):
        z[i][k] = value


def begun_array(i, x, z, y, w, m):
    """Arrays of a strip begin with zeros only."""
    parts: List[float] = [0.0, 1.0, 0.0, 0.0]
    for j in range(m):
        parts[j % 4] += x[j][i]
    y[i] = parts[0] + parts[1] * parts[2] - parts[3]


def along_rows(i, x, z, y, w, m):
    value: float = 0.0
    for j in range(m):
        value += z[i][j] * w[j]
    y[i] = value


@pytest.mark.parametrize(
    "work",
    [own_trips, trips_of_data, changing_trips, until, skipping, own_bounds_sometimes,
     until_sometimes, begun_array, rows_again, along_rows, changed_index],
)  # fmt: skip
def test_other_loops_stay_one_iteration_after_the_other(work: Callable[..., None]) -> None:
    given = on(work, M)
    assert not in_columns(given)
    if work is not changed_index:
        same(given)


def test_atomics_keep_their_order() -> None:
    given = on(counted, M)
    assert not in_columns(given)


def test_iterations_of_a_serial_space_keep_their_order() -> None:
    given = on(recurrence, 30, execution="Serial")
    assert not in_columns(given)
    assert IF_LONG not in emit(spec_of(given.kernel))
    same(given)


def running(i, acc, last, x, z, y, w, m):
    for j in range(m):
        acc += x[j][i]
    if last:
        y[i] = acc


def test_scans_keep_the_order_of_iterations() -> None:
    given = on(running, 30, "scan")
    assert IF_LONG not in emit(spec_of(given.kernel))


def overwritten(i, x, z, y, w, m):
    """Two names of one table: an iteration reads its own column only."""
    for j in range(1, m):
        x[j][i] = z[j - 1][i] + 1.0


def test_views_that_overlap() -> None:
    def arguments() -> list[Any]:
        x = table(40)
        return [x, x, table(40, 2)[0], weights(), M]

    given = case(overwritten, [40], arguments)
    assert in_columns(given)
    same(given)
