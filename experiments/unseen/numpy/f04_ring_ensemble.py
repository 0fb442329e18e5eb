"""Ensemble of Lorenz-96 rings (40 sites a member): RK4 stepping, relaxation
towards the ensemble mean, exchange between neighbouring members."""

import numpy as np

SIZES = {"small": 24, "default": 4000, "large": 36000}
SITES = 40
STEPS = 4


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    x = 8.0 + rng.normal(scale=1.5, size=(n, SITES))
    forcing = 8.0 + rng.normal(scale=0.3, size=(n, 1))
    truth = 8.0 + np.sin(np.linspace(0, 2 * np.pi, SITES, endpoint=False)) * 2
    observed = np.zeros(SITES, dtype=bool)
    observed[::4] = True
    return {"x": x, "forcing": forcing, "obs": truth, "mask": observed, "dt": 0.01}


def tendency(x, forcing):
    ahead = np.roll(x, -1, axis=1)
    behind = np.roll(x, 1, axis=1)
    behind2 = np.roll(x, 2, axis=1)
    return (ahead - behind2) * behind - x + forcing


def rk4(x, forcing, dt):
    k1 = tendency(x, forcing)
    k2 = tendency(x + 0.5 * dt * k1, forcing)
    k3 = tendency(x + 0.5 * dt * k2, forcing)
    k4 = tendency(x + dt * k3, forcing)
    return x + dt / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)


def run(state):
    x = state["x"].copy()
    f, dt, mask = state["forcing"], state["dt"], state["mask"]
    spread = np.empty(STEPS)
    energy = np.empty((STEPS, len(x)))
    for s in range(STEPS):
        x = rk4(x, f, dt)
        # weak exchange between neighbouring members of the ensemble
        x += 0.02 * (np.roll(x, 1, axis=0) + np.roll(x, -1, axis=0) - 2.0 * x)
        # nudge the observed sites
        innov = np.where(mask, state["obs"] - x, 0.0)
        x += 0.05 * innov
        anomaly = x - x.mean(axis=0)
        spread[s] = np.sqrt((anomaly**2).mean())
        energy[s] = 0.5 * (x * x).sum(axis=1)

    # ranking of the members and phase of the strongest site
    misfit = np.abs(x[:, mask] - state["obs"][mask]).mean(axis=1)
    order = np.argsort(misfit, kind="stable")
    keep = order[: max(4, len(order) // 4)]
    peak = x.argmax(axis=1)
    aligned = np.take_along_axis(x, (np.arange(SITES) + peak[:, None]) % SITES, axis=1)
    return (
        x,
        spread,
        energy,
        x[keep].mean(axis=0),
        aligned.mean(axis=0),
        np.bincount(peak, minlength=SITES),
    )


def check(result):
    return list(result)
