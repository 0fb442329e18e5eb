"""Strips: which loops are run trip by trip for several iterations, and that nothing changes."""
# ruff: noqa: F821

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.c.gcc_inorder_reductions import SCALAR
from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.plan.plan import STRIP
from tests.codegen.build import Case, as_interpreted, case

M = 21
SIZES = [1, STRIP - 1, STRIP, STRIP + 1, 5 * STRIP + 3, 200]


def table(n: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=(n, M))


def in_strips(given: Case) -> bool:
    return "strip += " in emit(spec_of(given.kernel))


def in_lanes(given: Case) -> bool:
    return f"lane < {STRIP}" in emit(spec_of(given.kernel))


def normalise(i, x, y, s, m):
    top: float = x[i][0]
    for j in range(1, m):
        if x[i][j] > top:
            top = x[i][j]
    for j in range(m):
        y[i][j] = x[i][j] - top
    total: float = 0.0
    for k in range(m):
        total += y[i][k] * y[i][k]
    for j in range(m):
        y[i][j] /= total
    s[i] = total


def prefix(i, x, y, m):
    value: float = 1.0 * i
    for j in range(m):
        value = 0.5 * value + x[i][j]
        y[i][j] = value


def polynomial(i, x, y, m):
    value: float = 0.0
    for j in range(m):
        value = value * x[i][0] + x[i][j]
    y[i][0] = value


def two_at_once(i, x, y, m):
    low: float = x[i][0]
    high: float = x[i][0]
    for j in range(m):
        low = fmin(low, x[i][j])
    for j in range(m):
        high += low * x[i][j]
    y[i][0] = low
    y[i][1] = high


def own_array(i, x, y, m):
    parts: List[float] = [0.0, 0.0, 0.0]
    for j in range(m):
        parts[j % 3] = x[i][j]
    total: float = 0.0
    for j in range(m):
        total += x[i][j] * parts[j % 3]
    y[i][0] = total + parts[1]


def values_first(i, x, y, m):
    weights: List[float] = [0.25, 0.5, 0.25]
    total: float = 0.0
    for j in range(m):
        total += x[i][j] * weights[j % 3]
    y[i][0] = total


def values_of_its_own(i, x, y, m):
    first: float = x[i][0]
    ends: List[float] = [first, 2.0 * first, 0.0]
    total: float = 0.0
    for j in range(m):
        total = 0.5 * total + ends[j % 3]
        ends[j % 3] = x[i][j]
    y[i][0] = total + ends[1]


def kept(i, x, y, m):
    total: float = 0.0
    last: float = 0.0
    for j in range(m):
        total += x[i][j]
        last = x[i][m - 1 - j] + 1.0
    y[i][0] = total - last


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    "work", [normalise, prefix, polynomial, own_array, values_first, values_of_its_own, kept]
)
def test_iterations_compute_what_they_did(work: Callable[..., None], n: int) -> None:
    def arguments() -> list[Any]:
        given = [table(n), table(n, 1), M]
        return [*given[:2], np.zeros(n), M] if work is normalise else given

    given = case(work, [n], arguments)
    assert in_strips(given)
    as_interpreted(given)


def turned(i, x, y, m):
    total: int = 0
    for j in range(m):
        total += x[i][j]
    y[i] = total


@pytest.mark.parametrize(("dtype", "wrong"), [(np.uint64, True), (np.int64, False)])
def test_loops_of_lanes_that_vectors_make_wrong_have_none(dtype: type, wrong: bool) -> None:
    def arguments() -> list[Any]:
        x = np.random.default_rng(1).integers(0, 99, (37, M)).astype(dtype)
        return [x, np.zeros(37, np.int64), M]

    given = case(turned, [37], arguments)
    text = emit(spec_of(given.kernel))
    jammed = text[text.index(f"if (lanes == {STRIP}) {{") :]
    assert (SCALAR in jammed[: jammed.index("} else {")]) == wrong
    as_interpreted(given)


@pytest.mark.parametrize("begin", [0, 3])
def test_a_part_of_the_space_and_an_accumulator(begin: int) -> None:
    def squares(i, acc, x, y, m):
        total: float = 0.0
        for j in range(m):
            total += x[i][j]
        for j in range(m):
            y[i][j] = x[i][j] / total
        for j in range(m):
            acc += y[i][j] * y[i][j]
        acc += total

    given = case(squares, [77], lambda: [table(77), table(77, 1), M], "reduce", [begin])
    assert in_strips(given)
    as_interpreted(given)


def test_two_axes() -> None:
    def sums(i, k, x, y, m):
        total: float = 0.0
        for j in range(m):
            total += x[i][j] * (k + 1.0)
        for j in range(m):
            total -= 0.5 * total * x[k][j]
        y[i][k] = total

    given = case(sums, [9, 13], lambda: [table(13), np.zeros((13, 13)), M])
    assert in_strips(given)
    as_interpreted(given)


def own_trips(i, x, y, m):
    total: float = 0.0
    for j in range(i % m):
        total += x[i][j]
    y[i][0] = total


