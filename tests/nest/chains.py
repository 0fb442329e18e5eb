"""Bodies in one loop: long chains of operations, memory to ask for ahead, and orders of axes."""

from __future__ import annotations

from math import exp, lgamma, log, sin, sqrt

import pykokkos as pk

from tests.nest.harness import body


@body("split-chains", on="avx2", dtype="float32", n=40_007, parts=3)
def steps_of_an_optimiser(i, x, v):
    """Each from the values of the one before."""
    a: pk.float = x[i]
    b: pk.float = 0.0
    c: pk.float = 0.0
    f: pk.float = a - v[i]
    b = 0.5 * b + 0.25 * f
    c = 0.5 * c + 0.125 * f * f
    pf: pk.float = b / 0.75
    qf: pk.float = c / 0.875
    a = 0.99 * a
    a = a - 0.01 * pf / (sqrt(qf) + 0.001)
    g: pk.float = a - v[i]
    b = 0.5 * b + 0.25 * g
    c = 0.5 * c + 0.125 * g * g
    pg: pk.float = b / 0.75
    qg: pk.float = c / 0.875
    a = 0.99 * a
    a = a - 0.01 * pg / (sqrt(qg) + 0.001)
    h: pk.float = a - v[i]
    b = 0.5 * b + 0.25 * h
    c = 0.5 * c + 0.125 * h * h
    ph: pk.float = b / 0.75
    qh: pk.float = c / 0.875
    a = 0.99 * a
    a = a - 0.01 * ph / (sqrt(qh) + 0.001)
    x[i] = a
    v[i] = b


@body("split-chains", on="avx2", dtype="float32", parts=3)
def sum_of_an_optimiser(i, acc, x, v):
    a: pk.float = x[i]
    b: pk.float = 0.0
    c: pk.float = 0.0
    f: pk.float = a - v[i]
    b = 0.5 * b + 0.25 * f
    c = 0.5 * c + 0.125 * f * f
    pf: pk.float = b / 0.75
    qf: pk.float = c / 0.875
    a = 0.99 * a
    a = a - 0.01 * pf / (sqrt(qf) + 0.001)
    g: pk.float = a - v[i]
    b = 0.5 * b + 0.25 * g
    c = 0.5 * c + 0.125 * g * g
    pg: pk.float = b / 0.75
    qg: pk.float = c / 0.875
    a = 0.99 * a
    a = a - 0.01 * pg / (sqrt(qg) + 0.001)
    h: pk.float = a - v[i]
    b = 0.5 * b + 0.25 * h
    c = 0.5 * c + 0.125 * h * h
    ph: pk.float = b / 0.75
    qh: pk.float = c / 0.875
    a = 0.99 * a
    a = a - 0.01 * ph / (sqrt(qh) + 0.001)
    x[i] = a
    acc += 0.5 * a * a


@body("split-chains", on="avx2", n=40_007, parts=4)
def steps_with_limits(i, x, v):
    """Comparisons make no vector shorter."""
    a: pk.double = x[i]
    b0: pk.double = max(a - v[i], 0.0) / (1.0 + a * a)
    c0: pk.double = sqrt(b0 * b0 + 0.25) / (2.0 + b0)
    a = min(c0 + 0.5 * b0, 4.0) + 0.125 * a
    if c0 > 0.25:
        a = 0.25 * c0 / (b0 + 1.0)
    b1: pk.double = max(a - v[i], 0.0) / (1.0 + a * a)
    c1: pk.double = sqrt(b1 * b1 + 0.25) / (2.0 + b1)
    a = min(c1 + 0.5 * b1, 4.0) + 0.125 * a
    if c1 > 0.25:
        a = 0.25 * c1 / (b1 + 1.0)
    b2: pk.double = max(a - v[i], 0.0) / (1.0 + a * a)
    c2: pk.double = sqrt(b2 * b2 + 0.25) / (2.0 + b2)
    a = min(c2 + 0.5 * b2, 4.0) + 0.125 * a
    if c2 > 0.25:
        a = 0.25 * c2 / (b2 + 1.0)
    b3: pk.double = max(a - v[i], 0.0) / (1.0 + a * a)
    c3: pk.double = sqrt(b3 * b3 + 0.25) / (2.0 + b3)
    a = min(c3 + 0.5 * b3, 4.0) + 0.125 * a
    if c3 > 0.25:
        a = 0.25 * c3 / (b3 + 1.0)
    x[i] = a


