"""Bodies whose iterations wait for themselves: several run side by side."""
# ruff: noqa: F821

from __future__ import annotations

import pykokkos as pk

from tests.nest.harness import body


@body("unroll-and-jam")
def normalise(i, a, b, y, m):
    top: float = a[i][0]
    for j in range(1, m):
        if a[i][j] > top:
            top = a[i][j]
    for j in range(m):
        b[i][j] = a[i][j] - top
    total: float = 0.0
    for k in range(m):
        total += b[i][k] * b[i][k]
    for j in range(m):
        b[i][j] /= total
    y[i] = total


@body("unroll-and-jam")
def prefix(i, a, b, m):
    value: float = 1.0 * i
    for j in range(m):
        value = 0.5 * value + a[i][j]
        b[i][j] = value


@body("unroll-and-jam")
def own_array(i, a, b, m):
    parts: List[float] = [0.0, 0.0, 0.0]
    for j in range(m):
        parts[j % 3] = a[i][j]
    total: float = 0.0
    for j in range(m):
        total += a[i][j] * parts[j % 3]
    b[i][0] = total + parts[1]


@body("unroll-and-jam")
def values_first(i, a, b, m):
    weights: List[float] = [0.25, 0.5, 0.25]
    total: float = 0.0
    for j in range(m):
        total += a[i][j] * weights[j % 3]
    b[i][0] = total


@body("unroll-and-jam")
def values_of_its_own(i, a, b, m):
    first: float = a[i][0]
    ends: List[float] = [first, 2.0 * first, 0.0]
    total: float = 0.0
    for j in range(m):
        total = 0.5 * total + ends[j % 3]
        ends[j % 3] = a[i][j]
    b[i][0] = total + ends[1]


@body("unroll-and-jam")
def kept(i, a, b, m):
    total: float = 0.0
    last: float = 0.0
    for j in range(m):
        total += a[i][j]
        last = a[i][m - 1 - j] + 1.0
    b[i][0] = total - last


@body("unroll-and-jam")
def squared_rows(i, acc, a, b, m):
    total: float = 0.0
    for j in range(m):
        total += a[i][j]
    for j in range(m):
        b[i][j] = a[i][j] / total
    for j in range(m):
        acc += b[i][j] * b[i][j]
    acc += total


@body("unroll-and-jam", m=40)
def sums(i, k, a, b, m):
    total: float = 0.0
    for j in range(m):
        total += a[i][j] * (k + 1.0)
    for j in range(m):
        total -= 0.5 * total * a[k][j]
    b[i][k] = total


@body("unroll-and-jam")
def turned(i, many, whole, m):
    total: int = 0
    for j in range(m):
        total += many[i][j]
    whole[i] = total


@body("unroll-and-jam")
def turned_signed(i, some, whole, m):
    total: int = 0
    for j in range(m):
        total += some[i][j]
    whole[i] = total


@body("unroll-and-jam", lanes=True, aliased="x y", runs=False)
def pairs_of_one_line(i, x, near, y, m, box):
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


@body()
def own_trips_of_rows(i, a, b, m):
    total: float = 0.0
    for j in range(i % m):
        total += a[i][j]
    b[i][0] = total


@body()
def changing_trips_of_rows(i, a, b, m):
    total: float = 0.0
    last: int = m
    for j in range(last):
        total += a[i][j]
    last = m - 1
    for j in range(last):
        total += a[i][j]
    b[i][0] = total


@body()
def until_of_rows(i, a, b, m):
    total: float = 0.0
    for j in range(m):
        if a[i][j] > 1.0:
            break
        total += a[i][j]
    b[i][0] = total


@body()
def counted_of_rows(i, a, b, m):
    total: float = 0.0
    for j in range(m):
        total += pk.atomic_fetch_add(b, [i, 0], a[i][j])
    b[i][1] = total


@body("strip-mine copy-rows")
def nested_of_rows(i, a, b, m):
    total: float = 0.0
    for j in range(m):
        for k in range(m):
            total += a[i][j] * a[i][k]
    b[i][0] = total


@body()
def no_sum(i, a, b, m):
    last: float = 0.0
    for j in range(m):
        b[i][j] = 2.0 * a[i][j]
    b[i][0] = last


@body()
def never_waits(i, a, b, m):
    last: float = 0.0
    for j in range(m):
        last = a[i][j]
    b[i][0] = last


@body(execution="Serial")
def prefix_in_order(i, a, b, m):
    value: float = 1.0 * i
    for j in range(m):
        value = 0.5 * value + a[i][j]
        b[i][j] = value


@body("unroll-and-jam", lanes=True)
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


@body("unroll-and-jam", lanes=True)
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


@body("unroll-and-jam", lanes=True)
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


@body("unroll-and-jam", lanes=False)
def short_pairs(i, x, near, y, m, box):
    total: float = 0.0
    for k in range(m):
        j: int = near[i][k]
        d: float = x[j] - x[i]
        if d > 0.5 * box:
            d -= box
        total += 1.0 / (d * d + 1.0)
    y[i] = total


@body()
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


@body()
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


@body()
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


@body()
def fetching_pairs(i, x, near, y, m):
    total: float = 0.0
    for k in range(m):
        c: int = near[i][k]
        d: int = near[i][0]
        e: int = near[i][1]
        f: int = near[i][m - 1 - k]
        total += x[c] * x[d] - x[e] * x[f] + x[c] / (x[d] * x[e] + 9.0)
        total += x[c] * x[e] - x[d] * x[f] + x[f] * x[d]
    y[i] = total


@body()
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
