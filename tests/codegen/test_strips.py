"""Strips: which loops are run trip by trip for several iterations, and that nothing changes."""
# ruff: noqa: F821

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.cpp import emit
from pyfuser.codegen.spec import spec_of
from pyfuser.engine.native import prepare as compile_kernels
from pyfuser.plan.plan import STRIP
from tests.codegen.build import Case, case

M = 21
SIZES = [1, STRIP - 1, STRIP, STRIP + 1, 5 * STRIP + 3, 200]


def table(n: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=(n, M))


def in_strips(given: Case) -> bool:
    return "strip += " in emit(spec_of(given.kernel))


def same(given: Case) -> None:
    """The compiled kernel does, bit for bit, what the interpreter does."""
    (launchable,) = compile_kernels([given.kernel])
    found, results = given.run(launchable)
    expected, wanted = given.interpreted()
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(results, wanted, rtol=1e-13)


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


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("work", [normalise, prefix, polynomial, own_array])
def test_iterations_compute_what_they_did(work: Callable[..., None], n: int) -> None:
    def arguments() -> list[Any]:
        given = [table(n), table(n, 1), M]
        return [*given[:2], np.zeros(n), M] if work is normalise else given

    given = case(work, [n], arguments)
    assert in_strips(given)
    same(given)


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
    same(given)


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
    same(given)


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


def values_first(i, x, y, m):
    weights: List[float] = [0.25, 0.5, 0.25]
    total: float = 0.0
    for j in range(m):
        total += x[i][j] * weights[j % 3]
    y[i][0] = total


@pytest.mark.parametrize(
    "work", [own_trips, changing_trips, no_sum, until, nested, counted, values_first]
)
def test_other_loops_stay_one_iteration_after_the_other(work: Callable[..., None]) -> None:
    given = case(work, [30], lambda: [table(30), table(30, 1), M])
    assert not in_strips(given)
    same(given)


def test_iterations_of_a_serial_space_keep_their_order() -> None:
    given = case(prefix, [30], lambda: [table(30), table(30, 1), M], execution="Serial")
    assert not in_strips(given)
    same(given)


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
    found = 0
    for number in range(25):
        n = rng.choice([3, 8, 29, 64])

        def arguments(n: int = n) -> list[Any]:
            return [table(n), table(n, 1), table(n, 2), M]

        given = case(random_workunit(rng, number), [n], arguments)
        found += in_strips(given)
        with np.errstate(all="ignore"):
            same(given)
    assert found > 12
