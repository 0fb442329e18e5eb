"""Blocks of iterations that run without the conditions on their index."""
# ruff: noqa: F821

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import count
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.ir.canonical import all_syms
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Binary,
    Cast,
    Const,
    Logical,
    Param,
    Read,
    Select,
    Stmt,
    Store,
    Sym,
    Workunit,
)
from pyfuser.ir.reference.interpret import UndefinedBehaviour, interpret
from pyfuser.ir.visit import map_body
from pyfuser.lower.lower import ScalarType, ViewType, lower
from pyfuser.nest.passes.split_conditions import Interior, interior
from pyfuser.support.caches import Table
from tests.codegen.build import Case, as_interpreted, case

N = 3000


def row(i, y, x, n, m):
    column: int = i % m
    v: float = 4.0 * x[i]
    if i >= m:
        v -= x[i - m]
    if i < n - m:
        v -= x[i + m]
    if column > 0:
        v -= x[i - 1]
    if column < m - 1:
        v -= x[i + 1]
    y[i] = v


def line(i, y, x, n, m):
    if i > 0 and i < n - 1:
        y[i] = x[i - 1] + x[i + 1]
    else:
        y[i] = x[i]


def ends(i, y, x, n, m):
    if i == 0:
        y[i] = 1.0
    elif i == n - 1 or i == m:
        y[i] = 2.0
    else:
        y[i] = x[i - 1] - x[i + 1]


def chosen(i, y, x, n, m):
    left: int = i - 1 if i > 0 else n - 1
    right: int = i + 1 if i + 1 < n else 0
    y[i] = x[left] + x[right]


def named(i, y, x, n, m):
    inside: bool = i > 0 and i < n - 1 and not (i % m < 1)
    if inside:
        y[i] = x[i - 1] + x[i + 1]


def of_rows(i, y, x, n, m):
    if i // m > 0 and i // m < n // m - 1:
        y[i] = x[i - m] + x[i + m]
    if i // m > 0 and i // m < 7:
        y[i] += 1.0


def of_data(i, y, x, n, m):
    if i > 0 and x[i] > 0.5:
        y[i] = x[i - 1]


def first(i, y, x, n, m):
    if i == 0:
        y[i] = x[i]


def atomic(i, y, x, n, m):
    if i > 0 or pk.atomic_fetch_add(y, [n - 1], 1.0) < 0.5:
        pk.atomic_add(y, [0], 1.0)


ASKING = [row, line, ends, chosen, named, of_rows, of_data, first, atomic]


def made(function: Any, n: int, m: int, begin: int = 0, end: int = 0, **options: Any) -> Case:
    def arguments() -> list[Any]:
        x = np.random.default_rng(5).uniform(0.0, 1.0, n + abs(m))
        return [np.zeros(n), x, n, m]

    return case(function, [end or n], arguments, begin=[begin], **options)


def code_of(given: Case) -> str:
    return emit(spec_of(given.kernel))


@pytest.mark.parametrize("function", ASKING)
@pytest.mark.parametrize(("n", "m"), [(N, 1000), (N, 37), (N, 1), (N, N), (129, 64), (5, 2)])
def test_results_are_as_interpreted(function, n, m):
    given = made(function, n, m)
    assert "pf_inside(" in code_of(given)
    as_interpreted(given)


@pytest.mark.parametrize("function", ASKING)
def test_parts_of_the_space(function):
    as_interpreted(made(function, N, 1000, 1001, 1990))
    as_interpreted(made(function, N, 1000, 127, 129))


def test_without_32_bit_subscripts_widened():
    as_interpreted(made(row, N, 1000, widened=False))


def test_inside_nothing_is_asked():
    code = code_of(made(row, N, 1000))
    middle = code[code.index("void pf_middle(") : code.index("void pf_loop(")]
    assert "if (" not in middle and "pf_remainder" not in middle
    around = code[code.index("void pf_around(") : code.index("void pf_middle(")]
    assert around.count("if (") == 4


# --------------------------------------------------------------------------- sums


def total(i, acc, x, n, m):
    column: int = i % m
    if column > 0 and column < m - 1:
        acc += x[i + 1] - x[i - 1]


def summed(function: Any, n: int, m: int) -> Case:
    def arguments() -> list[Any]:
        return [np.random.default_rng(5).uniform(0.0, 1.0, n + 1), n, m]

    return case(function, [n], arguments, pattern="reduce")


