"""What runs where loops are split: bodies without guards or conditions, if that is right."""

from __future__ import annotations

import linecache
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain, count
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.kernel import spec_of
from pyfuser.ir.canonical import all_syms
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Binary,
    Cast,
    Const,
    For,
    If,
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
from pyfuser.ir.visit import all_expressions, map_body, statements
from pyfuser.lower.lower import ScalarType, ViewType, lower
from pyfuser.nest.build import nest_of
from pyfuser.nest.cost.gathers import chosen
from pyfuser.nest.interior import Interior, _is_part, interior
from pyfuser.nest.passes.split_guards import inside_of_guards
from pyfuser.pipeline import run_nest_passes
from pyfuser.tuning.thresholds import DEFAULT
from tests.nest import conditions  # noqa: F401
from tests.nest.harness import SAMPLES, decided, spec_for


@pytest.mark.parametrize("name", ["line", "guarded_solid", "neighbours_in_a_row", "sides"])
def test_the_middle_asks_nothing(name: str) -> None:
    """What is around it asks all."""
    (sample,) = (s for s in SAMPLES["conditions"] if s.name == name)
    nest = decided(spec_for(sample.case())).nest
    asked = {
        f.name: sum(isinstance(s, If) for s in statements(f.body)) for f in nest.functions[:-1]
    }
    assert asked["pf_middle"] == 0
    assert asked["pf_around"] == sum(isinstance(s, If) for s in statements(nest.workunit.body))


@pytest.mark.parametrize("name", ["line", "neighbours_in_a_row", "guarded_sum"])
def test_checked_loops_and_sums_stay_as_they_are(name: str) -> None:
    """The first mistake is that of the program; terms have blocks of their own."""
    (sample,) = (s for s in SAMPLES["conditions"] if s.name == name)
    kernel = sample.case().kernel
    checked = None if sample.pattern == "reduce" else kernel.workunit
    assert not run_nest_passes(nest_of(spec_of(kernel, checked))).passes


def test_loops_that_are_split_serve_all_bounds() -> None:
    (sample,) = (s for s in SAMPLES["conditions"] if s.name == "in_front")
    assert spec_for(sample.case(40, 21)) == spec_for(sample.case(40, 3))


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
    "i + 1 - k // 2",
    "m // 3 + i",
)
IN_LOOPS = (
    "i + t",
    "t + i",
    "i - t",
    "i + 2 * t - 1",
    "i - (3 - t)",
    "int(i) + u",
    "i + t + u",
    "o + t",
    "t - u + o",
    "min(max(i + t, 0), n - 1)",
    "t * u + i",
    "i % m + t",
    "i % m + m",
    "i + k - t",
    "i - n",
    "(i + t) % m",
    "t",
    "i + t - k // 2",
    "i + (n // 4 - t)",
    "i + t - t // 2 * 2 + n // 4",
    "i - 3 * (t // 3) + t",
    "t // 2 + i",
)
LOOPS = (
    "range(-2, 3)",
    "range(k)",
    "range(3, -2, -2)",
    "range(m, m + 3)",
    "range(n - 2, n + 2)",
    "range(-k, k + 1)",
)
OF_INDICES = (
    "range(i - 2, i + 3)",
    "range(i - 12, i + 13)",
    "range(max(i - 3, 0), min(i + 4, n))",
    "range(max(k, i - 3), min(i + 2 * k, n))",
    "range(max(i - k, 0), min(i + k + 1, n))",
    "range(i, i + k)",
    "range(i - m, i - m + k * 2)",
    "range(o - 1, min(o + 2, n))",
    "range(2 * i, 2 * i + 3)",
    "range(i - 1, i + 4, 2)",
    "range(i, o + 3 if o > i and o < i + 9 else i)",
)
LIMITS = ("0", "1", "70", "n", "n - 1", "m", "m - 1", "-k", "k * m", "k - m", "-2147483647")
LIMITS += ("n - 1 - k // 2", "n // 2", "m // 5")
PARAMS = ("n", "m", "k")


