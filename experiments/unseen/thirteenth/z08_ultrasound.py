# ruff: noqa: B007, B905, E501
"""Colour Doppler ultrasound: an ensemble of frames, from the channels' samples to speed and picture.

Gain by time, mixing to base band, a low pass of nine taps; delays and phases of each pixel and
channel, once; then each frame's beams (gathers between samples), a wall filter, the correlation
with the frame before, power; at the end speed where there is blood, and bytes on a log scale.
Single precision.
"""

from dataclasses import dataclass, field
from math import pi

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 24, "default": 90, "large": 200}  # lines of the picture
CHANNELS, RATE, TONE, SOUND, TAPS, PITCH = 16, 20e6, 5e6, 1540.0, 9, 3e-4
APERTURE, WALL, RANGE_DB, BLOOD = 0.6, 0.3, 50.0, 0.4


@pk.workunit
def delays(
    z: int,
    x: int,
    c: int,
    delay: pk.View3D[pk.float],
    depth: pk.View1D[pk.float],
    across: pk.View1D[pk.float],
    element: pk.View1D[pk.float],
    per_metre: float,
):
    d: float = across[x] - element[c]
    delay[z][x][c] = (depth[z] + pk.sqrt(depth[z] * depth[z] + d * d)) * per_metre


@pk.workunit
def phases(
    z: int,
    x: int,
    c: int,
    turn_re: pk.View3D[pk.float],
    turn_im: pk.View3D[pk.float],
    delay: pk.View3D[pk.float],
    cycle: float,
):
    turn_re[z][x][c] = pk.cos(cycle * delay[z][x][c])
    turn_im[z][x][c] = pk.sin(cycle * delay[z][x][c])


@pk.workunit
def aperture(
    z: int,
    x: int,
    c: int,
    weight: pk.View3D[pk.float],
    depth: pk.View1D[pk.float],
    across: pk.View1D[pk.float],
    element: pk.View1D[pk.float],
    share: float,
):
    t: float = abs(across[x] - element[c]) / (share * depth[z])
    if t < 1.0:
        weight[z][x][c] = 1.0 - t * t
    else:
        weight[z][x][c] = 0.0


@pk.workunit
def amplify(
    c: int,
    s: int,
    out: pk.View2D[pk.float],
    raw: pk.View2D[pk.int16],
    gain: pk.View1D[pk.float],
):
    out[c][s] = raw[c][s] * gain[s]


@pk.workunit
def mix(
    c: int, s: int, out: pk.View2D[pk.float], x: pk.View2D[pk.float], wave: pk.View1D[pk.float]
):
    out[c][s] = x[c][s] * wave[s]


