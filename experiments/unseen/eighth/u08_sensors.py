"""Robust scaling of sensor readings: calibration, quartiles and MAD by bisection, winsorised scores,
histogram, ranks from its prefix sums, and the outliers' indices packed."""

from dataclasses import dataclass
import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 5_000, "default": 400_000, "large": 10_000_000}
SENSORS, BISECTIONS, BINS = 64, 14, 256


@pk.workunit
def calibrate(
    i: int,
    x: pk.View1D[pk.float],
    raw: pk.View1D[pk.int32],
    sensor: pk.View1D[pk.uint8],
    gain: pk.View1D[pk.float],
    offset: pk.View1D[pk.float],
):
    k: int = sensor[i]
    x[i] = raw[i] * gain[k] + offset[k]


@pk.workunit
def below(i: int, acc: pk.Acc[pk.int64], x: pk.View1D[pk.float], level: float):
    if x[i] < level:
        acc += 1


@pk.workunit
def deviation(i: int, d: pk.View1D[pk.float], x: pk.View1D[pk.float], middle: float):
    d[i] = abs(x[i] - middle)


@pk.workunit
def score(i: int, z: pk.View1D[pk.float], x: pk.View1D[pk.float], middle: float, scale: float):
    z[i] = (x[i] - middle) / scale


@pk.workunit
def winsorise(i: int, w: pk.View1D[pk.float], z: pk.View1D[pk.float], limit: float):
    w[i] = min(limit, max(-limit, z[i]))


@pk.workunit
def bin_of(i: int, b: pk.View1D[pk.uint8], w: pk.View1D[pk.float], limit: float, scale: float):
    k: int = (w[i] + limit) * scale
    b[i] = k if k < 255 else 255


@pk.workunit
def clear(k: int, h: pk.View1D[pk.int32]):
    h[k] = 0


@pk.workunit
def histogram(i: int, h: pk.View1D[pk.int32], b: pk.View1D[pk.uint8]):
    pk.atomic_increment(h, [b[i]])


@pk.workunit
def cumulate(
    k: int, acc: pk.Acc[pk.int64], last: bool, c: pk.View1D[pk.int32], h: pk.View1D[pk.int32]
):
    acc += h[k]
    if last:
        c[k] = acc


@pk.workunit
def rank(i: int, r: pk.View1D[pk.float], b: pk.View1D[pk.uint8], c: pk.View1D[pk.int32], n: int):
    k: int = b[i]
    r[i] = c[k] / pk.double(n)


@pk.workunit
def power_sum(i: int, acc: pk.Acc[pk.double], w: pk.View1D[pk.float], power: int):
    term: float = w[i]
    for k in range(1, power):
        term *= w[i]
    acc += term


@pk.workunit
def mark(i: int, m: pk.View1D[pk.uint8], z: pk.View1D[pk.float], limit: float):
    m[i] = 1 if abs(z[i]) > limit else 0


@pk.workunit
def position(
    i: int, acc: pk.Acc[pk.int64], last: bool, place: pk.View1D[pk.int32], m: pk.View1D[pk.uint8]
):
    if last:
        place[i] = acc
    acc += m[i]


@pk.workunit
def pack(i: int, index: pk.View1D[pk.int32], place: pk.View1D[pk.int32], m: pk.View1D[pk.uint8]):
    if m[i] == 1:
        index[place[i]] = i


@dataclass
class State:
    size: int
    raw: pk.View
    sensor: pk.View
    gain: pk.View
    offset: pk.View
    ranks: pk.View
    hist: pk.View
    index: pk.View
    quartiles: list
    mad: float = 0.0
    moments: list = None
    outliers: int = 0


def readings(n):
    rng = np.random.default_rng(8)
    raw = (1000 * rng.standard_t(4, n)).astype(np.int32)
    sensor = rng.integers(0, SENSORS, n).astype(np.uint8)
    gain = rng.uniform(0.008, 0.012, SENSORS).astype(np.float32)
    return raw, sensor, gain, rng.normal(0, 0.5, SENSORS).astype(np.float32)


