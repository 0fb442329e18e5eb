"""Hologram design: Gerchberg-Saxton phase retrieval plus Fresnel propagation.

Finds a phase mask whose far field is a target picture, then pushes the field a
short distance with the angular spectrum method and measures the focus.
"""

import numpy as np

SIZES = {"small": 24, "default": 144, "large": 600}
ITERS = 4
WAVELENGTH = 633e-9
PITCH = 8e-6


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    x = (np.arange(n) - n / 2) / n
    X, Y = np.meshgrid(x, x)
    beam = np.exp(-(X**2 + Y**2) / 0.15)
    R = np.hypot(X, Y)
    target = ((R > 0.15) & (R < 0.22)).astype(float)
    target += (np.abs(X + Y) < 0.03) & (R < 0.35)
    target = np.sqrt(target + 1e-4)
    target *= np.linalg.norm(beam) / np.linalg.norm(target)
    phase0 = rng.uniform(-np.pi, np.pi, (n, n))
    return {"beam": beam, "target": target, "phase": phase0}


def far_field(u):
    return np.fft.fftshift(np.fft.fft2(np.fft.ifftshift(u), norm="ortho"))


def near_field(U):
    return np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(U), norm="ortho"))


def angular_spectrum(u, dist):
    n = u.shape[0]
    fx = np.fft.fftfreq(n, d=PITCH)
    f2 = fx[:, None] ** 2 + fx[None, :] ** 2
    k2 = 1.0 / WAVELENGTH**2 - f2
    prop = np.exp(2j * np.pi * dist * np.sqrt(np.maximum(k2, 0.0)))
    prop[k2 < 0] = 0
    return np.fft.ifft2(np.fft.fft2(u) * prop)


def mismatch(amp, target):
    return np.sqrt(np.mean((amp - target) ** 2)) / target.mean()


def run(state):
    beam, target = state["beam"], state["target"]
    u = beam * np.exp(1j * state["phase"])
    errors = []
    for it in range(ITERS):
        U = far_field(u)
        amp = np.abs(U)
        errors.append(mismatch(amp, target))
        # keep the phase, impose the wanted amplitude
        U = target * U / (amp + 1e-12)
        u = near_field(U)
        u = beam * np.exp(1j * np.angle(u))
    holo = u
    quantised = np.round((np.angle(holo) + np.pi) / (2 * np.pi) * 255) % 256
    levels = np.bincount(quantised.astype(np.int64).ravel(), minlength=256)
    p = levels[levels > 0] / levels.sum()
    entropy = -(p * np.log2(p)).sum()

    near = angular_spectrum(holo, 2e-3)
    inten = near.real**2 + near.imag**2
    n = inten.shape[0]
    c = np.arange(n) - n // 2
    w = inten / inten.sum()
    cx, cy = (w.sum(0) * c).sum(), (w.sum(1) * c).sum()
    width = np.sqrt((w * ((c[None, :] - cx) ** 2 + (c[:, None] - cy) ** 2)).sum())
    return {
        "holo": holo,
        "inten": inten,
        "errors": np.array(errors),
        "entropy": entropy,
        "focus": np.array([cx, cy, width]),
        "phasor": np.vdot(holo, near),
    }


def check(result):
    return [
        result["holo"],
        result["inten"],
        result["errors"],
        result["entropy"],
        result["focus"],
        result["phasor"],
    ]
