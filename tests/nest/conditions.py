"""Bodies that ask for their index: loops split at guards, blocks that run without conditions."""

from __future__ import annotations

from math import exp, log, sin, sqrt

import pykokkos as pk

from tests.nest.harness import body


@body("split-conditions split-rows")
def neighbours_in_a_row(i, y, x, n, m):
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


@body("split-conditions")
def edges_apart(i, y, x, n):
    if i > 0 and i < n - 1:
        y[i] = x[i - 1] + x[i + 1]
    else:
        y[i] = x[i]


@body("split-conditions")
def three_cases(i, y, x, n, m):
    if i == 0:
        y[i] = 1.0
    elif i == n - 1 or i == m:
        y[i] = 2.0
    else:
        y[i] = x[i - 1] - x[i + 1]


@body("split-conditions")
def wraps(i, y, x, n):
    left: int = i - 1 if i > 0 else n - 1
    right: int = i + 1 if i + 1 < n else 0
    y[i] = x[left] + x[right]


@body("split-conditions")
def wraps_by_itself(i, y, x, n):
    right: int = i + 3
    y[i] = x[right - n if right >= n else right]


@body("split-conditions split-rows")
def named(i, y, x, n, m):
    inside: bool = i > 0 and i < n - 1 and not (i % m < 1)
    if inside:
        y[i] = x[i - 1] + x[i + 1]


@body("split-conditions split-rows")
def of_rows(i, y, x, n, m):
    if i // m > 0 and i // m < n // m - 1:
        y[i] = x[i - m] + x[i + m]
    if i // m > 0 and i // m < 7:
        y[i] += 1.0


@body("split-conditions")
def data_asked_too(i, y, x):
    if i > 0 and x[i] > 0.5:
        y[i] = x[i - 1]


@body("split-conditions")
def first_alone(i, y, x):
    if i == 0:
        y[i] = x[i]


@body("split-conditions split-rows")
def of_a_divisor(i, y, x, zero):
    """Nothing is inside, and nothing divides by zero to find that out."""
    if zero > 0 and i % zero > 0:
        y[i] = x[i]


@body("split-conditions", runs=False)
def atomic(i, y, n):
    if i > 0 or pk.atomic_fetch_add(y, [n - 1], 1.0) < 0.5:
        pk.atomic_add(y, [0], 1.0)


@body("split-conditions safe-rows", n=20)
def plane(i, j, b, a, n):
    if i > 0 and i < n - 1 and j > 0 and j < n - 1 and i != j:
        b[i][j] = a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]


@body("split-conditions safe-rows", n=20)
def sides(i, j, b, a, n, m):
    v: float = a[i][j]
    if i > 0:
        v -= a[i - 1][j]
    if i < n - 1:
        v -= a[i + 1][j]
    if j != 0:
        v -= a[i][j - 1]
    if j < m - 1:
        v -= a[i][j + 1]
    b[i][j] = v


@body("split-conditions safe-rows", n=20)
def rows_alone(i, j, b, a, n):
    if i > 0 and not (i >= n - 1):
        b[i][j] = a[i - 1][j] + a[i + 1][j]


@body("split-conditions", n=20)
def columns_alone(i, j, b, a, n, m):
    left: int = j - 1 if j > 0 else n - 1
    b[i][j] = a[i][left] - a[i][min(j + 2, n - 1)]
    if i != m:
        b[i][j] += 1.0


@body("split-conditions", n=20)
def beside_a_diagonal(i, j, b, a, n):
    if j > i - 2:
        b[i][j] = a[i][j]
    if j < i + 30:
        b[i][j] += 2.0


@body("split-conditions", n=12)
def lines_of_a_solid(i, j, p, solid, cube, n):
    solid[i][j][p] = cube[i][j][max(p - 1, 0)] - cube[i][j][min(p + 1, n - 1)]


@body("split-conditions safe-rows", n=12)
def planes_apart(i, j, p, solid, cube, n):
    if i > 0:
        solid[i][j][p] = cube[i - 1][j][max(p - 1, 0)]
    else:
        solid[i][j][p] = cube[i][j][min(p + 1, n - 1)]


