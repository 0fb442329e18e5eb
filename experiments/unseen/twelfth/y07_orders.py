"""A table of orders, analysed over windows of days; NumPy arrays throughout.

For each window the rows in it are picked (a scan numbers them) and gathered, net revenue is found
and summed by shop in cents, deviations from the shop's mean are scaled and counted by bins, the
host takes two quantiles, beyond which values are pulled in, and moments tell the shape.
"""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 3_000, "default": 250_000, "large": 2_500_000}
SHOPS, DAYS, WINDOWS, BINS, REACH, TAIL = 200, 90, 3, 160, 4.0, 0.05


@pk.workunit
def in_window(
    i: int,
    flag: pk.View1D[pk.int32],
    day: pk.View1D[pk.int32],
    quantity: pk.View1D[pk.int32],
    first: int,
    last: int,
):
    if day[i] >= first and day[i] <= last and quantity[i] > 0:
        flag[i] = 1
    else:
        flag[i] = 0


@pk.workunit
def before(
    i: int, acc: pk.Acc[pk.int64], last: bool, place: pk.View1D[pk.int32], x: pk.View1D[pk.int32]
):
    if last:
        place[i] = acc
    acc += x[i]


@pk.workunit
def compact(
    i: int, index: pk.View1D[pk.int32], flag: pk.View1D[pk.int32], place: pk.View1D[pk.int32]
):
    if flag[i] == 1:
        index[place[i]] = i


@pk.workunit
def gather(k: int, out: pk.View1D[pk.double], x: pk.View1D[pk.double], index: pk.View1D[pk.int32]):
    out[k] = x[index[k]]


@pk.workunit
def gather_int(
    k: int, out: pk.View1D[pk.int32], x: pk.View1D[pk.int32], index: pk.View1D[pk.int32]
):
    out[k] = x[index[k]]


@pk.workunit
def net(k: int, price: pk.View1D[pk.double], discount: pk.View1D[pk.double]):
    price[k] *= 1.0 - discount[k]


@pk.workunit
def revenue(
    k: int, out: pk.View1D[pk.double], price: pk.View1D[pk.double], quantity: pk.View1D[pk.int32]
):
    out[k] = price[k] * quantity[k]


@pk.workunit
def to_cents(k: int, cents: pk.View1D[pk.int64], x: pk.View1D[pk.double]):
    cents[k] = int(100.0 * x[k] + 0.5)


@pk.workunit
def clear(b: int, x: pk.View1D[pk.int64]):
    x[b] = 0


@pk.workunit
def count_by(k: int, count: pk.View1D[pk.int64], key: pk.View1D[pk.int32]):
    pk.atomic_add(count, [key[k]], 1)


@pk.workunit
def sum_by(k: int, total: pk.View1D[pk.int64], key: pk.View1D[pk.int32], x: pk.View1D[pk.int64]):
    pk.atomic_add(total, [key[k]], x[k])


@pk.workunit
def mean_by(
    s: int, mean: pk.View1D[pk.double], total: pk.View1D[pk.int64], count: pk.View1D[pk.int64]
):
    if count[s] > 0:
        mean[s] = 0.01 * total[s] / count[s]
    else:
        mean[s] = 0.0


@pk.workunit
def deviation(
    k: int,
    out: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    mean: pk.View1D[pk.double],
    key: pk.View1D[pk.int32],
):
    out[k] = x[k] - mean[key[k]]


@pk.workunit
def scale(k: int, x: pk.View1D[pk.double], by: float):
    x[k] /= by


@pk.workunit
def bin_of(k: int, bin: pk.View1D[pk.int32], x: pk.View1D[pk.double], reach: float, bins: int):
    place: float = (x[k] + reach) / (2.0 * reach) * bins
    bin[k] = max(0, min(bins - 1, int(place)))


@pk.workunit
def pull_in(k: int, x: pk.View1D[pk.double], low: float, high: float):
    x[k] = max(low, min(high, x[k]))


@pk.workunit
def moment_1(k: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]):
    acc += x[k]


@pk.workunit
def moment_2(k: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]):
    acc += x[k] * x[k]


@pk.workunit
def moment_3(k: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]):
    acc += x[k] * x[k] * x[k]


@pk.workunit
def outside(k: int, acc: pk.Acc[pk.int64], x: pk.View1D[pk.double], low: float, high: float):
    if x[k] < low or x[k] > high:
        acc += 1


@dataclass
class State:
    """The table's columns; for each window means by shop, bins and a row; the last window's values."""

    n: int
    shop: np.ndarray
    day: np.ndarray
    quantity: np.ndarray
    price: np.ndarray
    discount: np.ndarray
    means: list = field(default_factory=list)
    counts: list = field(default_factory=list)
    rows: list = field(default_factory=list)
    last: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(127)
    return State(
        n,
        (SHOPS * rng.random(n) ** 2).astype(np.int32),
        rng.integers(0, DAYS, n, dtype=np.int32),
        rng.poisson(2.5, n).astype(np.int32),
        np.round(np.exp(2.0 + 0.6 * rng.standard_normal(n)), 2),
        rng.choice([0.0, 0.05, 0.1, 0.3], n),
    )


