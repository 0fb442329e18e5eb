"""Strain-gauge record of a machine shaft: calibration curve, envelope in
windows, threshold events, rates, block peaks and cumulated damage."""

import numpy as np

sliding_window_view = np.lib.stride_tricks.sliding_window_view

SIZES = {"small": 8000, "default": 400000, "large": 4800000}
FS = 2000.0
BLOCK = 250
VOLT = np.array([-2.0, -1.5, -1.0, -0.5, -0.2, 0.0, 0.2, 0.5, 1.0, 1.5, 2.0])
MICRO = np.array([-980, -760, -520, -270, -110, 0, 108, 265, 515, 750, 960.0])


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    t = np.arange(n) / FS
    carrier = np.sin(2 * np.pi * 31.0 * t)
    level = 0.4 + 0.3 * np.sin(2 * np.pi * 0.7 * t)
    volts = level * carrier + rng.normal(scale=0.04, size=n)
    hits = rng.integers(0, n, size=max(3, n // 4000))
    volts[hits] += rng.uniform(0.6, 1.0, size=hits.size)
    temperature = 20.0 + 3.0 * np.sin(2 * np.pi * t / t[-1])
    return {"volts": volts, "temperature": temperature}


def run(state):
    volts = state["volts"]
    drift = np.interp(
        state["temperature"], [15.0, 18.0, 20.0, 22.0, 25.0], [-6.0, -2.0, 0.0, 2.5, 7.0]
    )
    strain = np.interp(volts, VOLT, MICRO) - drift

    # 5-point smoothing and rate
    smooth = sliding_window_view(strain, 5).mean(axis=1)
    rate = np.diff(smooth) * FS
    rate_rms = np.sqrt(np.mean(rate**2))

    # blocks: envelope, where the peak is, crest factor
    nb = strain.size // BLOCK
    blocks = strain[: nb * BLOCK].reshape(nb, BLOCK)
    upper = blocks.max(axis=1)
    lower = blocks.min(axis=1)
    where = np.abs(blocks).argmax(axis=1)
    peak = np.abs(blocks[np.arange(nb), where])
    rms = np.sqrt((blocks**2).mean(axis=1))
    crest = peak / rms
    envelope = 0.5 * (upper - lower)
    full = np.interp(np.arange(strain.size), np.arange(nb) * BLOCK + BLOCK / 2, envelope)

    # events: samples beyond the envelope-dependent limit
    limit = np.maximum(1.05 * full, 150.0)
    over = np.abs(strain) > limit
    starts = np.flatnonzero(over[1:] & ~over[:-1]) + 1
    gap = np.diff(starts) / FS
    event_rate = starts.size / (strain.size / FS)

    # up-crossings of zero a block give the cycle count; S-N table gives damage
    sign = smooth > 0
    up = np.flatnonzero(~sign[:-1] & sign[1:])
    cycles = np.bincount(np.minimum(up // BLOCK, nb - 1), minlength=nb)
    life = 10.0 ** np.interp(envelope, [50, 100, 200, 400, 800], [9.0, 7.6, 6.1, 4.8, 3.5])
    damage = np.cumsum(cycles / life)
    quiet = envelope < np.quantile(envelope, 0.25)
    return {
        "smooth": smooth,
        "rate_rms": rate_rms,
        "envelope": envelope,
        "where": where,
        "crest": crest,
        "starts": starts,
        "gap": gap.mean() if gap.size else 0.0,
        "event_rate": event_rate,
        "cycles": cycles,
        "damage": damage,
        "quiet": rms[quiet].mean(),
    }


def check(result):
    return [
        result[k]
        for k in (
            "smooth",
            "rate_rms",
            "envelope",
            "where",
            "crest",
            "starts",
            "gap",
            "event_rate",
            "cycles",
            "damage",
            "quiet",
        )
    ]
