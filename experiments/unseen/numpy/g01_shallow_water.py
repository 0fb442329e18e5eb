"""Shallow-water basin on a C grid: wind-driven seiche over an uneven bottom,
with rotation, quadratic drag, upwind continuity and a few drifting buoys."""

import numpy as np

SIZES = {"small": 24, "default": 130, "large": 400}

G = 9.81
F0 = 1.0e-4
CD = 2.5e-3
STEPS = 36


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    dx = 500.0
    xc = (np.arange(n) + 0.5) * dx
    X, Y = np.meshgrid(xc, xc, indexing="ij")
    L = n * dx
    depth = 20.0 + 12.0 * np.sin(np.pi * X / L) * np.sin(np.pi * Y / L)
    for _ in range(4):
        x0, y0 = rng.uniform(0.2 * L, 0.8 * L, size=2)
        w = rng.uniform(0.05, 0.12) * L
        depth -= 5.0 * np.exp(-((X - x0) ** 2 + (Y - y0) ** 2) / (2 * w**2))
    depth = np.maximum(depth, 3.0)
    eta = 0.4 * np.exp(-((X - 0.3 * L) ** 2 + (Y - 0.4 * L) ** 2) / (0.1 * L) ** 2)
    buoys = rng.uniform(0.2 * L, 0.8 * L, size=(40, 2))
    return {
        "dx": dx,
        "dt": 0.35 * dx / np.sqrt(2 * G * depth.max()),
        "depth": depth,
        "eta": eta,
        "u": np.zeros((n + 1, n)),
        "v": np.zeros((n, n + 1)),
        "buoys": buoys,
        "wind": np.array([6.0, -3.0]),
    }


def continuity(eta, depth, u, v, dt, dx):
    """Advance eta in place with upwinded layer thickness on the faces."""
    h = depth + eta
    fu = np.zeros_like(u)
    fv = np.zeros_like(v)
    ui = u[1:-1]
    vi = v[:, 1:-1]
    fu[1:-1] = np.where(ui > 0, h[:-1], h[1:]) * ui
    fv[:, 1:-1] = np.where(vi > 0, h[:, :-1], h[:, 1:]) * vi
    eta -= dt / dx * (fu[1:] - fu[:-1] + fv[:, 1:] - fv[:, :-1])
    return h


def momentum(eta, h, u, v, tau, dt, dx):
    # four-point averages of the other component on the interior faces
    v_at_u = 0.25 * (v[:-1, :-1] + v[1:, :-1] + v[:-1, 1:] + v[1:, 1:])
    u_at_v = 0.25 * (u[:-1, :-1] + u[1:, :-1] + u[:-1, 1:] + u[1:, 1:])
    hu = 0.5 * (h[:-1] + h[1:])
    hv = 0.5 * (h[:, :-1] + h[:, 1:])

    ui = u[1:-1]
    vi = v[:, 1:-1]
    su = np.sqrt(ui**2 + v_at_u**2)
    sv = np.hypot(vi, u_at_v)
    du = -G * (eta[1:] - eta[:-1]) / dx + F0 * v_at_u + tau[0] / hu
    dv = -G * np.diff(eta, axis=1) / dx - F0 * u_at_v + tau[1] / hv
    # drag treated implicitly
    ui += dt * du
    ui /= 1.0 + dt * CD * su / hu
    vi += dt * dv
    vi /= 1.0 + dt * CD * sv / hv


def move_buoys(pos, u, v, dt, dx):
    n = v.shape[0]
    i = np.clip((pos[:, 0] // dx).astype(int), 0, n - 1)
    j = np.clip((pos[:, 1] // dx).astype(int), 0, n - 1)
    fx = pos[:, 0] / dx - i
    fy = pos[:, 1] / dx - j
    pos[:, 0] += dt * ((1 - fx) * u[i, j] + fx * u[i + 1, j])
    pos[:, 1] += dt * ((1 - fy) * v[i, j] + fy * v[i, j + 1])
    np.clip(pos, 0.0, n * dx, out=pos)


def run(state):
    eta, u, v = state["eta"], state["u"], state["v"]
    depth, dx, dt = state["depth"], state["dx"], state["dt"]
    tau = 1.2e-3 * 1.3e-3 * np.linalg.norm(state["wind"]) * state["wind"]
    n = eta.shape[0]
    gauge = np.empty((STEPS, 3))
    high = eta.copy()
    for k in range(STEPS):
        h = continuity(eta, depth, u, v, dt, dx)
        momentum(eta, h, u, v, tau, dt, dx)
        move_buoys(state["buoys"], u, v, dt, dx)
        np.maximum(high, eta, out=high)
        gauge[k] = eta[n // 4, n // 4], eta[n // 2, n // 2], eta[-2, n // 3]

    uc = 0.5 * (u[1:] + u[:-1])
    vc = 0.5 * (v[:, 1:] + v[:, :-1])
    vort = np.zeros((n + 1, n + 1))
    vort[1:-1, 1:-1] = (np.diff(v[:, 1:-1], axis=0) - np.diff(u[1:-1], axis=1)) / dx
    kinetic = 0.5 * np.sum((depth + eta) * (uc**2 + vc**2)) * dx**2
    potential = 0.5 * G * np.sum(eta**2) * dx**2
    return {
        "eta": eta.copy(),
        "gauge": gauge,
        "high_water": high,
        "energy": np.array([kinetic, potential]),
        "vort_rms": np.sqrt(np.mean(vort**2)),
        "volume": eta.mean(),
        "max_speed": np.sqrt((uc**2 + vc**2).max()),
        "buoys": state["buoys"].copy(),
    }


def check(result):
    return list(result.values())
