"""Shading: the colour of a rendered surface from its normals, lit by one lamp.

Source: B. Phong, "Illumination for Computer Generated Pictures" (1975), J. Blinn's half vector
(1977). One run makes 5 maps: normalise, cosine of the lamp, highlight where it shines, fog, tone.
"""

from math import exp, pow, sqrt

import numpy as np
import pykokkos as pk

SIZES = {"small": 2_000, "default": 3_000_000, "large": 12_000_000}


@pk.workunit
def normalise(i, x, y, z):
    length: float = sqrt(x[i] * x[i] + y[i] * y[i] + z[i] * z[i])
    x[i] /= length
    y[i] /= length
    z[i] /= length


@pk.workunit
def diffuse(i, c, x, y, z, lx, ly, lz):
    c[i] = x[i] * lx + y[i] * ly + z[i] * lz


@pk.workunit
def highlight(i, s, c, x, y, z, hx, hy, hz, shine):
    s[i] = 0.0
    if c[i] > 0.0:
        h: float = x[i] * hx + y[i] * hy + z[i] * hz
        if h > 0.0:
            s[i] = pow(h, shine)


@pk.workunit
def fog(i, f, depth, density):
    f[i] = 1.0
    if depth[i] > 2.0:
        f[i] = exp(-density * (depth[i] - 2.0))


@pk.workunit
def tone(i, out, c, s, f):
    light: float = 0.1 + 0.5 * s[i]
    if c[i] > 0.0:
        light += 0.6 * c[i]
    out[i] = f[i] * light + 0.8 * (1.0 - f[i])


def setup(size):
    rng = np.random.default_rng(28)
    x, y, z, depth, out = (pk.View([size], pk.double) for _ in range(5))
    for view in (x, y, z):
        view.data[:] = rng.normal(0.0, 1.0, size)
    depth.data[:] = rng.uniform(1.0, 6.0, size)
    return {"n": size, "normal": (x, y, z), "depth": depth, "out": out}


def run(state):
    n, (x, y, z) = state["n"], state["normal"]
    c, s, f = (pk.View([n], pk.double) for _ in range(3))
    pk.parallel_for(n, normalise, x=x, y=y, z=z)
    pk.parallel_for(n, diffuse, c=c, x=x, y=y, z=z, lx=0.48, ly=0.6, lz=0.64)
    pk.parallel_for(n, highlight, s=s, c=c, x=x, y=y, z=z, hx=0.265, hy=0.331, hz=0.905, shine=20.0)
    pk.parallel_for(n, fog, f=f, depth=state["depth"], density=0.4)
    pk.parallel_for(n, tone, out=state["out"], c=c, s=s, f=f)


def outputs(state):
    return {"out": np.array(state["out"].data)}


def check(state, size, runs):
    out = np.array(state["out"].data)
    assert out.min() >= 0.0 and out.max() <= 1.5, "light"