@body("split-conditions loop-order safe-rows", n=20)
def turned_plane(i, j, b, a, n):
    if j > 0 and i < n - 1 and (i + j) % 2 == 0:
        b[j][i] = a[j - 1][i] + a[j][i + 1]


@body("split-conditions safe-rows", n=12)
def solid_inside(i, j, p, solid, cube, n):
    if i > 0 and j > 0 and j < n - 1 and p < n - 1 and i != p:
        solid[i][j][p] = cube[i - 1][j][p] + cube[i][j + 1][p] + cube[i][j][p + 1]


@body("split-conditions", execution="OpenMP")
def sum_inside(i, acc, x, m):
    column: int = i % m
    if column > 0 and column < m - 1:
        acc += x[i + 1] - x[i - 1]


@body("split-conditions safe-rows", n=31)
def sum_of_a_plane(i, j, acc, a, n):
    if i > 0 and j > 0 and j < n - 1:
        acc += a[i - 1][j] - a[i][j + 1]


# --------------------------------------------------------------------------- rows that are there


@body("split-conditions safe-rows", n=20)
def of_elements_and_rows(i, j, b, a, n):
    b[i][j] = a[i][j]
    if a[i][j] > 0.5 and i < n - 1:
        b[i][j] += a[i + 1][j]


@body("split-conditions safe-rows", n=20)
def else_of_rows(i, j, b, a, n):
    if i == 0 or i >= n - 1:
        b[i][j] = a[i][j]
    elif j > 0:
        b[i][j] = a[i - 1][j] * a[i + 1][j - 1]
    else:
        b[i][j] = a[i - 1][j] + a[i + 1][j]


@body("split-conditions safe-rows", n=20)
def row_in_row(i, j, b, a, n):
    b[i][j] = 0.0
    if i >= 2:
        b[i][j] = 1.0
        if not i > n - 3:
            b[i][j] = a[i - 2][j] - a[i + 2][j]


@body("split-conditions safe-rows", n=20)
def named_row(i, j, b, a, n):
    above: int = i - 1
    last: bool = i == n - 1
    b[i][j] = a[above][j] if above >= 0 else a[i][j]
    if not last:
        b[i][j] -= a[i + 1][j]
    if j > 0:
        b[i][j] *= 2.0


@body("split-conditions safe-rows", n=20)
def row_stored(i, j, b, a, n):
    if i < n - 1 and (i & 1) == 0:
        b[i + 1][j] = a[i][j]


@body("split-conditions safe-rows", n=20)
def row_and_element_asked(i, j, b, a):
    if i > 0 and a[i - 1][j] > 0.5:
        b[i][j] = 1.0


@body("split-conditions", n=20)
def no_other_row(i, j, b, a):
    if i > 0:
        b[i][j] = a[i][j] + a[0][j]


