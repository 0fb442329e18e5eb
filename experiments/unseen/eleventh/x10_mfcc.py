"""Features of speech: the mel-frequency cepstral coefficients of a recording.

The signal's high tones are raised, frames of it are windowed, their energies and Fourier spectra
found, the power gathered by mel filters, its logarithms transformed by cosines, lifted, freed of each
coefficient's mean, and differentiated from frame to frame.
"""

from dataclasses import dataclass, field
from math import pi

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 16, "default": 600, "large": 15_000}
LENGTH, HOP, BINS, FILTERS, KEPT, LIFT = 256, 100, 128, 20, 6, 22.0


@pk.workunit
def emphasise(i: int, out: pk.View1D[pk.double], x: pk.View1D[pk.double], a: float):
    if i == 0:
        out[i] = x[i]
    else:
        out[i] = x[i] - a * x[i - 1]


@pk.workunit
def cut(
    f: int,
    t: int,
    frame: pk.View2D[pk.double],
    x: pk.View1D[pk.double],
    window: pk.View1D[pk.double],
    hop: int,
):
    frame[f][t] = x[f * hop + t] * window[t]


@pk.workunit
def frame_energy(
    team: pk.TeamMember, energy: pk.View1D[pk.double], frame: pk.View2D[pk.double], length: int
):
    f: int = team.league_rank()

    def square(t: int, inner: pk.Acc[pk.double]):
        inner += frame[f][t] * frame[f][t]

    s: float = pk.parallel_reduce(pk.TeamThreadRange(team, length), square)
    if team.team_rank() == 0:
        energy[f] = pk.log(s + 1e-10)


@pk.workunit
def transform(
    f: int,
    b: int,
    out: pk.View2D[pk.double],
    frame: pk.View2D[pk.double],
    wave: pk.View2D[pk.double],
    length: int,
):
    s: float = 0.0
    for t in range(length):
        s += frame[f][t] * wave[b][t]
    out[f][b] = s


@pk.workunit
def power_of(
    f: int,
    b: int,
    power: pk.View2D[pk.double],
    re: pk.View2D[pk.double],
    im: pk.View2D[pk.double],
    length: int,
):
    power[f][b] = (re[f][b] * re[f][b] + im[f][b] * im[f][b]) / length


@pk.workunit
def mel(
    f: int,
    m: int,
    out: pk.View2D[pk.double],
    power: pk.View2D[pk.double],
    weight: pk.View2D[pk.double],
    bins: int,
):
    s: float = 0.0
    for b in range(bins):
        s += weight[m][b] * power[f][b]
    out[f][m] = s


@pk.workunit
def logarithm(f: int, m: int, x: pk.View2D[pk.double]):
    x[f][m] = pk.log(x[f][m] + 1e-10)


@pk.workunit
def cosines(
    f: int,
    c: int,
    out: pk.View2D[pk.double],
    x: pk.View2D[pk.double],
    table: pk.View2D[pk.double],
    filters: int,
):
    s: float = 0.0
    for m in range(filters):
        s += table[c][m] * x[f][m]
    out[f][c] = s


@pk.workunit
def lift(f: int, c: int, x: pk.View2D[pk.double], lift: float):
    x[f][c] *= 1.0 + 0.5 * lift * pk.sin(3.141592653589793 * (c + 1) / lift)


@pk.workunit
def column_sum(f: int, acc: pk.Acc[pk.double], x: pk.View2D[pk.double], c: int):
    acc += x[f][c]


@pk.workunit
def subtract(f: int, x: pk.View2D[pk.double], c: int, mean: float):
    x[f][c] -= mean


@pk.workunit
def delta(f: int, c: int, out: pk.View2D[pk.double], x: pk.View2D[pk.double], frames: int):
    before: int = max(f - 1, 0)
    after: int = min(f + 1, frames - 1)
    out[f][c] = 0.5 * (x[after][c] - x[before][c])


@dataclass
class State:
    """The signal; tables; coefficients, their derivatives, the energies and the means."""

    frames: int
    signal: pk.View
    window: pk.View
    cosine: pk.View
    sine: pk.View
    weight: pk.View
    table: pk.View
    coefficient: pk.View
    derivative: pk.View
    energy: pk.View
    means: list = field(default_factory=list)


