"""A fused run has the bits of an unfused run: special values, narrow types, rounding stores."""

from __future__ import annotations

from math import cos, exp, log, sin, tanh

import numpy as np
import pykokkos as pk
import pytest
from numpy.testing import assert_array_equal

import pyfuser
from tests.soundness.plans import groups
from tests.soundness.workunits import copy, total

INF, NAN = float("inf"), float("nan")
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 5e-324, -5e-324, 1.7e308, 2.2e-308, 0.1])
N = len(SPECIAL)


@pk.workunit
def add(i, x, v):
    x[i] += v


@pk.workunit
def mul(i, x, v):
    x[i] *= v


@pk.workunit
def mul_add(i, x, y, z):
    z[i] = x[i] * y[i]
    z[i] = z[i] + x[i]


@pk.workunit
def product(i, x, y, z):
    z[i] = x[i] * y[i]


@pk.workunit
def plus(i, x, y, z):
    z[i] = x[i] + y[i]


@pk.workunit
def minus(i, x, y, z):
    z[i] = x[i] - y[i]


@pk.workunit
def divide(i, x, y, z):
    z[i] = x[i] / y[i]


@pk.workunit
def square(i, x, z):
    z[i] = x[i] ** 2


@pk.workunit
def remainder(i, x, y, z):
    z[i] = x[i] % y[i]


@pk.workunit
def quotient(i, x, y, z):
    z[i] = x[i] // y[i]


@pk.workunit
def parts_by(i, x, q, r, m):
    q[i] = x[i] // m
    r[i] = x[i] % m


@pk.workunit
def negate(i, x, z):
    z[i] = -x[i]


@pk.workunit
def zero_minus(i, x, z):
    z[i] = 0.0 - x[i]


@pk.workunit
def larger(i, x, y, z):
    z[i] = 0.0
    if x[i] > y[i]:
        z[i] = 1.0
    if not (x[i] <= y[i]):
        z[i] += 2.0
    if x[i] == x[i]:
        z[i] += 4.0


@pk.workunit
def if_above(i, x, t, v):
    if x[i] > v:
        t[i] = x[i]


@pk.workunit
def both_sides(i, x, t, v):
    if x[i] > v:
        t[i] = x[i]
    else:
        t[i] = v


@pk.workunit
def total_int32(i, acc: pk.Acc[pk.int32], x):
    acc += x[i]


@pk.workunit
def total_int64(i, acc: pk.Acc[pk.int64], x):
    acc += x[i]


@pk.workunit
def index(i, x):
    x[i] = i


@pk.workunit
def scaled_index(i, x, a):
    x[i] = a * i


@pk.workunit
def flag(i, x, b, v):
    b[i] = x[i] > v


@pk.workunit
def choose(i, b, y):
    y[i] = 0
    if b[i]:
        y[i] = 1


def bits(a):
    """The bits, so that -0.0 is not 0.0; every NaN is one NaN."""
    a = np.where(np.isnan(a), np.full_like(a, NAN), a)
    return a.view(np.uint64 if a.itemsize == 8 else np.uint32)


def test_special_values_of_a_chain():
    x, y, z = SPECIAL.copy(), SPECIAL[::-1].copy(), np.zeros(N)
    s, d, q, n = (np.zeros(N) for _ in range(4))
    with pyfuser.fusing():
        pk.parallel_for(N, product, x=x, y=y, z=z)
        pk.parallel_for(N, plus, x=z, y=x, z=s)
        pk.parallel_for(N, minus, x=x, y=x, z=d)
        pk.parallel_for(N, divide, x=s, y=d, z=q)
        pk.parallel_for(N, negate, x=q, z=n)
        pk.parallel_for(N, add, x=n, v=0.0)
    with np.errstate(all="ignore"):
        want = x * y
        assert_array_equal(bits(z), bits(want))
        assert_array_equal(bits(s), bits(want + x))
        assert_array_equal(bits(d), bits(x - x))
        assert_array_equal(bits(q), bits((want + x) / (x - x)))
        assert_array_equal(bits(n), bits(-q + 0.0))
    assert len(groups()) == 1


