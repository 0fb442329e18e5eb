"""Bodies with sums: few that stay in registers, and many, which are computed a few at a time."""

from __future__ import annotations

import math

import pykokkos as pk

from tests.nest.harness import body


@body("split-accumulators", sums=16)
def labelled(i, acc, e, z, label, k):
    nearest: int = 0
    if e[i] > 0.001:
        nearest = 3
    label[i] = nearest
    z[i] = e[i] * 0.5 + nearest
    if nearest == k:
        acc += e[i]


@body("split-accumulators", sums=16)
def of_locals(i, acc, e, z, k):
    value: float = e[i] * e[i] + k
    z[i] = value
    acc += value * e[i]


@body("split-accumulators", sums=16)
def subtracted(i, acc, e, z, k):
    z[i] = e[i] + k
    if z[i] > 1.0:
        acc -= e[i]
    else:
        acc -= -0.0


@body("split-accumulators", sums=16)
def only_sums(i, acc, e, k):
    if e[i] > k:
        acc += e[i]


@body("split-accumulators", sums=16)
def all_negative_zeros(i, acc, e, z, k):
    z[i] = k
    acc += -0.0 * (e[i] * e[i])


@body(sums=15, on="avx2")
def too_few(i, acc, e, z, label, k):
    nearest: int = 0
    if e[i] > 0.001:
        nearest = 3
    label[i] = nearest
    z[i] = e[i] * 0.5 + nearest
    if nearest == k:
        acc += e[i]


@body(sums=16)
def overwritten(i, acc, e, z):
    acc += e[i]
    e[i] = 2.0 * z[i]


@body(sums=16)
def reassigned(i, acc, e, z):
    value: float = e[i]
    if value > 0.0:
        acc += value
    value = 2.0 * value
    z[i] = value


@body(sums=16)
def twice(i, acc, e, z):
    acc += e[i]
    if z[i] > 0.0:
        acc += z[i]


@body(sums=16)
def gathered_terms(i, acc, e, label):
    acc += e[label[i]]


@body(sums=16)
def shared(i, acc, e, z, k):
    acc += e[i] * z[k]


@body(sums=16)
def also_stores(i, acc, e, z):
    if e[i] > 0.0:
        acc += e[i]
        z[i] = e[i]


@body(sums=16)
def called(i, acc, e):
    acc += math.exp(e[i])


@body(sums=16)
def local_array(i, acc, e, z, k):
    pair: list[float] = [e[i], z[i]]
    pair[k % 2] = 1.0
    acc += pair[0]


@body("strip-mine", sums=16)
def looped(i, acc, e, k):
    for _ in range(k):
        acc += e[i]


@body(sums=16, aliased="e z")
def of_locals_that_overlap(i, acc, e, z, k):
    value: float = e[i] * e[i] + k
    z[i] = value
    acc += value * e[i]


@body(sums=16, execution="Serial")
def labelled_in_order(i, acc, e, z, label, k):
    nearest: int = 0
    if e[i] > 0.001:
        nearest = 3
    label[i] = nearest
    z[i] = e[i] * 0.5 + nearest
    if nearest == k:
        acc += e[i]


@body("split-accumulators", sums=20)
def squares_of_a_table(i, j, acc, a, b):
    b[i][j] = a[i][j] * a[i][j]
    if b[i][j] > 0.01:
        acc += a[i][j]


@body(sums=16)
def of_four_bytes(i, acc: pk.Acc[pk.float], e):
    acc += e[i]


@body(sums=16)
def skipping_terms(i, acc, skips, z):
    z[i] = 2.0 * skips[i]
    acc += skips[i] * z[i]


@body("promote-sums", sums=2, on="wide")
def squares(i, acc, e, z):
    acc += e[i] * e[i] - z[i]


@body("promote-sums")
def stored_and_added(i, acc, e, z, k):
    value: float = e[i] * 0.5 + k
    z[i] = value
    if value > 0.0:
        acc += value


@body()
def of_short_rows(i, j, acc, a, b):
    b[i][j] = abs(a[i][j])
    acc += b[i][j] * a[i][j]


@body("promote-sums")
def of_places(i, acc, e, to):
    acc += e[to[i]]


@body("split-accumulators", sums=6, on="wide")
def six(i, acc, e, z):
    acc += abs(e[i] - z[i])


@body(sums=2, on="avx2")
def more_than_registers(i, acc, e):
    acc += e[i]


@body(aliased="e z")
def overlapping_sum(i, acc, e, z):
    z[i] = e[i] * 0.5
    acc += e[i]


@body()
def rounded_in_order(i, acc: pk.Acc[pk.float], e):
    acc += e[i]


@body()
def called_for_a_sum(i, acc, e):
    acc += math.exp(e[i])


@body(execution="Serial")
def in_order(i, acc, e):
    acc += e[i] * e[i]


@body("split-conditions")
def sum_of_neighbours(i, acc, x, n):
    if i > 0 and i < n - 1:
        acc += x[i - 1] * x[i + 1]


@body()
def heavy(i, acc, e, z, k):
    acc += (
        (e[i] * z[i] + k) * (e[i] * z[i] - k) + (e[i] + z[i] * k) * (e[i] - z[i] * k)
        + (e[i] * 2.0 + k) * (z[i] * 2.0 - k) + (e[i] * 3.0 + k) * (z[i] * 3.0 - k)
    )  # fmt: skip
