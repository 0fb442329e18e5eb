"""Kalman: many independent tracks, each filtered through a few measurements.

Source: R. Kalman (1960), for a state of position and velocity with measured positions, written out
by component. One run makes MEASUREMENTS rounds of 8 maps: predict (4), gain (2), update (2).
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 1_000_000, "large": 4_000_000}
MEASUREMENTS, DT, NOISE, ERROR = 4, 0.1, 0.01, 0.25


@pk.workunit
def predict(i, x, v, dt):
    x[i] += dt * v[i]


@pk.workunit
def predict_xx(i, pxx, pxv, pvv, dt, noise):
    pxx[i] += dt * (2.0 * pxv[i] + dt * pvv[i]) + noise


@pk.workunit
def predict_xv(i, pxv, pvv, dt):
    pxv[i] += dt * pvv[i]


@pk.workunit
def predict_vv(i, pvv, noise):
    pvv[i] += noise


@pk.workunit
def gain(i, k, p, pxx, error):
    k[i] = p[i] / (pxx[i] + error)


@pk.workunit
def update_state(i, x, v, kx, kv, z):
    innovation: float = z[i] - x[i]
    x[i] += kx[i] * innovation
    v[i] += kv[i] * innovation


@pk.workunit
def update_errors(i, pxx, pxv, pvv, kx, kv):
    pvv[i] -= kv[i] * pxv[i]
    pxv[i] *= 1.0 - kx[i]
    pxx[i] *= 1.0 - kx[i]


def setup(size):
    rng = np.random.default_rng(6)
    views = {name: pk.View([size], pk.double) for name in ("x", "v", "pxx", "pxv", "pvv")}
    views["x"].data[:] = rng.normal(0.0, 1.0, size)
    views["pxx"].data[:] = 1.0
    views["pvv"].data[:] = 1.0
    measured = [pk.View([size], pk.double) for _ in range(MEASUREMENTS)]
    for number, z in enumerate(measured):
        z.data[:] = 0.5 * number * DT + rng.normal(0.0, 0.5, size)
    return {"n": size, "measured": measured, **views}


def run(state):
    n = state["n"]
    x, v, pxx, pxv, pvv = (state[name] for name in ("x", "v", "pxx", "pxv", "pvv"))
    kx, kv = (pk.View([n], pk.double) for _ in range(2))
    for z in state["measured"]:
        pk.parallel_for(n, predict, x=x, v=v, dt=DT)
        pk.parallel_for(n, predict_xx, pxx=pxx, pxv=pxv, pvv=pvv, dt=DT, noise=NOISE)
        pk.parallel_for(n, predict_xv, pxv=pxv, pvv=pvv, dt=DT)
        pk.parallel_for(n, predict_vv, pvv=pvv, noise=NOISE)
        pk.parallel_for(n, gain, k=kx, p=pxx, pxx=pxx, error=ERROR)
        pk.parallel_for(n, gain, k=kv, p=pxv, pxx=pxx, error=ERROR)
        pk.parallel_for(n, update_state, x=x, v=v, kx=kx, kv=kv, z=z)
        pk.parallel_for(n, update_errors, pxx=pxx, pxv=pxv, pvv=pvv, kx=kx, kv=kv)


def outputs(state):
    return {name: np.array(state[name].data) for name in ("x", "v", "pxx", "pxv", "pvv")}


def check(state, size, runs):
    assert (np.array(state["pxx"].data) > 0.0).all(), "a variance is not positive"