def test_signed_zeros():
    x = np.array([0.0, -0.0, 1.0])
    n, m, p, q = (np.zeros(3) for _ in range(4))
    with pyfuser.fusing():
        pk.parallel_for(3, negate, x=x, z=n)
        pk.parallel_for(3, zero_minus, x=x, z=m)
        pk.parallel_for(3, copy, x=n, y=p)
        pk.parallel_for(3, add, x=p, v=-0.0)
        pk.parallel_for(3, copy, x=n, y=q)
        pk.parallel_for(3, mul, x=q, v=0.0)
    assert_array_equal(np.signbit(n), [True, False, True])
    assert_array_equal(np.signbit(m), [False, False, True])
    assert_array_equal(np.signbit(p), [True, False, True])
    assert_array_equal(np.signbit(q), [True, False, True])


def test_comparisons_with_nan():
    x, y, z = SPECIAL.copy(), np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, larger, x=x, y=y, z=z)
        pk.parallel_for(N, copy, x=z, y=y)
    assert_array_equal(y, [4 if not v > 0 and v == v else 2 if v != v else 7 for v in x])


def test_no_contraction_across_a_fused_store():
    rng = np.random.default_rng(1)
    x, y = rng.random(64), rng.random(64)
    z, s, t = np.zeros(64), np.zeros(64), np.zeros(64)
    with pyfuser.fusing():
        pk.parallel_for(64, product, x=x, y=y, z=z)
        pk.parallel_for(64, minus, x=z, y=x, z=s)
        pk.parallel_for(64, mul_add, x=x, y=y, z=t)
    assert_array_equal(s, x * y - x)
    assert_array_equal(t, x * y + x)


def test_a_forwarded_float32_store_rounds():
    x = np.full(N, 0.1)
    t, y = np.zeros(N, np.float32), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, copy, x=x, y=t)
        pk.parallel_for(N, copy, x=t, y=y)
    assert_array_equal(y, np.full(N, np.float64(np.float32(0.1))))
    assert groups() == ["copy+copy"]


@pytest.mark.parametrize("precision", [pk.float, pk.int32, pk.uint8, pk.int8, pk.int64])
def test_a_contracted_temporary_keeps_its_type(precision):
    x = np.linspace(-100.3, 100.7, N)
    y, z = np.zeros(N), np.zeros(N)
    dtype = {
        pk.float: np.float32,
        pk.int32: np.int32,
        pk.uint8: np.uint8,
        pk.int8: np.int8,
        pk.int64: np.int64,
    }[precision]
    if precision is pk.uint8:
        x = np.abs(x)
    with pyfuser.fusing():
        t = pk.View([N], precision)
        pk.parallel_for(N, copy, x=x, y=t)
        pk.parallel_for(N, copy, x=t, y=y)
        pk.parallel_for(N, mul, x=t, v=2)
        pk.parallel_for(N, copy, x=t, y=z)
        del t
    assert_array_equal(y, x.astype(dtype).astype(float))
    assert_array_equal(z, (x.astype(dtype) * dtype(2)).astype(float))
    assert len(pyfuser.explain().groups[-1].contracted) == 1


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
def test_narrow_stores_wrap(dtype):
    x = np.arange(N, dtype=dtype)
    y = np.zeros(N, np.int64)
    with pyfuser.fusing():
        pk.parallel_for(N, mul, x=x, v=40)
        pk.parallel_for(N, add, x=x, v=60000)
        pk.parallel_for(N, copy, x=x, y=y)
        pk.parallel_for(N, add, x=x, v=-1)
    want = (np.arange(N) * 40).astype(dtype).astype(np.int64)
    want = (want + 60000).astype(dtype)
    assert_array_equal(y, want.astype(np.int64))
    assert_array_equal(x, (want.astype(np.int64) - 1).astype(dtype))
    assert len(groups()) == 1


