"""A detector's events: decode words, calibrate, veto pile-up, tally spectra, smooth and accumulate them."""

from dataclasses import dataclass
from math import sin
import numpy as np
from common import main, rnd, view
import pyfuser
import pykokkos as pk

SIZES = {"small": 4000, "default": 500_000, "large": 5_000_000}
DETECTORS, BINS, WINDOW = 32, 512, 12


@pk.workunit
def decode(i, det, adc, flag, word):
    """Five bits of the detector, two of flags, twelve of the pulse's height."""
    det[i] = (word[i] >> 14) & 31
    flag[i] = (word[i] >> 12) & 3
    adc[i] = word[i] & 4095


@pk.workunit
def calibrate(i, energy, adc, det, offset, gain):
    energy[i] = offset[det[i]] + gain[det[i]] * adc[i]


@pk.workunit
def undrift(i, energy, time, rate):
    energy[i] *= 1.0 + 0.01 * sin(rate * time[i])


@pk.workunit
def nonlinear(i, energy, det, quad):
    energy[i] += quad[det[i]] * energy[i] * energy[i]


@pk.workunit
def accept(i, good, flag, energy, low, high):
    good[i] = 0
    if flag[i] != 3 and energy[i] >= low and energy[i] < high:
        good[i] = 1


@pk.workunit
def veto(i, good, time, n, window):
    """Drop both of two pulses that overlap."""
    if i > 0:
        if time[i] - time[i - 1] < window:
            good[i] = 0
    if i < n - 1:
        if time[i + 1] - time[i] < window:
            good[i] = 0


@pk.workunit
def bin_of(i, bin_, energy, width):
    bin_[i] = int(energy[i] / width)


@pk.workunit
def clear(d, b, hist):
    hist[d][b] = 0


@pk.workunit
def tally(i, hist, det, bin_, good):
    if good[i] == 1:
        pk.atomic_increment(hist, [det[i], bin_[i]])


@pk.workunit
def count(i, acc: pk.Acc[pk.int64], good):
    acc += good[i]


@pk.workunit
def deposit(i, acc, energy, good):
    acc += energy[i] * good[i]


@pk.workunit
def smooth(d, b, out, hist, bins):
    lo = max(b - 1, 0)
    hi = min(b + 1, bins - 1)
    out[d][b] = 0.25 * hist[d][lo] + 0.5 * hist[d][b] + 0.25 * hist[d][hi]


@pk.workunit
def accumulate(d, cdf, spectrum, bins):
    v: float = 0.0
    for b in range(bins):
        v += spectrum[d][b]
        cdf[d][b] = v


@pk.workunit
def median(d, half, cdf, bins):
    b: int = 0
    while b < bins - 1 and cdf[d][b] < 0.5 * cdf[d][bins - 1]:
        b += 1
    half[d] = b


@dataclass
class State:
    n: int
    word: pk.View
    time: pk.View
    offset: pk.View
    gain: pk.View
    quad: pk.View
    hist: pk.View
    spectrum: pk.View
    cdf: pk.View
    half: pk.View
    energy: pk.View
    kept: int = 0
    dose: float = 0.0


def setup(n):
    r = rnd(n, 21)
    adc = (r * r * 4095).astype(np.uint32)
    word = (
        ((rnd(n, 22) * 32).astype(np.uint32) << 14)
        | ((rnd(n, 23) * 4).astype(np.uint32) << 12)
        | adc
    )
    time = np.cumsum(2 + (rnd(n, 24) * 100).astype(np.int64))
    return State(
        n,
        view(word, pk.uint32),
        view(time, pk.int64),
        view(rnd(32, 25)),
        view(0.9 + 0.2 * rnd(32, 26)),
        view(1e-6 * rnd(32, 27)),
        pk.View([DETECTORS, BINS], pk.int32),
        pk.View([DETECTORS, BINS], pk.double),
        pk.View([DETECTORS, BINS], pk.double),
        pk.View([DETECTORS], pk.int32),
        pk.View([n], pk.double),
    )


def run(s):
    n, energy, time = s.n, s.energy, s.time
    det, adc, flag, good, bin_ = (pk.View([n], pk.int32) for _ in range(5))
    table = pk.MDRangePolicy([0, 0], [DETECTORS, BINS])
    pk.parallel_for(n, decode, det=det, adc=adc, flag=flag, word=s.word)
    pk.parallel_for(n, calibrate, energy=energy, adc=adc, det=det, offset=s.offset, gain=s.gain)
    pk.parallel_for(n, undrift, energy=energy, time=time, rate=1e-6)
    pk.parallel_for(n, nonlinear, energy=energy, det=det, quad=s.quad)
    pk.parallel_for(n, accept, good=good, flag=flag, energy=energy, low=20.0, high=4096.0)
    pk.parallel_for(n, veto, good=good, time=time, n=n, window=WINDOW)
    pk.parallel_for(n, bin_of, bin_=bin_, energy=energy, width=8.0)
    pk.parallel_for(table, clear, hist=s.hist)
    pk.parallel_for(n, tally, hist=s.hist, det=det, bin_=bin_, good=good)
    s.kept = pk.parallel_reduce(n, count, good=good)
    s.dose = pk.parallel_reduce(n, deposit, energy=energy, good=good)
    pk.parallel_for(table, smooth, out=s.spectrum, hist=s.hist, bins=BINS)
    pk.parallel_for(DETECTORS, accumulate, cdf=s.cdf, spectrum=s.spectrum, bins=BINS)
    pk.parallel_for(DETECTORS, median, half=s.half, cdf=s.cdf, bins=BINS)


def outputs(s):
    return {
        "hist": np.array(s.hist.data),
        "spectrum": np.array(s.spectrum.data),
        "cdf": np.array(s.cdf.data),
        "half": np.array(s.half.data),
        "energy": np.array(s.energy.data),
        "kept": int(s.kept),
        "dose": float(s.dose),
    }


if __name__ == "__main__":
    main(globals())
