"""A GRU written from scratch for load forecasting: forward, backpropagation
through time, gradient clipping, Adam; then a validation pass."""

import numpy as np

SIZES = {"small": 8, "default": 1200, "large": 9000}

T = 16
N_IN = 6
HIDDEN = 24
EPOCHS = 2


def make(n, seed=1):
    """n windows for training and n // 4 + 1 for validation."""
    rng = np.random.default_rng(seed)
    m = n + n // 4 + 1
    t = np.arange(T + 1) + rng.integers(0, 168, size=(m, 1))
    load = 1.0 + 0.5 * np.sin(2 * np.pi * t / 24) + 0.2 * np.sin(2 * np.pi * t / 168)
    temp = 0.3 * np.cos(2 * np.pi * t / 24) + rng.normal(0, 0.1, t.shape)
    load = load - 0.4 * temp + rng.normal(0, 0.05, t.shape)
    calendar = [np.sin(2 * np.pi * t / 24), np.cos(2 * np.pi * t / 24)]
    weekend = ((t // 24) % 7 >= 5).astype(float)
    X = np.stack([load, temp, *calendar, weekend, np.ones_like(load)], axis=-1)[:, :-1]
    y = load[:, -1:]
    params = {}
    for g in ("z", "r", "h"):
        params["W" + g] = rng.normal(0, 1 / np.sqrt(N_IN), (N_IN, HIDDEN))
        params["U" + g] = rng.normal(0, 1 / np.sqrt(HIDDEN), (HIDDEN, HIDDEN))
        params["b" + g] = np.zeros(HIDDEN)
    params["V"] = rng.normal(0, 0.1, (HIDDEN, 1))
    params["c"] = np.zeros(1)
    adam = {k: (np.zeros_like(v), np.zeros_like(v)) for k, v in params.items()}
    return {
        "X": X[:n].transpose(1, 0, 2).copy(),
        "y": y[:n],
        "X_val": X[n:].transpose(1, 0, 2).copy(),
        "y_val": y[n:],
        "params": params,
        "adam": adam,
        "t": 0,
    }


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def forward(p, X):
    h = np.zeros((X.shape[1], HIDDEN))
    cache = []
    for x in X:
        z = sigmoid(x @ p["Wz"] + h @ p["Uz"] + p["bz"])
        r = sigmoid(x @ p["Wr"] + h @ p["Ur"] + p["br"])
        cand = np.tanh(x @ p["Wh"] + (r * h) @ p["Uh"] + p["bh"])
        cache.append((x, h, z, r, cand))
        h = (1 - z) * h + z * cand
    return h @ p["V"] + p["c"], h, cache


def huber(err, delta=0.5):
    a = np.abs(err)
    loss = np.where(a <= delta, 0.5 * err**2, delta * (a - 0.5 * delta))
    return loss.mean(), np.clip(err, -delta, delta) / err.size


def backward(p, dy, h_last, cache):
    g = {k: np.zeros_like(v) for k, v in p.items()}
    g["V"] = h_last.T @ dy
    g["c"] = dy.sum(axis=0)
    dh = dy @ p["V"].T
    for x, h, z, r, cand in reversed(cache):
        da = dh * z * (1 - cand**2)
        dz = dh * (cand - h) * z * (1 - z)
        drh = da @ p["Uh"].T
        dr = drh * h * r * (1 - r)
        for name, d, inp in (("h", da, r * h), ("z", dz, h), ("r", dr, h)):
            g["W" + name] += x.T @ d
            g["U" + name] += inp.T @ d
            g["b" + name] += d.sum(axis=0)
        dh = dh * (1 - z) + drh * r + dz @ p["Uz"].T + dr @ p["Ur"].T
    return g


def adam_step(p, g, adam, t, lr=5e-3, b1=0.9, b2=0.999, eps=1e-8):
    for k in p:
        m, s = adam[k]
        m *= b1
        m += (1 - b1) * g[k]
        s *= b2
        s += (1 - b2) * g[k] ** 2
        p[k] -= lr * (m / (1 - b1**t)) / (np.sqrt(s / (1 - b2**t)) + eps)


def run(state):
    p, X, y = state["params"], state["X"], state["y"]
    losses, norms = [], []
    for _ in range(EPOCHS):
        pred, h, cache = forward(p, X)
        loss, dy = huber(pred - y)
        g = backward(p, dy, h, cache)
        norm = np.sqrt(sum((v**2).sum() for v in g.values()))
        if norm > 1.0:
            for v in g.values():
                v *= 1.0 / norm
        state["t"] += 1
        adam_step(p, g, state["adam"], state["t"])
        losses.append(loss)
        norms.append(norm)

    pred, h, cache = forward(p, state["X_val"])
    err = (pred - state["y_val"])[:, 0]
    update_gate = np.array([c[2].mean(axis=0) for c in cache])
    return {
        "loss": np.array(losses),
        "grad_norm": np.array(norms),
        "rmse": np.sqrt((err**2).mean()),
        "mape": 100 * np.mean(np.abs(err / state["y_val"][:, 0])),
        "bias": err.mean(),
        "update_gate": update_gate,
        "saturated": np.mean(np.abs(h) > 0.9),
        "weights": {k: np.linalg.norm(v) for k, v in p.items()},
    }


def check(result):
    w = result["weights"]
    return [result[k] for k in result if k != "weights"] + [w[k] for k in sorted(w)]