def test_int32_wraps_and_int64_does_not():
    a, b = np.full(N, 2**31 - 1, np.int32), np.full(N, 2**31 - 1, np.int64)
    c, d = np.zeros(N, np.int64), np.zeros(N, np.int64)
    with pyfuser.fusing():
        pk.parallel_for(N, add, x=a, v=1)
        pk.parallel_for(N, add, x=b, v=1)
        pk.parallel_for(N, copy, x=a, y=c)
        pk.parallel_for(N, copy, x=b, y=d)
        pk.parallel_for(N, plus, x=a, y=a, z=a)
    assert_array_equal(c, np.full(N, -(2**31)))
    assert_array_equal(d, np.full(N, 2**31))
    assert_array_equal(a, np.zeros(N))


def test_int64_scalars():
    x = np.zeros(N, np.int64)
    y = np.zeros(N, np.int64)
    with pyfuser.fusing():
        pk.parallel_for(N, add, x=x, v=2**40 + 1)
        pk.parallel_for(N, add, x=x, v=np.int64(2**60))
        pk.parallel_for(N, scaled_index, x=y, a=2**40)
    assert_array_equal(x, np.full(N, 2**60 + 2**40 + 1))
    assert_array_equal(y, np.arange(N) * 2**40)


def test_scalars_of_other_types_at_one_call_site():
    """The kernel of an int scalar is not the kernel of a float scalar of equal value."""
    for value, want in ((1, 0), (1.0, 0), (1.5, 3), (True, 0), (np.float32(0.1), None), (2, 0)):
        t = np.zeros(4, np.int32)
        y = np.zeros(4)
        with pyfuser.fusing():
            pk.parallel_for(4, scaled_index, x=y, a=value)
            pk.parallel_for(4, copy, x=y, y=t)
        exact = np.arange(4, dtype=np.float32) * value if want is None else np.arange(4) * value
        assert_array_equal(y, exact)
        assert_array_equal(t, exact.astype(np.int32))


