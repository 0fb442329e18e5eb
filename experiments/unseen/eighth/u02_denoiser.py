"""Train a 1-D convolutional denoiser by hand: conv(5) -> leaky ReLU -> conv(5), three channels.

Forward, squared error, backward, gradient clipping by the global norm and momentum; float32.
A step makes 19 maps and 31 reductions.
"""

from dataclasses import dataclass
import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 4_000, "default": 300_000, "large": 4_000_000}
CHANNELS, TAPS, STEPS, RATE, MOMENTUM, CLIP, SLOPE = 3, 5, 2, 0.05, 0.9, 1.0, 0.125


@pk.workunit
def convolve(
    i: int, z: pk.View1D[pk.float], x: pk.View1D[pk.float], w: pk.View2D[pk.float], c: int
):
    total: pk.float = w[c][0] * x[i - 2]
    for k in range(1, 5):
        total += w[c][k] * x[i + k - 2]
    z[i] = total


@pk.workunit
def leaky(i: int, a: pk.View1D[pk.float], z: pk.View1D[pk.float], slope: pk.float):
    a[i] = z[i] if z[i] > 0.0 else slope * z[i]


@pk.workunit
def gather_channel(
    i: int, y: pk.View1D[pk.float], a: pk.View1D[pk.float], w: pk.View2D[pk.float], c: int
):
    """Add one channel's part of the prediction."""
    total: pk.float = w[c][0] * a[i - 2]
    for k in range(1, 5):
        total += w[c][k] * a[i + k - 2]
    y[i] += total


@pk.workunit
def residual(i: int, e: pk.View1D[pk.float], y: pk.View1D[pk.float], clean: pk.View1D[pk.float]):
    e[i] = y[i] - clean[i]


@pk.workunit
def square(i: int, acc: pk.Acc[pk.double], e: pk.View1D[pk.float]):
    acc += e[i] * e[i]


@pk.workunit
def correlate(
    i: int, acc: pk.Acc[pk.double], e: pk.View1D[pk.float], a: pk.View1D[pk.float], k: int
):
    acc += e[i] * a[i + k - 2]


@pk.workunit
def pull_back(
    i: int, d: pk.View1D[pk.float], e: pk.View1D[pk.float], w: pk.View2D[pk.float], c: int
):
    total: pk.float = w[c][0] * e[i + 2]
    for k in range(1, 5):
        total += w[c][k] * e[i - k + 2]
    d[i] = total


@pk.workunit
def leaky_back(i: int, d: pk.View1D[pk.float], z: pk.View1D[pk.float], slope: pk.float):
    if z[i] <= 0.0:
        d[i] *= slope


@pk.workunit
def learn(
    c: int,
    k: int,
    w: pk.View2D[pk.float],
    m: pk.View2D[pk.float],
    g: pk.View2D[pk.double],
    rate: float,
    momentum: float,
):
    m[c][k] = momentum * m[c][k] + g[c][k]
    w[c][k] -= rate * m[c][k]


@dataclass
class State:
    size: int
    noisy: pk.View
    clean: pk.View
    w1: pk.View
    w2: pk.View
    m1: pk.View
    m2: pk.View
    loss: float = 0.0
    norm: float = 0.0


def data(n):
    rng = np.random.default_rng(2)
    clean = np.sin(np.arange(n) * 0.05) + 0.5 * np.sign(np.sin(np.arange(n) * 0.011))
    noisy = clean + 0.3 * rng.standard_normal(n)
    w = rng.normal(0, 0.3, (2, CHANNELS, TAPS))
    return noisy.astype(np.float32), clean.astype(np.float32), w.astype(np.float32)


def setup(n):
    noisy, clean, w = data(n)
    views = [pk.View([n], pk.float) for _ in range(2)] + [
        pk.View([CHANNELS, TAPS], pk.float) for _ in range(4)
    ]
    for v, a in zip(views, (noisy, clean, w[0], w[1], 0 * w[0], 0 * w[1])):
        v.data[:] = a
    return State(n, *views)


