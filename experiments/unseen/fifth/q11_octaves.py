"""Multiband compressor: an octave filter bank by decimation, an envelope and gain a band, synthesis."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main, rnd

SIZES = {"small": 4096, "default": 1_500_000, "large": 8_000_000}
LEVELS, TAPS = 5, 12


@pk.workunit
def decimate(i, low, x, taps, count, n):
    """Low-pass filter at every second sample."""
    v = 0.0
    for k in range(count):
        v += taps[k] * x[max(0, min(n - 1, 2 * i + k - count // 2 + 1))]
    low[i] = v


@pk.workunit
def interpolate(i, out, low, n):
    """Twice as many samples: half-way ones by the four-point cubic."""
    j = i // 2
    if i % 2 == 0:
        out[i] = 0.0625 * (
            9.0 * (low[max(j - 1, 0)] + low[j]) - low[max(j - 2, 0)] - low[min(j + 1, n - 1)]
        )
    else:
        out[i] = 0.0625 * (
            9.0 * (low[j] + low[min(j + 1, n - 1)]) - low[max(j - 1, 0)] - low[min(j + 2, n - 1)]
        )


@pk.workunit
def detail(i, band, x, coarse):
    band[i] = x[i] - coarse[i]


@pk.workunit
def power(i, acc, band):
    acc += band[i] * band[i]


@pk.workunit
def rectify(i, out, band):
    out[i] = abs(band[i])


@pk.workunit
def smooth(i, out, a, n, reach):
    v = 0.0
    for k in range(-reach, reach + 1):
        v += a[max(0, min(n - 1, i + k))]
    out[i] = v / (2 * reach + 1)


@pk.workunit
def gain(i, out, envelope, energy, n, strength):
    """Less where the envelope is above the band's level."""
    level = sqrt(energy / n) + 0.000001
    ratio = envelope[i] / level
    out[i] = 1.0 / sqrt(1.0 + strength * ratio * ratio)


@pk.workunit
def apply_gain(i, band, g):
    band[i] *= g[i]


@pk.workunit
def synthesise(i, out, coarse, band):
    out[i] = coarse[i] + band[i]


@pk.workunit
def to_int(i, out, x, scale):
    v = x[i] * scale
    out[i] = int(max(-32767.0, min(32767.0, v)))


@pk.workunit
def clipped(i, acc: pk.Acc[pk.int64], y):
    if y[i] == 32767 or y[i] == -32767:
        acc += 1


@dataclass
class State:
    n: int
    x: pk.View
    taps: pk.View
    y: pk.View
    scale: float = 30000.0
    clip: float = 0.0


def filter_taps():
    t = np.sinc((np.arange(TAPS) - 5.5) / 2) * np.hanning(TAPS + 2)[1:-1]
    return t / t.sum()


def sound(n):
    t = np.arange(n)
    return (
        0.4 * np.sin(t * 0.013) * (1 + np.sin(t * 0.0007))
        + 0.2 * np.sin(t * 0.31)
        + 0.3 * (rnd(n, 21) - 0.5)
    )


def setup(n):
    x, taps, y = pk.View([n], pk.double), pk.View([TAPS], pk.double), pk.View([n], pk.int16)
    x.data[:] = sound(n)
    taps.data[:] = filter_taps()
    return State(n, x, taps, y)


def run(s):
    lows, bands, energies = [s.x], [], []
    for level in range(LEVELS):
        x = lows[-1]
        n = s.n >> level
        low, coarse, band = (
            pk.View([n // 2], pk.double),
            pk.View([n], pk.double),
            pk.View([n], pk.double),
        )
        pk.parallel_for(n // 2, decimate, low=low, x=x, taps=s.taps, count=TAPS, n=n)
        pk.parallel_for(n, interpolate, out=coarse, low=low, n=n // 2)
        pk.parallel_for(n, detail, band=band, x=x, coarse=coarse)
        energies.append(pk.parallel_reduce(n, power, band=band))
        lows.append(low)
        bands.append(band)
    for level in range(LEVELS):
        n = s.n >> level
        a, envelope, g = (pk.View([n], pk.double) for _ in range(3))
        pk.parallel_for(n, rectify, out=a, band=bands[level])
        pk.parallel_for(n, smooth, out=envelope, a=a, n=n, reach=4)
        pk.parallel_for(
            n, gain, out=g, envelope=envelope, energy=energies[level], n=n, strength=0.5
        )
        pk.parallel_for(n, apply_gain, band=bands[level], g=g)
    whole = lows[-1]
    for level in reversed(range(LEVELS)):
        n = s.n >> level
        coarse, out = pk.View([n], pk.double), pk.View([n], pk.double)
        pk.parallel_for(n, interpolate, out=coarse, low=whole, n=n // 2)
        pk.parallel_for(n, synthesise, out=out, coarse=coarse, band=bands[level])
        whole = out
    pk.parallel_for(s.n, to_int, out=s.y, x=whole, scale=s.scale)
    s.clip = float(pk.parallel_reduce(s.n, clipped, y=s.y))
    s.scale *= 0.98 if s.clip > 0.001 * s.n else 1.01
    s.energies = [float(e) for e in energies]


def outputs(s):
    return {
        "y": np.array(s.y.data),
        "scale": s.scale,
        "clip": s.clip,
        "energies": np.array(s.energies),
    }


def check(s, size, runs):
    assert np.abs(np.asarray(s.y.data).astype(int)).max() > 1000


if __name__ == "__main__":
    main(globals())
