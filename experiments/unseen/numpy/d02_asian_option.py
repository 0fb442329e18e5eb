"""Monte Carlo for Asian / barrier / lookback options with pathwise Greeks."""

import numpy as np
from dataclasses import dataclass

SIZES = {"small": 16, "default": 1500, "large": 30000}
STEPS = 64


@dataclass
class Market:
    spot: float
    strike: float
    rate: float
    vol: float
    maturity: float
    barrier: float
    z: object  # (paths, steps) normals, antithetic


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((n // 2, STEPS))
    z = np.concatenate([half, -half], axis=0)
    return Market(100.0, 101.0, 0.03, 0.25, 1.0, 135.0, z)


def simulate(m):
    dt = m.maturity / m.z.shape[1]
    incr = (m.rate - 0.5 * m.vol**2) * dt + m.vol * np.sqrt(dt) * m.z
    return m.spot * np.exp(np.cumsum(incr, axis=1))


def mean_err(x):
    n = x.shape[0]
    pair = 0.5 * (x[: n // 2] + x[n // 2 :])
    return float(pair.mean()), float(pair.std(ddof=1) / np.sqrt(pair.size))


def run(m):
    paths = simulate(m)
    disc = np.exp(-m.rate * m.maturity)
    t = m.maturity * np.arange(1, STEPS + 1) / STEPS

    avg = paths.mean(axis=1)
    itm = avg > m.strike
    asian = disc * np.maximum(avg - m.strike, 0.0)
    delta = disc * itm * avg / m.spot
    # dS/dvol = S * (log(S/S0) - (r + vol^2/2) t) / vol
    dvol = paths * (np.log(paths / m.spot) - (m.rate + 0.5 * m.vol**2) * t) / m.vol
    vega = disc * np.where(itm, dvol.mean(axis=1), 0.0)

    running_max = np.maximum.accumulate(paths, axis=1)
    alive = ~(paths > m.barrier).any(axis=1)
    last = paths[:, -1]
    barrier = np.zeros(len(last))
    barrier[alive] = disc * np.clip(last[alive] - m.strike, 0.0, None)
    lookback = disc * (running_max[:, -1] - last)
    drawdown = (1.0 - paths / running_max).max(axis=1)

    prices = {
        name: mean_err(x)
        for name, x in [
            ("asian", asian),
            ("delta", delta),
            ("vega", vega),
            ("barrier", barrier),
            ("lookback", lookback),
        ]
    }
    var95 = np.quantile(drawdown, [0.5, 0.95, 0.99])
    return prices, var95, alive.mean()


def check(result):
    prices, var95, alive = result
    return [v for pair in prices.values() for v in pair] + [var95, float(alive)]
