"""Dose: the response of cells to a drug, by a Hill curve, and its log-odds.

Source: A. Hill (1910), as in dose-response screens. One run makes 4 maps over doses: logarithm,
logistic, clamp away from 0 and 1, and log-odds.
"""

from math import exp, log

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 4_000_000, "large": 16_000_000}


@pk.workunit
def log_dose(i, t, dose, half):
    t[i] = log(dose[i] / half)


@pk.workunit
def response(i, p, t, hill):
    p[i] = 1.0 / (1.0 + exp(-hill * t[i]))


@pk.workunit
def clamp(i, p, least):
    if p[i] < least:
        p[i] = least
    if p[i] > 1.0 - least:
        p[i] = 1.0 - least


@pk.workunit
def log_odds(i, z, p):
    z[i] = log(p[i] / (1.0 - p[i]))


def setup(size):
    rng = np.random.default_rng(13)
    dose, z = (pk.View([size], pk.double) for _ in range(2))
    dose.data[:] = rng.lognormal(0.0, 2.0, size)
    return {"n": size, "dose": dose, "z": z}


def run(state):
    n = state["n"]
    t, p = (pk.View([n], pk.double) for _ in range(2))
    pk.parallel_for(n, log_dose, t=t, dose=state["dose"], half=1.3)
    pk.parallel_for(n, response, p=p, t=t, hill=1.7)
    pk.parallel_for(n, clamp, p=p, least=1e-6)
    pk.parallel_for(n, log_odds, z=state["z"], p=p)


def outputs(state):
    return {"z": np.array(state["z"].data)}


def check(state, size, runs):
    assert np.abs(np.array(state["z"].data)).max() < 14.0, "odds"