def quantiles(counts):
    """The values between bins below and above which there is TAIL of all."""
    share = np.cumsum(counts) / np.sum(counts)
    low, high = np.searchsorted(share, [TAIL, 1.0 - TAIL])
    width = 2.0 * REACH / BINS
    return float(low * width - REACH), float((high + 1) * width - REACH)


def run(state: State) -> None:
    n = state.n
    state.means, state.counts, state.rows = [], [], []
    for window in range(WINDOWS):
        first, last = window * 25, window * 25 + 39
        flag, place = np.zeros(n, np.int32), np.zeros(n, np.int32)
        pk.parallel_for(
            n, in_window, flag=flag, day=state.day, quantity=state.quantity, first=first, last=last
        )
        m = int(pk.parallel_scan(n, before, place=place, x=flag))
        index, shop, quantity, bin = (np.zeros(m, np.int32) for _ in range(4))
        price, discount, value, z = (np.zeros(m) for _ in range(4))
        cents = np.zeros(m, np.int64)
        count, total = np.zeros(SHOPS, np.int64), np.zeros(SHOPS, np.int64)
        mean, counts = np.zeros(SHOPS), np.zeros(BINS, np.int64)
        pk.parallel_for(n, compact, index=index, flag=flag, place=place)
        pk.parallel_for(m, gather_int, out=shop, x=state.shop, index=index)
        pk.parallel_for(m, gather_int, out=quantity, x=state.quantity, index=index)
        pk.parallel_for(m, gather, out=price, x=state.price, index=index)
        pk.parallel_for(m, gather, out=discount, x=state.discount, index=index)
        pk.parallel_for(m, net, price=price, discount=discount)
        pk.parallel_for(m, revenue, out=value, price=price, quantity=quantity)
        pk.parallel_for(m, to_cents, cents=cents, x=value)
        pk.parallel_for(m, count_by, count=count, key=shop)
        pk.parallel_for(m, sum_by, total=total, key=shop, x=cents)
        pk.parallel_for(SHOPS, mean_by, mean=mean, total=total, count=count)
        pk.parallel_for(m, deviation, out=z, x=value, mean=mean, key=shop)
        spread = sqrt(float(pk.parallel_reduce(m, moment_2, x=z)) / m)
        pk.parallel_for(m, scale, x=z, by=spread)
        pk.parallel_for(BINS, clear, x=counts)
        pk.parallel_for(m, bin_of, bin=bin, x=z, reach=REACH, bins=BINS)
        pk.parallel_for(m, count_by, count=counts, key=bin)
        low, high = quantiles(counts)
        pulled = pk.parallel_reduce(m, outside, x=z, low=low, high=high)
        pk.parallel_for(m, pull_in, x=z, low=low, high=high)
        m1 = float(pk.parallel_reduce(m, moment_1, x=z)) / m
        m2 = float(pk.parallel_reduce(m, moment_2, x=z)) / m
        m3 = float(pk.parallel_reduce(m, moment_3, x=z)) / m
        state.means.append(mean)
        state.counts.append(counts)
        state.rows.append([m, spread, low, high, int(pulled), m1, m2, m3])
        state.last = [z]


def outputs(state: State) -> dict:
    return {
        "means": np.array(state.means),
        "counts": np.array(state.counts, dtype=np.float64),
        "rows": np.array(state.rows, dtype=np.float64),
        "z": np.array(state.last[0]),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    out = outputs(state)
    for window in range(WINDOWS):
        pick = (fresh.day >= window * 25) & (fresh.day <= window * 25 + 39) & (fresh.quantity > 0)
        shop = fresh.shop[pick]
        value = fresh.price[pick] * (1.0 - fresh.discount[pick]) * fresh.quantity[pick]
        cents = np.bincount(shop, np.floor(100.0 * value + 0.5), SHOPS)
        mean = 0.01 * cents / np.maximum(np.bincount(shop, minlength=SHOPS), 1)
        z = value - mean[shop]
        spread = sqrt(np.mean(z * z))
        z /= spread
        bin = np.clip(((z + REACH) / (2.0 * REACH) * BINS).astype(int), 0, BINS - 1)
        counts = np.bincount(bin, minlength=BINS)
        low, high = quantiles(counts)
        pulled = np.sum((z < low) | (z > high))
        z = np.clip(z, low, high)
        row = [z.size, spread, low, high, pulled, z.mean(), np.mean(z**2), np.mean(z**3)]
        np.testing.assert_allclose(out["means"][window], mean, rtol=1e-12)
        np.testing.assert_array_equal(out["counts"][window], counts)
        np.testing.assert_allclose(out["rows"][window], row, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(out["z"], z, rtol=1e-10, atol=1e-12)


if __name__ == "__main__":
    main(globals())
