"""Bodies whose loops walk along columns, and others beside them."""
# ruff: noqa: F821

from __future__ import annotations

import pykokkos as pk

from tests.nest.harness import body


@body("strip-mine")
def total(i, c, y, m):
    value: float = 0.0
    for j in range(m):
        value += c[j][i]
    y[i] = value


@body("strip-mine")
def variance(i, c, y, m):
    mean: float = 0.0
    for j in range(m):
        mean += c[j][i]
    mean /= m
    far: float = 0.0
    for j in range(m):
        d: float = c[j][i] - mean
        far += d * d
    y[i] = far / m


@body("strip-mine")
def recurrence(i, c, m):
    for j in range(1, m):
        c[j][i] = c[j][i] - 0.5 * c[j - 1][i]


@body("strip-mine")
def tridiagonal(i, c, w, m):
    last: float = 0.0
    for j in range(1, m - 1):
        last = (c[j][i] + 0.3 * last) * w[j]
        c[j][i] = last
    last = 0.0
    for j in range(m - 2, 0, -1):
        last = c[j][i] + 0.3 * w[j] * last
        c[j][i] = last


@body("strip-mine")
def nested(i, c, o, y, w, m):
    half: int = m // 4
    for b in range(4):
        first: int = b * half
        value: float = 0.25
        for j in range(half):
            value += c[first + j][i] * w[j]
        o[b][i] = value
        for j in range(b, half):
            y[i] -= value * c[j][i]


@body("strip-mine")
def reversed_and_every_third(i, c, y, m):
    value: float = 1.0
    for j in range(m):
        k: int = m - 1 - j
        value = 0.5 * value + c[k][i]
    for j in range(1, m, 3):
        value = 0.5 * value + c[j][i]
    y[i] = value


@body("strip-mine", dtype="int32")
def product(i, c, y, w, m):
    for j in range(m):
        y[i] += c[j][i] * w[j]


@body("strip-mine")
@body("strip-mine", dtype="float32")
def least(i, c, y, m):
    best: float = c[0][i]
    where: int = 0
    for j in range(1, m):
        if c[j][i] < best:
            best = c[j][i]
            where = j
    y[i] = best + where


@body("strip-mine")
def of_a_place(i, c, o, y, w, m):
    """A subscript that data decide stands beside those that run on."""
    k: int = int(fabs(y[i])) % 3
    value: float = 0.0
    for j in range(m):
        value += c[j][i] * o[j][i] * o[m - 1 - j][i] * w[k]
    y[i] = value


@body("strip-mine", trips=3)
def kept_column(i, c, o, y, w):
    """Loops over what an iteration keeps run along strips as well."""
    d: List[float] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    last: float = 0.0
    for j in range(8):
        d[j] = c[j][i] * w[j]
    for j in range(8):
        last = d[j] - 0.5 * last
        d[j] = last
    for j in range(8):
        k: int = 7 - j
        o[k][i] += d[k]
    y[i] = d[3]


@body("strip-mine")
def kept_array(i, c, y, m):
    parts: List[float] = [0.0, 0.0, 0.0, 0.0]
    for j in range(m):
        parts[j % 4] += c[j][i]
    y[i] = parts[0] + parts[1] * parts[2] - parts[3]


@body("strip-mine")
def rounded(i, c, y, m):
    half: int = m * 0.5
    value: float = 0.0
    for j in range(half * 2):
        value += c[j][i]
    y[i] = value


@body("strip-mine")
def squares(i, acc, c, m):
    value: float = 0.0
    for j in range(m):
        value += c[j][i]
    acc += value * value


@body("strip-mine")
def everything_and_more(i, acc, c, o, y, w, m):
    acc += y[i]
    for j in range(m):
        if c[j][i] > 0.0:
            acc += c[j][i]
        o[j][i] = c[j][i] * w[j]
    for j in range(4):
        acc -= o[j][i]


@body("strip-mine", aliased="c o")
def overwritten(i, c, o, m):
    """Two names of one table: an iteration reads its own column only."""
    for j in range(1, m):
        c[j][i] = o[j - 1][i] + 1.0


@body("strip-mine", m=40)
def plane(i, j, cube, b, m):
    value: float = 0.0
    for k in range(m):
        value += cube[k][i][j]
    b[i][j] = value


