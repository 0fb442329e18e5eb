"""Divisions by what is the same along a strip: which are made by reciprocals, and that all bits
are those of divisions."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.engine import native
from pyfuser.engine.native import prepare as compile_kernels
from tests.codegen.build import case
from tests.vendors import compile_as_on

Array = np.ndarray[Any, Any]
ROWS, COLUMNS = 24, 1024


def divide(i, x, z, w, m):
    for j in range(m):
        z[j][i] = x[j][i] / w[j]


def divide_in_turn(i, x, z, w, m):
    for j in range(1, m):
        z[j][i] = (x[j][i] - z[j - 1][i]) / w[j]
        x[j - 1][i] = z[j][i] / 3.0


def emitted(function: Any) -> str:
    return emit(spec_of(tables(function, np.ones(ROWS), np.ones((ROWS, 64))).kernel))


def tables(function: Any, by: Array, x: Array) -> Any:
    return case(function, [x.shape[1]], lambda: [x.copy(), np.zeros(x.shape), by, len(by)])


def uses(function: Any) -> bool:
    return "= pf_over(" in emitted(function)


@pytest.fixture(autouse=True)
def on_intel(monkeypatch):
    """Where divisions are computed by reciprocals."""
    compile_as_on(monkeypatch, intel=True)
    monkeypatch.setattr(native, "_launchables", {})


# --------------------------------------------------------------------------- bits


def near_midpoints(y: float, rng: random.Random) -> Array:
    """Numerators whose quotients by y are as near to the middle of two doubles as they can be."""
    mantissa, exponent = int(np.frexp(abs(y))[0] * 2**53), int(np.frexp(y)[1])
    odd = mantissa
    while odd % 2 == 0:
        odd //= 2
    found = []
    while len(found) < COLUMNS:
        c, k = rng.choice((1, -1)) * rng.randrange(1, 64), rng.choice((53, 54))
        middle = -c * pow(odd, -1, 1 << k) % (1 << k)
        x = middle * odd + c >> k
        if x.bit_length() > 1:
            found.append(np.ldexp(float(x), exponent - x.bit_length() + rng.randint(-60, 60)))
    return np.array(found)


def anything(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Doubles of any bits: NaNs, infinities, numbers that are not normal."""
    return rng.integers(-(2**63), 2**63, shape, np.int64).view(np.float64)


def special(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    numbers = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 2.0**-1022, 1.7e308, 1.0, -3.0]
    return rng.choice(np.array(numbers), shape)


DIVISORS = (
    *(3.0, -3.0, 0.1, 7e22, 1 + 2.0**-52, 2 - 2.0**-52, 1.25, -1e-29, 4.0, 10.0, 1e300, 1e-300),
    *(2.0**100, 2.0**-100, 2.0**100 * (1 + 2.0**-52), 2.0**-100 * (1 - 2.0**-53), 5e-324, np.inf),
    *(0.0, -0.0, np.nan, -np.inf, 1 - 2.0**-53, np.pi),
)


def quotients(by: Array, x: Array) -> Array:
    given = tables(divide, by, x)
    (launchable,) = compile_kernels([given.kernel])
    found, _ = given.run(launchable)
    return np.asarray(found[1])


def assert_same_bits(found: Array, expected: Array) -> None:
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), ~numbers)
    np.testing.assert_array_equal(found[numbers].view(np.int64), expected[numbers].view(np.int64))


@pytest.mark.parametrize("seed", range(4))
def test_quotients_near_the_middle_of_two_numbers(seed):
    rng = random.Random(seed)
    by = np.array([np.ldexp(rng.uniform(1, 2), rng.randint(-99, 99)) for _ in range(ROWS)])
    by[0], by[1] = 2 - 2.0**-52, 1 + 2.0**-52
    by[::3] = np.ldexp(2**53 - np.arange(1.0, 9.0), -rng.randint(0, 100))
    x = np.stack([near_midpoints(y, rng) for y in by])
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], ROWS)
    assert_same_bits(quotients(by * signs, x), x / (by * signs)[:, None])