@body("split-chains", on="avx2", dtype="float32", parts=3)
def functions_of_functions(i, x, v):
    a: pk.float = sin(x[i])
    b: pk.float = exp(a)
    v[i] = log(1.0 + b)
    x[i] = a


@body("split-chains", on="avx2", dtype="float32", parts=2)
def sum_of_functions(i, acc, x, v):
    a: pk.float = sin(x[i])
    v[i] = exp(a)
    acc += v[i]


@body("split-chains", on="avx2", dtype="float32", parts=2)
def mostly_one_statement(i, x, v):
    a: pk.float = sqrt(log(v[i])) * sin(x[i])
    v[i] = exp(a)


@body("split-chains", on="wide", dtype="float32", parts=3)
def functions_in_wide_vectors(i, x, v):
    a: pk.float = sin(x[i])
    b: pk.float = exp(a)
    v[i] = log(1.0 + b)
    x[i] = a


@body("prefetch", on="intel", dtype="float32", asked="x[i] stored, v[i] stored")
def where_it_was_not_measured(i, x, v):
    a: pk.float = sin(x[i])
    b: pk.float = exp(a)
    v[i] = log(1.0 + b)
    x[i] = a


@body(on="avx2", dtype="float32", execution="Serial")
def functions_in_order(i, x, v):
    """Iterations may read what those before have stored."""
    a: pk.float = sin(x[i])
    b: pk.float = exp(a)
    v[i] = log(1.0 + b)
    x[i] = a


@body(on="avx2", dtype="float32", aliased="x v", runs=False)
def functions_of_one_array(i, x, v):
    a: pk.float = sin(x[i])
    b: pk.float = exp(a)
    v[i] = log(1.0 + b)
    x[i] = a


@body(on="avx2", dtype="float32")
def short_chain(i, x, v):
    a: pk.float = x[i]
    b: pk.float = 0.0
    c: pk.float = 0.0
    f: pk.float = a - v[i]
    b = 0.5 * b + 0.25 * f
    c = 0.5 * c + 0.125 * f * f
    pf: pk.float = b / 0.75
    qf: pk.float = c / 0.875
    a = 0.99 * a
    a = a - 0.01 * pf / (sqrt(qf) + 0.001)
    x[i] = a


@body("split-chains", on="avx2", dtype="float32", parts=3)
def chain_and_branch(i, x, v):
    a: pk.float = sin(x[i])
    b: pk.float = exp(a)
    if a > 0.5:
        x[i] = log(1.0 + b)


@body(on="avx2", dtype="float32")
def independent(i, x, v):
    a: pk.float = x[i]
    x[i] = exp(a)
    v[i] = sin(a)


@body(on="avx2", dtype="float32")
def one_function(i, x, v):
    a: pk.float = x[i] + v[i]
    v[i] = exp(a) * a


@body(on="avx2", dtype="float32")
def within_another(i, x, v):
    a: pk.float = x[i]
    v[i] = log(1.0 + exp(sin(a)))


# --------------------------------------------------------------------------- asked for ahead


@body("prefetch", on="intel", asked="x[i], y[i] stored")
def copied(i, y, x):
    y[i] = x[i]


@body("prefetch", on="intel", asked="x[i] stored")
def changed(i, x, k):
    x[i] *= k


@body("prefetch", on="intel", asked="x[i + (int64)k], y[i] stored")
def stencil(i, y, x, k):
    y[i] = x[i + k - 1] + x[i + 1] + x[i + k] - x[i]


@body("prefetch", on="intel", asked="x[(int64)((int32)(i + 1:int64) + k)], y[i + 1:int64] stored")
def shifted(i, y, x, k):
    at: int = i + 1
    ahead: int = at + k
    y[at] = x[ahead] + x[i]


@body("prefetch", on="intel", asked="x[i], y[i] stored")
def with_one_element(i, y, x, z, w):
    y[i] = x[i] + z[0] * w[0]


@body("prefetch", on="intel", n=70, m=71, asked="a[i, j + 1:int64], b[i, j] stored")
def plane_ahead(i, j, b, a):
    b[i, j] = a[i, j] + a[i, j + 1]


