"""Bermudan put under Heston stochastic volatility: antithetic Monte Carlo,
Longstaff-Schwartz regression, control variate, and tail risk of the hedge."""

import numpy as np

SIZES = {"small": 500, "default": 12000, "large": 120000}

STEPS = 24


def make(n, seed=1):
    return {
        "n_paths": n,
        "seed": seed,
        "s0": 100.0,
        "strikes": np.array([90.0, 100.0, 110.0]),
        "r": 0.03,
        "T": 1.0,
        "kappa": 2.0,
        "theta": 0.06,
        "xi": 0.4,
        "rho": -0.65,
        "v0": 0.05,
    }


def simulate(p, rng):
    """Full-truncation Euler; returns spot and variance as (STEPS + 1, n)."""
    n = p["n_paths"]
    dt = p["T"] / STEPS
    sq = np.sqrt(dt)
    logs = np.empty((STEPS + 1, n))
    var = np.empty((STEPS + 1, n))
    logs[0] = np.log(p["s0"])
    var[0] = p["v0"]
    rho2 = np.sqrt(1.0 - p["rho"] ** 2)
    for k in range(STEPS):
        z = rng.standard_normal((2, n // 2))
        z1 = np.concatenate([z[0], -z[0]])
        z2 = np.concatenate([z[1], -z[1]])
        vp = np.maximum(var[k], 0.0)
        vol = np.sqrt(vp)
        dw = p["rho"] * z1 + rho2 * z2
        logs[k + 1] = logs[k] + (p["r"] - 0.5 * vp) * dt + vol * sq * dw
        var[k + 1] = var[k] + p["kappa"] * (p["theta"] - vp) * dt + p["xi"] * vol * sq * z1
    return np.exp(logs), np.maximum(var, 0.0)


def basis(x, v):
    """Polynomials of moneyness and of the variance state."""
    return np.stack([np.ones_like(x), x, x**2, x**3, v, x * v], axis=1)


def longstaff_schwartz(spot, var, strike, disc):
    cash = np.maximum(strike - spot[-1], 0.0)
    when = np.full(spot.shape[1], STEPS)
    for k in range(STEPS - 1, 0, -1):
        cash *= disc
        if k % 2:  # exercise dates are every second step
            continue
        s = spot[k]
        payoff = strike - s
        itm = payoff > 0
        A = basis(s[itm] / strike - 1.0, var[k, itm])
        gram = A.T @ A
        gram[np.diag_indices_from(gram)] += 1e-8
        beta = np.linalg.solve(gram, A.T @ cash[itm])
        cont = A @ beta
        now = np.zeros_like(itm)
        now[itm] = payoff[itm] > cont
        cash = np.where(now, payoff, cash)
        when[now] = k
    return cash * disc, when


def control_variate(x, c, c_mean):
    xc = x - x.mean()
    cc = c - c.mean()
    b = (xc * cc).sum() / (cc**2).sum()
    return x - b * (c - c_mean)


def delta_hedge(spot, var, when, strike, r, dt):
    """Discounted gains of a crude moneyness-based hedge, stopped at exercise."""
    vol = np.sqrt(np.maximum(var[:-1], 1e-4))
    left = (STEPS - np.arange(STEPS))[:, None] * dt
    d1 = (np.log(spot[:-1] / strike) + (r + 0.5 * vol**2) * left) / (vol * np.sqrt(left))
    delta = -1.0 / (1.0 + np.exp(1.702 * d1))
    disc = np.exp(-r * dt * np.arange(STEPS + 1))[:, None]
    gains = delta * np.diff(spot * disc, axis=0)
    gains *= np.arange(STEPS)[:, None] < when
    return gains.sum(axis=0)


def run(state):
    rng = np.random.default_rng(state["seed"])
    spot, var = simulate(state, rng)
    dt = state["T"] / STEPS
    disc = np.exp(-state["r"] * dt)
    mart = spot[-1] * disc**STEPS
    n = spot.shape[1]
    price, stderr, european, early = [], [], [], []
    for strike in state["strikes"]:
        value, when = longstaff_schwartz(spot, var, strike, disc)
        value = control_variate(value, mart, state["s0"])
        pair = 0.5 * (value[: n // 2] + value[n // 2 :])
        price.append(max(pair.mean(), strike - state["s0"]))
        stderr.append(pair.std(ddof=1) / np.sqrt(pair.size))
        european.append(disc**STEPS * np.maximum(strike - spot[-1], 0.0).mean())
        early.append(np.mean(when < STEPS))

    pnl = price[-1] - value + delta_hedge(spot, var, when, strike, state["r"], dt)
    pnl.sort()
    tail = pnl[: max(int(0.01 * n), 1)]
    peak = np.maximum.accumulate(spot, axis=0)
    drawdown = (1.0 - spot / peak).max(axis=0)
    return {
        "price": np.array(price),
        "stderr": np.array(stderr),
        "premium": np.array(price) - np.array(european),
        "early": np.array(early),
        "var99": -tail[-1],
        "es99": -tail.mean(),
        "drawdown": np.quantile(drawdown, [0.5, 0.9, 0.99]),
    }


def check(result):
    return list(result.values())