@pytest.mark.parametrize("m", [1000, 37, 1, 3, N])
def test_sums(m, monkeypatch):
    """Bit for bit those of blocks that ask."""
    given = summed(total, N, m)
    assert "pf_inside(" in code_of(given)
    as_interpreted(given)
    from pyfuser.engine import native

    (launchable,) = native.prepare([given.kernel])
    found = given.run(launchable)[1]
    never = replace(given.kernel, workunit=replace(given.kernel.workunit, name="asks"))
    monkeypatch.setattr("pyfuser.codegen.cpu.terms.interior_of", lambda *_: None)
    monkeypatch.setattr(native, "KERNELS", Table("of a test", 999))
    assert "pf_inside(" not in emit(spec_of(never))
    (launchable,) = native.prepare([never])
    assert given.run(launchable)[1] == found


# --------------------------------------------------------------------------- several axes


def plane(i, j, y, x, n, m):
    if i > 0 and i < n - 1 and j > 0 and j < m - 1:
        y[i][j] = x[i - 1][j] + x[i + 1][j] + x[i][j - 1] + x[i][j + 1]


def sides(i, j, y, x, n, m):
    v: float = x[i][j]
    if i > 0:
        v -= x[i - 1][j]
    if i < n - 1:
        v -= x[i + 1][j]
    if j != 0:
        v -= x[i][j - 1]
    if j < m - 1:
        v -= x[i][j + 1]
    y[i][j] = v


def rows_alone(i, j, y, x, n, m):
    if i > 0 and not (i >= n - 1):
        y[i][j] = x[i - 1][j] + x[i + 1][j]


def turned(i, j, y, x, n, m):
    if j > 0 and i < n - 1 and (i + j) % 2 == 0:
        y[j][i] = x[j - 1][i] + x[j][i + 1]


def box(function: Any, shape: tuple[int, ...], begin: tuple[int, ...] = (0, 0)) -> Case:
    def arguments() -> list[Any]:
        x = np.random.default_rng(5).uniform(0.0, 1.0, shape)
        arrays = [np.zeros(shape), x]
        if function is turned:
            arrays = [np.ascontiguousarray(a.T) for a in arrays]
        return [*arrays, *shape]

    return case(function, shape, arguments, begin=begin)


@pytest.mark.parametrize("function", [plane, sides, rows_alone, turned])
@pytest.mark.parametrize("shape", [(40, 300), (5, 129), (30, 31), (3, 2), (2, 1), (400, 7)])
def test_boxes(function, shape):
    given = box(function, shape)
    assert "pf_inside(" in code_of(given)
    as_interpreted(given)


@pytest.mark.parametrize("function", [plane, sides, rows_alone, turned])
@pytest.mark.parametrize("begin", [(1, 1), (7, 100), (0, 150)])
def test_parts_of_boxes(function, begin):
    as_interpreted(box(function, (40, 300), begin))


def solid(i, j, k, y, x, n, m, p):
    if i > 0 and j > 0 and j < m - 1 and k < p - 1:
        y[i][j][k] = x[i - 1][j][k] + x[i][j + 1][k] + x[i][j][k + 1]


@pytest.mark.parametrize("shape", [(6, 7, 150), (3, 3, 3)])
def test_solids(shape):
    given = box(solid, shape, (0, 0, 0))
    assert "pf_inside(" in code_of(given)
    as_interpreted(given)


def plane_sum(i, j, acc, x, n, m):
    if i > 0 and j > 0 and j < m - 1:
        acc += x[i - 1][j] - x[i][j + 1]


@pytest.mark.parametrize("shape", [(40, 300), (9, 31), (1, 5)])
def test_sums_of_boxes(shape):
    def arguments() -> list[Any]:
        return [np.random.default_rng(5).uniform(0.0, 1.0, shape), *shape]

    given = case(plane_sum, shape, arguments, pattern="reduce")
    assert "pf_inside(" in code_of(given)
    as_interpreted(given)


# --------------------------------------------------------------------------- what asks nothing


def of_elements(i, y, x, n, m):
    if x[i] > 0.5:
        y[i] = x[i]


def of_scalars(i, y, x, n, m):
    if m > 5:
        y[i] = x[i]


def changed(i, y, x, n, m):
    i += 1
    if i > 1 and i < n:
        y[i - 1] = x[i - 1]


