"""An audio mixing desk: blocks through equalisers, compressors, a filter and a stereo mix."""

from dataclasses import dataclass, field
from math import fabs, sqrt, tanh

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 2_000, "default": 65_536, "large": 4_194_304}
BLOCKS, TAPS = 4, 9


@pk.workunit
def silence(c: int, k: int, memory: pk.View2D[pk.float]):
    memory[c][k] = 0.0


@pk.workunit
def gain(
    c: int, t: int, y: pk.View2D[pk.float], x: pk.View2D[pk.float], level: pk.View1D[pk.float]
):
    y[c][t] = level[c] * x[c][t]


@pk.workunit
def biquad(
    c: int,
    y: pk.View2D[pk.float],
    x: pk.View2D[pk.float],
    memory: pk.View2D[pk.float],
    q: pk.View2D[pk.float],
    band: int,
    length: int,
):
    """A second-order section in transposed form; its memory goes on in the next block."""
    s1: pk.float = memory[c][2 * band]
    s2: pk.float = memory[c][2 * band + 1]
    for t in range(length):
        v: pk.float = x[c][t]
        out: pk.float = q[band][0] * v + s1
        s1 = q[band][1] * v - q[band][3] * out + s2
        s2 = q[band][2] * v - q[band][4] * out
        y[c][t] = out
    memory[c][2 * band] = s1
    memory[c][2 * band + 1] = s2


@pk.workunit
def envelope(
    c: int, e: pk.View2D[pk.float], x: pk.View2D[pk.float], memory: pk.View2D[pk.float], length: int
):
    level: pk.float = memory[c][6]
    for t in range(length):
        size: pk.float = fabs(x[c][t])
        if size > level:
            level = level + 0.2 * (size - level)
        else:
            level = level + 0.01 * (size - level)
        e[c][t] = level
    memory[c][6] = level


@pk.workunit
def compress(c: int, t: int, y: pk.View2D[pk.float], e: pk.View2D[pk.float], threshold: float):
    if e[c][t] > threshold:
        y[c][t] *= sqrt(threshold / e[c][t])


@pk.workunit
def fir(c: int, t: int, y: pk.View2D[pk.float], x: pk.View2D[pk.float], taps: pk.View1D[pk.float]):
    total: pk.float = 0.0
    for k in range(TAPS):
        if t - k >= 0:
            total += taps[k] * x[c][t - k]
    y[c][t] = total


@pk.workunit
def saturate(c: int, t: int, y: pk.View2D[pk.float], drive: float):
    y[c][t] = tanh(drive * y[c][t]) / drive


@pk.workunit
def mix(
    t: int,
    out: pk.View1D[pk.float],
    x: pk.View2D[pk.float],
    pan: pk.View1D[pk.float],
    channels: int,
):
    total: pk.float = 0.0
    for c in range(channels):
        total += pan[c] * x[c][t]
    out[t] = total


@pk.workunit
def limit(t: int, x: pk.View1D[pk.float], ceiling: float):
    x[t] = min(max(x[t], -ceiling), ceiling)


@pk.workunit
def power(t: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.float]):
    acc += x[t] * x[t]


@pk.workunit
def clipped(t: int, acc: pk.Acc[pk.int64], x: pk.View1D[pk.float], ceiling: float):
    if fabs(x[t]) >= ceiling:
        acc += 1


@dataclass
class State:
    channels: int
    length: int
    x: pk.View
    level: pk.View
    sections: pk.View
    taps: pk.View
    pan: list
    out: list
    meters: list = field(default_factory=list)