@pk.workunit
def low_pass(
    c: int,
    s: int,
    out: pk.View2D[pk.float],
    x: pk.View2D[pk.float],
    tap: pk.View1D[pk.float],
    taps: int,
    samples: int,
):
    total: float = 0.0
    for k in range(taps):
        at: int = max(0, min(samples - 1, s + k - taps // 2))
        total += tap[k] * x[c][at]
    out[c][s] = total


@pk.workunit
def beam(
    z: int,
    x: int,
    re: pk.View2D[pk.float],
    im: pk.View2D[pk.float],
    i: pk.View2D[pk.float],
    q: pk.View2D[pk.float],
    delay: pk.View3D[pk.float],
    turn_re: pk.View3D[pk.float],
    turn_im: pk.View3D[pk.float],
    weight: pk.View3D[pk.float],
    channels: int,
    samples: int,
):
    a: float = 0.0
    b: float = 0.0
    for c in range(channels):
        t: float = delay[z][x][c]
        k: int = int(t)
        if k + 1 < samples:
            f: float = t - k
            u: float = i[c][k] + f * (i[c][k + 1] - i[c][k])
            v: float = q[c][k] + f * (q[c][k + 1] - q[c][k])
            a += weight[z][x][c] * (u * turn_re[z][x][c] - v * turn_im[z][x][c])
            b += weight[z][x][c] * (u * turn_im[z][x][c] + v * turn_re[z][x][c])
    re[z][x] = a
    im[z][x] = b


@pk.workunit
def follow(
    z: int, x: int, mean: pk.View2D[pk.float], v: pk.View2D[pk.float], first: int, rate: float
):
    if first == 1:
        mean[z][x] = v[z][x]
    else:
        mean[z][x] += rate * (v[z][x] - mean[z][x])


@pk.workunit
def moving(
    z: int,
    x: int,
    out: pk.View2D[pk.float],
    v: pk.View2D[pk.float],
    mean: pk.View2D[pk.float],
):
    out[z][x] = v[z][x] - mean[z][x]


@pk.workunit
def correlate(
    z: int,
    x: int,
    sum_re: pk.View2D[pk.float],
    sum_im: pk.View2D[pk.float],
    re: pk.View2D[pk.float],
    im: pk.View2D[pk.float],
    old_re: pk.View2D[pk.float],
    old_im: pk.View2D[pk.float],
):
    sum_re[z][x] += re[z][x] * old_re[z][x] + im[z][x] * old_im[z][x]
    sum_im[z][x] += im[z][x] * old_re[z][x] - re[z][x] * old_im[z][x]


@pk.workunit
def add_power(
    z: int,
    x: int,
    power: pk.View2D[pk.float],
    re: pk.View2D[pk.float],
    im: pk.View2D[pk.float],
):
    power[z][x] += re[z][x] * re[z][x] + im[z][x] * im[z][x]


@pk.workunit
def keep(z: int, x: int, old: pk.View2D[pk.float], now: pk.View2D[pk.float]):
    old[z][x] = now[z][x]


@pk.workunit
def brightest(
    z: int,
    x: int,
    light: pk.View2D[pk.float],
    re: pk.View2D[pk.float],
    im: pk.View2D[pk.float],
):
    size: float = pk.sqrt(re[z][x] * re[z][x] + im[z][x] * im[z][x])
    light[z][x] = max(0.8 * light[z][x], size)


@pk.workunit
def whole(z: int, x: int, acc: pk.Acc[pk.double], v: pk.View2D[pk.float]):
    acc += v[z][x]


@pk.workunit
def speed(
    z: int,
    x: int,
    v: pk.View2D[pk.float],
    power: pk.View2D[pk.float],
    sum_re: pk.View2D[pk.float],
    sum_im: pk.View2D[pk.float],
    threshold: float,
    nyquist: float,
):
    v[z][x] = 0.0
    if power[z][x] > threshold:
        v[z][x] = nyquist * pk.atan2(sum_im[z][x], sum_re[z][x])


@pk.workunit
def to_byte(
    z: int,
    x: int,
    out: pk.View2D[pk.uint8],
    light: pk.View2D[pk.float],
    most: float,
    range_db: float,
):
    db: float = 20.0 * pk.log(light[z][x] / most + 1.0e-6) / 2.302585092994046
    out[z][x] = int(255.0 * max(0.0, min(1.0, 1.0 + db / range_db)) + 0.5)


@dataclass
class State:
    """The ensemble's samples, tables of places and waves; speed, power, bytes, power of frames."""

    lines: int
    depths: int
    samples: int
    frames: int
    raw: pk.View
    depth: pk.View
    across: pk.View
    element: pk.View
    gain: pk.View
    cosine: pk.View
    sine: pk.View
    tap: pk.View
    velocity: pk.View
    power: pk.View
    picture: pk.View
    powers: list = field(default_factory=list)


def setup(lines: int) -> State:
    rng = np.random.default_rng(1308)
    depths, samples = 2 * lines, 4 * lines + 64
    frames = 32 if lines <= 40 else 20
    raw = pk.View([frames, CHANNELS, samples], pk.int16)
    depth, across = pk.View([depths], pk.float), pk.View([lines], pk.float)
    element = pk.View([CHANNELS], pk.float)
    gain, cosine, sine = (pk.View([samples], pk.float) for _ in range(3))
    tap = pk.View([TAPS], pk.float)
    reach = 0.45 * samples * SOUND / RATE
    depth.data[:] = reach * (0.15 + 0.85 * np.arange(depths) / depths)
    across.data[:] = PITCH * CHANNELS * (np.arange(lines) / (lines - 1.0) - 0.5)
    element.data[:] = PITCH * (np.arange(CHANNELS) - 0.5 * (CHANNELS - 1))
    s = np.arange(samples)
    gain.data[:] = (1.0 + 2.0 * s / samples) / 2048.0
    cosine.data[:] = 2.0 * np.cos(2.0 * pi * TONE / RATE * s)
    sine.data[:] = -2.0 * np.sin(2.0 * pi * TONE / RATE * s)
    window = np.hanning(TAPS + 2)[1:-1]
    tap.data[:] = window / window.sum()
    # Echoes of points: still ones, and some that move in depth from frame to frame.
    points = 40
    px, pz = (
        rng.uniform(-0.5, 0.5, points) * PITCH * CHANNELS,
        rng.uniform(0.2, 0.95, points) * reach,
    )
    size = np.where(np.arange(points) < 24, 900.0, 250.0) * rng.uniform(0.5, 1.0, points)
    drift = np.where(np.arange(points) < 24, 0.0, 1.2e-5)
    for frame in range(frames):
        echo = rng.normal(0.0, 4.0, (CHANNELS, samples))
        for x, z, a, v in zip(px, pz + frame * drift, size, drift):
            t = (z + np.sqrt(z * z + (x - element.data) ** 2)) * (RATE / SOUND)
            u = s - t[:, None]
            echo += a * np.exp(-((u / 8.0) ** 2)) * np.cos(2.0 * pi * TONE / RATE * u)
        raw.data[frame] = np.clip(np.rint(echo), -32768, 32767)
    plane = (pk.View([depths, lines], pk.float), pk.View([depths, lines], pk.float))
    picture = pk.View([depths, lines], pk.uint8)
    return State(
        lines,
        depths,
        samples,
        frames,
        raw,
        depth,
        across,
        element,
        gain,
        cosine,
        sine,
        tap,
        *plane,
        picture,
    )


def run(state: State) -> None:
    shape = [state.depths, state.lines]
    cube = pk.MDRangePolicy([0, 0, 0], [*shape, CHANNELS])
    pixels = pk.MDRangePolicy([0, 0], shape)
    all_samples = pk.MDRangePolicy([0, 0], [CHANNELS, state.samples])
    delay, turn_re, turn_im, weight = (pk.View([*shape, CHANNELS], pk.float) for _ in range(4))
    x, mixed, i, q = (pk.View([CHANNELS, state.samples], pk.float) for _ in range(4))
    re, im, mean_re, mean_im, hp_re, hp_im = (pk.View(shape, pk.float) for _ in range(6))
    old_re, old_im, sum_re, sum_im, light = (pk.View(shape, pk.float) for _ in range(5))
    power, table = pk.View(shape, pk.float), {"depth": state.depth, "across": state.across}
    table["element"] = state.element
    pk.parallel_for(cube, delays, delay=delay, per_metre=RATE / SOUND, **table)
    pk.parallel_for(
        cube, phases, turn_re=turn_re, turn_im=turn_im, delay=delay, cycle=2.0 * pi * TONE / RATE
    )
    pk.parallel_for(cube, aperture, weight=weight, share=APERTURE, **table)
    state.powers = []
    for frame in range(state.frames):
        raw = state.raw[frame, :, :]
        pk.parallel_for(all_samples, amplify, out=x, raw=raw, gain=state.gain)
        for out, wave in ((i, state.cosine), (q, state.sine)):
            pk.parallel_for(all_samples, mix, out=mixed, x=x, wave=wave)
            pk.parallel_for(
                all_samples,
                low_pass,
                out=out,
                x=mixed,
                tap=state.tap,
                taps=TAPS,
                samples=state.samples,
            )
        pk.parallel_for(
            pixels,
            beam,
            re=re,
            im=im,
            i=i,
            q=q,
            delay=delay,
            turn_re=turn_re,
            turn_im=turn_im,
            weight=weight,
            channels=CHANNELS,
            samples=state.samples,
        )
        for v, mean, out in ((re, mean_re, hp_re), (im, mean_im, hp_im)):
            pk.parallel_for(pixels, follow, mean=mean, v=v, first=int(frame == 0), rate=WALL)
            pk.parallel_for(pixels, moving, out=out, v=v, mean=mean)
        if frame > 1:
            pk.parallel_for(
                pixels,
                correlate,
                sum_re=sum_re,
                sum_im=sum_im,
                re=hp_re,
                im=hp_im,
                old_re=old_re,
                old_im=old_im,
            )
        pk.parallel_for(pixels, add_power, power=power, re=hp_re, im=hp_im)
        pk.parallel_for(pixels, keep, old=old_re, now=hp_re)
        pk.parallel_for(pixels, keep, old=old_im, now=hp_im)
        pk.parallel_for(pixels, brightest, light=light, re=re, im=im)
        state.powers.append(pk.parallel_reduce(pixels, whole, v=power))
    threshold = BLOOD * float(state.powers[-1]) / (state.depths * state.lines)
    pk.parallel_for(
        pixels,
        speed,
        v=state.velocity,
        power=power,
        sum_re=sum_re,
        sum_im=sum_im,
        threshold=threshold,
        nyquist=1.0 / pi,
    )
    most = float(light.data.max())
    pk.parallel_for(pixels, to_byte, out=state.picture, light=light, most=most, range_db=RANGE_DB)
    state.power = power


def outputs(state: State) -> dict:
    return {
        "velocity": np.array(state.velocity.data),
        "power": np.array(state.power.data),
        "picture": np.array(state.picture.data),
        "powers": np.array([float(p) for p in state.powers]),
    }


def check(state: State, lines: int, runs: int = 1) -> None:
    fresh = setup(lines)
    names = ("depth", "across", "element", "gain", "cosine", "sine", "tap")
    depth, across, element, gain, cosine, sine, tap = (
        np.array(getattr(fresh, name).data, dtype=np.float64) for name in names
    )
    d = across[:, None] - element
    z = depth[:, None, None]
    delay = ((z + np.sqrt(z * z + d * d)) * (RATE / SOUND)).astype(np.float32).astype(float)
    turn = np.exp(2j * pi * TONE / RATE * delay)
    weight = np.maximum(0.0, 1.0 - (np.abs(d) / (APERTURE * z)) ** 2)
    k = delay.astype(int)
    inside = k + 1 < fresh.samples
    k, f = np.minimum(k, fresh.samples - 2), delay - k
    c = np.arange(CHANNELS)
    mean = light = old = None
    power, sums = 0.0, 0.0
    for frame in range(fresh.frames):
        x = np.array(fresh.raw.data[frame]) * gain * (cosine + 1j * sine)
        p = np.pad(x, ((0, 0), (TAPS // 2, TAPS // 2)), "edge")
        x = sum(tap[t] * p[:, t : t + fresh.samples] for t in range(TAPS))
        u = x[c, k] + f * (x[c, k + 1] - x[c, k])
        v = (inside * weight * turn * u).sum(2)
        mean = v if frame == 0 else mean + WALL * (v - mean)
        hp = v - mean
        if frame > 1:
            sums = sums + hp * np.conj(old)
        power = power + np.abs(hp) ** 2
        old = hp
        light = np.abs(v) if frame == 0 else np.maximum(0.8 * light, np.abs(v))
    out = outputs(state)
    np.testing.assert_allclose(out["power"], power, rtol=2e-3, atol=1e-4 * power.mean())
    good = np.abs(power / power.mean() - BLOOD) > 1e-3
    velocity = np.where(power > BLOOD * power.mean(), np.angle(sums) / pi, 0.0)
    error = np.abs(np.exp(1j * pi * out["velocity"]) - np.exp(1j * pi * velocity))[good]
    assert error.max() < 2e-2 and error.mean() < 1e-4, (error.max(), error.mean())
    db = 20.0 * np.log10(light / light.max() + 1e-6)
    picture = np.floor(255.0 * np.clip(1.0 + db / RANGE_DB, 0.0, 1.0) + 0.5)
    assert np.abs(out["picture"] - picture).max() <= 1


if __name__ == "__main__":
    main(globals())
