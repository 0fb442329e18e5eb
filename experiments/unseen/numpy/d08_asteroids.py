"""Celestial mechanics: asteroid ephemerides - Kepler's equation by Newton, positions, magnitudes, close ones."""

import numpy as np

SIZES = {"small": 400, "default": 40_000, "large": 1_000_000}


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    return {
        "a": rng.uniform(0.8, 3.5, n),
        "e": rng.beta(1.5, 6.0, n).clip(0, 0.97),
        "inc": np.abs(rng.normal(0, 0.15, n)),
        "node": rng.uniform(0, 2 * np.pi, n),
        "peri": rng.uniform(0, 2 * np.pi, n),
        "m0": rng.uniform(0, 2 * np.pi, n),
        "h": rng.normal(17, 1.5, n),
        "t": 0.0,
    }


def eccentric_anomaly(M, e, tol=1e-10, max_iter=12):
    M = (M + np.pi) % (2 * np.pi) - np.pi
    E = np.where(e < 0.8, M + e * np.sin(M), np.pi * np.sign(M))
    it = 0
    err = 1.0
    while err > tol and it < max_iter:
        step = (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
        E = E - step
        err = np.abs(step).max()
        it += 1
    return E, it


def rotate(x, y, inc, node, peri):
    co, so, cp, sp, ci, si = (
        np.cos(node),
        np.sin(node),
        np.cos(peri),
        np.sin(peri),
        np.cos(inc),
        np.sin(inc),
    )
    px = (co * cp - so * sp * ci) * x - (co * sp + so * cp * ci) * y
    py = (so * cp + co * sp * ci) * x - (so * sp - co * cp * ci) * y
    pz = sp * si * x + cp * si * y
    return px, py, pz


def run(s):
    a, e = s["a"], s["e"]
    s["t"] += 10.0
    mean_motion = 0.01720209895 * a**-1.5
    E, iterations = eccentric_anomaly(s["m0"] + mean_motion * s["t"], e)
    x = a * (np.cos(E) - e)
    y = a * np.sqrt(1 - e**2) * np.sin(E)
    px, py, pz = rotate(x, y, s["inc"], s["node"], s["peri"])

    lon = 2 * np.pi * s["t"] / 365.25
    dx, dy = px - np.cos(lon), py - np.sin(lon)
    r = np.sqrt(px * px + py * py + pz * pz)
    delta = np.sqrt(dx * dx + dy * dy + pz * pz)
    cos_phase = np.clip((r**2 + delta**2 - 1) / (2 * r * delta), -1, 1)
    tan_half = np.sqrt((1 - cos_phase) / (1 + cos_phase + 1e-9))
    phi = np.exp(-3.33 * tan_half**0.63)
    mag = s["h"] + 5 * np.log10(r * delta) - 2.5 * np.log10(np.maximum(phi, 1e-12))

    near = delta < 0.3
    visible = (mag < 20.0) & (np.abs(pz) < 1.0)
    hist, _ = np.histogram(mag[visible], bins=12, range=(8, 20))
    closest = np.argmin(delta)
    return iterations, int(near.sum()), hist, float(delta[closest]), mag, float(r.mean()), lon


def check(result):
    it, near, hist, dmin, mag, rmean, lon = result
    return [float(near), hist.astype(float), dmin, mag, rmean, lon]