def changing(i, y, x, n, m):
    limit: int = m
    limit += int(8.0 * x[i])
    if i > limit:
        y[i] = x[i]


def twice(i, y, x, n, m):
    if 2 * i > m:
        y[i] = x[i]


def far(i, y, x, n, m):
    if i + 2000000 > m:
        y[i] = x[i]


def over_rows(i, y, x, n, m):
    for _k in range(m):
        if i > 0:
            y[i] += x[i - 1]


def dear(i, y, x, n, m):
    if i > 0:
        y[i] = pow(x[i], x[i - 1]) + exp(x[i]) * log(x[i] + 2.0) + sin(x[i])


@pytest.mark.parametrize(
    "function", [of_elements, of_scalars, changed, changing, twice, far, over_rows, dear]
)
@pytest.mark.parametrize("widened", [True, False])
def test_what_is_not_split(function, widened):
    given = made(function, 300, 5, widened=widened)
    assert "pf_inside(" not in code_of(given)
    if function is not dear:
        as_interpreted(given)


def test_loops_in_order_stay_as_they_are():
    assert "pf_inside(" not in code_of(made(line, N, 5, execution="Serial"))


def guarded(i, y, x, n, m):
    if m > 0 and i % m > 0:
        y[i] = x[i]


@pytest.mark.parametrize("m", [0, -3])
def test_a_divisor_that_is_not_positive(m):
    """Nothing is inside, and nothing divides by zero to find that out."""
    given = made(guarded, 300, m)
    assert "pf_inside(" in code_of(given)
    as_interpreted(given)


def test_a_divisor_of_zero_is_not_tried():
    """The tests divide by it only where another one has ruled that out."""
    text = (
        "def asks(o, i, y, n, m, k, base):\n    if m > 0 and i % m > 0:\n        y[i - base] = 1\n"
    )
    unit = workunit_of(text)
    inside = inside_of(unit)
    assert inside is not None
    assert not all_hold(unit, inside)(0, 9, 0, 0, 0, 0, 0)


# --------------------------------------------------------------------------- the law


OTHER = ("o", "o - 1", "2 * o + m")
VARYING = (
    "i",
    "int(i)",
    "i + 3",
    "i - 2",
    "i % m",
    "(i + 1) % m",
    "i // m",
    "i % m + 1",
    "(i % k)",
)
LIMITS = ("0", "1", "70", "n", "n - 1", "m", "m - 1", "-k", "k * m", "k - m", "-2147483647")
PARAMS = ("n", "m", "k")


