"""Prices of options after Black and Scholes, with a polynomial for the normal distribution."""

import numpy as np

GPU = {"n": 80_000_000}  # what fills one


def make(n=2_000_000):
    rng = np.random.default_rng(3)
    return rng.uniform(10, 50, n), rng.uniform(10, 50, n), rng.uniform(1, 2, n), 0.1, 0.2


def cnd(d):
    k = 1.0 / (1.0 + 0.2316419 * np.abs(d))
    tail = k * (
        0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
    )
    value = 0.3989422804014327 * np.exp(-0.5 * d * d) * tail
    return np.where(d > 0, 1.0 - value, value)


def run(price, strike, years, rate, volatility):
    root = np.sqrt(years)
    d1 = (np.log(price / strike) + (rate + 0.5 * volatility**2) * years) / (volatility * root)
    d2 = d1 - volatility * root
    discounted = strike * np.exp(-rate * years)
    call = price * cnd(d1) - discounted * cnd(d2)
    put = discounted * cnd(-d2) - price * cnd(-d1)
    return call, put
