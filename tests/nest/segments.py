"""Bodies in several loops: what is vectors, and what is not."""
# ruff: noqa: F821

from __future__ import annotations

import math

import pykokkos as pk

from tests.nest.harness import body


@body("distribute unroll-and-jam")
def after_a_map(i, u, b, v, m):
    scale: float = math.exp(v[i]) * math.sin(v[i])
    total: float = 0.0
    for j in range(m):
        total = 0.5 * total + scale * u[i][j]
    b[i][0] = total


@body("distribute unroll-and-jam")
def between_maps(i, u, b, v, m):
    total: float = math.exp(v[i]) * math.sin(v[i])
    for j in range(m):
        total = 0.5 * total + u[i][j]
    for j in range(m):
        b[i][j] = u[i][j] / total
    v[i] = math.log(total) * math.exp(-total)


@body("distribute unroll-and-jam")
def changed_between(i, u, b, v, m):
    """A cheap function of a local that the loop changes: of its value before."""
    total: float = math.exp(v[i]) * math.sin(v[i])
    for j in range(m):
        total = 0.5 * total + u[i][j]
    half: float = 0.5 * total
    for j in range(m):
        total = 0.25 * total + half * u[i][j]
    b[i][0] = total
    b[i][1] = half


@body("distribute unroll-and-jam")
def changed_later(i, u, b, v, m):
    """Its first value is cheap, and a later segment needs it."""
    share: float = 0.5
    total: float = 0.0
    for j in range(m):
        total = share * total + u[i][j]
    share = share + math.exp(-total) * math.sin(v[i])
    b[i][0] = share


@body("distribute unroll-and-jam")
def two_loops(i, u, b, v, m):
    low: float = math.exp(v[i]) * math.sin(v[i])
    high: float = low
    for j in range(m):
        low = 0.5 * low - u[i][j]
    middle: float = math.exp(-low * low) + math.sin(high)
    for j in range(m):
        high = 0.25 * high + middle * u[i][j]
    b[i][0] = low
    b[i][1] = high


@body("distribute unroll-and-jam")
def own_array(i, u, b, v, m):
    parts: List[float] = [0.0, 0.0, 0.0]
    total: float = math.exp(v[i]) * math.sin(v[i])
    for j in range(m):
        parts[j % 3] = parts[j % 3] + u[i][j]
    for j in range(m):
        total = 0.5 * total + parts[j % 3] * u[i][j]
    b[i][0] = math.exp(-0.01 * parts[0]) * math.sin(parts[1]) + total


@body("distribute unroll-and-jam")
def added(i, acc, u, b, v, m):
    total: float = math.exp(v[i]) * math.sin(v[i])
    for j in range(m):
        total = 0.5 * total + u[i][j]
    for j in range(m):
        acc += u[i][j] * total
    acc += math.exp(-total) * math.sin(total)
    b[i][0] = total


@body("distribute")
def own_trips_after_a_map(i, u, b, v, m):
    total: float = math.exp(v[i]) * math.sin(v[i])
    for j in range(i % m):
        total = 0.5 * total + u[i][j]
    b[i][0] = total


@body("distribute")
def arriving_trips_after_a_map(i, u, b, v, m):
    first: float = math.exp(v[i]) * math.sin(v[i])
    last: int = int(first * m) % m
    total: float = 0.0
    for j in range(last):
        total = 0.5 * total + u[i][j]
    b[i][0] = total


@body("distribute")
def until_after_a_map(i, u, b, v, m):
    total: float = math.exp(v[i]) * math.sin(v[i])
    for j in range(m):
        if u[i][j] > 0.9:
            break
        total = 0.5 * total + u[i][j]
    b[i][0] = total


@body()
def counted_after_a_map(i, u, b, v, m):
    total: float = math.exp(v[i]) * math.sin(v[i])
    for j in range(m):
        total = 0.5 * total + pk.atomic_fetch_add(b, [i, 0], u[i][j])
    b[i][1] = total


@body("distribute", kinds="vs")
def deposit(i, x, few):
    x[i] = math.exp(x[i])
    cell: int = int(x[i])
    pk.atomic_add(few, [cell], 1.0)


@body(execution="Serial")
def deposit_in_order(i, x, few):
    x[i] = math.exp(x[i])
    cell: int = int(x[i])
    pk.atomic_add(few, [cell], 1.0)


