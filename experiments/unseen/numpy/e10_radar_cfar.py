"""Pulse-Doppler radar: pulse compression, Doppler FFT, 2-D CA-CFAR, target list.

complex64 data cube of (pulses, range bins); local noise from summed-area tables.
"""

import numpy as np

SIZES = {"small": 96, "default": 3200, "large": 30000}
PULSES = 32
CHIRP = 40


def chirp():
    t = np.arange(CHIRP) / CHIRP
    return np.exp(1j * np.pi * 18.0 * (t - 0.5) ** 2).astype(np.complex64)


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    cube = rng.standard_normal((PULSES, n)) + 1j * rng.standard_normal((PULSES, n))
    cube = cube.astype(np.complex64)
    cube *= 1.0 + 0.5 * np.linspace(1, 0, n, dtype=np.float32)  # near-range clutter
    ref = chirp()
    slow = np.arange(PULSES)
    for _ in range(6):
        r = int(rng.integers(0, n - CHIRP))
        dop = rng.uniform(-0.5, 0.5)
        a = rng.uniform(0.8, 2.0)
        cube[:, r : r + CHIRP] += a * np.exp(2j * np.pi * dop * slow)[:, None] * ref
    return {"cube": cube, "ref": ref}


def compress(cube, ref):
    n = cube.shape[1]
    nfft = n + len(ref) - 1
    nfft += nfft % 2
    spec = np.fft.fft(cube, nfft, axis=1)
    spec *= np.conj(np.fft.fft(ref, nfft))
    return np.fft.ifft(spec, axis=1)[:, :n].astype(np.complex64)


def doppler(x):
    win = np.hamming(x.shape[0]).astype(np.float32)
    return np.fft.fftshift(np.fft.fft(x * win[:, None], axis=0), axes=0)


def box_sum(p, ry, rx):
    """Sum of p over (2ry+1, 2rx+1) windows, edges padded by wrapping Doppler."""
    q = np.pad(p, ((ry, ry), (0, 0)), mode="wrap")
    q = np.pad(q, ((0, 0), (rx, rx)), mode="reflect")
    s = np.zeros((q.shape[0] + 1, q.shape[1] + 1))
    s[1:, 1:] = q.cumsum(axis=0).cumsum(axis=1)
    hy, hx = 2 * ry + 1, 2 * rx + 1
    return s[hy:, hx:] - s[:-hy, hx:] - s[hy:, :-hx] + s[:-hy, :-hx]


def cfar(power, guard=(1, 2), train=(3, 8), pfa=1e-5):
    oy, ox = guard[0] + train[0], guard[1] + train[1]
    n_out = (2 * oy + 1) * (2 * ox + 1)
    n_in = (2 * guard[0] + 1) * (2 * guard[1] + 1)
    n_train = n_out - n_in
    noise = (box_sum(power, oy, ox) - box_sum(power, *guard)) / n_train
    alpha = n_train * (pfa ** (-1.0 / n_train) - 1)
    return noise, power > alpha * noise


def local_peak(power):
    p = np.pad(power, 1, mode="constant", constant_values=-1)
    view = np.lib.stride_tricks.sliding_window_view(p, (3, 3))
    return power >= view.max(axis=(2, 3))


def run(state):
    rd = doppler(compress(state["cube"], state["ref"]))
    power = np.abs(rd).astype(np.float64) ** 2
    noise, mask = cfar(power)
    dets = mask & local_peak(power)
    fi, ri = np.where(dets)
    snr = 10 * np.log10(power[fi, ri] / noise[fi, ri])
    order = np.lexsort((fi, ri))
    table = np.column_stack([ri[order], fi[order], snr[order]])
    rows_db = 10 * np.log10(power.mean(axis=1))
    return {"noise": noise, "mask": mask, "table": table, "rows_db": rows_db, "peak": power.max()}


def check(result):
    return [result[k] for k in ("noise", "mask", "table", "rows_db", "peak")]