def test_integer_division_and_remainder_are_those_of_c():
    x = np.array([7, -7, 7, -7, 6, -6], np.int32)
    y = np.array([2, 2, -2, -2, 3, 3], np.int32)
    q, r, d = np.zeros(6, np.int32), np.zeros(6, np.int32), np.zeros(6)
    with pyfuser.fusing():
        pk.parallel_for(6, quotient, x=x, y=y, z=q)
        pk.parallel_for(6, remainder, x=x, y=y, z=r)
        pk.parallel_for(6, divide, x=x, y=y, z=d)
    assert_array_equal(q, [3, -3, -3, 3, 2, -2])
    assert_array_equal(r, [1, -1, 1, -1, 0, 0])
    assert_array_equal(d, x / y)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_integer_division_is_exact_next_to_every_multiple(dtype):
    """A quotient that is rounded is off where the dividend is a multiple of the divisor."""
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    rng = np.random.default_rng(4)
    divisors = [1, 2, 3, 5, 7, 49, 1000, 46341, 65535, 65537, most // 3, most - 1, most]
    divisors += [-d for d in divisors if least < 0] + list(map(int, rng.integers(1, most, 50)))
    for m in divisors:
        k = np.unique(np.concatenate([np.arange(60), rng.integers(0, most // abs(m) + 1, 60)]))
        x = (k[:, None] * abs(m) + np.array([-1, 0, 1])).ravel()
        x = np.concatenate([x, -x, [most, most - 1, least + 1]])
        x = x[(x > least) & (x <= most)]
        wide = np.abs(x), abs(m)
        q = (wide[0] // wide[1] * np.sign(x) * np.sign(m)).astype(dtype)
        r = (wide[0] % wide[1] * np.sign(x)).astype(dtype)
        x, n = x.astype(dtype), len(x)
        y = np.full(n, m, dtype)
        quotients, remainders = np.zeros((2, n), dtype), np.zeros((2, n), dtype)
        with pyfuser.fusing():
            pk.parallel_for(n, quotient, x=x, y=y, z=quotients[0])
            pk.parallel_for(n, remainder, x=x, y=y, z=remainders[0])
            pk.parallel_for(n, parts_by, x=x, q=quotients[1], r=remainders[1], m=dtype(m))
        assert_array_equal(quotients, [q, q])
        assert_array_equal(remainders, [r, r])


def test_bool_views():
    x, b, y = np.arange(float(N)), np.zeros(N, bool), np.zeros(N, np.int32)
    with pyfuser.fusing():
        pk.parallel_for(N, flag, x=x, b=b, v=4.5)
        pk.parallel_for(N, choose, b=b, y=y)
    assert_array_equal(y, (x > 4.5).astype(int))
    assert_array_equal(b, x > 4.5)


def test_a_number_stored_in_a_bool_is_one():
    b, y = np.zeros(N, bool), np.zeros(N, np.int32)
    with pyfuser.fusing():
        pk.parallel_for(N, index, x=b)
        pk.parallel_for(N, copy, x=b, y=y)
    assert_array_equal(y, np.minimum(np.arange(N), 1))


def test_sizes_of_zero_and_one():
    x, empty = np.ones(1), np.zeros(0)
    with pyfuser.fusing():
        pk.parallel_for(0, add, x=empty, v=1.0)
        pk.parallel_for(0, copy, x=empty, y=x)
        s = pk.parallel_reduce(0, total, x=empty)
        pk.parallel_for(1, add, x=x, v=s)
        pk.parallel_for(1, add, x=x, v=1.0)
        t = pk.parallel_reduce(1, total, x=x)
        k = pk.parallel_reduce(0, total_int32, x=empty)
    assert (s, t, k) == (0.0, 2.0, 0)
    assert isinstance(k + 0, int)


def test_reductions_that_wrap_and_that_do_not():
    x = np.full(4, 2**30, np.int32)
    with pyfuser.fusing():
        pk.parallel_for(4, add, x=x, v=1)
        a = pk.parallel_reduce(4, total_int32, x=x)
        b = pk.parallel_reduce(4, total_int64, x=x)
        c = pk.parallel_reduce(4, total, x=x)
    assert (a, b, c) == (4, 2**32 + 4, 2.0**32 + 4)


def test_reductions_of_special_values():
    x = np.array([1.0, INF, 2.0])
    y = np.array([INF, -INF])
    with pyfuser.fusing():
        a = pk.parallel_reduce(3, total, x=x)
        b = pk.parallel_reduce(2, total, x=y)
        pk.parallel_for(3, mul, x=x, v=0.0)
        c = pk.parallel_reduce(3, total, x=x)
    assert a == INF
    assert np.isnan(float(b))
    assert np.isnan(float(c))


def test_a_reduction_that_truncates_at_every_step():
    x = np.arange(10) + 0.5
    with pyfuser.fusing():
        pk.parallel_for(10, add, x=x, v=0.25)
        s = pk.parallel_reduce(10, total_int32, x=x)
    assert s == 45


def test_a_conditionally_written_temporary_keeps_its_zero():
    x = np.arange(float(N))
    y = np.zeros(N)
    with pyfuser.fusing():
        t = pk.View([N], pk.double)
        pk.parallel_for(N, if_above, x=x, t=t, v=5.0)
        pk.parallel_for(N, copy, x=t, y=y)
        del t
    assert_array_equal(y, np.where(x > 5, x, 0))
    assert len(groups()) == 1


def test_a_conditionally_written_temporary_keeps_its_last_value():
    x = np.arange(float(N))
    y, z = np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        t = pk.View([N], pk.double)
        pk.parallel_for(N, negate, x=x, z=t)
        pk.parallel_for(N, if_above, x=x, t=t, v=5.0)
        pk.parallel_for(N, copy, x=t, y=y)
        pk.parallel_for(N, both_sides, x=x, t=t, v=3.0)
        pk.parallel_for(N, if_above, x=x, t=t, v=8.0)
        pk.parallel_for(N, copy, x=t, y=z)
        del t
    assert_array_equal(y, np.where(x > 5, x, -x))
    assert_array_equal(z, np.maximum(x, 3))


def test_a_temporary_written_twice():
    x = np.arange(float(N))
    y, z = np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        t = pk.View([N], pk.float)
        pk.parallel_for(N, negate, x=x, z=t)
        pk.parallel_for(N, plus, x=t, y=x, z=y)
        pk.parallel_for(N, square, x=x, z=t)
        pk.parallel_for(N, plus, x=t, y=t, z=z)
        del t
    assert_array_equal(y, np.zeros(N))
    assert_array_equal(z, 2 * x**2)
    assert len(groups()) == 1


def test_mixed_float_types():
    x = np.full(N, 0.1, np.float32)
    y = np.full(N, 0.2)
    a, b = np.zeros(N), np.zeros(N, np.float32)
    c, d = np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, product, x=x, y=x, z=a)
        pk.parallel_for(N, product, x=x, y=y, z=b)
        pk.parallel_for(N, divide, x=x, y=x, z=c)
        pk.parallel_for(N, plus, x=b, y=a, z=d)
    f = np.float32(0.1)
    assert_array_equal(a, np.full(N, np.float64(f * f)))
    assert_array_equal(b, np.full(N, np.float32(np.float64(f) * 0.2)))
    assert_array_equal(c, np.ones(N))
    assert_array_equal(d, b.astype(float) + a)


def test_unsigned_and_signed():
    u = np.array([1, 2, 3, 4], np.uint32)
    s = np.array([-1, -2, 3, 4], np.int32)
    z = np.zeros(4, np.int64)
    w = np.zeros(4)
    with pyfuser.fusing():
        pk.parallel_for(4, minus, x=u, y=np.full(4, 5, np.uint32), z=z)
        pk.parallel_for(4, larger, x=s, y=u, z=w)
    assert_array_equal(z, np.array([-4, -3, -2, -1]) % 2**32)
    as_unsigned = s.astype(np.int64) % 2**32
    assert_array_equal(w, np.where(as_unsigned > u, 7.0, 4.0))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_arrays_are_right_or_refused(dtype):
    x = (np.arange(N) + 1j).astype(dtype)
    y = np.zeros(N, dtype)
    try:
        with pyfuser.fusing():
            pk.parallel_for(N, copy, x=x, y=y)
    except Exception as error:
        assert "complex" in str(error)
    else:
        assert_array_equal(y, x)


@pytest.mark.parametrize("dtype", [np.float16, ">f8", "M8[s]", object])
def test_other_dtypes_are_right_or_refused(dtype):
    x = np.arange(N).astype(dtype)
    y = np.zeros(N, dtype)
    try:
        with pyfuser.fusing():
            pk.parallel_for(N, copy, x=x, y=y)
    except Exception as error:
        assert "dtype" in str(error) or "type" in str(error)
    else:
        assert_array_equal(y, x)


def test_bits_of_the_fused_run_are_those_of_the_unfused_run():
    rng = np.random.default_rng(2)
    start = np.concatenate(
        [SPECIAL, rng.standard_normal(200) * 10.0 ** rng.integers(-300, 300, 200)]
    )
    n = len(start)

    def program(x, y, f):
        z, w = np.zeros(n), np.zeros(n)
        for _ in range(2):
            pk.parallel_for(n, product, x=x, y=y, z=z)
            pk.parallel_for(n, copy, x=z, y=f)
            pk.parallel_for(n, divide, x=f, y=x, z=w)
            pk.parallel_for(n, plus, x=w, y=z, z=x)
            pk.parallel_for(n, square, x=f, z=y)
            pk.parallel_for(n, minus, x=y, y=x, z=y)
        return z, w

    runs = []
    for block in (pyfuser.fusing, pyfuser.unfused):
        x, y, f = start.copy(), start[::-1].copy(), np.zeros(n, np.float32)
        with block():
            z, w = program(x, y, f)
        runs.append((x, y, z, w, f))
    for fused, unfused in zip(*runs, strict=True):
        assert_array_equal(bits(fused), bits(unfused))
    with np.errstate(all="ignore"):
        x, y = start.copy(), start[::-1].copy()
        for _ in range(2):
            z = x * y
            f = z.astype(np.float32)
            w = f.astype(float) / x
            x = w + z
            y = np.float64(f) ** 2 - x
    for got, want in zip(runs[0], (x, y, z, w, f), strict=True):
        assert_array_equal(bits(got), bits(want))


@pk.workunit
def weighted_total(i, acc, x, factor):
    acc += factor * x[i]


@pytest.mark.parametrize("size", [5, 511, 512, 513, 4096 * 3 + 77, 300_001])
@pytest.mark.parametrize("others", [1, 5, 17])
def test_a_sum_has_the_same_bits_alone_and_beside_others(size, others):
    """The more sums share a loop, the shorter its blocks are."""
    rng = np.random.default_rng(size)
    x = rng.standard_normal(size) * 10.0 ** rng.integers(-6, 6, size)
    single = x.astype(np.float32)
    for array in (x, single):
        with pyfuser.unfused():
            alone = float(pk.parallel_reduce(size, weighted_total, x=array, factor=0.3))
        with pyfuser.fusing():
            sums = [
                pk.parallel_reduce(size, weighted_total, x=array, factor=factor)
                for factor in (0.3, *np.linspace(0.5, 2.0, others).tolist())
            ]
            found = [float(value) for value in sums]
        assert found[0] == alone
        assert len(set(found)) > 1


@pk.workunit
def exponential(i, x, y):
    y[i] = exp(x[i])


@pk.workunit
def waves(i, x, y):
    y[i] = sin(x[i]) + cos(x[i])


@pk.workunit
def logarithm(i, x, y):
    y[i] = log(x[i] + 1.0) * tanh(x[i])


@pk.workunit
def power(i, x, y, p):
    y[i] = x[i] ** p


@pk.workunit
def exponential_if(i, x, y):
    if x[i] > 0.5:
        y[i] = exp(x[i]) - sin(x[i])


@pk.workunit
def exponential_while(i, x, y):
    s: float = 0.0
    while s < 3.0:
        s += exp(x[i] * 0.1)
    y[i] = s


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 13, 1001])
def test_mathematics_does_not_depend_on_fusion_or_on_the_lane(n, dtype):
    def program(x):
        y = [np.zeros(len(x), dtype) for _ in range(6)]
        pk.parallel_for(len(x), exponential, x=x, y=y[0])
        pk.parallel_for(len(x), waves, x=y[0], y=y[1])
        pk.parallel_for(len(x), logarithm, x=x, y=y[2])
        pk.parallel_for(len(x), power, x=y[2], y=y[3], p=1.7)
        pk.parallel_for(len(x), exponential_if, x=x, y=y[4])
        pk.parallel_for(len(x), exponential_while, x=x, y=y[5])
        return y

    x = (3 * np.random.default_rng(n).random(n)).astype(dtype)
    with pyfuser.fusing():
        fused = program(x)
        repeated = program(np.full(n, x[0]))
    with pyfuser.unfused():
        unfused = program(x)
        first = program(x[:1])
    for a, b, c, d in zip(fused, unfused, repeated, first, strict=True):
        assert_array_equal(a, b)
        assert_array_equal(c, np.full(n, d[0]))
    np.testing.assert_allclose(fused[0], np.exp(x), rtol=4 * np.finfo(dtype).eps)
