"""Find a known pulse in noise: band-pass FIR filter, envelope, decimation, normalised correlation.

Source: matched filters as in S. Smith, "The Scientist and Engineer's Guide to DSP", ch. 7 and 14. Four
loops over windows of different lengths; strides of four where the signal is decimated.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 100_000, "large": 2_400_000}
TAPS, SMOOTH, PULSE, DECIMATE = 33, 12, 24, 4


@pk.workunit
def fir(i, out, x, taps, m):
    s: pk.float = 0.0
    for k in range(m):
        s += taps[k] * x[i + m - 1 - k]
    out[i] = s


@pk.workunit
def rectify(i, out, x):
    out[i] = x[i] if x[i] >= 0.0 else -x[i]


@pk.workunit
def smooth_decimate(i, out, x):
    s: pk.float = 0.0
    for k in range(SMOOTH):
        s += x[DECIMATE * i + k]
    out[i] = s / SMOOTH


@pk.workunit
def moments(i, mean, power, x):
    a: float = 0.0
    b: float = 0.0
    for k in range(PULSE):
        a += x[i + k]
        b += x[i + k] * x[i + k]
    mean[i] = a / PULSE
    power[i] = b - a * a / PULSE


@pk.workunit
def correlate(i, score, x, pulse, mean, power):
    s: float = 0.0
    for k in range(PULSE):
        s += pulse[k] * (x[i + k] - mean[i])
    score[i] = s / sqrt(power[i] + 1e-12)


@pk.workunit
def detections(i, acc, score, limit):
    if score[i] > limit and score[i] >= score[i - 1] and score[i] > score[i + 1]:
        acc += 1


@dataclass
class State:
    n: int
    x: pk.View
    taps: pk.View
    pulse: pk.View
    score: pk.View
    found: int = 0


def signal(n: int):
    rng = np.random.default_rng(55)
    t = np.arange(-(TAPS // 2), TAPS // 2 + 1)
    taps = np.cos(0.8 * t) * np.hanning(TAPS + 2)[1:-1] / 8.0
    shape = np.sin(np.pi * (np.arange(PULSE) + 0.5) / PULSE) ** 2
    x = rng.normal(0.0, 0.3, n)
    length = PULSE * DECIMATE
    for at in range(150, n - 150, 400):
        x[at : at + length] += np.repeat(shape, DECIMATE) * np.cos(0.8 * np.arange(length))
    pulse = shape - shape.mean()
    return x.astype(np.float32), taps.astype(np.float32), pulse / np.sqrt(pulse @ pulse)


def setup(size: int) -> State:
    values = signal(size)
    views = [pk.View([len(v)], pk.double if v is values[2] else pk.float) for v in values]
    for view, row in zip(views, values, strict=True):
        view.data[:] = row
    short = (size - TAPS - SMOOTH) // DECIMATE
    return State(size, *views, pk.View([short - PULSE], pk.double))


def run(state: State) -> None:
    n = state.n - TAPS + 1
    short = (state.n - TAPS - SMOOTH) // DECIMATE
    band, size = pk.View([n], pk.float), pk.View([n], pk.float)
    envelope = pk.View([short], pk.float)
    mean, power = pk.View([short], pk.double), pk.View([short], pk.double)
    pk.parallel_for(n, fir, out=band, x=state.x, taps=state.taps, m=TAPS)
    pk.parallel_for(n, rectify, out=size, x=band)
    pk.parallel_for(short, smooth_decimate, out=envelope, x=size)
    starts = short - PULSE
    pk.parallel_for(starts, moments, mean=mean, power=power, x=envelope)
    pk.parallel_for(
        starts, correlate, score=state.score, x=envelope, pulse=state.pulse, mean=mean, power=power
    )
    peaks = pk.RangePolicy(1, starts - 1)
    state.found = pk.parallel_reduce(peaks, detections, score=state.score, limit=0.8)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    return {"score": np.array(state.score.data), "found": float(state.found)}


def check(state: State, size: int, runs: int) -> None:
    x, taps, pulse = (v.astype(float) for v in signal(size))
    rectified = np.abs(np.convolve(x, taps, "valid"))
    short = (size - TAPS - SMOOTH) // DECIMATE
    sums = np.concatenate([[0.0], np.cumsum(rectified)])
    at = DECIMATE * np.arange(short)
    envelope = (sums[at + SMOOTH] - sums[at]) / SMOOTH
    windows = np.lib.stride_tricks.sliding_window_view(envelope, PULSE)[: short - PULSE]
    score = (windows - windows.mean(1, keepdims=True)) @ pulse / (windows.std(1) * np.sqrt(PULSE))
    out = outputs(state)
    np.testing.assert_allclose(out["score"], score, atol=1e-3)
    assert 0.6 * (size // 400) <= out["found"] <= 1.5 * (size // 400 + 1), out["found"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=lambda text: SIZES.get(text) or int(text), default="small")
    parser.add_argument("--runs", type=int, default=1)
    args = parser.parse_args()
    state, start = setup(args.size), perf_counter()
    for _ in range(args.runs):
        run(state)
    seconds = perf_counter() - start
    check(state, args.size, args.runs)
    print(f"fir_envelope: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