def condition(rng: random.Random, loops: bool = False) -> str:
    kind = rng.random()
    if kind < 0.6:
        varying = IN_LOOPS if loops and rng.random() < 0.7 else VARYING
        sides = [rng.choice(varying if rng.random() < 0.7 else OTHER), rng.choice(LIMITS)]
        rng.shuffle(sides)
        return f"{sides[0]} {rng.choice(('<', '<=', '>', '>=', '==', '!='))} {sides[1]}"
    if kind < 0.7:
        return f"not ({condition(rng, loops)})"
    return f"({condition(rng, loops)} {rng.choice(('and', 'or'))} {condition(rng, loops)})"


def correction(rng: random.Random, bit: int) -> str:
    """An index, or another one in its place."""
    own, limit, other = f"p{bit}", rng.choice(LIMITS), f"p{bit} * 3 - n"
    sides = [own, limit]
    rng.shuffle(sides)
    test = f"{sides[0]} {rng.choice(('<', '<=', '>', '>=', '==', '!='))} {sides[1]}"
    results = [own, rng.choice((limit, other, f"({other} if n < {own} else {own})"))]
    rng.shuffle(results)
    return f"{results[0]} if {test} else {results[1]}"


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
                    f"    if {condition(rng)}:\n        for t in {rng.choice(LOOPS)}:\n"
                    f"            v += {one} if {condition(rng, True).replace('u', 't')} else t",
                    "".join(
                        f"    v += {one} if i {way} {limit} else {other}\n"
                        for limit in [rng.choice(LIMITS)]
                        for op in [rng.choice(("<", "<=", ">", ">="))]
                        for way in (f"+ {rng.randint(-9, 9)} {op}", f"- {rng.randint(-9, 9)} {op}")
                    ),
                    f"    b{bit}: bool = {condition(rng)}\n    if b{bit}:\n        v += {one}",
                    f"    p{bit}: int = {rng.choice(VARYING)}\n    v += {correction(rng, bit)}",
                )
            )
        )
    if rng.random() < 0.5:
        t, u = rng.choice(LOOPS), rng.choice(LOOPS)
        lines.append(
            f"    for t in {t}:\n        for u in {u}:\n            if {condition(rng, True)}:\n"
            f"                v += 100 + t\n        if {condition(rng)}:\n            v += 1000"
        )
    if rng.random() < 0.4:
        inner = rng.choice((LOOPS[0], OF_INDICES[0]))
        lines.append(
            f"    for t in {rng.choice(OF_INDICES)}:\n        v += t % 7 + 1\n"
            f"        for u in {inner}:\n            v += (u - t) % 5"
        )
    return "\n".join([*lines, "    y[i - base] = v", ""])


def workunit_of(text: str, pattern: str = "for") -> Workunit:
    linecache.cache["<asks>"] = (len(text), None, text.splitlines(keepends=True), "<asks>")
    names: dict[str, Any] = {}
    exec(compile(text, "<asks>", "exec"), names)
    types = {name: ScalarType(DType.INT32) for name in PARAMS}
    types |= {"y": ViewType(DType.INT32, 1), "base": ScalarType(DType.INT64)}
    return lower(names["asks"], pattern, 2, types).workunit


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
    return interior(unit, 1, fresh_of(unit), DEFAULT)


def fresh_of(unit: Workunit) -> Callable[[str, DType], Sym]:
    uids = count(1 + max(sym.uid for sym in all_syms(unit)))
    return lambda name, dtype: Sym(name, next(uids), dtype)


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


BOUNDS = ("i >= n", "i < m", "o >= k", "o < m", "i >= k", "i < n", "o < k")


