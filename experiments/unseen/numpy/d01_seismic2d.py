"""2-D acoustic seismic shot, 4th order in space, sponge layer at the edges (float32)."""

import numpy as np

SIZES = {"small": 40, "default": 300, "large": 1400}
STEPS = 4


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    z = np.linspace(0.0, 1.0, n, dtype=np.float32)
    vel = 1500.0 + 2000.0 * z[:, None] + 50.0 * rng.standard_normal((n, n))
    vel[n // 2 :, :] += 400.0
    dx = 10.0
    dt = 0.4 * dx / vel.max()
    width = max(4, n // 12)
    edge = np.minimum(np.arange(n), np.arange(n)[::-1])
    ramp = np.clip((width - edge) / width, 0.0, 1.0)
    taper1 = np.exp(-((0.35 * ramp) ** 2))
    return {
        "c2": ((vel * dt / dx) ** 2).astype(np.float32),
        "taper": np.outer(taper1, taper1).astype(np.float32),
        "p": np.zeros((n, n), np.float32),
        "p_old": np.zeros((n, n), np.float32),
        "dt": float(dt),
        "t": 0.0,
        "src": (n // 4, n // 2),
    }


def ricker(t, f=20.0, t0=0.01):
    a = (np.pi * f * (t - t0)) ** 2
    return (1.0 - 2.0 * a) * np.exp(-a)


def laplacian(p, out):
    c = p[2:-2, 2:-2]
    inner = out[2:-2, 2:-2]
    np.multiply(c, np.float32(-5.0), out=inner)
    inner += np.float32(4 / 3) * (p[1:-3, 2:-2] + p[3:-1, 2:-2] + p[2:-2, 1:-3] + p[2:-2, 3:-1])
    inner -= np.float32(1 / 12) * (p[:-4, 2:-2] + p[4:, 2:-2] + p[2:-2, :-4] + p[2:-2, 4:])
    return out


def run(s):
    p, p_old, taper = s["p"], s["p_old"], s["taper"]
    lap = np.zeros_like(p)
    traces = []
    for _ in range(STEPS):
        laplacian(p, lap)
        lap *= s["c2"]
        p_new = 2 * p - p_old + lap
        p_new[s["src"]] += ricker(s["t"] % 0.2)
        p_new *= taper
        p *= taper
        p_old, p = p, p_new
        s["t"] += s["dt"]
        traces.append(p[4, ::4].copy())
    s["p"], s["p_old"] = p, p_old
    gather = np.stack(traces)
    energy = float(np.mean(np.square(p, dtype=np.float64)))
    return gather, p, energy


def check(result):
    gather, p, energy = result
    return [gather, p, energy, float(np.abs(p).max())]