@pytest.mark.parametrize("size", [-1020, -960, -500, -200, 200, 500, 950])
def test_divisors_without_a_reciprocal(size):
    rng = random.Random(size)
    by = np.array([np.ldexp(rng.uniform(1, 2), size) for _ in range(ROWS)])
    x = np.stack([near_midpoints(y, rng) for y in by])
    with np.errstate(all="ignore"):
        assert_same_bits(quotients(by, x), x / by[:, None])


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_quotients_of_nothing_but_zeros(zero):
    by = np.array(DIVISORS)
    with np.errstate(all="ignore"):
        x = np.full((ROWS, COLUMNS), zero)
        assert_same_bits(quotients(by, x), x / by[:, None])


@pytest.mark.parametrize("make", [anything, special])
def test_quotients_of_any_numbers(make):
    rng = np.random.default_rng(5)
    with np.errstate(all="ignore"):
        for by in (np.array(DIVISORS), anything(rng, (ROWS,)), np.exp(rng.normal(0, 60, ROWS))):
            x = make(rng, (ROWS, COLUMNS))
            x[:, 8:16] = rng.normal(size=8)  # a vector without
            assert_same_bits(quotients(by, x), x / by[:, None])


def test_quotients_at_the_ends_of_what_is_computed_by_reciprocals():
    rng = np.random.default_rng(6)
    by = np.array(DIVISORS)
    size = np.ldexp(
        rng.uniform(1, 2, (ROWS, COLUMNS)),
        rng.choice([-1074, -1022, -901, -800, -700, 700, 800, 901, 1023], COLUMNS),
    )
    with np.errstate(all="ignore"):
        assert_same_bits(quotients(by, size), size / by[:, None])


def test_recurrences_keep_their_bits():
    rng = np.random.default_rng(7)
    x, by = rng.normal(size=(ROWS, 200)), rng.uniform(0.5, 2.0, ROWS)
    given = tables(divide_in_turn, by, x)
    (launchable,) = compile_kernels([given.kernel])
    found, _ = given.run(launchable)
    expected, _ = given.interpreted()
    for a, b in zip(found, expected, strict=True):
        assert_same_bits(np.asarray(a), np.asarray(b))


# --------------------------------------------------------------------------- which


def by_a_scalar(i, x, z, w, m):
    for j in range(m):
        z[j][i] = (x[j][i] + 1.0) / m


def by_what_changes(i, x, z, w, m):
    for j in range(m):
        z[j][i] = w[j] / x[j][i]


def by_what_is_written(i, x, z, w, m):
    for j in range(1, m):
        z[j][i] = x[j][i] / z[j - 1][0]


def by_a_local(i, x, z, w, m):
    d: float = x[0][i]
    for j in range(m):
        z[j][i] = x[j][i] / d


def by_a_power_of_two(i, x, z, w, m):
    for j in range(m):
        z[j][i] = x[j][i] / 8.0


def of_what_is_the_same(i, x, z, w, m):
    for j in range(m):
        z[j][i] = x[j][i] + 1.0 / w[j]


def under_a_condition(i, x, z, w, m):
    for j in range(m):
        if x[j][i] > 0.0:
            z[j][i] = x[j][i] / w[j]


def perhaps(i, x, z, w, m):
    for j in range(m):
        z[j][i] = x[j][i] / w[j] if x[j][i] > 0.0 else 0.0


def beside_much(i, x, z, w, m):
    for j in range(m):
        z[j][i] = exp(x[j][i]) / w[j]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (divide, True),
        (divide_in_turn, True),
        (by_a_scalar, True),
        (by_what_changes, False),
        (by_what_is_written, False),
        (by_a_local, False),
        (by_a_power_of_two, False),
        (of_what_is_the_same, False),
        (under_a_condition, False),
        (perhaps, False),
        (beside_much, False),
    ],
)
def test_which_divisions(function, expected):
    assert uses(function) == expected