@pytest.mark.parametrize("seed", range(16))
def test_where_sums_are_guards_hold_inside_and_nowhere_else(seed):
    """For random guards and blocks: the tests of a block hold where all guards do."""
    rng = random.Random(seed)
    found = Counter()
    for _ in range(6):
        guards = [rng.sample(BOUNDS, rng.randint(1, 3)) for _ in range(rng.randint(1, 2))]
        text = "def asks(o, i, y, n, m, k, base):\n"
        for number, guard in enumerate(guards, 1):
            text += f"    if {' and '.join(guard)}:\n        y[i - base] = {number}\n"
        unit = workunit_of(text)
        unit = wide_of(unit) if seed % 2 else unit
        inside = inside_of_guards(unit, 1, fresh_of(unit))
        assert inside is not None
        hold, short = all_hold(unit, inside), replace(unit, body=inside.body)
        for _ in range(60):
            first = rng.choice((0, 5, 1000, 2**31 - 12)) + rng.randint(-3, 3)
            last = first + rng.choice((0, 1, 7, 14) if seed % 2 else (0, 1, 2))
            values = [first + rng.randint(-3, 1), last + rng.randint(-1, 3), rng.randint(-3, first)]
            values = [min(value, 2**31 - 1) for value in values]
            other = rng.choice((values[2], values[1] - 1)) + rng.randint(-1, 1)
            if not 0 <= other < 2**31 - 1 or not (seed % 2 or last < 2**31 - 1):
                continue
            named = dict(zip("nmk", values, strict=True), o=other)
            asked = " and ".join(chain(*guards))
            every = eval(asked, {}, named | {"i": first}) and eval(asked, {}, named | {"i": last})
            inner = hold(first, last, other, *values, first)
            assert inner == (every and last < 2**31)
            found[inner] += 1
            if inner:
                expected = run(unit, first, last, other, values)
                np.testing.assert_array_equal(run(short, first, last, other, values), expected)
    assert min(found[True], found[False]) > 10


def test_a_body_without_guards_has_no_inside():
    unit = workunit_of("def asks(o, i, y, n, m, k, base):\n    y[i - base] = 1\n")
    assert inside_of_guards(unit, 1, fresh_of(unit)) is None


def test_where_32_bits_may_wrap_nothing_is_inside():
    text = "def asks(o, i, y, n, m, k, base):\n    if i != -2147483647:\n        y[i - base] = 1\n"
    unit = wide_of(workunit_of(text))
    inside = inside_of(unit)
    assert inside is not None
    hold = all_hold(unit, inside)
    assert hold(0, 9, 0, 0, 0, 0, 0)
    assert not hold(2**31 - 3, 2**31 + 6, 0, 0, 0, 0, 0)  # 2**31 + 1 has the value that it is not


@pytest.mark.parametrize(
    "selected",
    [
        "p - n if p >= n else p",
        "p if p < n else p - n",
        "n if p > n else p",
        "n if n < p else p",
        "-1 if p == n else p",
        "m if p < m else (0 if p >= n else p)",
    ],
)
def test_inside_an_index_stays_what_it_is(selected: str) -> None:
    """Which way the condition stands in the text does not matter."""
    text = f"def asks(o, i, y, n, m, k, base):\n    p: int = i + 3\n    y[i - base] = {selected}\n"
    unit = workunit_of(text)
    inside = inside_of(unit)
    assert inside is not None
    hold, short = all_hold(unit, inside), replace(unit, body=inside.body)
    assert not any(isinstance(e, Select) for e in all_expressions(inside.body))
    np.testing.assert_array_equal(run(short, 5, 9, 0, [40, 2, 0]), range(8, 13))
    assert hold(0, 36, 0, 40, 2, 0, 0)
    assert not hold(0, 37, 0, 40, 2, 0, 0) or "n else p - n" not in selected
    assert not hold(30, 50, 0, 40, 2, 0, 0)


@pytest.mark.parametrize(
    "selected", ["m if q >= n else q", "q if q < n else m", "m if q < 0 else q"]
)
def test_so_does_that_of_another_axis(selected: str) -> None:
    text = f"def asks(o, i, y, n, m, k, base):\n    q: int = o + 3\n    y[i - base] = {selected}\n"
    unit = workunit_of(text)
    inside = inside_of(unit)
    assert inside is not None
    hold, short = all_hold(unit, inside), replace(unit, body=inside.body)
    assert not any(isinstance(e, Select) for e in all_expressions(inside.body))
    np.testing.assert_array_equal(run(short, 5, 9, 0, [40, 2, 0]), [3] * 5)
    assert hold(0, 36, 0, 40, 2, 0, 0)