def condition(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.6:
        sides = [rng.choice(VARYING if rng.random() < 0.7 else OTHER), rng.choice(LIMITS)]
        rng.shuffle(sides)
        return f"{sides[0]} {rng.choice(('<', '<=', '>', '>=', '==', '!='))} {sides[1]}"
    if kind < 0.7:
        return f"not ({condition(rng)})"
    return f"({condition(rng)} {rng.choice(('and', 'or'))} {condition(rng)})"


def program(rng: random.Random) -> str:
    lines = ["def asks(o, i, y, n, m, k, base):", "    v: int = 0"]
    for bit in range(rng.randint(1, 3)):
        one, other = 2 ** (2 * bit), 2 ** (2 * bit + 1)
        lines.append(
            rng.choice(
                (
                    f"    if {condition(rng)}:\n        v += {one}\n"
                    f"    elif {condition(rng)}:\n        v += {other}",
                    f"    v += {one} if {condition(rng)} else {other}",
                    f"    b{bit}: bool = {condition(rng)}\n    if b{bit}:\n        v += {one}",
                )
            )
        )
    return "\n".join([*lines, "    y[i - base] = v", ""])


def workunit_of(text: str) -> Workunit:
    linecache.cache["<asks>"] = (len(text), None, text.splitlines(keepends=True), "<asks>")
    names: dict[str, Any] = {}
    exec(compile(text, "<asks>", "exec"), names)
    types = {name: ScalarType(DType.INT32) for name in PARAMS}
    types |= {"y": ViewType(DType.INT32, 1), "base": ScalarType(DType.INT64)}
    return lower(names["asks"], "for", 2, types).workunit


def wide_of(unit: Workunit) -> Workunit:
    """With an index of 64 bits, of which conditions ask for 32."""
    (other, index), (*_, base) = unit.indices, (p.sym for p in unit.params)
    wide = Sym("wide", 10**6, DType.INT64)
    narrow = Cast(Read(wide), index.dtype)
    at = Binary("-", Read(wide), Read(base))

    def stored(stmt: Stmt) -> Stmt:
        return replace(stmt, indices=(at,)) if isinstance(stmt, Store) else stmt

    body = map_body(unit.body, lambda e: narrow if e == Read(index) else e, stored)
    return replace(unit, indices=(other, wide), body=body)


def inside_of(unit: Workunit) -> Interior | None:
    uids = count(1 + max(sym.uid for sym in all_syms(unit)))
    return interior(unit, 1, lambda name, dtype: Sym(name, next(uids), dtype))


def all_hold(unit: Workunit, inside: Interior) -> Callable[..., bool]:
    """The tests of a block, by the reference interpreter."""
    out, zero = Sym("out", 10**7, DType.INT32), Const(0, DType.INT32)
    value = Select(
        reduce(lambda a, b: Logical("&&", a, b), inside.tests), Const(1, DType.INT32), zero
    )
    own = (inside.first, inside.last, unit.indices[0])
    scalars = [*map(Param, own), *(p for p in unit.params if not p.rank)]
    at = Sym("at", 10**7 + 1, DType.INT32)
    body = (Store(out, (zero,), value),)
    tests = Workunit("tests", (at,), (Param(out, 1), *scalars), body)

    def hold(*values: int) -> bool:
        found = np.zeros(1, np.int32)
        interpret(tests, "for", (0,), (1,), [found, *values])
        return bool(found[0])

    return hold


def run(unit: Workunit, first: int, last: int, other: int, values: Sequence[int]) -> np.ndarray:
    y = np.zeros(last - first + 1, np.int32)
    interpret(unit, "for", (other, first), (other + 1, last + 1), [y, *values, first])
    return y


CENTRES = (0, 0, 0, 40, 1000, 2**20, 2**30, -(2**30), 2**31 - 60, -(2**31) + 60)


@pytest.mark.parametrize("seed", range(24))
def test_inside_the_body_does_what_it_did(seed):
    """For random conditions and blocks: where the tests hold, nothing was left out."""
    rng = random.Random(seed)
    tried = 0
    for _ in range(12):
        unit = workunit_of(program(rng))
        unit = wide_of(unit) if seed % 2 else unit
        inside = inside_of(unit)
        if inside is None:
            continue
        hold, short = all_hold(unit, inside), replace(unit, body=inside.body)
        for _ in range(40):
            centre = rng.choice(CENTRES)
            first = centre + rng.randint(-50, 50)
            last = first + rng.choice((0, 1, 2, 7, 31))
            values = [rng.choice((1, 5, 70, 2000)), rng.choice((-7, 0, 1, 3, 40, 1000)), 0]
            values[2] = rng.choice((-1, 1, 6, 50))
            other = rng.choice((0, 1, 5, 69, 70, 2000))
            try:
                if not (seed % 2 or -(2**31) <= first <= last < 2**31 - 1):
                    continue
                if not hold(first, last, other, *values, first):
                    continue
                expected = run(unit, first, last, other, values)
            except UndefinedBehaviour:  # of limits: here they wrap
                continue
            tried += 1
            np.testing.assert_array_equal(run(short, first, last, other, values), expected)
    assert tried or seed % 4


def test_where_32_bits_may_wrap_nothing_is_inside():
    text = "def asks(o, i, y, n, m, k, base):\n    if i != -2147483647:\n        y[i - base] = 1\n"
    unit = wide_of(workunit_of(text))
    inside = inside_of(unit)
    assert inside is not None
    hold = all_hold(unit, inside)
    assert hold(0, 9, 0, 0, 0, 0, 0)
    assert not hold(2**31 - 3, 2**31 + 6, 0, 0, 0, 0, 0)  # 2**31 + 1 has the value that it is not


def test_a_quotient_that_falls_may_meet_what_it_is_compared_with():
    text = "def asks(o, i, y, n, m, k, base):\n    if i // m == -1:\n        y[i - base] = 1\n"
    unit = workunit_of(text)
    inside = inside_of(unit)
    assert inside is not None
    hold = all_hold(unit, inside)
    assert hold(0, 20, 0, 0, 7, 0, 0)
    assert not hold(0, 20, 0, 0, -7, 0, 0)  # from 0 to -2
