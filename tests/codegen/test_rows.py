"""Sums of rows inside an iteration: right, and of the same bits however they are run."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pyfuser

# isort: split
import pykokkos as pk


@pk.workunit
def double(i, b, a, m):
    for j in range(m):
        b[i][j] = 2.0 * a[i][j]


@pk.workunit
def squares(i, acc, b, m):
    for j in range(m):
        acc += b[i][j] * b[i][j]


@pk.workunit
def entropy(i, acc, b, m):
    for j in range(m):
        if b[i][j] > 0.0:
            acc -= b[i][j] * pk.log(b[i][j])


@pk.workunit
def until_negative(i, acc, b, m):
    for j in range(m):
        if b[i][j] < 0.0:
            break
        acc += b[i][j]


def rows(n: int, m: int) -> np.ndarray:
    return np.random.default_rng(m).normal(size=(n, m))


@pytest.mark.parametrize("m", [1, 23, 24, 64, 65, 200])
def test_sums_are_right_and_do_not_depend_on_fusion(m):
    n = 37
    a, b = rows(n, m), np.zeros((n, m))

    def run():
        pk.parallel_for(n, double, b=b, a=a, m=m)
        total = pk.parallel_reduce(n, squares, b=b, m=m)
        mixed = pk.parallel_reduce(n, entropy, b=b, m=m)
        return float(total), float(mixed)

    with pyfuser.unfused():
        unfused = run()
    with pyfuser.fusing():
        fused = run()
    assert fused == unfused
    terms = [4.0 * x * x for x in a.ravel().tolist()]
    # n additions: at most n eps times the sum of the magnitudes (Higham 2002, ch. 4).
    assert abs(fused[0] - math.fsum(terms)) <= len(terms) * 2.0**-53 * math.fsum(terms)
    terms = [-2 * x * math.log(2 * x) for x in a.ravel().tolist() if x > 0.0]
    size = math.fsum(map(abs, terms))
    assert abs(fused[1] - math.fsum(terms)) <= (len(terms) + 16) * 2.0**-52 * size


def test_a_row_that_ends_early_is_summed_in_order():
    n, m = 20, 90
    b = np.abs(rows(n, m))
    b[::3, 40] = -1.0
    expected = 0.0
    for row in b.tolist():
        for value in row:
            if value < 0.0:
                break
            expected += value
    with pyfuser.fusing():
        total = pk.parallel_reduce(n, until_negative, b=b, m=m)
    assert math.isclose(total, expected, rel_tol=1e-13)


@pk.workunit
def smaller_before(i, acc, b, m):
    for j in range(m):
        for k in range(j):
            if b[i][k] > b[i][j]:
                break
            acc += 0.1


@pk.workunit
def all_before(i, acc, b, m):
    for j in range(m):
        for k in range(j):
            acc += b[i][k]


@pytest.mark.parametrize("beside", [smaller_before, all_before], ids=lambda w: w.__name__)
@pytest.mark.parametrize("m", [7, 70, 200])
def test_a_sum_beside_a_loop_of_another_kind(m, beside):
    """The latter is summed in order; joined with it the former would be too, when fused only."""
    n = 37

    def run(b):
        total = pk.parallel_reduce(n, squares, b=b, m=m)
        other = pk.parallel_reduce(n, beside, b=b, m=m)
        return float(total), float(other)

    for seed in range(8):  # two orders often give the same bits
        b = np.random.default_rng(seed).normal(size=(n, m))
        with pyfuser.unfused():
            unfused = run(b)
        with pyfuser.fusing():
            fused = run(b)
        assert fused == unfused


# --------------------------------------------------------------------------- strips


@pk.workunit
def angles(i, t, v):
    t[i] = pk.exp(v[i]) * pk.sin(v[i])


@pk.workunit
def recurrence(i, r, t, m):
    s: float = 0.0
    for _k in range(m):
        s = s * 0.5 + t[i]
    r[i] = s


@pk.workunit
def scaled(i, t, x, v, m):
    e: float = pk.exp(v[i])
    for j in range(m):
        t[i][j] = x[i][j] * e


@pk.workunit
def row_sum(i, r, t, m):
    s: float = 0.0
    for j in range(m):
        s += t[i][j]
    r[i] = s


@pk.workunit
def divided(i, y, t, r, m):
    for j in range(m):
        y[i][j] = t[i][j] / r[i]


@pytest.mark.parametrize("m", [1, 20, 300])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 63, 64, 65])
def test_fused_programs_have_the_bits_of_unfused_ones(n, m):
    rng = np.random.default_rng(n)
    x, v = rng.random((n, m)), rng.random(n)

    def run():
        r, y, q = np.zeros(n), np.zeros((n, m)), np.zeros(n)
        t, u = pk.View([n, m], pk.double), pk.View([n], pk.double)
        pk.parallel_for(n, angles, t=u, v=v)
        pk.parallel_for(n, recurrence, r=q, t=u, m=m)
        pk.parallel_for(n, scaled, t=t, x=x, v=v, m=m)
        pk.parallel_for(n, row_sum, r=r, t=t, m=m)
        pk.parallel_for(n, divided, y=y, t=t, r=r, m=m)
        pyfuser.sync()
        return [r, y, q]

    with pyfuser.unfused():
        unfused = run()
    with pyfuser.fusing():
        fused = run()
    assert len(pyfuser.explain().groups) == 1
    for a, b in zip(fused, unfused, strict=True):
        np.testing.assert_array_equal(a, b)
