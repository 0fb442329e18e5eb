"""sin(x)**2 + cos(x)**2 of many numbers: DelayRepay's first example."""

import numpy as np

GPU = {"n": 83_000_000}  # what fills one


def make(n=4_000_000):
    return (np.linspace(0.0, 100.0, n),)


def run(x):
    return np.sin(x) ** 2 + np.cos(x) ** 2
