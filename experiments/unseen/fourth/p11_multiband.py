"""A multi-band compressor: octaves split off by a half-band filter, levelled, and put together."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk

from common import main, rnd

SIZES = {"small": 2048, "default": 2 << 20, "large": 3 << 20}
OCTAVES = 4


@pk.workunit
def lowpass(i, low, x, n):
    a = x[max(i - 3, 0)] + x[min(i + 3, n - 1)]
    b = x[max(i - 1, 0)] + x[min(i + 1, n - 1)]
    low[i] = 0.5 * x[i] + 0.28125 * b - 0.03125 * a


@pk.workunit
def difference(i, band, x, low):
    band[i] = x[i] - low[i]


@pk.workunit
def rectify(i, r, band):
    r[i] = abs(band[i])


@pk.workunit
def smooth(i, e, r, n):
    total = 0.0
    for k in range(-4, 5):
        total += r[min(max(i + k, 0), n - 1)]
    e[i] = total / 9.0


@pk.workunit
def power(i, acc, band):
    acc += band[i] * band[i]


@pk.workunit
def gain(i, g, e, power, count):
    """Above the band's level, the square root of the excess."""
    level = pk.sqrt(power / count)
    g[i] = 1.0
    if e[i] > level:
        g[i] = pk.sqrt(level / e[i])


@pk.workunit
def apply(i, band, g):
    band[i] *= g[i]


@pk.workunit
def decimate(i, out, low):
    out[i] = low[2 * i]


@pk.workunit
def expand(i, out, coarse, n):
    """Linear interpolation to twice the rate."""
    k = i // 2
    if i % 2 == 0:
        out[i] = coarse[k]
    else:
        out[i] = 0.5 * (coarse[k] + coarse[min(k + 1, n - 1)])


@pk.workunit
def add(i, out, band):
    out[i] += band[i]


@pk.workunit
def normalise(i, out, power, count):
    out[i] = out[i] / pk.sqrt(power / count)


@dataclass
class State:
    n: int
    x: pk.View
    out: pk.View
    levels: list


def signal(n):
    t = np.arange(n)
    return (
        rnd(n, 100)
        - 0.5
        + 0.5 * ((t // 64) % 3 - 1.0)
        + 0.8 * ((t % 4096) < 300) * (rnd(n, 101) - 0.5)
    )


def setup(n):
    x = pk.View([n], pk.double)
    x.data[:] = signal(n)
    return State(n, x, pk.View([n], pk.double), [])


def run(s):
    x, n, bands, powers = s.x, s.n, [], []
    for _ in range(OCTAVES):
        low, band, r, e, g = (pk.View([n], pk.double) for _ in range(5))
        pk.parallel_for(n, lowpass, low=low, x=x, n=n)
        pk.parallel_for(n, difference, band=band, x=x, low=low)
        pk.parallel_for(n, rectify, r=r, band=band)
        pk.parallel_for(n, smooth, e=e, r=r, n=n)
        p = pk.parallel_reduce(n, power, band=band)
        pk.parallel_for(n, gain, g=g, e=e, power=p, count=float(n))
        pk.parallel_for(n, apply, band=band, g=g)
        x = pk.View([n // 2], pk.double)
        pk.parallel_for(n // 2, decimate, out=x, low=low)
        bands.append(band)
        powers.append(p)
        n //= 2
    for k in reversed(range(OCTAVES)):
        out = s.out if k == 0 else pk.View([2 * n], pk.double)
        pk.parallel_for(2 * n, expand, out=out, coarse=x, n=n)
        pk.parallel_for(2 * n, add, out=out, band=bands[k])
        x, n = out, 2 * n
    p = pk.parallel_reduce(n, power, band=s.out)
    pk.parallel_for(n, normalise, out=s.out, power=p, count=float(n))
    s.levels = [float(v) for v in [*powers, p]]


def outputs(s):
    return {"out": np.array(s.out.data), "levels": np.array(s.levels)}


def check(s, size, runs):
    np.testing.assert_allclose(np.mean(s.out.data**2), 1.0, rtol=1e-9)


if __name__ == "__main__":
    main(globals())
