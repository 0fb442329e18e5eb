"""Gas dynamics: 1-D Euler equations, MUSCL with minmod limiter, HLL flux, Heun in time."""

import numpy as np

SIZES = {"small": 300, "default": 20_000, "large": 350_000}
GAMMA = 1.4


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    x = (np.arange(n) + 0.5) / n
    rho = np.where(x < 0.5, 1.0, 0.125) * (1 + 0.02 * rng.standard_normal(n).clip(-3, 3))
    p = np.where(x < 0.5, 1.0, 0.1)
    u = 0.05 * np.sin(2 * np.pi * x)
    U = np.stack([rho, rho * u, p / (GAMMA - 1) + 0.5 * rho * u**2])
    return {"U": U, "dx": 1.0 / n, "t": 0.0}


def primitive(U):
    rho, mom, E = U
    u = mom / rho
    p = (GAMMA - 1) * (E - 0.5 * mom * u)
    return np.stack([rho, u, np.maximum(p, 1e-8)])


def minmod(a, b):
    return np.where(a * b > 0, np.where(np.abs(a) < np.abs(b), a, b), 0.0)


def flux(W):
    rho, u, p = W
    E = p / (GAMMA - 1) + 0.5 * rho * u * u
    U = np.stack([rho, rho * u, E])
    F = U * u
    F[1] += p
    F[2] += p * u
    return U, F, np.sqrt(GAMMA * p / rho)


def rhs(U, dx):
    W = primitive(np.pad(U, ((0, 0), (2, 2)), mode="edge"))
    d = np.diff(W, axis=1)
    slope = minmod(d[:, :-1], d[:, 1:])
    left = W[:, 1:-2] + 0.5 * slope[:, :-1]
    right = W[:, 2:-1] - 0.5 * slope[:, 1:]
    UL, FL, cL = flux(left)
    UR, FR, cR = flux(right)
    sl = np.minimum(np.minimum(left[1] - cL, right[1] - cR), 0.0)
    sr = np.maximum(np.maximum(left[1] + cL, right[1] + cR), 0.0)
    F = (sr * FL - sl * FR + sl * sr * (UR - UL)) / (sr - sl)
    return -(F[:, 1:] - F[:, :-1]) / dx


def run(s):
    U, dx = s["U"], s["dx"]
    for _ in range(2):
        rho, u, p = primitive(U)
        dt = 0.4 * dx / float(np.max(np.abs(u) + np.sqrt(GAMMA * p / rho)))
        U1 = U + dt * rhs(U, dx)
        U = 0.5 * (U + U1 + dt * rhs(U1, dx))
        s["t"] += dt
    s["U"] = U
    rho, u, p = primitive(U)
    entropy = np.log(p / rho**GAMMA)
    front = int(np.abs(np.diff(p)).argmax())
    return U, float(entropy.mean()), front * dx, s["t"], U.sum(axis=1) * dx


def check(result):
    U, ent, front, t, totals = result
    return [U, ent, front, t, totals]
