"""Radio: QPSK receiver - mix to baseband, FFT low-pass, carrier recovery by the 4th power, decisions, EVM."""

import numpy as np

SIZES = {"small": 128, "default": 8192, "large": 131_072}  # symbols
OVER = 8


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (n, 2), dtype=np.uint8)
    sym = ((1 - 2.0 * bits[:, 0]) + 1j * (1 - 2.0 * bits[:, 1])) / np.sqrt(2)
    base = np.repeat(sym, OVER)
    t = np.arange(base.size)
    carrier = np.exp(1j * (2 * np.pi * (0.21 + 0.1 / n / OVER) * t + 0.3))
    rx = (base * carrier).real
    rx += 0.15 * rng.standard_normal(rx.size)
    return {"rx": rx, "bits": bits, "fc": 0.21}


def lowpass(x, cutoff):
    f = np.fft.fftfreq(x.size)
    gain = np.where(np.abs(f) <= cutoff, 0.5 * (1 + np.cos(np.pi * f / cutoff)), 0.0)
    return np.fft.ifft(np.fft.fft(x) * gain)


def carrier_phase(sym, block):
    """Viterbi & Viterbi: angle of the mean 4th power in blocks, unwrapped and interpolated"""
    m = sym.size // block
    p4 = (sym[: m * block] ** 4).reshape(m, block).mean(axis=1)
    ang = np.unwrap(np.angle(-p4)) / 4
    centre = (np.arange(m) + 0.5) * block
    return np.interp(np.arange(sym.size), centre, ang)


def run(s):
    rx = s["rx"]
    t = np.arange(rx.size)
    bb = 2 * rx * np.exp(-2j * np.pi * s["fc"] * t)
    bb = lowpass(bb, 0.18)

    # symbol timing: the sampling phase with the largest mean energy
    grid = bb.reshape(-1, OVER)
    energy = (grid.real**2 + grid.imag**2).mean(axis=0)
    k = int(np.argmax(energy))
    sym = 0.5 * (grid[:, k] + grid[:, k - 1])
    sym /= np.sqrt(np.mean(np.abs(sym) ** 2))

    phase = carrier_phase(sym, 32)
    sym = sym * np.exp(-1j * phase)

    got = np.empty((sym.size, 2), dtype=np.uint8)
    got[:, 0] = sym.real < 0
    got[:, 1] = sym.imag < 0
    ideal = ((1 - 2.0 * got[:, 0]) + 1j * (1 - 2.0 * got[:, 1])) / np.sqrt(2)
    evm = np.sqrt(np.mean(np.abs(sym - ideal) ** 2))
    # the 4-fold ambiguity is resolved by trying the rotations on the known header
    errors = []
    for rot in (1, 1j, -1, -1j):
        z = sym * rot
        errors.append(
            int(
                np.count_nonzero((z.real < 0) != s["bits"][:, 0])
                + np.count_nonzero((z.imag < 0) != s["bits"][:, 1])
            )
        )
    packed = np.packbits(got.ravel())
    spectrum = np.abs(np.fft.rfft(rx[:1024] * np.hanning(min(1024, rx.size))))
    snr_db = -20 * np.log10(evm)
    return sym, phase, min(errors), packed, spectrum, float(snr_db)


def check(result):
    sym, phase, err, packed, spectrum, snr = result
    return [sym, phase, float(err), packed.astype(float), spectrum, snr]
