"""Heat transfer: plate with variable conductivity, Peaceman-Rachford ADI, Thomas algorithm along columns."""

import numpy as np

SIZES = {"small": 40, "default": 250, "large": 1050}


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    k = 1.0 + 0.5 * rng.random((n, n))
    k[n // 3 : n // 2, n // 4 : n // 2] = 8.0  # a copper inlay
    T = np.full((n, n), 20.0)
    source = np.zeros((n, n))
    source[2 * n // 3, n // 2 : 3 * n // 4] = 300.0
    return {"T": T, "k": k, "source": source, "dt": 0.5, "steps": 1}


def face_conductance(k):
    """harmonic mean at the faces between rows; first and last face isolated"""
    g = np.zeros((k.shape[0] + 1, k.shape[1]))
    g[1:-1] = 2 * k[1:] * k[:-1] / (k[1:] + k[:-1])
    return g


def thomas(lower, diag, upper, rhs):
    """solve one tridiagonal system per column"""
    n = diag.shape[0]
    c = np.empty_like(diag)
    x = np.empty_like(rhs)
    c[0] = upper[0] / diag[0]
    x[0] = rhs[0] / diag[0]
    for i in range(1, n):
        w = 1.0 / (diag[i] - lower[i] * c[i - 1])
        c[i] = upper[i] * w
        x[i] = (rhs[i] - lower[i] * x[i - 1]) * w
    for i in range(n - 2, -1, -1):
        x[i] -= c[i] * x[i + 1]
    return x


def explicit(T, g):
    q = np.zeros_like(g)
    q[1:-1] = g[1:-1] * (T[1:] - T[:-1])
    return q[1:] - q[:-1]


def half_step(T, g_imp, g_exp_term, h, extra):
    lower, upper = -h * g_imp[:-1], -h * g_imp[1:]
    diag = 1.0 - lower - upper
    return thomas(lower, diag, upper, T + h * (g_exp_term + extra))


def run(s):
    T, k, h = s["T"], s["k"], 0.5 * s["dt"]
    gy = face_conductance(k)
    gx = face_conductance(k.T.copy())
    for _ in range(s["steps"]):
        loss = 0.02 * (20.0 - T)  # to the surrounding air
        T = half_step(T, gy, explicit(T.T, gx).T, h, s["source"] + loss)
        loss = 0.02 * (20.0 - T)
        T = half_step(T.T, gx, explicit(T, gy).T, h, (s["source"] + loss).T).T
        T[:, 0] = 20.0
    s["T"] = T
    hot = T > 21.0
    gy_, gx_ = np.gradient(T)
    return T, float(T.max()), int(hot.sum()), float(np.hypot(gx_, gy_).mean()), T.mean(axis=0)


def check(result):
    T, tmax, hot, grad, profile = result
    return [T, tmax, float(hot), grad, profile]