@pytest.mark.parametrize(
    ("tests", "held"),
    [
        ("i + 1 < n and i - 1 < n", 2),
        ("i - 1 < n and i + 1 < n", 2),
        ("i - 2 <= n and i <= n and i - 1 < m", 2),  # of another limit
        ("i - 1 < n", 0),
        ("i - m > k and i + 1 > k", 2),
    ],
)
def test_what_a_condition_implies_holds_inside_with_it(tests: str, held: int) -> None:
    """Inside is where most is: of `i - 1 < n` alone, as a window has it, that is behind n."""
    lines = "".join(f"    if {t}:\n        s += 1\n" for t in tests.split(" and "))
    text = f"def asks(o, i, y, n, m, k, base):\n    s: int = 0\n{lines}    y[i - base] = s\n"
    unit = workunit_of(text)
    inside = inside_of(unit)
    assert inside is not None
    assert not any(isinstance(s, If) for s in statements(inside.body))
    found = run(replace(unit, body=inside.body), 5, 5, 0, [40, 2, 0])
    assert found[0] == held


WINDOW = (
    "def asks(o, i, y, n, m, k, base):\n    s: int = 0\n    for t in range({trips}):\n"
    "        s += max(0, min(n - 1, i + t - {half}))\n    y[i - base] = s\n"
)


@pytest.mark.parametrize("trips", ["5", "k"])
def test_half_of_a_window_is_as_good_as_a_radius(trips: str) -> None:
    unit = workunit_of(WINDOW.format(trips=trips, half="k // 2"))
    inside = inside_of(unit)
    assert inside is not None
    assert not any(isinstance(e, Select) for e in all_expressions(inside.body))
    hold, short = all_hold(unit, inside), replace(unit, body=inside.body)
    assert hold(3, 36, 0, 40, 2, 5, 3)
    for first, last in (3, 36), (3, 3):
        expected = run(unit, first, last, 0, [40, 2, 5])
        np.testing.assert_array_equal(run(short, first, last, 0, [40, 2, 5]), expected)
    assert not hold(2, 36, 0, 40, 2, 5, 2)
    assert not hold(3, 37, 0, 40, 2, 5, 3)
    assert not hold(3, 36, 0, 40, 2, 2**31 - 1, 3), "32 bits might wrap"


@pytest.mark.parametrize("half", ["k // m", "k // -2", "k % 2", "k // 2 * m * n * k"])
def test_what_may_be_large_or_trap_is_no_half_of_a_window(half: str) -> None:
    assert inside_of(workunit_of(WINDOW.format(trips="5", half=half))) is None


def test_parts_of_a_loops_variable_are_not_largest_at_its_ends() -> None:
    """`t - t // 2 * 2` is 0 at both ends of the loop, and 1 in between."""
    text = (
        "def asks(o, i, y, n, m, k, base):\n    s: int = 0\n    for t in range(0, 33):\n"
        "        if i + t - t // 2 * 2 + m // 3 < n:\n            s += 1\n    y[i - base] = s\n"
    )
    assert inside_of(workunit_of(text)) is None


def test_nothing_is_divided_by_zero() -> None:
    """Which a program that says so cannot; a constant may come to be."""
    k = Read(Sym("k", 0, DType.INT32))
    assert [_is_part(Binary("/", k, Const(n, DType.INT32))) for n in (0, 1)] == [False, True]


def test_of_conditions_that_differ_by_a_number_the_strictest_are_tried() -> None:
    """Whatever they have in common; those that have not are all tried."""

    def tests_of(*places: str) -> int:
        lines = "".join(f"    s += max(0, min(n - 1, {place}))\n" for place in places)
        text = f"def asks(o, i, y, n, m, k, base):\n    s: int = 0\n{lines}    y[i - base] = s\n"
        inside = inside_of(workunit_of(text))
        assert inside is not None
        return len(inside.tests)

    one = tests_of("i + 1 - k // 2")
    assert tests_of("i + 1 - k // 2", "i + 2 - k // 2", "i + 7 - k // 2") == one
    assert tests_of("i + 1 - k // 2", "i + 2 - k // 3") > one


