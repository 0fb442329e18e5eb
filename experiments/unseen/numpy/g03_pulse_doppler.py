"""Pulse-Doppler radar burst: chirp compression, recursive clutter canceller
across pulses, Doppler FFT, cell-averaging CFAR and a crude target list."""

import numpy as np

SIZES = {"small": 300, "default": 8000, "large": 50000}

PULSES = 32
CHIRP = 48


def make(n, seed=1):
    """n is the number of range gates."""
    rng = np.random.default_rng(seed)
    t = np.linspace(-0.5, 0.5, CHIRP)
    chirp = np.exp(1j * np.pi * 30.0 * t**2)
    scene = np.zeros((PULSES, n), dtype=complex)
    pulse = np.arange(PULSES)
    n_targets = max(3, n // 150)
    gates = rng.integers(0, n - CHIRP, size=n_targets)
    doppler = rng.uniform(0.12, 0.88, size=n_targets)
    amp = rng.uniform(0.8, 3.0, size=n_targets)
    for g, f, a in zip(gates, doppler, amp):
        scene[:, g : g + CHIRP] += a * np.exp(2j * np.pi * f * pulse)[:, None] * chirp
    clutter = rng.normal(size=n) + 1j * rng.normal(size=n)
    clutter *= 8.0 * np.exp(-np.arange(n) / (0.3 * n))
    noise = rng.normal(size=scene.shape) + 1j * rng.normal(size=scene.shape)
    raw = scene + clutter[None, :] + 0.5 * noise
    # I/Q imbalance and a DC offset of the receiver
    iq = np.stack([raw.real * 1.03 + 0.1, raw.imag * 0.98 - 0.07], axis=-1).astype(np.float32)
    return {"iq": iq, "chirp": chirp, "prf": 4000.0, "wavelength": 0.032}


def correct_iq(iq):
    """Remove DC and equalise the powers of the two channels."""
    x = iq - iq.mean(axis=(0, 1))
    p = np.sqrt((x**2).mean(axis=(0, 1)))
    x *= p.mean() / p
    return x[..., 0] + 1j * x[..., 1]


def compress(x, chirp):
    nfft = 1 << int(np.ceil(np.log2(x.shape[1] + len(chirp) - 1)))
    ref = np.conj(np.fft.fft(chirp * np.hamming(len(chirp)), nfft))
    y = np.fft.ifft(np.fft.fft(x, nfft, axis=1) * ref, axis=1)
    return y[:, : x.shape[1]] / np.sqrt(len(chirp))


def mti(x, k=0.6):
    """Single-pole recursive canceller along slow time."""
    y = np.empty_like(x)
    w = x[0].copy()
    y[0] = 0.0
    for p in range(1, x.shape[0]):
        y[p] = x[p] - x[p - 1] + k * y[p - 1]
        w += 0.1 * (x[p] - w)
    return y, w


def cfar(power, guard=2, train=8, scale=9.0):
    """Cell averaging along range, both sides, with a running sum."""
    n = power.shape[1]
    half = guard + train
    padded = np.pad(power, ((0, 0), (half, half)), mode="edge")
    c = np.zeros((padded.shape[0], padded.shape[1] + 1))
    np.cumsum(padded, axis=1, out=c[:, 1:])
    lead = c[:, train : train + n] - c[:, :n]
    start = half + guard + 1
    lag = c[:, start + train : start + train + n] - c[:, start : start + n]
    level = np.maximum(lead, lag) / train
    return power > scale * level, level


def run(state):
    x = correct_iq(state["iq"])
    rc = compress(x, state["chirp"])
    y, clutter = mti(rc)

    window = np.blackman(PULSES)
    window /= np.sqrt((window**2).sum())
    rd = np.fft.fftshift(np.fft.fft(y * window[:, None], axis=0), axes=0)
    power = rd.real**2 + rd.imag**2
    db = 10.0 * np.log10(power + 1e-9)

    hit, level = cfar(power)
    # only local maxima along range survive
    peak = np.zeros_like(hit)
    peak[:, 1:-1] = (power[:, 1:-1] >= power[:, :-2]) & (power[:, 1:-1] > power[:, 2:])
    # and along Doppler, which wraps around
    peak &= (power >= np.roll(power, 1, axis=0)) & (power >= np.roll(power, -1, axis=0))
    det = hit & peak
    dop, gate = np.nonzero(det)
    snr = 10.0 * np.log10(power[dop, gate] / level[dop, gate])
    keep = np.argsort(-snr)[:20]
    freq = (dop[keep] - PULSES // 2) * state["prf"] / PULSES
    speed = 0.5 * freq * state["wavelength"]

    # pulse-pair estimate of the mean velocity and the spectral width
    r0 = np.mean(np.abs(y) ** 2, axis=0)
    r1 = np.mean(y[1:] * np.conj(y[:-1]), axis=0)
    vel = state["wavelength"] * state["prf"] / (4 * np.pi) * np.angle(r1)
    width = np.sqrt(np.maximum(-2.0 * np.log(np.clip(np.abs(r1) / r0, 1e-6, 1.0)), 0.0))
    return {
        "n_det": det.sum(),
        "best_gate": gate[keep],
        "best_speed": speed,
        "best_snr": snr[keep],
        "vel": vel,
        "width": width,
        "clutter_db": 20.0 * np.log10(np.abs(clutter) + 1e-6),
        "profile": db.max(axis=0),
        "floor": np.median(db),
    }


def check(result):
    return list(result.values())
