"""The log-likelihood of a normal distribution."""

import numpy as np

GPU = {"n": 80_000_000}  # what fills one


def make(n=4_000_000):
    rng = np.random.default_rng(2)
    return rng.normal(1.0, 2.0, size=n), 1.0, 2.0


def run(x, mean, deviation):
    scaled = (x - mean) / deviation
    return np.sum(-0.5 * scaled**2 - np.log(deviation) - 0.5 * np.log(2 * np.pi))