def test_of_numbers_that_are_none_nothing_is_turned() -> None:
    """`not x >= nan` is not `x < nan`."""
    text = (
        "def asks(o, i, y, n, m, k, base):\n    r: float = i\n    v: int = 0\n"
        "    if i > 0:\n        v = 1\n"
        "    v += int(1.0 if r >= m else r)\n    y[i - base] = v\n"
    )
    unit = workunit_of(text)
    inside = inside_of(unit)
    assert inside is not None
    chosen = [e for e in all_expressions(unit.body) if isinstance(e, Select)]
    assert chosen == [e for e in all_expressions(inside.body) if isinstance(e, Select)]


def test_a_quotient_that_falls_may_meet_what_it_is_compared_with():
    text = "def asks(o, i, y, n, m, k, base):\n    if i // m == -1:\n        y[i - base] = 1\n"
    unit = workunit_of(text)
    inside = inside_of(unit)
    assert inside is not None
    hold = all_hold(unit, inside)
    assert hold(0, 20, 0, 0, 7, 0, 0)
    assert not hold(0, 20, 0, 0, -7, 0, 0)  # from 0 to -2


def test_in_loops_what_is_added_to_an_index_must_be_little():
    """What is tried are the ends of the loop: 32 bits must not wrap between them."""
    text = (
        "def asks(o, i, y, n, m, k, base):\n    for t in range(n, m):\n"
        "        if i + t >= 0:\n            y[i - base] += 1\n"
    )
    unit = workunit_of(text)
    inside = inside_of(unit)
    assert inside is not None
    hold = all_hold(unit, inside)
    assert hold(10, 20, 0, -3, 4, 0, 0)
    assert not hold(10, 20, 0, -11, 4, 0, 0)
    assert not hold(10, 20, 0, 0, 2**31 - 1, 0, 0)


def test_what_bounds_loops_must_be_little():
    """Trips are counted without the index: 32 bits must not wrap at either end."""
    text = (
        "def asks(o, i, y, n, m, k, base):\n    for t in range(i - m, i + k):\n"
        "        y[i - base] += t\n"
    )
    unit = workunit_of(text)
    inside = inside_of(unit)
    assert inside is not None
    hold = all_hold(unit, inside)
    assert hold(10, 20, 0, 0, 4, 5, 0)
    assert not hold(10, 20, 0, 0, 2**31 - 1, 5, 0)
    assert not hold(10, 20, 0, 0, 4, 2**30, 0)


@pytest.mark.parametrize(
    ("pattern", "first", "loops"), [("for", "v: int = 0", 1), ("reduce", "", 2)]
)
def test_short_loops_stay_where_sums_have_an_order(pattern, first, loops):
    """The order of a long loop's additions depends on whether there is one in it."""
    text = (
        f"def asks(o, i, {'y' if first else 'v, y'}, n, m, k, base):\n    {first or 'pass'}\n"
        "    for t in range(m):\n        for u in range(i, i + 3):\n            v += u * t\n"
        f"    {'y[0] = v' if first else 'pass'}\n"
    )
    inside = inside_of(workunit_of(text, pattern))
    assert inside is not None
    assert sum(isinstance(s, For) for s in statements(inside.body)) == loops


def test_in_loops_an_index_of_another_axis_must_not_wrap():
    text = (
        "def asks(o, i, y, n, m, k, base):\n    for t in range(0, 9):\n"
        "        if o + t != -2147483646:\n            y[i - base] += 1\n"
    )
    unit = workunit_of(text)
    inside = inside_of(unit)
    assert inside is not None
    hold = all_hold(unit, inside)
    assert hold(0, 9, 5, 0, 0, 0, 0)
    assert not hold(0, 9, 2**31 - 3, 0, 0, 0, 0)


def test_places_that_a_local_of_the_index_chooses_are_gathered() -> None:
    """`i + 1` under a name, as after the last comes the first: worth a split."""
    text = (
        "def asks(o, i, y, n, m, k, base):\n    ahead: int = i + 1\n"
        "    p: int = 0 if ahead == n else ahead\n    y[i - base] = y[p]\n"
    )
    unit = workunit_of(text)
    inside = inside_of(unit)
    assert inside is not None
    index = unit.indices[-1]
    assert chosen(unit.body, index) == 1 and chosen(inside.body, index) == 0
    assert chosen(workunit_of(text.replace("i + 1", "o + 1")).body, index) == 0
