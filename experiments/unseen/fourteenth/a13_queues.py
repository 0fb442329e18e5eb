"""Many counters of a bank at once, by Lindley's recursion; a manager hires by how long people wait.

Random numbers are hashes of counter and customer. Each round another customer comes to every counter;
three sums are read, and the speed of service changes. At the end a histogram of the longest waits.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 600, "default": 20_000, "large": 2_400_000}
BINS = 32


@pk.function
def mix(x: pk.uint32) -> pk.uint32:
    x ^= x >> 16
    x *= 2146121005
    x ^= x >> 15
    x *= 2221713035
    x ^= x >> 16
    return x


@pk.workunit
def nobody(i: int, wait: pk.View1D[pk.double], longest: pk.View1D[pk.double]):
    wait[i] = 0.0
    longest[i] = 0.0


@pk.workunit
def hash_bits(i: int, h: pk.View1D[pk.uint32], key: pk.uint32):
    x: pk.uint32 = i
    h[i] = mix(mix(x * 3 + key) + key)


@pk.workunit
def uniform(i: int, u: pk.View1D[pk.double], h: pk.View1D[pk.uint32]):
    u[i] = (h[i] + 0.5) * 2.3283064365386963e-10


@pk.workunit
def arrival(i: int, gap: pk.View1D[pk.double], u: pk.View1D[pk.double], rate: float):
    gap[i] = -pk.log(u[i]) / rate


@pk.workunit
def service(
    i: int,
    time: pk.View1D[pk.double],
    h: pk.View1D[pk.uint32],
    u: pk.View1D[pk.double],
    speed: float,
):
    """One in eight has a long business."""
    if (h[i] >> 3) % 8 == 0:
        time[i] = -3.0 * pk.log(1.0 - u[i]) / speed
    else:
        time[i] = (0.3 + 0.6 * u[i]) / speed


@pk.workunit
def lindley(
    i: int, wait: pk.View1D[pk.double], time: pk.View1D[pk.double], gap: pk.View1D[pk.double]
):
    wait[i] = max(0.0, wait[i] + time[i] - gap[i])


@pk.workunit
def record(i: int, longest: pk.View1D[pk.double], wait: pk.View1D[pk.double]):
    longest[i] = max(longest[i], wait[i])


@pk.workunit
def waits(i: int, acc: pk.Acc[pk.int64], wait: pk.View1D[pk.double]):
    if wait[i] > 0.0:
        acc += 1


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]):
    acc += x[i]


@pk.workunit
def squares(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]):
    acc += x[i] * x[i]


@pk.workunit
def clear(b: int, histogram: pk.View1D[pk.int64]):
    histogram[b] = 0


@pk.workunit
def tally(i: int, histogram: pk.View1D[pk.int64], longest: pk.View1D[pk.double], bins: int):
    pk.atomic_add(histogram, [min(int(longest[i] * 4.0), bins - 1)], 1)


@dataclass
class State:
    n: int
    customers: int
    wait: pk.View
    longest: pk.View
    histogram: pk.View
    days: list = field(default_factory=list)


def setup(n: int) -> State:
    wait, longest = pk.View([n], pk.double), pk.View([n], pk.double)
    return State(n, 24 if n < 1_000_000 else 10, wait, longest, pk.View([BINS], pk.int64))


def run(s: State) -> None:
    n, wait, longest = s.n, s.wait, s.longest
    g, h = pk.View([n], pk.uint32), pk.View([n], pk.uint32)
    u, v, gap, time = (pk.View([n], pk.double) for _ in range(4))
    pk.parallel_for(n, nobody, wait=wait, longest=longest)
    speed, s.days = 0.8, []
    for c in range(s.customers):
        pk.parallel_for(n, hash_bits, h=g, key=2 * c + 1)
        pk.parallel_for(n, hash_bits, h=h, key=2 * c + 2)
        pk.parallel_for(n, uniform, u=u, h=g)
        pk.parallel_for(n, uniform, u=v, h=h)
        pk.parallel_for(n, arrival, gap=gap, u=u, rate=1.0 + 0.02 * c)
        pk.parallel_for(n, service, time=time, h=g, u=v, speed=speed)
        pk.parallel_for(n, lindley, wait=wait, time=time, gap=gap)
        pk.parallel_for(n, record, longest=longest, wait=wait)
        busy = int(pk.parallel_reduce(n, waits, wait=wait)) / n
        mean = float(pk.parallel_reduce(n, total, x=wait)) / n
        second = float(pk.parallel_reduce(n, squares, x=wait)) / n
        s.days.append([busy, mean, second, speed])
        speed *= 1.05 if mean > 0.8 else 0.99
    pk.parallel_for(BINS, clear, histogram=s.histogram)
    pk.parallel_for(n, tally, histogram=s.histogram, longest=longest, bins=BINS)


def outputs(s: State) -> dict:
    return {
        "wait": np.array(s.wait.data),
        "longest": np.array(s.longest.data),
        "histogram": np.array(s.histogram.data),
        "days": np.array(s.days),
    }


def check(s: State, n: int) -> None:
    def mixed(x):
        for shift, factor in ((16, 2146121005), (15, 2221713035)):
            x = ((x ^ (x >> shift)) * factor) & 0xFFFFFFFF
        return x ^ (x >> 16)

    def bits(key):
        return mixed((mixed((np.arange(n) * 3 + key) & 0xFFFFFFFF) + key) & 0xFFFFFFFF)

    wait, longest, speed = np.zeros(n), np.zeros(n), 0.8
    for c in range(s.customers):
        g, h = bits(2 * c + 1), bits(2 * c + 2)
        u, v = (g + 0.5) / 2**32, (h + 0.5) / 2**32
        long = (g >> 3) % 8 == 0
        time = np.where(long, -3.0 * np.log(1.0 - v), 0.3 + 0.6 * v) / speed
        wait = np.maximum(0.0, wait + time + np.log(u) / (1.0 + 0.02 * c))
        longest = np.maximum(longest, wait)
        row = [(wait > 0).mean(), wait.mean(), (wait**2).mean(), speed]
        np.testing.assert_allclose(s.days[c], row, rtol=1e-9)
        speed *= 1.05 if wait.mean() > 0.8 else 0.99
    np.testing.assert_allclose(s.longest.data, longest, rtol=1e-9, atol=1e-12)
    assert np.array(s.histogram.data).sum() == n


if __name__ == "__main__":
    main(globals())