@body("", n=20)
def row_of_elements(i, j, b, a):
    if a[i][j] > 0.5:
        b[i][j] = a[i // 2][j]


@body("", n=20)
def row_that_changes(i, j, b, a):
    k: int = i
    k += 1
    if i + k < 4:
        b[i][j] = a[i + k - k][j]


@body("", n=20)
def row_that_divides(i, j, b, a, zero):
    """Nothing divides by zero to find out which row is there."""
    b[i][j] = a[i][j]
    if zero > 0 and i // zero > 0:
        b[i][j] = a[i + 1][j]


# --------------------------------------------------------------------------- what asks nothing


@body()
def of_elements(i, y, x):
    if x[i] > 0.5:
        y[i] = x[i]


@body()
def of_scalars(i, y, x, m):
    if m > 5:
        y[i] = x[i]


@body()
def changed_index(i, y, x, n):
    i += 1
    if i > 1 and i < n:
        y[i - 1] = x[i - 1]


@body()
def changing_limit(i, y, x, m):
    limit: int = m
    limit += int(8.0 * x[i])
    if i > limit:
        y[i] = x[i]


@body()
def of_reals(i, y, x, box):
    if i < 3.5 * box:
        y[i] = x[i]


@body()
def twice_the_index(i, y, x, m):
    if 2 * i > m:
        y[i] = x[i]


@body()
def far_away(i, y, x, m):
    if i + 200000000 > m:
        y[i] = x[i]


@body("split-conditions")
def in_a_loop(i, y, x, m):
    for _k in range(m):
        if i > 0:
            y[i] += x[i - 1]


@body("split-conditions strip-mine")
def clamped_window(i, y, x, n, m):
    total: float = 0.0
    for k in range(-m, m + 1):
        total += x[min(max(i + k, 0), n - 1)]
    y[i] = total


@body("split-conditions strip-mine")
def guarded_window(i, y, x, n, m):
    total: float = 0.0
    for k in range(2 * m + 1):
        if i + k - m >= 0 and i + k - m < n:
            total += x[i + k - m]
    y[i] = total


@body("split-conditions")
def short_range_at_the_ends(i, y, x, n):
    total: float = 0.0
    for k in range(max(i - 2, 0), min(i + 3, n)):
        total += x[k]
    y[i] = total


@body("split-conditions strip-mine")
def range_at_the_ends(i, y, x, n, m):
    low: int = max(i - m, 0)
    high: int = min(i + m + 1, n)
    total: float = 0.0
    for k in range(low, high):
        total += x[k]
    y[i] = total / (high - low)


@body("split-conditions strip-mine")
def range_of_the_index(i, y, x, m):
    """There is nothing to ask for but that it is little."""
    total: float = 0.0
    for k in range(i, i + m):
        total += x[k]
    y[i] = total


@body("split-conditions", n=20)
def square_at_the_ends(i, j, b, a, n):
    total: float = 0.0
    for k in range(max(i - 1, 0), min(i + 2, n)):
        for c in range(max(j - 1, 0), min(j + 2, n)):
            total += a[k][c]
    b[i][j] = total


@body("split-conditions", n=31)
def sum_of_short_ranges(i, acc, a, n, m):
    """The order of a long loop's additions is that of all iterations: the short one stays."""
    for k in range(m):
        for c in range(max(i - 1, 0), min(i + 2, n)):
            acc += a[c][k] * 0.1


@body("split-conditions strip-mine", n=31)
def sum_of_ranges(i, acc, x, n, m):
    for c in range(max(i - m, 0), min(i + m + 1, n)):
        acc += x[c] * 0.1


@body()
def range_to_the_end(i, y, x, n):
    total: float = 0.0
    for k in range(i, n):
        total += x[k]
    y[i] = total


@body()
def range_of_twice_the_index(i, y, x, n):
    total: float = 0.0
    for k in range(2 * i, 2 * i + 3):
        total += x[k % n]
    y[i] = total


@body()
def range_that_moves_on(i, y, x, m):
    total: float = 0.0
    for k in range(i, i + m):
        total += x[k]
        k += 1
    y[i] = total


@body()
def range_that_changes(i, y, x, n):
    total: float = 0.0
    low: int = i
    for k in range(low, i + 3):
        low += 1
        total += x[k % n]
    y[i] = total + low


@body()
def window_of_data(i, y, x, n, m):
    """How far it reaches no iteration knows of another."""
    total: float = 0.0
    for k in range(int(x[i]) % 3):
        if i + k < n:
            total += x[i + k]
    y[i] = total


@body()
def dear(i, y, x):
    if i > 0:
        y[i] = pow(x[i], x[i - 1]) + exp(x[i]) * log(x[i] + 2.0) + sin(x[i])


@body(execution="Serial")
def asked_in_order(i, y, x, n):
    if i > 0 and i < n - 1:
        y[i] = y[i - 1] + x[i + 1]
    else:
        y[i] = x[i]


# --------------------------------------------------------------------------- guards


@body("split-guards", n=20_000)
def line(i, x, y, z, low, high, start, stop):
    t: float = 2.0 * x[i]
    if i >= low and i < high:
        y[i] = t + x[i]
    z[i] = t * t
    if i >= start and i < stop:
        z[i] += y[i]


@body("split-guards")
def in_front(i, x, y, z, low, high, start, stop):
    z[i] = 2.0 * x[i]
    if i < high:
        y[i] = z[i] + start
    if i >= low:
        y[i] += stop


@body("split-guards", n=20)
def guarded_plane(i, j, a, b, u, low, high, start, stop):
    b[i][j] = 2.0 * a[i][j]
    if i >= low and i < high and j >= start and j < stop:
        u[i][j] = b[i][j] + a[i][j]


@body("split-guards", n=20)
def guarded_columns(i, j, a, b, u, low, high, start, stop):
    b[i][j] = 2.0 * a[i][j]
    if j >= start and j < stop:
        u[i][j] = b[i][j] + a[i][j]
    if j < high:
        u[i][j] += low


@body("split-guards", n=12, m=36)
def guarded_solid(i, j, p, cube, solid, low, high, start, stop):
    solid[i][j][p] = 2.0 * cube[i][j][p]
    if i >= low and j >= start and j < stop and p >= low and p < high:
        solid[i][j][p] = solid[i][j][p] + cube[i][j][p]


@body("split-guards", execution="Serial")
def guarded_in_order(i, x, y, low, high):
    """Of one axis the order stays."""
    if i >= low and i < high:
        x[i] = x[i - 1] + y[i]


@body(execution="Serial", n=20)
def guarded_plane_in_order(i, j, a, b, low, high):
    """Slabs of several axes would come out of turn."""
    if j >= low and j < high:
        a[i][j] = a[i - 1][j + 1] + b[i][j]


@body()
def moved_index(i, x, y, low, high, start):
    i += start + 1
    if i >= low and i < high:
        y[i] = x[i]


@body("split-conditions")
def otherwise(i, x, y, z, low, high):
    if i >= low and i < high:
        y[i] = x[i]
    else:
        y[i] = z[i]


@body("split-conditions")
def of_data(i, x, y, low):
    if i >= low and x[i] < 50.0:
        y[i] = x[i]


@body("split-conditions")
def either(i, x, y, low, high):
    if i >= low or i < high:
        y[i] = x[i]


@body("split-conditions")
def guarded_sum(i, acc, x, low, high):
    if i >= low and i < high:
        acc += x[i]


@body("split-guards", n=600)
def guarded_map_before_a_sum(i, acc, x, y, z, low, high, start, stop):
    t: float = x[i] * 1.5 + sqrt(x[i] * x[i] + 2.0) / (x[i] + 9.0) + sqrt(y[i] + 3.0)
    if i >= low and i < high:
        z[i] = t + y[i] * y[i]
    if i >= start:
        z[i] += t / (y[i] + 3.0) + stop
    acc += z[i] * t + sqrt(t + 4.0)


@body("split-guards", n=31)
def guarded_plane_before_a_sum(i, j, acc, a, b, u, low, stop):
    t: float = a[i][j] * 1.5 + sqrt(a[i][j] * a[i][j] + 2.0) / (a[i][j] + 9.0) + sqrt(b[i][j] + 3.0)
    if i >= low and j < stop:
        u[i][j] = t + b[i][j]
    acc += u[i][j] * t + sqrt(t + 4.0)


@body("distribute", n=300)
def guarded_loop_of_terms(i, acc, x, y, z, low, high, start):
    """Loops of terms are added up in blocks, but not inside an `if`: it has to stay."""
    z[i] = sqrt(x[i] * x[i] + 2.0) / (x[i] + 9.0) + sqrt(y[i] + 3.0) + start
    if i >= low and i < high:
        for k in range(40):
            acc += z[i] * k + y[i] / (x[i] + 2.0)


@body(n=300)
def loop_of_terms_in_a_branch(i, acc, x, y, n):
    if i > 2:
        for k in range(40):
            acc += x[min(max(i + k - 20, 0), n - 1)] * y[min(max(i - k, 0), n - 1)]


@body("split-conditions", n=300)
def loop_in_a_branch_beside_a_sum(i, acc, x, y, z, n):
    t: float = 0.0
    if i > 2:
        for k in range(40):
            t += x[min(max(i + k - 20, 0), n - 1)] * y[min(max(i - k, 0), n - 1)]
    z[i] = t
    acc += t