def step(s):
    n = s.size
    hidden, output = pk.RangePolicy(2, n - 2), pk.RangePolicy(4, n - 4)
    z, a, d = ([pk.View([n], pk.float) for _ in range(CHANNELS)] for _ in range(3))
    y, e = pk.View([n], pk.float), pk.View([n], pk.float)
    for c in range(CHANNELS):
        pk.parallel_for(hidden, convolve, z=z[c], x=s.noisy, w=s.w1, c=c)
        pk.parallel_for(hidden, leaky, a=a[c], z=z[c], slope=SLOPE)
        pk.parallel_for(output, gather_channel, y=y, a=a[c], w=s.w2, c=c)
    pk.parallel_for(output, residual, e=e, y=y, clean=s.clean)
    loss = pk.parallel_reduce(output, square, e=e)
    grad2 = [
        [pk.parallel_reduce(output, correlate, e=e, a=a[c], k=k) for k in range(TAPS)]
        for c in range(CHANNELS)
    ]
    for c in range(CHANNELS):
        pk.parallel_for(hidden, pull_back, d=d[c], e=e, w=s.w2, c=c)
        pk.parallel_for(hidden, leaky_back, d=d[c], z=z[c], slope=SLOPE)
    grad1 = [
        [pk.parallel_reduce(hidden, correlate, e=d[c], a=s.noisy, k=k) for k in range(TAPS)]
        for c in range(CHANNELS)
    ]
    g1, g2 = pk.View([CHANNELS, TAPS], pk.double), pk.View([CHANNELS, TAPS], pk.double)
    for g, parts in ((g1, grad1), (g2, grad2)):
        for c in range(CHANNELS):
            for k in range(TAPS):
                g[c, k] = float(parts[c][k]) / n
    s.norm = float(np.sqrt(np.sum(g1.data**2) + np.sum(g2.data**2)))
    rate = RATE * min(1.0, CLIP / s.norm)
    box = pk.MDRangePolicy([0, 0], [CHANNELS, TAPS])
    pk.parallel_for(box, learn, w=s.w1, m=s.m1, g=g1, rate=rate, momentum=MOMENTUM)
    pk.parallel_for(box, learn, w=s.w2, m=s.m2, g=g2, rate=rate, momentum=MOMENTUM)
    s.loss = float(loss) / n


def run(s):
    for _ in range(STEPS):
        step(s)


def outputs(s):
    return {"w1": np.array(s.w1.data), "w2": np.array(s.w2.data), "loss": s.loss, "norm": s.norm}


def check(s):
    n = s.size
    x, clean, (w1, w2) = data(n)
    x, clean, w1, w2 = (a.astype(float) for a in (x, clean, w1, w2))
    m1, m2 = 0 * w1, 0 * w2
    for _ in range(STEPS):
        z = np.zeros((CHANNELS, n))
        y = np.zeros(n)
        e = np.zeros(n)
        for c in range(CHANNELS):
            z[c, 2:-2] = np.correlate(x, w1[c], "valid")
        a = np.where(z > 0, z, SLOPE * z)
        y[4:-4] = sum(np.correlate(a[c], w2[c], "valid") for c in range(CHANNELS))[2:-2]
        e[4:-4] = (y - clean)[4:-4]
        g2 = (
            np.array(
                [
                    [np.sum(e[4:-4] * a[c][4 + k - 2 : n - 4 + k - 2]) for k in range(TAPS)]
                    for c in range(CHANNELS)
                ]
            )
            / n
        )
        d = np.zeros_like(z)
        for c in range(CHANNELS):
            d[c, 2:-2] = np.convolve(e, w2[c], "valid")
        d *= np.where(z > 0, 1, SLOPE)
        g1 = (
            np.array(
                [
                    [np.sum(d[c, 2:-2] * x[2 + k - 2 : n - 2 + k - 2]) for k in range(TAPS)]
                    for c in range(CHANNELS)
                ]
            )
            / n
        )
        norm = np.sqrt(np.sum(g1**2) + np.sum(g2**2))
        rate = RATE * min(1.0, CLIP / norm)
        m1, m2 = MOMENTUM * m1 + g1, MOMENTUM * m2 + g2
        w1, w2 = w1 - rate * m1, w2 - rate * m2
    for got, want in ((s.w1.data, w1), (s.w2.data, w2)):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(s.loss, np.sum(e**2) / n, rtol=1e-4)
    np.testing.assert_allclose(s.norm, norm, rtol=1e-4)


if __name__ == "__main__":
    main(globals())