@body("strip-mine", m=40)
def multiplied(i, j, a, c, b, m):
    value: float = 0.0
    for k in range(m):
        value += a[i][k] * c[k][j]
    b[i][j] = value


@body("strip-mine")
def flattened(i, flat, y, m, n):
    value: float = 0.0
    for j in range(m):
        value += flat[j * n + i]
    y[i] = value


@body()
def own_trips(i, c, y, m):
    value: float = 0.0
    for j in range(i % m):
        value += c[j][i]
    y[i] = value


@body()
def trips_of_data(i, c, y, m):
    value: float = 0.0
    stop: int = int(fabs(y[i])) % m
    for j in range(stop):
        value += c[j][i]
    y[i] = value


@body()
def changing_trips(i, c, y, m):
    value: float = 0.0
    stop: int = m
    for j in range(stop):
        value += c[j][i]
    if c[0][i] > 0.0:
        stop = 2
    for j in range(stop):
        value += c[j][i]
    y[i] = value


@body()
def until(i, c, y, m):
    value: float = 0.0
    for j in range(m):
        if c[j][i] > 1.0:
            break
        value += c[j][i]
    y[i] = value


@body()
def skipping(i, c, y, m):
    value: float = 0.0
    for j in range(m):
        if c[j][i] > 1.0:
            continue
        value += c[j][i]
    y[i] = value


@body()
def own_bounds_sometimes(i, c, y, m):
    """Under a condition loops need equal trips as well."""
    value: float = 0.0
    if y[i] > 0.0:
        for j in range(i % m):
            value += c[j][i]
    y[i] = value


@body()
def until_sometimes(i, c, y, m):
    value: float = 0.0
    if y[i] > 0.0:
        for j in range(m):
            if c[j][i] > 1.0:
                break
            value += c[j][i]
    y[i] = value


@body()
def begun_array(i, c, y, m):
    """Arrays of a strip begin with zeros only."""
    parts: List[float] = [0.0, 1.0, 0.0, 0.0]
    for j in range(m):
        parts[j % 4] += c[j][i]
    y[i] = parts[0] + parts[1] * parts[2] - parts[3]


@body()
def counted(i, c, y, m):
    for j in range(m):
        pk.atomic_add(y, [0], c[j][i])


@body("unroll-and-jam")
def changed_index(i, c, o, m):
    i = i // 2 * 2
    value: float = 0.0
    for j in range(m):
        value += c[j][i]
    o[0][i] = value


@body("unroll-and-jam")
def rows_again(i, c, b, m):
    """Rows that two loops walk along would not stay near while columns come in between."""
    value: float = 0.0
    for k in range(m):
        value += b[i][k]
    for j in range(m):
        value += c[j][i]
    for k in range(m):
        b[i][k] = value


@body("unroll-and-jam")
def along_rows(i, b, y, w, m):
    value: float = 0.0
    for j in range(m):
        value += b[i][j] * w[j]
    y[i] = value


@body(execution="Serial")
def recurrence_in_order(i, c, m):
    for j in range(1, m):
        c[j][i] = c[j][i] - 0.5 * c[j - 1][i]


@body()
def unsigned_trips(i, c, y, m):
    last: pk.uint32 = m
    for j in range(last):
        y[i] = 0.5 * y[i] + c[j][i]


@body()
def changed_variable(i, c, y, m):
    """Where an iteration leaves out a trip, others do not."""
    for j in range(m):
        y[i] = 0.5 * y[i] + c[j][i]
        j += i % 2


@body()
def step_of_an_argument(i, c, y, m, k):
    for j in range(0, m, k):
        y[i] = 0.5 * y[i] + c[j][i]


@body()
def own_start(i, c, y, m):
    for j in range(i % 3, m):
        y[i] = 0.5 * y[i] + c[j][i]


@body()
def sum_in_trips(i, acc, c, w, m):
    for k in range(m):
        for j in range(m):
            acc += c[j][i] * w[k]


@body()
def trips_of_an_element(i, a, y, to, m):
    total: float = 0.0
    for j in range(to[0]):
        total = 0.5 * total + a[i][j]
    y[i] = total