@body("distribute", kinds="vs")
def deposit_twice(i, x, v, few, other):
    pk.atomic_add(few, [int(x[i])], 1.0)
    v[i] = math.exp(v[i])
    pk.atomic_add(other, [int(v[i])], 1.0)


@body("distribute", kinds="svs", aliased="v few", runs=False)
def deposit_twice_to_one(i, x, v, few, other):
    pk.atomic_add(few, [int(x[i])], 1.0)
    v[i] = math.exp(v[i])
    pk.atomic_add(other, [int(v[i])], 1.0)


@body("distribute unroll-and-jam", kinds="vsv", kept=2)
def before_and_after(i, x, y, u, five):
    scaled: float = math.exp(x[i])
    total: float = 0.0
    for k in range(five):
        total += scaled / (u[i][k] + 2.0)
    y[i] = math.log(total) + scaled


@body(kinds="v")
def plain(i, x, y):
    y[i] = math.exp(x[i]) * x[i]


@body(kinds="v", hoisted=False)
def poor(i, x, few):
    x[i] = x[i] + 1.0
    pk.atomic_add(few, [0], x[i])


@body(kinds="v")
def rows(i, x, five):
    first: float = x[i]
    for k in range(five):
        x[i] = x[i] + first * k


@body("distribute", kinds="vs")
def atomic_operand(i, x, few):
    pk.atomic_add(few, [0], math.exp(x[i]))


@body("distribute", kinds="vs")
def scattered(i, x, y, to):
    y[to[i]] = math.exp(x[i])


@body("distribute", kinds="vs")
def stored_and_scattered(i, x, y, to):
    v: float = math.exp(x[i])
    x[i] = v
    y[to[i]] = v


@body("distribute", kinds="vs")
def scattered_in_a_branch(i, x, y, to):
    v: float = math.exp(x[i])
    if v > 2.0:
        y[to[i]] = v


@body("distribute", kinds="vs")
def scattered_to_a_choice(i, x, y, v):
    """Where it stores depends on what was loaded, by a condition alone."""
    best: float = math.exp(x[i])
    where: int = i
    if math.exp(v[i]) < best:
        where = i // 2
    y[where] = 1.0


@body(kinds="v")
def stored_to_a_choice_of_indices(i, x, y, m):
    """The twin: a choice that no data make."""
    where: int = i
    if i > m:
        where = i - m
    x[i] = math.exp(x[i])
    y[where] = 1.0


@body("distribute", kinds="svs")
def scattered_between(i, x, y, to):
    y[to[i]] = x[i]
    x[i] = math.exp(x[i])
    y[to[i]] = math.sin(x[i])


@body("distribute", kinds="sv")
def gathered(i, x, y, to):
    x[i] = math.exp(y[to[i]])


@body(kinds="v")
def gathered_by_choice(i, x, y, to):
    x[i] = math.exp(y[to[i]] if to[i] > 5 else x[i])


@body(kinds="v")
def gathered_alone(i, x, y, to):
    x[i] = y[to[i]] * 0.5 + 0.25 * x[i] * x[i] - 1.0 / (x[i] + 2.0) + y[i] * y[i] * x[i]


@body("distribute", kinds="sv")
def of_long_integers(i, x, long):
    x[i] = math.exp(0.125 * long[i])


@body(kinds="v")
def of_integers(i, x, to):
    x[i] = math.exp(0.001 * to[i])


@body("distribute", kinds="vs")
def to_long_integers(i, x, whole):
    whole[i] = math.exp(x[i])


@body(kinds="v")
def strided(i, x, far):
    far[2 * i + 1] = math.exp(x[i])


@body(kinds="v", runs=False)
def spin(i, x, lock):
    x[i] = math.exp(x[i])
    while lock[0] > 0:
        lock[0] -= 1


@body("distribute", kinds="vs")
def wait(i, x, lock, n):
    x[i] = math.exp(x[i])
    k: int = n
    while k > 0:
        k -= 1
    pk.atomic_add(lock, [0], 1)


@body("distribute", kinds="sv", kept=1)
def row_first(i, x, y, five):
    t: List[float] = [0.0, 0.0, 0.0]
    for c in range(3):
        value: float = x[i]
        for k in range(five + i % 2):  # else strips run trip by trip
            value = value + x[i] / (c + k + 1)
        t[c] = 0.1 * value
    y[i] = math.exp(t[0]) + math.exp(t[1] - t[2])


