"""Redistancing a level set: upwind eikonal steps until the band is still, the area kept by shifts."""

from dataclasses import dataclass
from math import sqrt, sin, cos
import numpy as np
from common import main, rnd, view
import pyfuser
import pykokkos as pk

SIZES = {"small": 50, "default": 700, "large": 1600}
LIMIT, TOLERANCE, BAND, DTAU = 10, 1e-3, 4.0, 0.4


@pk.workunit
def begin(i, j, phi, given):
    phi[i][j] = given[i][j]


@pk.workunit
def sign(i, j, s, phi):
    s[i][j] = phi[i][j] / sqrt(phi[i][j] * phi[i][j] + 1.0)


@pk.workunit
def differ(i, j, a, b, c, d, phi, n):
    """Backward and forward differences; nothing changes across the border."""
    im = max(i - 1, 0)
    ip = min(i + 1, n - 1)
    jm = max(j - 1, 0)
    jp = min(j + 1, n - 1)
    a[i][j] = phi[i][j] - phi[im][j]
    b[i][j] = phi[ip][j] - phi[i][j]
    c[i][j] = phi[i][j] - phi[i][jm]
    d[i][j] = phi[i][jp] - phi[i][j]


@pk.workunit
def godunov(i, j, g, a, b, c, d, s):
    x: float = 0.0
    y: float = 0.0
    if s[i][j] > 0.0:
        x = max(max(a[i][j], 0.0), -min(b[i][j], 0.0))
        y = max(max(c[i][j], 0.0), -min(d[i][j], 0.0))
    else:
        x = max(-min(a[i][j], 0.0), max(b[i][j], 0.0))
        y = max(-min(c[i][j], 0.0), max(d[i][j], 0.0))
    g[i][j] = sqrt(x * x + y * y)


@pk.workunit
def advance(i, j, new, phi, s, g, dt):
    new[i][j] = phi[i][j] - dt * s[i][j] * (g[i][j] - 1.0)


@pk.workunit
def heaviside(i, j, h, phi):
    v: float = 0.5 * (1.0 + phi[i][j] / 1.5)
    h[i][j] = max(0.0, min(1.0, v))


@pk.workunit
def moved(i, j, acc, new, phi, band):
    if abs(phi[i][j]) < band:
        acc += abs(new[i][j] - phi[i][j])


@pk.workunit
def near(i, j, acc, phi, band):
    if abs(phi[i][j]) < band:
        acc += 1.0


@pk.workunit
def area(i, j, acc, h):
    acc += h[i][j]


@pk.workunit
def front(i, j, acc, phi):
    if abs(phi[i][j]) < 1.5:
        acc += 1.0 / 3.0


@pk.workunit
def shift(i, j, phi, by):
    phi[i][j] += by


@dataclass
class State:
    n: int
    given: pk.View
    phi: pk.View
    steps: int = 0
    area: float = 0.0


def setup(n):
    x = (np.arange(n) - n / 2.0) / n
    r = x[:, None] * x[:, None] + 1.3 * x * x
    bumps = rnd(64, 51).reshape(8, 8)
    k = np.arange(n) * 8 // n
    return State(n, view((0.12 - r) * n * (0.6 + 0.8 * bumps[k][:, k])), pk.View([n, n], pk.double))


def run(st):
    n = st.n
    cells = pk.MDRangePolicy([0, 0], [n, n])
    phi, new, s, a, b, c, d, g, h = (pk.View([n, n], pk.double) for _ in range(9))
    pk.parallel_for(cells, begin, phi=phi, given=st.given)
    pk.parallel_for(cells, sign, s=s, phi=phi)
    pk.parallel_for(cells, heaviside, h=h, phi=phi)
    target = float(pk.parallel_reduce(cells, area, h=h))
    for k in range(LIMIT):
        pk.parallel_for(cells, differ, a=a, b=b, c=c, d=d, phi=phi, n=n)
        pk.parallel_for(cells, godunov, g=g, a=a, b=b, c=c, d=d, s=s)
        pk.parallel_for(cells, advance, new=new, phi=phi, s=s, g=g, dt=DTAU)
        change = pk.parallel_reduce(cells, moved, new=new, phi=phi, band=BAND)
        count = pk.parallel_reduce(cells, near, phi=new, band=BAND)
        pk.parallel_for(cells, heaviside, h=h, phi=new)
        now = pk.parallel_reduce(cells, area, h=h)
        edge = pk.parallel_reduce(cells, front, phi=new)
        phi, new = new, phi
        if float(change) < TOLERANCE * float(count):
            break
        if abs(float(now) - target) > 1e-4 * target:
            pk.parallel_for(
                cells, shift, phi=phi, by=0.5 * (target - float(now)) / max(float(edge), 1.0)
            )
    st.phi, st.steps, st.area = phi, k, now


def outputs(st):
    return {"phi": np.array(st.phi.data), "steps": st.steps, "area": float(st.area)}


if __name__ == "__main__":
    main(globals())
