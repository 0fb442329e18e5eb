"""Astrophysics: direct-summation N-body star cluster, Plummer softening, leapfrog."""

import numpy as np

SIZES = {"small": 40, "default": 300, "large": 1100}
G = 1.0


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    m = rng.uniform(0.5, 1.5, n)
    m /= m.sum()
    r = 1.0 / np.sqrt(rng.uniform(0.05, 0.95, n) ** (-2 / 3) - 1)
    u = rng.standard_normal((n, 3))
    pos = r[:, None] * u / np.linalg.norm(u, axis=1, keepdims=True)
    vel = 0.4 * rng.standard_normal((n, 3)) / (1 + r[:, None])
    vel -= np.average(vel, axis=0, weights=m)
    return {"m": m, "pos": pos, "vel": vel, "eps": 0.1, "dt": 0.005}


def accel(pos, m, eps):
    d = pos[np.newaxis, :, :] - pos[:, np.newaxis, :]
    r2 = (d**2).sum(axis=-1) + eps**2
    w = G * m * r2**-1.5
    return (w[:, :, None] * d).sum(axis=1)


def potential(pos, m, eps):
    x, y, z = pos.T
    r = np.sqrt((x - x[:, None]) ** 2 + (y - y[:, None]) ** 2 + (z - z[:, None]) ** 2 + eps**2)
    mm = m * m[:, None] / r
    return -0.5 * G * (mm.sum() - np.trace(mm))


def run(s):
    m, pos, vel, dt = s["m"], s["pos"], s["vel"], s["dt"]
    a = accel(pos, m, s["eps"])
    for _ in range(2):
        vel += 0.5 * dt * a
        pos += dt * vel
        a = accel(pos, m, s["eps"])
        vel += 0.5 * dt * a
    kin = 0.5 * np.sum(m * np.sum(vel * vel, axis=1))
    pot = potential(pos, m, s["eps"])
    ang = (m[:, None] * np.cross(pos, vel)).sum(axis=0)
    com = m @ pos
    radius = np.sqrt(((pos - com) ** 2).sum(1))
    half = float(np.median(radius))
    core = radius < half
    sigma = vel[core].std(axis=0)
    return pos.copy(), float(kin + pot), float(-2 * kin / pot), ang, half, sigma


def check(result):
    pos, energy, virial, ang, half, sigma = result
    return [pos, energy, virial, ang, half, sigma]
