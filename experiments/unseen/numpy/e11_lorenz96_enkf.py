"""Lorenz-96 ensemble: RK4 on many members, then a localised EnKF-style analysis.

The members are advanced together in one (members, variables) array; the
analysis nudges each variable with the ensemble covariance to nearby stations.
"""

import numpy as np

SIZES = {"small": 8, "default": 2000, "large": 22000}  # ensemble members
NVAR = 40
FORCING = 8.0
DT = 0.02
STEPS = 3
OBS_EVERY = 4
OBS_STD = 1.0


def tendency(x):
    return (np.roll(x, -1, axis=-1) - np.roll(x, 2, axis=-1)) * np.roll(x, 1, axis=-1) - x + FORCING


def rk4(x, dt):
    k1 = tendency(x)
    k2 = tendency(x + 0.5 * dt * k1)
    k3 = tendency(x + 0.5 * dt * k2)
    k4 = tendency(x + dt * k3)
    return x + dt / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)


def gaspari_cohn_like(dist, width):
    r = dist / width
    return np.where(r < 2, np.exp(-0.5 * r**2) * (1 - r / 2).clip(min=0), 0.0)


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    truth = FORCING + rng.normal(0, 1, NVAR)
    for _ in range(400):
        truth = rk4(truth, DT)
    ens = truth + rng.normal(0, 1.0, (n, NVAR))
    obs_idx = np.arange(0, NVAR, OBS_EVERY)
    d = np.abs(np.arange(NVAR)[:, None] - obs_idx[None, :])
    d = np.minimum(d, NVAR - d)
    y = []
    pert = rng.normal(0, OBS_STD, (2, n, len(obs_idx)))
    final = truth
    for _ in range(2):
        for _ in range(STEPS):
            final = rk4(final, DT)
        y.append(final[obs_idx] + rng.normal(0, OBS_STD, len(obs_idx)))
    return {
        "ens": ens,
        "truth": final,
        "obs_idx": obs_idx,
        "y": np.array(y),
        "pert": pert,
        "loc": gaspari_cohn_like(d, 4.0),
    }


def analysis(ens, y, pert, obs_idx, loc, inflation=1.05):
    n = ens.shape[0]
    mean = ens.mean(axis=0)
    A = (ens - mean) * inflation
    ens = mean + A
    HA = A[:, obs_idx]
    PHt = (A.T @ HA) / (n - 1) * loc
    S = PHt[obs_idx] + OBS_STD**2 * np.eye(len(obs_idx))
    innov = y + pert - ens[:, obs_idx]
    gain = np.linalg.solve(S.T, PHt.T).T
    return ens + innov @ gain.T


def crps(ens, truth):
    """Continuous ranked probability score per variable (sorted form)."""
    n = len(ens)
    xs = np.sort(ens, axis=0)
    w = 2 * np.arange(1, n + 1) - n - 1
    spread = (w[:, None] * xs).sum(axis=0) / (n * (n - 1.0))
    return np.abs(ens - truth).mean(axis=0) - spread


def run(state):
    ens = state["ens"].copy()
    stats = []
    for cycle in range(2):
        for _ in range(STEPS):
            ens = rk4(ens, DT)
        before = ens.std(axis=0, ddof=1).mean()
        ens = analysis(ens, state["y"][cycle], state["pert"][cycle], state["obs_idx"], state["loc"])
        stats.append((before, ens.std(axis=0, ddof=1).mean()))
    rmse = np.sqrt(np.mean((ens.mean(axis=0) - state["truth"]) ** 2))
    q = np.quantile(ens, [0.1, 0.5, 0.9], axis=0)
    return ens, np.array(stats), rmse, q, crps(ens, state["truth"])


def check(result):
    return list(result)