def setup(n: int) -> State:
    block = 32 if n < 10_000 else 256
    channels = n // (BLOCKS * block)
    rng = np.random.default_rng(209)
    x, sections = pk.View([channels, BLOCKS * block], pk.float), pk.View([3, 5], pk.float)
    level, taps = pk.View([channels], pk.float), pk.View([TAPS], pk.float)
    t = np.arange(BLOCKS * block)
    pitch = rng.uniform(0.01, 0.4, (channels, 1))
    x.data[:] = np.sin(pitch * t) + 0.2 * rng.standard_normal((channels, len(t)))
    level.data[:] = rng.uniform(0.3, 1.2, channels)
    sections.data[:] = [
        [0.98, -1.96, 0.98, -1.95, 0.96],
        [1.02, -1.6, 0.7, -1.6, 0.72],
        [0.2, 0.4, 0.2, -0.5, 0.3],
    ]
    taps.data[:] = np.hanning(TAPS + 2)[1:-1] / np.hanning(TAPS + 2).sum()
    pan, out = ([pk.View([k], pk.float) for _ in range(2)] for k in (channels, BLOCKS * block))
    right = rng.uniform(0, 1, channels)
    pan[0].data[:], pan[1].data[:] = (
        np.sqrt(1 - right) / channels**0.5,
        np.sqrt(right) / channels**0.5,
    )
    return State(channels, block, x, level, sections, taps, pan, out)


def run(s: State) -> None:
    channels, length = s.channels, s.length
    block = pk.MDRangePolicy([0, 0], [channels, length])
    y, z, e = (pk.View([channels, length], pk.float) for _ in range(3))
    memory = pk.View([channels, 7], pk.float)
    pk.parallel_for(pk.MDRangePolicy([0, 0], [channels, 7]), silence, memory=memory)
    for k in range(BLOCKS):
        a, b = k * length, (k + 1) * length
        pk.parallel_for(block, gain, y=y, x=s.x[:, a:b], level=s.level)
        for band in range(3):
            more = {"memory": memory, "q": s.sections, "band": band, "length": length}
            pk.parallel_for(channels, biquad, y=y, x=y, **more)
        pk.parallel_for(channels, envelope, e=e, x=y, memory=memory, length=length)
        pk.parallel_for(block, compress, y=y, e=e, threshold=0.4)
        pk.parallel_for(block, fir, y=z, x=y, taps=s.taps)
        pk.parallel_for(block, saturate, y=z, drive=1.5)
        for out, pan in zip(s.out, s.pan):
            pk.parallel_for(length, mix, out=out[a:b], x=z, pan=pan, channels=channels)
            pk.parallel_for(length, limit, x=out[a:b], ceiling=0.8)
    pk.fence()
    s.meters = [pk.parallel_reduce(BLOCKS * length, power, x=o) / (BLOCKS * length) for o in s.out]
    s.meters += [pk.parallel_reduce(BLOCKS * length, clipped, x=o, ceiling=0.8) for o in s.out]


def outputs(s: State) -> dict:
    left, right = (np.array(o.data) for o in s.out)
    return {"left": left, "right": right, "meters": np.array([float(m) for m in s.meters])}


def check(s: State, n: int) -> None:
    x, q = np.array(s.level.data)[:, None] * np.array(s.x.data), np.array(s.sections.data)
    y = x.astype(float)
    for b0, b1, b2, a1, a2 in q:
        s1 = s2 = 0.0
        for t in range(y.shape[1]):
            v = y[:, t].copy()
            y[:, t] = b0 * v + s1
            s1, s2 = b1 * v - a1 * y[:, t] + s2, b2 * v - a2 * y[:, t]
    level, e = np.zeros(s.channels), np.zeros_like(y)
    for t in range(y.shape[1]):
        size = np.abs(y[:, t])
        level = level + np.where(size > level, 0.2, 0.01) * (size - level)
        e[:, t] = level
    y = y * np.where(e > 0.4, np.sqrt(0.4 / np.maximum(e, 1e-9)), 1)
    out = np.zeros_like(y)
    for a in range(0, y.shape[1], s.length):
        for t in range(s.length):
            for k in range(min(t + 1, TAPS)):
                out[:, a + t] += s.taps.data[k] * y[:, a + t - k]
    left = np.clip(np.array(s.pan[0].data) @ (np.tanh(1.5 * out) / 1.5), -0.8, 0.8)
    np.testing.assert_allclose(s.out[0].data, left, atol=2e-4)


if __name__ == "__main__":
    main(globals())
