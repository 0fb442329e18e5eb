"""Compaction: events of a detector above a threshold, with their times and calibrated energies.

Source: G. Blelloch, "Prefix Sums and Their Applications" (1990). One run makes 2 maps (calibrate,
flag), a scan, 3 maps that scatter, and 2 sums.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 2_000, "default": 6_000_000, "large": 24_000_000}


@pk.workunit
def calibrate(i, energy, raw, gain, channel):
    energy[i] = gain[channel[i]] * raw[i]


@pk.workunit
def flag(i, keep, energy, threshold):
    keep[i] = 0
    if energy[i] > threshold:
        keep[i] = 1


@pk.workunit
def number(i, acc, last_pass, place, keep):
    acc += keep[i]
    if last_pass:
        place[i] = acc


@pk.workunit
def pack(i, target, source, place, keep):
    if keep[i] == 1:
        target[place[i] - 1] = source[i]


@pk.workunit
def total(i, acc, energy, keep):
    acc += keep[i] * energy[i]


def setup(size):
    rng = np.random.default_rng(21)
    raw, time, energy, when = (pk.View([size], pk.double) for _ in range(4))
    channel, where = (pk.View([size], pk.int32) for _ in range(2))
    gain = pk.View([64], pk.double)
    raw.data[:] = rng.exponential(1.0, size)
    time.data[:] = np.arange(size)
    channel.data[:] = rng.integers(0, 64, size)
    gain.data[:] = rng.uniform(0.9, 1.1, 64)
    given = {"raw": raw, "time": time, "channel": channel, "gain": gain}
    return {"n": size, **given, "kept": (energy, when, where), "found": (0, 0.0)}


def run(state):
    n, channel = state["n"], state["channel"]
    energy = pk.View([n], pk.double)
    keep, place = (pk.View([n], pk.int32) for _ in range(2))
    pk.parallel_for(
        n, calibrate, energy=energy, raw=state["raw"], gain=state["gain"], channel=channel
    )
    pk.parallel_for(n, flag, keep=keep, energy=energy, threshold=1.5)
    count = pk.parallel_scan(n, number, place=place, keep=keep)
    for source, target in zip((energy, state["time"], channel), state["kept"], strict=True):
        pk.parallel_for(n, pack, target=target, source=source, place=place, keep=keep)
    sum_of_all = pk.parallel_reduce(n, total, energy=energy, keep=keep)
    state["found"] = (int(count), float(sum_of_all))


def outputs(state):
    count, everything = state["found"]
    names = ("energy", "when", "where")
    kept = {n: np.array(v.data)[:count] for n, v in zip(names, state["kept"], strict=True)}
    return {**kept, "sum": everything}


def check(state, size, runs):
    count, everything = state["found"]
    energy = np.array(state["kept"][0].data)[:count]
    np.testing.assert_allclose(energy.sum(), everything, rtol=1e-9)
