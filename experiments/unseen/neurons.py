"""Neurons: a population of Hodgkin-Huxley cells, one forward step of their gates at a time.

Source: A. Hodgkin and A. Huxley (1952); rates that are 0 / 0 at one voltage are expanded there, as
in every neuron simulator. A step makes 2 guarded rates, 4 plain ones, 3 gates and a current.
"""

from math import exp, fabs

import numpy as np
import pykokkos as pk

SIZES = {"small": 500, "default": 500_000, "large": 2_000_000}
STEPS, DT = 2, 0.01


@pk.workunit
def guarded_rate(i, a, v, scale, middle, width):
    x: float = (v[i] - middle) / width
    if fabs(x) < 1e-6:
        a[i] = scale * width * (1.0 + 0.5 * x)
    else:
        a[i] = scale * width * x / (1.0 - exp(-x))


@pk.workunit
def falling_rate(i, b, v, scale, middle, width):
    b[i] = scale * exp(-(v[i] - middle) / width)


@pk.workunit
def logistic_rate(i, b, v, middle, width):
    b[i] = 1.0 / (1.0 + exp(-(v[i] - middle) / width))


@pk.workunit
def gate(i, g, a, b, dt):
    g[i] += dt * (a[i] * (1.0 - g[i]) - b[i] * g[i])


@pk.workunit
def voltage(i, v, m, h, n, drive, dt):
    sodium: float = 120.0 * m[i] * m[i] * m[i] * h[i] * (v[i] - 50.0)
    potassium: float = 36.0 * n[i] * n[i] * n[i] * n[i] * (v[i] + 77.0)
    v[i] += dt * (drive[i] - sodium - potassium - 0.3 * (v[i] + 54.4))


def setup(size):
    rng = np.random.default_rng(29)
    v, m, h, n, drive = (pk.View([size], pk.double) for _ in range(5))
    v.data[:] = rng.uniform(-75.0, -40.0, size)
    drive.data[:] = rng.uniform(0.0, 20.0, size)
    for gate_view, value in ((m, 0.05), (h, 0.6), (n, 0.32)):
        gate_view.data[:] = value
    return {"size": size, "v": v, "m": m, "h": h, "n": n, "drive": drive}


def run(state):
    size, v = state["size"], state["v"]
    am, bm, ah, bh, an, bn = (pk.View([size], pk.double) for _ in range(6))
    for _ in range(STEPS):
        pk.parallel_for(size, guarded_rate, a=am, v=v, scale=0.1, middle=-40.0, width=10.0)
        pk.parallel_for(size, falling_rate, b=bm, v=v, scale=4.0, middle=-65.0, width=18.0)
        pk.parallel_for(size, falling_rate, b=ah, v=v, scale=0.07, middle=-65.0, width=20.0)
        pk.parallel_for(size, logistic_rate, b=bh, v=v, middle=-35.0, width=10.0)
        pk.parallel_for(size, guarded_rate, a=an, v=v, scale=0.01, middle=-55.0, width=10.0)
        pk.parallel_for(size, falling_rate, b=bn, v=v, scale=0.125, middle=-65.0, width=80.0)
        for name, a, b in (("m", am, bm), ("h", ah, bh), ("n", an, bn)):
            pk.parallel_for(size, gate, g=state[name], a=a, b=b, dt=DT)
        pk.parallel_for(
            size, voltage, v=v, m=state["m"], h=state["h"], n=state["n"], drive=state["drive"],
            dt=DT,
        )  # fmt: skip


def outputs(state):
    return {name: np.array(state[name].data) for name in ("v", "m", "h", "n")}


def check(state, size, runs):
    m = np.array(state["m"].data)
    assert m.min() >= 0.0 and m.max() <= 1.0, "gate"