def setup(frames: int) -> State:
    rng = np.random.default_rng(120)
    n = HOP * (frames - 1) + LENGTH
    signal, window = pk.View([n], pk.double), pk.View([LENGTH], pk.double)
    cosine, sine = (pk.View([BINS, LENGTH], pk.double) for _ in range(2))
    weight, table = pk.View([FILTERS, BINS], pk.double), pk.View([KEPT, FILTERS], pk.double)
    t = np.arange(n) / 8_000.0
    pitch = 140.0 + 30.0 * np.sin(3.0 * t)
    for harmonic in range(1, 6):
        loud = (1.0 + np.sin(harmonic + 9.0 * t)) / harmonic
        signal.data[:] += loud * np.sin(harmonic * 2.0 * pi * np.cumsum(pitch) / 8_000.0)
    signal.data[:] += 0.05 * rng.standard_normal(n)
    window.data[:] = 0.54 - 0.46 * np.cos(2.0 * pi * np.arange(LENGTH) / (LENGTH - 1))
    angle = 2.0 * pi * np.outer(np.arange(BINS), np.arange(LENGTH)) / LENGTH
    cosine.data[:], sine.data[:] = np.cos(angle), -np.sin(angle)
    edge = np.expm1(np.linspace(0.0, 1.0, FILTERS + 2) * np.log1p(3.0)) / 3.0 * (BINS - 1)
    b = np.arange(BINS)
    for m in range(FILTERS):
        up = (b - edge[m]) / (edge[m + 1] - edge[m])
        down = (edge[m + 2] - b) / (edge[m + 2] - edge[m + 1])
        weight.data[m] = np.maximum(np.minimum(up, down), 0.0)
    k = np.outer(np.arange(1, KEPT + 1), np.arange(FILTERS) + 0.5)
    table.data[:] = np.sqrt(2.0 / FILTERS) * np.cos(pi * k / FILTERS)
    coefficient, derivative = (pk.View([frames, KEPT], pk.double) for _ in range(2))
    energy = pk.View([frames], pk.double)
    return State(
        frames, signal, window, cosine, sine, weight, table, coefficient, derivative, energy
    )


def run(state: State) -> None:
    frames, signal, out = state.frames, state.signal, state.coefficient
    n = signal.shape[0]
    raised, frame = pk.View([n], pk.double), pk.View([frames, LENGTH], pk.double)
    re, im, power = (pk.View([frames, BINS], pk.double) for _ in range(3))
    mels = pk.View([frames, FILTERS], pk.double)
    spectrum = pk.MDRangePolicy([0, 0], [frames, BINS])
    filters = pk.MDRangePolicy([0, 0], [frames, FILTERS])
    kept = pk.MDRangePolicy([0, 0], [frames, KEPT])
    pk.parallel_for(n, emphasise, out=raised, x=signal, a=0.97)
    pk.parallel_for(
        pk.MDRangePolicy([0, 0], [frames, LENGTH]),
        cut,
        frame=frame,
        x=raised,
        window=state.window,
        hop=HOP,
    )
    pk.parallel_for(
        pk.TeamPolicy(frames, pk.AUTO),
        frame_energy,
        energy=state.energy,
        frame=frame,
        length=LENGTH,
    )
    pk.parallel_for(spectrum, transform, out=re, frame=frame, wave=state.cosine, length=LENGTH)
    pk.parallel_for(spectrum, transform, out=im, frame=frame, wave=state.sine, length=LENGTH)
    pk.parallel_for(spectrum, power_of, power=power, re=re, im=im, length=LENGTH)
    pk.parallel_for(filters, mel, out=mels, power=power, weight=state.weight, bins=BINS)
    pk.parallel_for(filters, logarithm, x=mels)
    pk.parallel_for(kept, cosines, out=out, x=mels, table=state.table, filters=FILTERS)
    pk.parallel_for(kept, lift, x=out, lift=LIFT)
    state.means = []
    for c in range(KEPT):
        mean = float(pk.parallel_reduce(frames, column_sum, x=out, c=c)) / frames
        pk.parallel_for(frames, subtract, x=out, c=c, mean=mean)
        state.means.append(mean)
    pk.parallel_for(kept, delta, out=state.derivative, x=out, frames=frames)


def outputs(state: State) -> dict:
    return {
        "coefficient": np.array(state.coefficient.data),
        "derivative": np.array(state.derivative.data),
        "energy": np.array(state.energy.data),
        "means": np.array(state.means),
    }


def check(state: State, frames: int, runs: int = 1) -> None:
    fresh = setup(frames)
    x = np.array(fresh.signal.data)
    x[1:] = x[1:] - 0.97 * x[:-1]
    frame = np.lib.stride_tricks.sliding_window_view(x, LENGTH)[::HOP] * np.hamming(LENGTH)
    energy = np.log(np.sum(frame**2, axis=1) + 1e-10)
    power = np.abs(np.fft.rfft(frame, axis=1)[:, :BINS]) ** 2 / LENGTH
    mels = np.log(power @ np.array(fresh.weight.data).T + 1e-10)
    c = mels @ np.array(fresh.table.data).T
    c *= 1.0 + 0.5 * LIFT * np.sin(pi * np.arange(1, KEPT + 1) / LIFT)
    means = c.mean(axis=0)
    c -= means
    p = np.pad(c, ((1, 1), (0, 0)), "edge")
    out = outputs(state)
    np.testing.assert_allclose(out["coefficient"], c, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(out["derivative"], 0.5 * (p[2:] - p[:-2]), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(out["energy"], energy, rtol=1e-10)
    np.testing.assert_allclose(out["means"], means, rtol=1e-8, atol=1e-9)


if __name__ == "__main__":
    main(globals())