@body(kinds="v")
def row_of_ones(i, x, y, five):
    t: List[float] = [1.0, 1.0, 1.0]
    for c in range(five):
        t[0] = t[0] + x[i] / (c + 1)
    y[i] = math.exp(0.1 * t[0]) + math.exp(0.1 * t[1] - t[2])


@body()
def row_looked_up(i, x, y, five):
    t: List[float] = [0.0, 0.0, 0.0]
    for c in range(five):
        t[c % 3] = t[c % 3] + x[i]
    y[i] = math.exp(0.1 * t[0]) + math.exp(0.1 * t[five % 3])


@body("distribute", kept=1)
def cheap_index(i, x, y, five):
    place: int = i + 1
    scaled: float = math.exp(x[place])
    for k in range(five):
        y[place] += scaled * k


@body("unroll-and-jam", kinds="v", n=9, m=300)
def scaled_row(i, a, m):
    row: int = i
    total: float = 0.0
    for j in range(m):
        total += a[row][j] * a[row][j]
    inverse: float = 1.0 / math.sqrt(total / m + 1e-5)
    for k in range(m):
        a[row][k] = a[row][k] * inverse


@body("distribute unroll-and-jam", kinds="svs", n=9, m=300)
def short_row(i, a, m):
    total: float = 0.0
    for j in range(8):
        total += a[i][j] * a[i][j]
    inverse: float = 1.0 / math.sqrt(total / m + 1e-5)
    for k in range(8):
        a[i][k] = a[i][k] * inverse


@body("distribute unroll-and-jam", kinds="svs", n=9, m=300)
def another_row(i, a, b, m):
    total: float = 0.0
    for j in range(m):
        total += a[i][j] * a[i][j]
    inverse: float = 1.0 / math.sqrt(total / m + 1e-5)
    for k in range(m):
        b[i][k] = inverse


@body("distribute unroll-and-jam", kinds="svs", n=9, m=300)
def shared_row(i, a, b, m):
    total: float = 0.0
    for j in range(m):
        total += a[0][j] * i
    inverse: float = 1.0 / math.sqrt(total * total / m + 1e-5)
    for k in range(m):
        b[i][k] = a[0][k] * inverse


@body("distribute unroll-and-jam", kinds="svs", n=9, m=300)
def costly_between(i, a, m):
    total: float = 0.0
    for j in range(m):
        total += a[i][j] * a[i][j]
    inverse: float = math.pow(math.sin(total), 2.5) + math.cos(total)
    for k in range(m):
        a[i][k] = a[i][k] * inverse


@body(kinds="v", hoisted=True)
def scatter(i, hit, v, x):
    angle: float = x[i]
    if hit[i] == 1:
        v[i] = math.cos(angle) * v[i]


@body(kinds="v", hoisted=True)
def chosen(i, v, x):
    v[i] = math.cos(x[i]) if x[i] > 1.5 else x[i]


@body(kinds="v", hoisted=False)
def guarded_load(i, hit, v, x):
    if hit[i] == 1:
        v[i] = math.cos(x[i])


@body(kinds="v", hoisted=False)
def changed_operand(i, hit, v, x):
    angle: float = x[i]
    if hit[i] == 1:
        angle = angle * v[i]
        v[i] = math.cos(angle)


@body(kinds="v", hoisted=False)
def many_calls(i, hit, v, x):
    a: float = x[i]
    if hit[i] == 1:
        v[i] = math.cos(a) + math.sin(a) + math.exp(a) + math.log(a) + math.cos(a + 1.0)


@body(kinds="v", hoisted=False)
def chosen_unread(i, hit, v, x):
    v[i] = math.cos(x[i]) if hit[i] == 1 else 0.0


@body("distribute")
def several_sums(i, acc, x, y, five):
    scaled: float = math.exp(x[i])
    total: float = 0.0
    for k in range(five):
        total += scaled / (k + 1)
        acc += total
    y[i] = math.log(total) + scaled
    if y[i] > 1.0:
        acc += y[i]


@body("distribute", m=40)
def in_a_box(i, j, u, b, five):
    scaled: float = math.exp(u[i][j])
    for k in range(five):
        b[i][j] += scaled * k
    u[i][j] = math.log(b[i][j])