def setup(n):
    raw, sensor, gain, offset = readings(n)
    types = pk.int32, pk.uint8, pk.float, pk.float
    views = [pk.View([len(a)], t) for a, t in zip((raw, sensor, gain, offset), types)]
    for v, a in zip(views, (raw, sensor, gain, offset)):
        v.data[:] = a
    return State(
        n,
        *views,
        pk.View([n], pk.float),
        pk.View([BINS], pk.int32),
        pk.View([n], pk.int32),
        [0.0] * 3,
        0.0,
        [0.0] * 3,
    )


def quantiles(n, x, shares, low, high):
    """Bisect several levels side by side; every turn reads their counts."""
    lows, highs = [low] * len(shares), [high] * len(shares)
    for _ in range(BISECTIONS):
        levels = [0.5 * (a + b) for a, b in zip(lows, highs)]
        counts = [pk.parallel_reduce(n, below, x=x, level=level) for level in levels]
        for k, c in enumerate(counts):
            if float(c) < shares[k] * n:
                lows[k] = levels[k]
            else:
                highs[k] = levels[k]
    return [0.5 * (a + b) for a, b in zip(lows, highs)]


def run(s):
    n = s.size
    x, d, z, w = (pk.View([n], pk.float) for _ in range(4))
    b, m = pk.View([n], pk.uint8), pk.View([n], pk.uint8)
    cdf, place = pk.View([BINS], pk.int32), pk.View([n], pk.int32)
    pk.parallel_for(n, calibrate, x=x, raw=s.raw, sensor=s.sensor, gain=s.gain, offset=s.offset)
    s.quartiles = quantiles(n, x, [0.25, 0.5, 0.75], -50.0, 50.0)
    middle = s.quartiles[1]
    pk.parallel_for(n, deviation, d=d, x=x, middle=middle)
    s.mad = quantiles(n, d, [0.5], 0.0, 50.0)[0]
    pk.parallel_for(n, score, z=z, x=x, middle=middle, scale=1.4826 * s.mad)
    pk.parallel_for(n, winsorise, w=w, z=z, limit=4.0)
    pk.parallel_for(n, bin_of, b=b, w=w, limit=4.0, scale=BINS / 8.0)
    pk.parallel_for(BINS, clear, h=s.hist)
    pk.parallel_for(n, histogram, h=s.hist, b=b)
    pk.parallel_scan(BINS, cumulate, c=cdf, h=s.hist)
    pk.parallel_for(n, rank, r=s.ranks, b=b, c=cdf, n=n)
    moments = [pk.parallel_reduce(n, power_sum, w=w, power=k) for k in (1, 2, 3)]
    pk.parallel_for(n, mark, m=m, z=z, limit=3.5)
    outliers = pk.parallel_scan(n, position, place=place, m=m)
    pk.parallel_for(n, pack, index=s.index, place=place, m=m)
    s.moments = [float(t) / n for t in moments]
    s.outliers = int(outliers)


def outputs(s):
    return {
        "ranks": np.array(s.ranks.data),
        "hist": np.array(s.hist.data),
        "index": np.array(s.index.data)[: s.outliers],
        "q": np.array(s.quartiles),
        "mad": s.mad,
        "moments": np.array(s.moments),
        "outliers": s.outliers,
    }


def check(s):
    n = s.size
    raw, sensor, gain, offset = readings(n)
    x = raw.astype(np.float32) * gain[sensor] + offset[sensor]
    np.testing.assert_allclose(s.quartiles, np.quantile(x, [0.25, 0.5, 0.75]), atol=0.05)
    d = np.abs(x - s.quartiles[1])
    np.testing.assert_allclose(s.mad, np.median(d), atol=0.05)
    z = ((x.astype(float) - s.quartiles[1]) / (1.4826 * s.mad)).astype(np.float32)
    w = np.clip(z, -4, 4).astype(float)
    b = np.minimum(255, ((w + 4) * 32).astype(int))
    hist = np.bincount(b, minlength=BINS)
    assert np.abs(np.array(s.hist.data) - hist).sum() <= 4
    np.testing.assert_allclose(s.ranks.data, np.cumsum(hist)[b] / n, atol=1e-3)
    np.testing.assert_allclose(s.moments, [np.mean(w**k) for k in (1, 2, 3)], rtol=1e-4, atol=1e-6)
    where = np.flatnonzero(np.abs(z) > 3.5)
    assert len(where) == s.outliers and np.array_equal(np.array(s.index.data)[: s.outliers], where)


if __name__ == "__main__":
    main(globals())
