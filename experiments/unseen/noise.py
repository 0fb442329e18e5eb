"""Noise: a large field of Gaussian noise for a simulation, from a counter-based generator.

Source: G. Box and M. Muller (1958); the integer hash is that of G. Steele, D. Lea and C. Flood
(splitmix, 2014) in 32 bits. One run makes 5 maps: two hashes to uniforms, radius, two normals.
"""

from math import cos, log, sin, sqrt

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 6_000_000, "large": 24_000_000}


@pk.workunit
def hashed(i, h, seed):
    h[i] = seed + i
    h[i] ^= h[i] >> 16
    h[i] *= 2146121005
    h[i] ^= h[i] >> 15
    h[i] *= 2221713035
    h[i] ^= h[i] >> 16


@pk.workunit
def uniform(i, u, h):
    u[i] = (h[i] + 0.5) / 4294967296.0


@pk.workunit
def radius(i, r, u, deviation):
    r[i] = deviation * sqrt(-2.0 * log(u[i]))


@pk.workunit
def normals(i, a, b, r, u):
    a[i] = r[i] * cos(6.283185307179586 * u[i])
    b[i] = r[i] * sin(6.283185307179586 * u[i])


def setup(size):
    a, b = (pk.View([size], pk.double) for _ in range(2))
    return {"n": size, "a": a, "b": b}


def run(state):
    n = state["n"]
    h, k = (pk.View([n], pk.uint32) for _ in range(2))
    u, w, r = (pk.View([n], pk.double) for _ in range(3))
    pk.parallel_for(n, hashed, h=h, seed=12345)
    pk.parallel_for(n, hashed, h=k, seed=987654321)
    pk.parallel_for(n, uniform, u=u, h=h)
    pk.parallel_for(n, uniform, u=w, h=k)
    pk.parallel_for(n, radius, r=r, u=u, deviation=2.0)
    pk.parallel_for(n, normals, a=state["a"], b=state["b"], r=r, u=w)


def outputs(state):
    return {"a": np.array(state["a"].data), "b": np.array(state["b"].data)}


def check(state, size, runs):
    assert abs(np.array(state["a"].data).std() - 2.0) < 0.2, "deviation"