@body("prefetch promote-sums", on="intel", asked="x[i]")
def total(i, acc, x):
    acc += x[i] * x[i]


@body("prefetch", on="intel", asked="x[i], y[i] stored")
def sometimes(i, y, x):
    if x[i] > 3.0:
        y[i] = x[i]


@body("prefetch", on="intel", asked="hit[i], whole[i] stored")
def of_two_sizes(i, whole, hit):
    whole[i] = 2 * hit[i]


@body(on="intel")
def four_arrays(i, y, x, z, w):
    y[i] = x[i] + z[i] * w[i]


@body(on="intel")
def short_rows(i, j, b, a):
    b[i, j] = a[i, j] + a[i, j + 1]


@body(on="intel")
def gathered_ahead(i, y, x, to):
    y[i] = x[to[i]]


@body(on="intel")
def found_ahead(i, y, x):
    at: int = int(x[i])
    y[i] = x[at]


@body(on="intel")
def every_other(i, y, far):
    y[i] = far[2 * i]


@body(on="intel")
def backwards(i, y, x, n):
    y[i] = x[n - 1 - i]


@body("split-rows prefetch", on="intel")
def quotient(i, y, x, k):
    y[i] = x[i // k]


@body("strip-mine", on="intel")
def trips_ahead(i, y, x, five):
    value: float = 0.0
    for k in range(five):
        value += x[i] * k
    y[i] = value


@body("split-chains", on="wide", parts=4)
def between_bounds(i, y, x):
    t: float = log(x[i] + 2.5)
    p: float = 1.0 / (1.0 + exp(-1.7 * t))
    if p < 0.25:
        p = 0.25
    elif p > 0.75:
        p = 0.75
        t = 1.0
    y[i] = log(p / (1.0 - p)) + t


@body(on="wide")
def on_another_processor(i, y, x):
    y[i] = x[i]


# --------------------------------------------------------------------------- orders of axes


@body("loop-order", n=70, m=70)
def add_to_transpose(i, j, a, b):
    b[j][i] += a[i][j]


@body("loop-order", n=66, m=66)
def turned(j, i, a, b):
    b[i][j] = a[i][j]


@body("loop-order", n=70, m=70)
def corner(i, j, p, solid, cube):
    solid[i][j][p] = cube[p][j][i]


@body("loop-order distribute", n=70, m=70)
def two_parts_turned(i, j, a, b, u):
    b[i][j] = exp(a[j][i])
    if b[i][j] > 1.0:
        u[j][i] = lgamma(b[i][j])


@body(n=70, m=70, execution="Serial")
def turned_in_order(j, i, a, b):
    b[i][j] = a[i][j]


@body("strip-mine")
def known_trips(i, y, x):
    """g++ would take iterations in the lanes of one vector, which waits for itself."""
    t: float = x[i]
    for _ in range(20):
        t = 2.0 - 2.0 * t if t > 0.5 else 1.9 * t
    y[i] = t


@body()
def known_trips_without_waiting(i, whole, hit):
    v: int = hit[i]
    r: int = 0
    for _ in range(20):
        r = (r << 1) | (v & 1)
        v = v >> 1
    whole[i] = r


@body("unroll-and-jam")
def other_loops_along_rows(i, y, x, a, m):
    """What stays a loop of each iteration would run alone in a strip."""
    t: float = x[i]
    for _ in range(m):
        t = 2.0 - 2.0 * t if t > 0.5 else 1.9 * t
    for k in range(m):
        t = 0.5 * t + a[i][k]
    y[i] = t


@body("strip-mine")
def polynomial(i, y, x, v, m):
    at: float = x[i]
    t: float = 0.0
    for k in range(m):
        t = t * at + v[k]
    y[i] = t


@body()
def known_window(i, y, x):
    total: float = 0.0
    for k in range(20):
        total += 0.5 * x[i + k]
    y[i] = total


@body("unroll-and-jam")
def known_trips_along_rows(i, y, a):
    """Neighbours would fetch from rows apart."""
    total: float = 0.0
    for k in range(20):
        total = 0.5 * total + a[i][k]
    y[i] = total


@body("strip-mine")
def trips_of_the_launch(i, y, x, m):
    t: float = x[i]
    for _ in range(m):
        t = 2.0 - 2.0 * t if t > 0.5 else 1.9 * t
    y[i] = t