def changing_trips(i, x, y, m):
    total: float = 0.0
    last: int = m
    for j in range(last):
        total += x[i][j]
    last = m - 1
    for j in range(last):
        total += x[i][j]
    y[i][0] = total


def no_sum(i, x, y, m):
    last: float = 0.0
    for j in range(m):
        y[i][j] = 2.0 * x[i][j]
    y[i][0] = last


def until(i, x, y, m):
    total: float = 0.0
    for j in range(m):
        if x[i][j] > 1.0:
            break
        total += x[i][j]
    y[i][0] = total


def nested(i, x, y, m):
    total: float = 0.0
    for j in range(m):
        for k in range(m):
            total += x[i][j] * x[i][k]
    y[i][0] = total


def counted(i, x, y, m):
    total: float = 0.0
    for j in range(m):
        total += pk.atomic_fetch_add(y, [i, 0], x[i][j])
    y[i][1] = total


def never_waits(i, x, y, m):
    last: float = 0.0
    for j in range(m):
        last = x[i][j]
    y[i][0] = last


@pytest.mark.parametrize(
    "work", [own_trips, changing_trips, no_sum, until, nested, counted, never_waits]
)
def test_other_loops_stay_one_iteration_after_the_other(work: Callable[..., None]) -> None:
    given = case(work, [30], lambda: [table(30), table(30, 1), M])
    assert not in_strips(given)
    as_interpreted(given)


def test_iterations_of_a_serial_space_keep_their_order() -> None:
    given = case(prefix, [30], lambda: [table(30), table(30, 1), M], execution="Serial")
    assert not in_strips(given)
    as_interpreted(given)


def pairs(i, x, near, y, m, box):
    """Sums over neighbours, nearest images."""
    total: float = 0.0
    pull: float = 1.0
    for k in range(m):
        j: int = near[i][k]
        d: float = x[j] - x[i]
        if d > 0.5 * box:
            d -= box
        if d < -0.5 * box:
            d += box
        e: float = x[k] * d + 1.0
        r: float = 1.0 / (d * d + e * e + 1.0)
        total += (r * r - d) * (r * e + 2.0) * (d - 3.0 * e) + r / (e * e + 2.0)
        pull = 0.5 * pull * r + d
        total += pull
    y[i] = total


def short_pairs(i, x, near, y, m, box):
    total: float = 0.0
    for k in range(m):
        j: int = near[i][k]
        d: float = x[j] - x[i]
        if d > 0.5 * box:
            d -= box
        total += 1.0 / (d * d + 1.0)
    y[i] = total


def stored_pairs(i, x, near, y, m, box):
    total: float = 0.0
    for k in range(m):
        j: int = near[i][k]
        d: float = x[j] - x[i]
        if d > 0.5 * box:
            d -= box
        r: float = 1.0 / (d * d + 1.0)
        s: float = 1.0 / (d * d + 2.0)
        total += (r * r - d) * (r * s + 2.0) * (d - 3.0 * s) + r / (s * s + 2.0)
        y[i] = total


def whole_pairs(i, x, near, y, m, box):
    count: int = 0
    for k in range(m):
        j: int = near[i][k]
        d: float = x[j] - x[i]
        r: float = 1.0 / (d * d + 1.0)
        s: float = 1.0 / (d * d + 2.0)
        if (r * r - d) * (r * s + 2.0) * (d - 3.0 * s) + r / (s * s + 2.0) > box:
            count += 1
    y[i] = count


def rare_pairs(i, x, near, y, m, box):
    total: float = 0.0
    for k in range(m):
        j: int = near[i][k]
        d: float = x[j] - x[i]
        if d > 0.9 * box:
            r: float = 1.0 / (d * d + 1.0)
            s: float = 1.0 / (d * d + 2.0)
            t: float = 1.0 / (d * s + 4.0)
            total += (r * r - d) * (r * s + 2.0) * (d - 3.0 * s * t) + r / (s * s + 2.0)
    y[i] = total


def fetching_pairs(i, x, near, y, m, box):
    total: float = 0.0
    for k in range(m):
        c: int = near[i][k]
        d: int = near[i][0]
        e: int = near[i][1]
        f: int = near[i][m - 1 - k]
        total += x[c] * x[d] - x[e] * x[f] + x[c] / (x[d] * x[e] + 9.0)
        total += x[c] * x[e] - x[d] * x[f] + x[f] * x[d]
    y[i] = total


def calling_pairs(i, x, near, y, m, box):
    """A conditional call has no vector form."""
    total: float = 0.0
    for k in range(m):
        j: int = near[i][k]
        d: float = x[j] - x[i]
        r: float = 1.0 / (d * d + 1.0)
        s: float = 1.0 / (d * d + 2.0)
        if d > 0.5 * box:
            r = lgamma(r)
        total += (r * r - d) * (r * s + 2.0) * (d - 3.0 * s) + r / (s * s + 2.0)
    y[i] = total


def pair_arguments(n: int) -> list[Any]:
    near = np.random.default_rng(2).integers(0, n, (n, M)).astype(np.int32)
    return [table(max(n, M))[:, 0].copy(), near, np.zeros(n), M, 2.0]


@pytest.mark.parametrize("n", SIZES)
def test_long_trips_fill_lanes(n: int) -> None:
    given = case(pairs, [n], lambda: pair_arguments(n))
    assert in_lanes(given)
    as_interpreted(given)


def test_long_trips_between_short_ones() -> None:
    def mixed(i, x, near, y, m, box):
        first: float = 0.0
        for k in range(m):
            first += x[k]
        total: float = first
        for k in range(m):
            d: float = x[near[i][k]] - x[i]
            r: float = 1.0 / (d * d + 1.0)
            s: float = 1.0 / (d * d + 2.0)
            total = total * 0.5 + (r * r - d) * (r * s + 2.0) * (d - 3.0 * s) + r / (s * s + box)
        for k in range(m):
            total = 0.5 * total + x[k]
        y[i] = total

    given = case(mixed, [45], lambda: pair_arguments(45))
    assert in_lanes(given)
    as_interpreted(given)


def test_long_trips_beside_much_else() -> None:
    """What follows would fill vectors of its own, but the loop has more to gain."""

    def forces(i, acc, x, near, y, m, box):
        total: float = 0.0
        for k in range(m):
            d: float = x[near[i][k]] - x[i]
            r: float = 1.0 / (d * d + 1.0)
            s: float = 1.0 / (d * d + 2.0)
            total += (r * r - d) * (r * s + 2.0) * (d - 3.0 * s) + r / (s * s + box)
        moved: float = y[i] + box * total * (total + 1.0) * (total + 2.0) / (total * total + 3.0)
        y[i] = moved * (moved + 2.0) / (moved * moved + 1.0)
        acc += moved * moved

    given = case(forces, [333], lambda: pair_arguments(333), "reduce")
    assert in_lanes(given)
    as_interpreted(given)


def test_long_trips_of_views_that_overlap() -> None:
    def arguments() -> list[Any]:
        x, near, _, *rest = pair_arguments(64)
        both = np.repeat(x, 2)
        return [both[::2], near, both[1::2], *rest]

    given = case(pairs, [64], arguments)
    assert in_lanes(given)
    as_interpreted(given)


@pytest.mark.parametrize(
    "work",
    [short_pairs, stored_pairs, whole_pairs, rare_pairs, fetching_pairs, calling_pairs],
)
def test_what_lanes_do_not_pay_for(work: Callable[..., None]) -> None:
    given = case(work, [45], lambda: pair_arguments(45))
    assert not in_lanes(given)
    as_interpreted(given)


def random_workunit(rng: random.Random, number: int) -> Callable[..., Any]:
    """Loops that store rows, that add up, and that do both, over two rows and two locals."""
    lines = [f"def work{number}(i, x, y, w, m):"]
    lines += [f"    {name}: float = {rng.choice(['0.0', 'x[i][1]', '1.0 * i'])}" for name in "pq"]
    for _ in range(rng.randint(2, 5)):
        first = rng.choice(["", "", "1, ", "i % m, "])
        lines.append(f"    for j in range({first}m):")
        for _ in range(rng.randint(1, 2)):
            value = f"{rng.choice('xyw')}[i][{rng.choice(['j', 'j', 'm - 1 - j', '0'])}]"
            square = f"r{len(lines)}"
            choices = (
                f"x[i][j] = 0.5 * {value} + p",
                f"y[i][j] += q * {value}",
                f"w[i][j] = p - {value}",
                f"p += {value}",
                f"q = 0.5 * q + p * {value}",
                f"{square}: float = {value} * {value}\n        p -= {square}",
                f"if {value} > q:\n            q = {value}",
                f"{square}: float = {value} - x[i][0] / (1.0 + p * p)\n"
                f"        p += 1.0 / (1.0 + q * q) + {square} / (2.0 + {square} * {square}) + q\n"
                f"        q = q / (2.0 + {square} * {square}) - p / (3.0 + q * q)",
            )
            text = rng.choice(choices)
            lines.append(f"        {text}")
    lines.append("    w[i][0] = p + q")
    name = f"<strips {number}>"
    source = "\n".join(lines) + "\n"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    scope: dict[str, Any] = {}
    exec(compile(source, name, "exec"), scope)
    return scope[f"work{number}"]


def test_random_loops_compute_what_they_did() -> None:
    rng = random.Random(3)
    found = lanes = 0
    for number in range(25):
        n = rng.choice([3, 8, 29, 64])

        def arguments(n: int = n) -> list[Any]:
            return [table(n), table(n, 1), table(n, 2), M]

        given = case(random_workunit(rng, number), [n], arguments)
        found += in_strips(given)
        with np.errstate(all="ignore"):
            as_interpreted(given)
        lanes += in_lanes(given)
    assert found > 12 and lanes > 2
